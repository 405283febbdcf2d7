"""
Runs the tests of the page: all, or those whose names contain the arguments.

    t/page/run [-p] [WORDS...]

-p copies the pictures that the tests made to docs/pictures/.
"""

import os
import sys

import house
import tap

import answers, forms, hands, lives, looks      # noqa: E401,F401 they register their tests

args = sys.argv[1:]
looks.PUBLISH = '-p' in args
words = [a for a in args if a != '-p']
tests = [t for t in tap.TESTS
         if not words or any(w in t.__name__.replace('_', ' ') for w in words)]

playwright = house.start()

try:
    place = house.House(playwright)
    failed = tap.run(tests, place)
    place.close()
finally:
    playwright.stop()

sys.exit(1 if failed or not tests else 0)
