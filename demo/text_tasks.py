"""The server's questions to the model about a message, without a picture: its task, the title of the
conversation, and its steps.  The words of these questions are read from the server's source; this file has the
messages and right answers.

A message is made of clauses.  A clause knows its text, its task, its title and the step that it becomes.
"""

import json
import os
import random
import re

from questions import MOST, RELATIONS, TEMPLATES, article, plural
from scenes import COLOURS, KINDS

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                      "http", "api", "robobrain", "ask_text.h")
NAMES = ("general", "grounding", "pointing", "affordance", "trajectory")
BLIND = "I see no picture. Please send one."
HELLO = "Hello! Ask me about the objects on the table."

# Things which are never in the demo's pictures, so that words are copied and not only recognised.
OTHER = ("apple", "banana", "mug", "plate", "box", "book", "pen", "phone", "hammer", "drawer", "door", "lamp", "chair",
         "person", "man", "woman", "dog", "cat", "car", "bag", "knife", "fork", "glass", "jar", "can", "kettle", "pan",
         "pot", "lid", "handle", "button", "switch", "screen", "keyboard", "mouse", "laptop", "table", "shelf",
         "basket", "tray", "towel", "sponge", "brush", "carrot", "tomato", "lemon", "orange", "pear", "egg", "bread",
         "toy", "cube", "screwdriver", "wrench", "scissors", "tape", "rope", "key", "coin", "shoe", "hat", "shirt",
         "window", "plant", "flower", "tree", "bench", "bike", "robot", "gripper", "refrigerator", "microwave", "sink",
         "tap", "bin", "remote control", "coffee mug", "water bottle", "tea pot", "cutting board", "door handle",
         "light switch")
HELD_OUT = ("marker", "stapler", "pillow", "candle", "guitar", "bucket", "spatula", "melon", "ladder",
            "printer", "suitcase", "helmet", "teddy bear", "paper towel", "tennis racket")
STARTS = ("b", "br", "c", "ch", "d", "f", "g", "gl", "h", "k", "l", "m", "n", "p", "pl", "r", "s", "sh", "st", "t",
          "tr", "v", "w")
ENDS = ("", "", "b", "ck", "d", "l", "ll", "m", "n", "nd", "p", "r", "rt", "sh", "st", "t", "x")
SHADES = ("brown", "grey", "pink", "silver", "small", "big", "wooden", "empty")

POLITE = ("please {t}", "{t} please", "can you {t}?", "could you {t}?", "I want you to {t}", "now {t}", "{t} for me",
          "would you {t}?", "try to {t}")
PLACES = (" in the picture", " in this image", " on the table", " in the image", " here")

# Wordings by task: (text, title, prompt of its step).  {r} a thing with its article, {n} the same in short,
# {g} and {m} another one, {N} several.
GROUNDING = tuple((t, "Finding the {n}", "{r}") for t in (
    "find {r}", "where is {r}?", "locate {r}", "show me {r}", "show me where {r} is", "{r}", "look for {r}",
    "draw a box around {r}", "give me the bounding box of {r}", "box {r}", "detect {r}", "find me {r}",
    "where can I see {r}?", "which region shows {r}?", "help me find {r}", "where did you see {r}?",
    "mark {r} with a box"))
POINTING = tuple((t, "Pointing at {n}", "point to {r}") for t in (
    "point to {r}", "point at {r}", "point out {r}", "give me a point on {r}", "put a point on {r}",
    "mark a spot on {r}", "what are the coordinates of {r}?", "which point is on {r}?",
    "give the position of {r} as a point")) \
    + tuple((t, "Pointing at {N}", "point to all {N}") for t in (
        "point to all {N}", "point at the {N}", "all the {N}", "where are the {N}?", "point to the {N}",
        "point out all {N}", "give points for all {N}", "mark all {N} with points", "list the positions of the {N}")) \
    + tuple((t, "Object at point", "{t}") for t in (
        "what is at ({x}, {y})?", "what is at {x}, {y}?", "which object is at coordinate {x}, {y}?",
        "look at coordinates ({x}, {y})"))
AFFORDANCE = tuple((t, "Grasping the {n}", p) for t, p in (
    ("pick up {r}", "pick up {r}"), ("pick {r} up", "pick up {r}"), ("hold {r}", "hold {r}"),
    ("grasp {r}", "grasp {r}"), ("grab {r}", "grab {r}"), ("take {r}", "take {r}"), ("lift {r}", "lift {r}"),
    ("hand me {r}", "hand me {r}"), ("where should I hold {r}?", "hold {r}"), ("where do I grasp {r}?", "grasp {r}"),
    ("how do I hold {r}?", "hold {r}"), ("how can I pick up {r}?", "pick up {r}"),
    ("how should the robot grab {r}?", "grab {r}"), ("where can I grab {r}?", "grab {r}"),
    ("show the graspable part of {r}", "grasp {r}"), ("find a good place to grasp {r}", "grasp {r}"),
    ("which part of {r} can be held?", "hold {r}"), ("affordance of {r}", "grasp {r}"),
    ("what is the affordance area of {r}?", "grasp {r}"), ("give me {r}", "hand me {r}"),
    ("where is the best place to hold {r}?", "hold {r}")))
MOTION = tuple((t, "Moving {m} to {o}", p) for t, p in (
    ("move {r} to {g}", "move {r} to {g}"), ("bring {r} to {g}", "bring {r} to {g}"),
    ("put {r} next to {g}", "put {r} next to {g}"), ("carry {r} to {g}", "carry {r} to {g}"),
    ("push {r} towards {g}", "push {r} towards {g}"), ("place {r} at {g}", "place {r} at {g}"),
    ("put {r} on {g}", "move {r} to {g}"), ("put {r} into {g}", "move {r} to {g}"),
    ("take {r} and move it to {g}", "move {r} to {g}"), ("take {r} to {g}", "bring {r} to {g}"),
    ("how do I move {r} to {g}?", "move {r} to {g}"), ("plan a path from {r} to {g}", "move {r} to {g}"),
    ("what is the path from {r} to {g}?", "move {r} to {g}"), ("trajectory from {r} to {g}", "move {r} to {g}"),
    ("draw the path of {r} to {g}", "move {r} to {g}"),
    ("pick up {r} and put it next to {g}", "put {r} next to {g}"))) \
    + tuple((t, "Reaching the {n}", p) for t, p in (
        ("reach for {r}", "reach for {r}"), ("reach {r}", "reach {r}"), ("move to {r}", "move to {r}"),
        ("go to {r}", "go to {r}"), ("navigate to {r}", "move to {r}"), ("plan a path to {r}", "move to {r}"),
        ("show me a trajectory to {r}", "move to {r}"), ("how does the arm reach {r}?", "reach {r}"),
        ("move the arm to {r}", "move to {r}"), ("move the gripper to {r}", "move to {r}")))
COUNT = tuple((t, "Counting {N}", "{t}") for t in TEMPLATES["count"] + ("Are there more than {x1} {N}?",))
COLOUR = tuple((t, "Colour of {n}", "{t}") for t in TEMPLATES["colour"])
PRESENCE = tuple((t, "Checking for {n}", "{t}") for t in TEMPLATES["presence"] if "{N}" not in t) \
    + (("Are there any {N}?", "Checking for {N}", "{t}"), ("Is {r} there?", "Checking for {n}", "{t}"))
RELATION = tuple((t, "{m} and {o}", "{t}") for t in (
    "Is {r} {rel} {g}?", "Does {r} stand {rel} {g}?", "Would you say {r} is {rel} {g}?",
    "Which is larger, {r} or {g}?", "Is {r} bigger than {g}?", "Which is nearer, {r} or {g}?")) \
    + tuple((t, "Near the {m}", "{t}") for t in TEMPLATES["which"]) \
    + tuple((t, "About the {n}", "{t}") for t in (
        "What is {r}?", "Tell me what {r} is.", "What is {r} made of?", "What is {r} for?", "Is {r} clean?",
        "Is {r} full or empty?", "What do you know about {r}?", "Why is {r} there?", "What does {r} look like?",
        "Describe {r}.", "Is {r} open?", "What shape is {r}?"))
TALK = tuple((t, "Picture description", "{t}") for t in TEMPLATES["describe"] + (
    "What is happening here?", "Tell me about this picture.", "What objects do you see?", "What is this?",
    "Describe this image in detail.", "What is going on in the scene?", "Is this a kitchen?", "Is the table empty?")) \
    + tuple((t, "Friendly greeting", "{t}") for t in TEMPLATES["greeting"] + ("Hey", "Hello there", "Good evening")) \
    + tuple((t, "Friendly thanks", "{t}") for t in ("Thanks", "Thank you", "Thank you very much!", "Great, thanks.")) \
    + tuple((t, "Model abilities", "{t}") for t in (
        "What can you do?", "Who are you?", "Which tasks do you know?", "How do you work?", "What is your name?",
        "Can you help me?")) \
    + tuple((t, "Small talk", "{t}") for t in (
        "Tell me a joke.", "How are you?", "What is two plus two?", "Is that right?", "Are you sure?", "Why?",
        "What do you think?", "test", "ok", "yes", "Tell me more."))
GENERAL = (COUNT, COLOUR, PRESENCE, RELATION, TALK)


def server_words(file=HEADER):
    """The server's system messages by the end of their names: TASK, TITLE, STEPS."""
    with open(file, encoding="ascii") as f:
        source = f.read().replace("\\\n", " ")
    return {name: "".join(json.loads('"%s"' % s) for s in re.findall(r'"((?:[^"\\]|\\.)*)"', rest))
            for name, rest in re.findall(r"#define NGX_HTTP_VLM_ASK_(\w+)\s+(.*)", source)}


# -- things and clauses ------------------------------------------------------------------------------

def made_up(rng):
    """A word that no training message has, which can only be copied letter by letter."""
    return "".join(rng.choice(sounds) for _ in range(rng.randint(1, 2)) for sounds in (STARTS, "aeiou", ENDS))


def thing(rng, others=OTHER):
    """(its words in a sentence, in short, the noun alone, several)"""
    strange = rng.random() < 0.5
    noun = rng.choice(others if strange else KINDS + ("object", "thing"))
    if strange and others is OTHER and rng.random() < 0.5:
        noun = made_up(rng)
    chance = rng.random()
    colour = rng.choice(SHADES) if strange and chance < 0.2 else rng.choice(sorted(COLOURS)) if chance < 0.6 else None
    if colour and " " in noun:
        noun = noun.split()[-1]
    short = "%s %s" % (colour, noun) if colour else noun
    if rng.random() < 0.12:
        most = rng.choice(sorted(MOST))
        words = rng.choice(MOST[most]).format(n=noun)
        return "the " + words, noun, noun, plural(noun)
    words = rng.choice((short, article(short))) if rng.random() < 0.08 else "the " + short
    return words, short, noun, plural(short)


def clause(task, rng, about=None, others=OTHER):
    """One clause: its text, task, title, the prompt of its step, and the thing it is about."""
    r = about or thing(rng, others)
    g = thing(rng, others)
    while g[2] == r[2]:
        g = thing(rng, others)
    table = {"grounding": GROUNDING, "pointing": POINTING, "affordance": AFFORDANCE, "trajectory": MOTION}
    text, title, prompt = rng.choice(table[task] if task in table else rng.choice(GENERAL))
    fields = {"r": r[0], "n": r[1], "m": r[2].split()[-1], "N": r[3], "g": g[0], "o": g[2].split()[-1],
              "b": r[0], "a": article(r[1]),
              "rel": rng.choice(RELATIONS[rng.choice(sorted(RELATIONS))]), "x": rng.randrange(10, 245),
              "y": rng.randrange(10, 245), "x1": rng.randrange(1, 6)}
    worded = text.format(**fields)
    title = title.format(**fields)
    return {"text": worded, "task": task, "title": title[0].upper() + title[1:], "about": r,
            "prompt": prompt.format(t=worded, **fields), "many": "{r}" not in text,
            "blank": "{r}" not in text and "{N}" not in text and "{a}" not in text}


def dressed(text, rng, polite=True):
    """The text as people write it: polite or not, with or without capitals and marks."""
    if polite and rng.random() < 0.25 and not text.endswith((".", "?", "!")) and not text.startswith(("the ", "all ")):
        text = rng.choice(POLITE).format(t=text)
    elif rng.random() < 0.15 and len(text.split()) > 3 and not text.endswith(tuple(PLACES)):
        body, mark = (text[:-1], text[-1]) if text[-1] in "?.!" else (text, "")
        text = body + rng.choice(PLACES) + mark
    chance = rng.random()
    if chance < 0.3:
        text = text.lower()
    elif chance < 0.8:
        text = text[0].upper() + text[1:]
    chance = rng.random()
    if chance < 0.3:
        return text.rstrip("?.!")
    return text + "." if chance > 0.85 and text[-1] not in "?.!" else text


# -- steps -------------------------------------------------------------------------------------------

ORDER = ("general", "grounding", "pointing", "trajectory", "affordance")
DESCRIPTIONS = {"general": "Answer the question", "grounding": "Find the object", "pointing": "Point to it",
                "trajectory": "Plan the motion", "affordance": "Find where to hold it"}
CLAUSES = ("general", "grounding", "grounding", "pointing", "affordance", "trajectory", "trajectory")
LINKS = (", ", " and ", ", then ", " and then ", " then ", ", and ", ". ", ". Then ", ". After that ")


def plan(clauses):
    """The steps of some clauses: understand, locate, plan the motion, grasp."""
    wanted = [(c["task"], c["prompt"], c["about"][0]) for c in clauses]
    located = [p for t, p, _ in wanted if t == "grounding"]
    for task, _, about in list(wanted):
        if task in ("trajectory", "affordance") and about not in located:
            located.append(about)
            wanted.append(("grounding", about, about))
    wanted.sort(key=lambda w: ORDER.index(w[0]))
    return [{"step": i + 1, "task": task, "prompt": prompt, "description": DESCRIPTIONS[task],
             "use_previous": i > 0 and task in ("trajectory", "affordance") and wanted[i - 1][0] == "grounding"}
            for i, (task, prompt, _) in enumerate(wanted)]


def some_clauses(rng, others):
    """One to three clauses, mostly about the same thing, with at most three steps; None if they conflict."""
    count = rng.choice((1, 1, 2, 2, 3))
    r = thing(rng, others)
    found = [clause(rng.choice(CLAUSES), rng, r if rng.random() < 0.75 else None, others) for _ in range(count)]
    tasks = [c["task"] for c in found]
    if len(set((c["task"], c["about"]) for c in found)) < count or max(map(tasks.count, tasks)) > 2:
        return None
    if count > 1 and any(c["blank"] for c in found):
        return None
    return found if len(plan(found)) <= 3 else None


def message_of(clauses, rng):
    """The clauses as one message; a thing is "it" where it is named for the second time."""
    message, named = "", None
    for i, c in enumerate(clauses):
        text = c["text"] if i == len(clauses) - 1 else c["text"].rstrip("?.!")
        if c["about"][0] == named and named.startswith("the ") and rng.random() < 0.7:
            text = text.replace(named, "it", 1)
        elif not c["many"]:
            named = c["about"][0]
        if i:
            link = rng.choice(LINKS if i == len(clauses) - 1 else LINKS[:4])
            text = link + (text[0].upper() if link == ". " else text[0].lower()) + text[1:]
        message += text
    return message.rstrip("?.!") if rng.random() < 0.3 else message


def request(rng, others=OTHER):
    """(message, steps): one to three clauses, one after the other."""
    clauses = None
    while not clauses:
        clauses = some_clauses(rng, others)
    message, steps, chance = message_of(clauses, rng), plan(clauses), rng.random()
    if chance < 0.3:
        return message.lower(), [dict(s, prompt=s["prompt"].lower()) for s in steps]
    return message[0].upper() + message[1:] if chance < 0.8 else message, steps


# -- questions ---------------------------------------------------------------------------------------

def repeated(rng, others):
    """Words to repeat: they teach the model to copy, and titles and steps are copied words."""
    words = [rng.choice(thing(rng, others)[:3]) for _ in range(rng.randint(1, 5))]
    text = rng.choice((" ", " and ", ", ")).join(words)
    return rng.choice(("Say: %s", "Repeat: %s", "Say %s", "Repeat after me: %s", "repeat %s")) % text, text


def draw(kind, rng, others=OTHER):
    """(message, right answer) for kind TASK, TITLE, STEPS or BLIND (the plain system message, no picture)."""
    if kind == "BLIND" and rng.random() < 0.7:
        return repeated(rng, others)
    if kind == "STEPS":
        message, steps = request(rng, others)
        return message, json.dumps(steps, ensure_ascii=False)
    c = clause(rng.choice(NAMES + ("general",)), rng, others=others)
    message = dressed(c["text"], rng, c["task"] != "general")
    if kind == "TASK":
        return message, c["task"]
    if kind == "TITLE":
        return message, c["title"]
    return message, HELLO if c["title"] == "Friendly greeting" else BLIND


CONTENT = re.compile(r'(?<="task": ")[^"]*"|(?<="prompt": ")(?:[^"\\]|\\.)*"|(?<="use_previous": )(?:true|false)'
                     r'|\}(?:, |\])')


def content_spans(answer):
    """Where in a plan's text something is decided; the rest is punctuation that is the same in every plan."""
    return [m.span() for m in CONTENT.finditer(answer)]


if __name__ == "__main__":
    rng = random.Random(5)
    for name, words in server_words().items():
        print(name, repr(words))
    for kind in ("TASK", "TITLE", "STEPS", "BLIND"):
        for _ in range(25):
            print(kind, "|", " | ".join(draw(kind, rng)))
