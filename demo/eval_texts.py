"""Asks the model about messages without a picture, as the server does for `task: auto`, titles and plans.

  python eval_texts.py                  through the server at http://127.0.0.1:5001
  python eval_texts.py --torch          through the training code, without a server

The messages are of a seed that was not trained on; a third of them name things that training never named, and
HAND are sentences that were not made from the wordings of training.  A task is right if it is the right word; a
title if it has two to four words and names the thing; a plan if it is a JSON array of steps, and "tasks" tells
how many have the right tasks in the right order as well.  Exit status 1 below the bounds.
"""

import argparse
import json
import random
import sys
import uuid

from eval import SEED, post, upload, wilson
from scenes import make_scene, render
from text_tasks import HELD_OUT, NAMES, OTHER, draw

BOUNDS = {"task": 0.95, "plan": 0.95}
KEYS = {"step": int, "task": str, "prompt": str, "description": str, "use_previous": bool}

HAND = {
    "general": (
        "Is it morning or evening?", "How many things are red?", "What do you see on the left side?", "Who made this?",
        "Are all the cups blue?", "What's the colour of the spoon?", "Do the two bowls have the same colour?",
        "Tell me something about the scene", "hi robot", "is the bottle taller than the cup?", "Which cup is bigger?",
        "Can you see any spoons?", "What is behind the green block?", "Summarize the image."),
    "grounding": (
        "Find the apple in this image", "Where's the blue cup?", "Where is my red spoon", "Locate every bowl you see",
        "Please give me the box of the white ball", "I am looking for the yellow block", "find bottle",
        "Can you locate the leftmost block?", "the black spoon on the right", "Show me where the plate is"),
    "pointing": (
        "Point to the handle of the cup", "Please point at the two balls", "Point out the bowl",
        "give points on the cups", "What is at (100, 120)?", "Could you point to the red block?",
        "mark the bottle with a point", "point to any free spot on the table",
        "Give me the coordinates of a point on the ball"),
    "affordance": (
        "How should I grasp this bottle?", "pick up the cup by its handle", "Where can the gripper hold the bowl?",
        "Grab the spoon", "I want to lift the red block", "Hold the ball", "Which part of the spoon should I grasp?",
        "take the green bottle", "Please hand me the cup", "Pick that up"),
    "trajectory": (
        "Move the cup next to the bowl", "push the ball to the spoon", "Reach for the bottle with your arm",
        "Put the red block on the blue one", "Plan a path to the yellow ball", "Show the trajectory to the cup",
        "drag the bowl over to the block", "How do I get from the cup to the ball?", "Bring me the spoon to the bowl",
        "slide the block towards the bottle", "Carry the cup over there to the ball")}


def make_items(count, seed=SEED):
    rng = random.Random(seed)
    items = [{"kind": kind, "text": text, "expected": answer}
             for kind, share in (("TASK", 1), ("TITLE", 0.67), ("STEPS", 0.67)) for i in range(int(count * share))
             for text, answer in [draw(kind, rng, OTHER if i % 3 else HELD_OUT)]]
    return items + [{"kind": "TASK", "text": t, "expected": task, "hand": True} for task in NAMES for t in HAND[task]]


# -- right answers -----------------------------------------------------------------------------------

def steps_of(text):
    """The steps of a plan's text; None if the text is no plan."""
    try:
        steps = json.loads(text)
    except ValueError:
        return None
    if not isinstance(steps, list) or not 1 <= len(steps) <= 10 or not all(isinstance(s, dict) for s in steps):
        return None
    right = all(type(s.get(k)) is kind for s in steps for k, kind in KEYS.items())
    return steps if right and all(s["task"] in NAMES and s["prompt"] for s in steps) else None


def judge(item):
    """Sets item["right"], of a plan also whether it has the right tasks and is the expected one."""
    answer, expected = item["answer"].strip(), item["expected"]
    if item["kind"] == "STEPS":
        steps, wanted = steps_of(answer), json.loads(expected)
        item["right"] = steps is not None
        item["tasks"] = bool(steps) and [s["task"] for s in steps] == [s["task"] for s in wanted]
        item["exact"] = steps == wanted
    elif item["kind"] == "TITLE":
        item["right"] = 2 <= len(answer.split()) <= 4 and expected.lower().split()[-1] in answer.lower().split()
        item["exact"] = answer.lower() == expected.lower()
    else:
        item["right"] = answer.lower().rstrip(".") == expected


# -- clients -----------------------------------------------------------------------------------------

def ask(server, picture, item):
    def call(path, **body):
        return post(server + path, json.dumps(body).encode(), "application/json")

    if item["kind"] == "TITLE":
        return call("/api/generate-title", message=item["text"])["title"]
    if item["kind"] == "STEPS":
        reply = call("/api/decompose", query=item["text"])
        return "" if reply.get("fallback") else json.dumps(reply["pipeline"])
    return call("/api/chat", session_id=str(uuid.uuid4()), message=item["text"], image=picture, task="auto",
                enable_thinking=False)["task"]


def ask_server(server, items):
    picture = upload(server, render(make_scene(SEED)), "scene.png")
    for n, item in enumerate(items):
        item["answer"] = ask(server, picture, item)
        if n % 200 == 199:
            print("%d of %d asked" % (n + 1, len(items)), file=sys.stderr, flush=True)


# -- the report --------------------------------------------------------------------------------------

def report(items):
    rows = (("task", "TASK", "right", False), ("by hand", "TASK", "right", True), ("title", "TITLE", "right", False),
            ("exact", "TITLE", "exact", False), ("plan", "STEPS", "right", False), ("tasks", "STEPS", "tasks", False),
            ("same", "STEPS", "exact", False))
    figures, lines = {}, []
    for name, kind, mark, hand in rows:
        marks = [i[mark] for i in items if i["kind"] == kind and bool(i.get("hand")) == hand]
        low, high = wilson(sum(marks), len(marks))
        figures[name] = {"n": len(marks), "accuracy": sum(marks) / len(marks), "low": low, "high": high}
        lines.append("%-11s %5d %8.1f%%   %.1f%% to %.1f%%"
                     % (name, len(marks), 100 * sum(marks) / len(marks), 100 * low, 100 * high))
    return figures, "\n".join(lines)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--server", default="http://127.0.0.1:5001")
    p.add_argument("--torch", action="store_true", help="ask the training code instead of a server")
    p.add_argument("--model", help="with --torch: another checkpoint directory")
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--wrong", action="store_true", help="also print the wrong answers")
    args = p.parse_args()
    items = make_items(args.count)
    if args.torch:
        from ask_torch import ask_torch_texts
        ask_torch_texts(items, args.model)
    else:
        ask_server(args.server.rstrip("/"), items)
    for item in items:
        judge(item)
    figures, table = report(items)
    print(table)
    for i in items:
        if args.wrong and not (i["right"] and i.get("exact", True)):
            print("%s%s | %s | %s | %s" % (i["kind"], "" if i["right"] else "!", i["text"], i["answer"], i["expected"]))
    short = [n for n, bound in BOUNDS.items() if figures[n]["accuracy"] < bound]
    if short:
        print("below the bound: " + ", ".join(short))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
