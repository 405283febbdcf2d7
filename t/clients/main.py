"""
Runs all tests of the clients, or those whose names contain one of the arguments.
t/clients/run starts the servers and then this program.
"""

import sys

import tap

import test_agents, test_commands, test_deploy, test_docs, test_json, test_langchain      # noqa: E401,F401
import test_litellm, test_models, test_ollama, test_openai, test_responses, test_schema  # noqa: E401,F401

tap.main(sys.argv[1:])
