"""
Runs all tests of the page, or those whose names contain one of the arguments.

    t/page/run [-p] [WORDS...]

-p copies the pictures that the tests made to docs/pictures/.
"""

import os
import sys

import fixtures
import tap

import adapters, answers, controls, documents, forms, screenshots, states      # noqa: E401,F401 each registers its tests

args = sys.argv[1:]
screenshots.PUBLISH = '-p' in args
words = [a for a in args if a != '-p']
tests = [t for t in tap.TESTS
         if not words or any(w in t.__name__.replace('_', ' ') for w in words)]

playwright = fixtures.start()

try:
    all_fixtures = fixtures.Fixtures(playwright)
    failed = tap.run(tests, all_fixtures)
    all_fixtures.close()
finally:
    playwright.stop()

sys.exit(1 if failed or not tests else 0)
