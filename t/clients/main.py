"""
Runs the tests of the clients: all, or those whose names contain the arguments.
t/clients/run starts the servers before and calls this.
"""

import sys

import tap

import test_docs, test_json, test_langchain, test_ollama, test_openai     # noqa: E401,F401

tap.main(sys.argv[1:])
