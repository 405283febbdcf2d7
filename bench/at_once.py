#!/usr/bin/env python3
"""Measures several requests at once through nginx, at the 3B's shape, against one alone.

    bench/at_once.py DIR [--rounds N]

The cases are four requests of 128 tokens in and 32 out, five about one picture, and five about five
pictures.  The limit of a case is the target multiple of the time of one request in the same round.
"""

import argparse
import time

from server import Server, figure, median, png, url, way_to_first_token

WORDS = "the cup stands left of the bowl and the robot takes it with one arm to the shelf"
TOKENS = 32


def text(seed, words):
    """Returns prompts with different beginnings."""
    w = WORDS.split()
    return f"{seed} " + " ".join(w[(seed * 7 + i * i) % len(w)] for i in range(words))


def message(seed, words, picture=None):
    parts = [{"type": "text", "text": text(seed, words)}]

    if picture is not None:
        parts.insert(0, {"type": "image_url", "image_url": {"url": url(picture)}})

    return {"messages": [{"role": "user", "content": parts}], "max_tokens": TOKENS,
            "temperature": 0, "logit_bias": {"151645": -100, "151643": -100}}


def picture(seed):
    return png(448, 448, seed)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("dir")
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    one, four, alone, same, encode, each, answers = [], [], [], [], [], [], []
    path = "/v1/chat/completions"

    with Server(a.dir, context="1k", slots=5) as s:
        s.together(path, [message(1, 8)])

        for r in range(a.rounds):
            n = 1000 * (r + 1)
            one.append(s.together(path, [message(n, 100)])[0])
            four.append(s.together(path, [message(n + i, 100) for i in range(1, 5)])[0])

            alone.append(s.together(path, [message(n + 5, 20, picture(n + 5))])[0])
            shared = picture(n + 6)
            same.append(s.together(path, [message(n + 6 + i, 20, shared) for i in range(5)])[0])

            first = dict(message(n + 11, 20, picture(n + 11)), max_tokens=1, timings=True)
            start = time.monotonic()
            answers.append(s.ask(path, first))
            encode.append(time.monotonic() - start)
            each.append(s.together(path, [message(n + 12 + i, 20, picture(n + 12 + i))
                                          for i in range(5)])[0])

    decode = [x - y for x, y in zip(alone, encode)]
    figure("one_128_32_int8_3b", median(one), "s")
    figure("four_128_32_int8_3b", median(four), "s", 4 * median(one), is_time=True)
    figure("one_picture_32_int8_3b", median(alone), "s")
    figure("five_same_picture_32_int8_3b", median(same), "s", 2 * median(alone), is_time=True)
    figure("five_pictures_32_int8_3b", median(each), "s",
           median([1.15 * (5 * e + d) for e, d in zip(encode, decode)]), is_time=True)
    way_to_first_token("448_3b", answers)


if __name__ == "__main__":
    main()
