"""
Tests are functions whose names are sentences; this file runs them and prints
TAP: "ok 3 - ollama: a list of models".  A failed test prints its line, and the
other tests run.
"""

import sys
import time
import traceback

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def name_of(function):
    about = function.__module__.removeprefix('test_')
    return f'{about}: {function.__name__.replace("_", " ")}'


def attempt(function):
    """Runs a test; returns None, or its error with the line."""

    try:
        function()
        return None

    except Exception as error:
        ours = [f for f in traceback.extract_tb(error.__traceback__) if '/t/clients/test_' in f.filename]
        at = f'{ours[-1].name}, line {ours[-1].lineno}: {ours[-1].line}\n' if ours else ''
        return f'{at}{type(error).__name__}: {str(error)[:1000]}'


def run(tests):
    print(f'1..{len(tests)}', flush=True)
    failed = 0

    for number, function in enumerate(tests, 1):
        start = time.monotonic()
        error = attempt(function)
        took = time.monotonic() - start

        print('ok' if error is None else 'not ok', f'{number} - {name_of(function)} # {took:.1f} s', flush=True)

        if error:
            failed += 1
            print('\n'.join('# ' + line for line in error.splitlines()), flush=True)

    return failed


def main(words):
    tests = [t for t in TESTS if not words or any(w in name_of(t) for w in words)]

    sys.exit(1 if run(tests) or not tests else 0)
