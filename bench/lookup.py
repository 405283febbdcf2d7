#!/usr/bin/env python3
"""Counts the steps of lists of boxes with guessed tokens, without a model.

    bench/lookup.py DIR [--pictures N]

DIR has a tokenizer of Qwen's.  Each picture has a conversation: a list of all boxes, in the form
that Qwen2.5-VL was trained to answer in, and a question about some of them, whose list has the same
boxes.  A model may see them a little differently the second time, so that a figure's name ends in
the percentage of numbers that moved by up to 3.
"""

import argparse
import json
import os
import random
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLOURS = ("red", "blue", "green", "white", "black", "orange")
KINDS = ("block", "cup", "bowl", "bottle", "ball", "spoon", "box", "book")
FIRST = "Locate every object on the table, and answer with boxes in JSON."
SECOND = "Now locate the {}s and the {}s, in the same form."


def objects_of(rng):
    """Four to ten objects on a picture of 1,000 by 1,000 pixels."""
    for _ in range(rng.randint(4, 10)):
        x, y = rng.randint(0, 800), rng.randint(0, 800)
        box = [x, y, x + rng.randint(20, 199), y + rng.randint(20, 199)]

        yield rng.choice(KINDS), rng.choice(COLOURS), box


def boxes(objects, rng, moved=0.0):
    lines = []

    for kind, colour, box in objects:
        box = [x + rng.choice((-3, -2, -1, 1, 2, 3)) if rng.random() < moved else x for x in box]
        lines.append(f'\t{{"bbox_2d": {[max(x, 0) for x in box]}, "label": "{colour} {kind}"}}')

    return "```json\n[\n" + ",\n".join(lines) + "\n]\n```"


def turn(question, answer=""):
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{answer}"


def conversation(seed, moved):
    """Returns a first answer and a second one, each with its context before it."""
    rng = random.Random(seed)
    objects = list(objects_of(rng))
    kinds = rng.sample(sorted({kind for kind, _, _ in objects}) + ["lamp"], 2)
    some = [o for o in objects if o[0] in kinds]
    first = boxes(objects, rng)

    return ((turn(FIRST), first),
            (turn(FIRST, first) + "<|im_end|>\n" + turn(SECOND.format(*kinds)),
             boxes(some, rng, moved)))


def count(directory, pairs, name):
    """Prints the program's figures under this name."""
    texts = "".join(text + "\0" for pair in pairs for text in pair)
    out = subprocess.run([ROOT + "/build/bench-lookup", directory], input=texts.encode(),
                         stdout=subprocess.PIPE, check=True).stdout

    for line in out.decode().splitlines():
        figure = json.loads(line)
        print(json.dumps(figure | {"name": f"{figure['name']}_{name}"}))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("directory", metavar="DIR")
    p.add_argument("--pictures", type=int, default=300)
    a = p.parse_args()

    count(a.directory, [conversation(i, 0)[0] for i in range(a.pictures)], "first")

    for moved in (0, 25, 100):
        pairs = [conversation(i, moved / 100)[1] for i in range(a.pictures)]
        count(a.directory, pairs, f"second_{moved}")


if __name__ == "__main__":
    main()
