#!/usr/bin/env python3
"""Runs a Python program until it has read its options, for t/98-commands.t.

    t/tools/options.py PROGRAM [WORDS...]

The program's own parser of options refuses words that it does not know, with status 2; where it takes
them the program ends there, with status 0.  A program that reads no options at all has status 3.
Modules that are not installed, such as torch, are stand-ins.
"""

import argparse
import importlib.abc
import importlib.machinery
import os
import runpy
import sys
from unittest.mock import MagicMock


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return MagicMock(__path__=[], __spec__=spec)

    def exec_module(self, module):
        pass


def until_read(parser, *args, **more):
    parse(parser, *args, **more)
    sys.exit(0)


parse = argparse.ArgumentParser.parse_args
argparse.ArgumentParser.parse_args = until_read

sys.dont_write_bytecode = True
sys.meta_path.append(StandIns())
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))

with open(sys.argv[0]) as file:
    if 'parse_args()' not in file.read():
        sys.exit(3)

runpy.run_path(sys.argv[0], run_name='__main__')
sys.exit(3)
