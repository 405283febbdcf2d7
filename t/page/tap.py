"""
Tests are functions whose names are sentences; this file runs them and prints TAP.

A failed test leaves a screenshot of its pages in build/page/failed/, and the
other tests run.  A message in the console of the browser (an error of a script,
a refusal by the page's policy) fails the test during which it appears.
"""

import sys
import time
import traceback

TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Wrong(Exception):
    pass


def check(truth, text):
    if not truth:
        raise Wrong(text)


def same(got, expected, what):
    check(got == expected, f'{what}: {got!r}, expected {expected!r}')


# Limits are those of an idle machine; each guards against a state that never comes.
BUSY = 4


def wait_for(what, function, seconds=30):
    """Calls the function until its result is true, and returns that."""

    seconds *= BUSY
    end = time.monotonic() + seconds

    while True:
        value = function()

        if value:
            return value

        check(time.monotonic() < end, f'not after {seconds} s: {what}')
        time.sleep(0.03)


def run(tests, fixtures):
    print(f'1..{len(tests)}', flush=True)
    failed = 0

    for number, function in enumerate(tests, 1):
        name = function.__name__.replace('_', ' ')
        start = time.monotonic()
        error = attempt(function, fixtures)
        took = time.monotonic() - start

        print('ok' if error is None else 'not ok', f'{number} - {name} # {took:.1f} s', flush=True)

        if error:
            failed += 1
            print('\n'.join('# ' + line for line in error.splitlines()), flush=True)

    return failed


def attempt(function, fixtures):
    try:
        function(fixtures)
        fixtures.check_pages()
        return None

    except Wrong as wrong:
        error = str(wrong)

    except Exception as other:
        ours = [f for f in traceback.extract_tb(other.__traceback__) if '/t/page/' in f.filename]
        error = f'line {ours[-1].lineno} of {ours[-1].filename}: {str(other)[:400]}'

    finally:
        if sys.exc_info()[0] or 'error' in locals():
            fixtures.save_screens(function.__name__)
        fixtures.clean_up()

    return error
