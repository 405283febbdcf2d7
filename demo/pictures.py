"""Writes the sample pictures, with questions about each and their right answers.

  python pictures.py          chooses scenes which the checkpoint directory answers rightly

Existing pictures stay if they are still among these, because the tests name some of them.
"""

import io
import json
import os
import random

from ask_torch import ask_torch
from eval import is_right
from questions import TASKS, ask, solve
from scenes import make_scene, render

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pictures")
SEED = 950_000_000                      # neither trained on nor evaluated
COUNT = 12
PLAIN = ({"task": "count", "ref": {}}, "How many objects are on the table?")


def candidates(n=90):
    """Scenes of three to six objects, each with the plain count and one question of every task."""
    rng, found = random.Random(SEED), []
    for i in range(n):
        scene = make_scene(SEED + i)
        if not 3 <= len(scene["objects"]) <= 6:
            continue
        items = [{"scene": scene, "task": "count", "q": PLAIN[0], "text": PLAIN[1],
                  "solution": solve(PLAIN[0], scene)}]
        for task in TASKS:
            asked = ask(task, scene, rng)
            if asked and (task != "trajectory" or "to" in asked[0]):
                items.append({"scene": scene, "task": task, "q": asked[0], "text": asked[1],
                              "solution": asked[2]})
        found.append(items)
    return found


def plain(item):
    """Returns the data for a checker, as JSON: the exact answer, or a box, or the boxes of the points."""
    solution, task = item["solution"], item["task"]
    entry = {"task": "general" if task in TASKS[:4] else task, "question": item["text"]}
    if task in TASKS[:4]:
        return dict(entry, answer=solution["answer"])
    if "box" in solution:
        return dict(entry, example=solution["answer"], box=solution["box"], iou=0.5)
    return dict(entry, example=solution["answer"], boxes=[o["box"] for o in solution["objects"]])


def png(scene):
    out = io.BytesIO()
    render(scene).save(out, "PNG", optimize=True)
    return out.getvalue()


def earlier():
    """Returns the content of expected.json, or {} if there is no such file."""
    file = os.path.join(FOLDER, "expected.json")
    if not os.path.exists(file):
        return {}
    with open(file) as f:
        return json.load(f)


def named(best, before):
    """A file name for each chosen picture. A picture that was in the set and is answered as well keeps its name."""
    files = ["table-%02d.png" % n for n in range(1, COUNT + 1)]
    seeds = {before[f]["seed"]: f for f in files if f in before}
    kept = {}
    for right in best:
        file = seeds.get(right[0]["scene"]["seed"])
        if file and len(right) >= len(before[file]["questions"]):
            kept[file] = right
    others = iter([right for right in best if right[0]["scene"]["seed"] not in seeds])
    return [(f, kept[f] if f in kept else next(others)) for f in files]


def main():
    scenes = candidates()
    ask_torch([item for items in scenes for item in items])
    scored = []
    for items in scenes:
        right = [i for i in items if is_right(i["q"], i["solution"], i["answer"])]
        if items[0] in right:
            scored.append((len(right), right))
    scored.sort(key=lambda s: (-s[0], len(png(s[1][0]["scene"]))))     # grain makes a large file
    os.makedirs(FOLDER, exist_ok=True)
    expected = {}
    for file, right in named([right for _, right in scored], earlier()):
        with open(os.path.join(FOLDER, file), "wb") as f:
            f.write(png(right[0]["scene"]))
        expected[file] = {"seed": right[0]["scene"]["seed"], "questions": [plain(i) for i in right]}
    with open(os.path.join(FOLDER, "expected.json"), "w") as f:
        f.write("{\n" + ",\n".join(
            ' "%s": {"seed": %d, "questions": [\n  %s]}' % (
                file, entry["seed"], ",\n  ".join(json.dumps(q) for q in entry["questions"]))
            for file, entry in expected.items()) + "\n}\n")
    print("%d pictures, %d questions" % (len(expected), sum(len(e["questions"]) for e in expected.values())))


if __name__ == "__main__":
    main()
