"""Questions about a scene and their answers.

A question is a small dict, so that the same question can be asked of two scenes:
  {"task": "count", "ref": {"kind": "cup"}}                    -> "2"
  {"task": "relation", "rel": "left of", "a": ref, "b": ref}   -> "yes"
A ref names objects: {"kind"}, {"colour"}, both, neither (all), or {"most": "leftmost"}.
solve() gives the answer or None where the question makes no sense, phrase() one of its wordings.
"""

import random

from scenes import COLOURS, KINDS, SIZE

GENERAL = ("count", "colour", "presence", "relation")
TASKS = GENERAL + ("grounding", "pointing", "affordance", "trajectory")
MARGIN = 12                             # pixels by which "left of" must hold

WRAPPERS = {
    "pointing": "%s. Your answer should be formatted as a list of tuples, i.e. [(x1, y1), (x2, y2), ...],"
                " where each tuple contains the x and y coordinates of a point satisfying the conditions"
                " above. The coordinates should indicate the normalized pixel locations of the points in"
                " the image.",
    "affordance": "You are a robot using the joint control. The task is \"%s\". Please predict a possible"
                  " affordance area of the end effector.",
    "trajectory": "You are a robot using the joint control. The task is \"%s\". Please predict up to 10"
                  " key trajectory points to complete the task. Your answer should be formatted as a list"
                  " of tuples, i.e. [[x1, y1], [x2, y2], ...], where each tuple contains the x and y"
                  " coordinates of a point.",
    "grounding": "Please provide the bounding box coordinate of the region this sentence describes: %s.",
}

RELATIONS = {
    "left of": ("left of", "to the left of", "on the left of"),
    "right of": ("right of", "to the right of", "on the right of"),
    "in front of": ("in front of", "nearer than", "closer to us than"),
    "behind": ("behind", "further back than", "farther away than"),
}
MOST = {
    "leftmost": ("leftmost {n}", "{n} on the far left", "first {n} from the left"),
    "rightmost": ("rightmost {n}", "{n} on the far right", "first {n} from the right"),
    "nearest": ("nearest {n}", "{n} closest to us", "{n} in front"),
    "farthest": ("farthest {n}", "{n} at the back", "{n} furthest away"),
}


def centre(obj):
    x1, y1, x2, y2 = obj["box"]
    return (x1 + x2) / 2, (y1 + y2) / 2


def along(rel, obj):
    """How far an object is in a direction, in pixels."""
    if rel in ("left of", "leftmost"):
        return -centre(obj)[0]
    if rel in ("right of", "rightmost"):
        return centre(obj)[0]
    y = obj["box"][3]
    return y if rel in ("in front of", "nearest") else -y


def matches(ref, scene):
    found = [o for o in scene["objects"]
             if ref.get("kind") in (None, o["kind"]) and ref.get("colour") in (None, o["colour"])]
    if "most" in ref:
        found.sort(key=lambda o: -along(ref["most"], o))
        clear = len(found) > 1 and along(ref["most"], found[0]) - along(ref["most"], found[1]) >= MARGIN
        found = found[:1] if clear else []
    return found


def only(ref, scene):
    found = matches(ref, scene)
    return found[0] if len(found) == 1 else None


def name(obj):
    return "the %s %s" % (obj["colour"], obj["kind"])


# -- answers -----------------------------------------------------------------------------------------

def box_text(box):
    return "[%d, %d, %d, %d]" % tuple(box)


def points_text(points):
    return "[" + ", ".join("(%d, %d)" % tuple(p) for p in points) + "]"


def path(start, end):
    """Four points from start to end, lifted in between as an arm would."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    lift = min(40, max(12, 0.25 * (dx * dx + dy * dy) ** 0.5))
    middle = [(round(start[0] + dx * t), max(3, round(start[1] + dy * t - lift))) for t in (1 / 3, 2 / 3)]
    return [tuple(start)] + middle + [tuple(end)]


def solve_relation(q, scene):
    b = only(q["b"], scene)
    if b is None:
        return None
    if "a" in q:
        a = only(q["a"], scene)
        if a is None or a is b:
            return None
        gap = along(q["rel"], a) - along(q["rel"], b)
        return None if abs(gap) < MARGIN else {"answer": "yes" if gap > 0 else "no", "about": [a, b]}
    gaps = [(along(q["rel"], o) - along(q["rel"], b), o) for o in scene["objects"] if o is not b]
    beyond = [o for gap, o in gaps if gap > 0]
    if any(abs(gap) < MARGIN for gap, _ in gaps) or len(beyond) != 1:
        return None
    return {"answer": name(beyond[0]), "about": [beyond[0], b]}


def solve(q, scene):
    """The answer as a dict with "answer", the one or two objects it is "about" (for training), and what a
    checker needs; None: the scene has no such question."""
    task = q["task"]
    if task == "count":
        return {"answer": str(len(matches(q["ref"], scene)))}
    if task == "presence":
        return {"answer": "yes" if matches(q["ref"], scene) else "no"}
    if task == "relation":
        if "ref" in q:
            obj = only(q["ref"], scene)
            return obj and {"answer": name(obj), "about": [obj]}
        return solve_relation(q, scene)
    if task == "describe":
        objects = sorted(scene["objects"], key=lambda o: centre(o)[0])
        names = [name(o) for o in objects]
        head = ", ".join(names[:-1]) + " and " if len(names) > 1 else ""
        return {"answer": "I see %s%s." % (head, names[-1])}
    if task == "greeting":
        return {"answer": "Hello! Ask me about the objects on the table."}
    if task == "pointing":
        found = sorted(matches(q["ref"], scene), key=lambda o: o["point"][0])
        if not found or len(found) > 3:
            return None
        if any(b["point"][0] - a["point"][0] < 4 for a, b in zip(found, found[1:])):
            return None
        return {"answer": points_text([o["point"] for o in found]), "objects": found, "about": found[:2]}
    obj = only(q["ref"], scene)
    if obj is None:
        return None
    if task == "colour":
        return {"answer": obj["colour"], "about": [obj]}
    if task == "grounding":
        return {"answer": box_text(obj["box"]), "box": obj["box"], "about": [obj]}
    if task == "affordance":
        return {"answer": box_text(obj["grasp"]), "box": obj["grasp"], "about": [obj]}
    if "to" in q:                                           # trajectory from an object to a target
        goal = only(q["to"], scene)
        if goal is None or goal is obj:
            return None
        return motion(obj["point"], obj["foot"], goal, [obj, goal])
    hand = (SIZE // 2, SIZE - 10)                           # the arm comes in from below
    return motion(hand, hand, obj, [obj])


def motion(start, foot, goal, objects):
    """A solution: the path, and the rows of the picture above which it starts and ends."""
    points = path(start, goal["point"])
    return {"answer": points_text(points), "path": points, "feet": (foot[1], goal["foot"][1]), "objects": objects,
            "about": objects}


# -- wordings ----------------------------------------------------------------------------------------

def plural(word):
    return word + "s"


def noun_text(ref, rng, many=False):
    if ref.get("kind"):
        word = ref["kind"]
    else:
        word = rng.choice(("object", "thing", "item") if many or not ref.get("colour")
                          else ("object", "thing", "one", "item"))
    word = plural(word) if many else word
    return "%s %s" % (ref["colour"], word) if ref.get("colour") else word


def article(text):
    return "an " + text if text[0] in "aeiou" else "a " + text


def ref_text(ref, rng, bare=False):
    noun = noun_text(ref, rng)
    if "most" in ref:
        noun = rng.choice(MOST[ref["most"]]).format(n=noun)
    elif bare and rng.random() < 0.4:
        return noun if rng.random() < 0.5 else article(noun)
    return "the " + noun


TEMPLATES = {
    "count": ("How many {N} are there?", "How many {N} are on the table?", "How many {N} do you see?",
              "Count the {N}.", "What is the number of {N}?", "How many {N} can you see in the picture?",
              "Tell me how many {N} there are."),
    "colour": ("What colour is {r}?", "What color is {r}?", "What is the colour of {r}?",
               "Which colour does {r} have?", "Tell me the color of {r}.", "Name the colour of {r}."),
    "presence": ("Is there {a}?", "Is there {a} on the table?", "Do you see {a}?",
                 "Can you see {a} in the picture?", "Are there any {N}?", "Does the picture show {a}?"),
    "yesno": ("Is {a} {rel} {b}?", "Does {a} stand {rel} {b}?", "Would you say {a} is {rel} {b}?"),
    "which": ("What is {rel} {b}?", "Which object is {rel} {b}?", "What do you see {rel} {b}?",
              "Name the object {rel} {b}."),
    "most": ("What is {r}?", "Which one is {r}?", "Name {r}.", "Tell me what {r} is."),
    "grounding": ("{f}", "{f}", "{f}", "Find {r}", "Where is {r}?", "Locate {r}", "Show me {r}"),
    "pointing": ("Point to {r}", "Point at {r}", "{f}", "Where is {r}?", "Show me {r}", "Find {r}",
                 "Identify {r}"),
    "pointing all": ("Point to all {N}", "Point at the {N}", "all the {N}", "Where are the {N}?",
                     "Find all {N}", "Identify the {N}"),
    "affordance": ("hold {r}", "grasp {r}", "pick up {r}", "take {r}", "grab {r}", "lift {r}",
                   "hand me {r}", "Where should I hold {r}?", "Pick {r} up"),
    "trajectory": ("move {r} to {g}", "bring {r} to {g}", "put {r} next to {g}", "carry {r} to {g}",
                   "take {r} and move it to {g}", "push {r} towards {g}", "Place {r} at {g}"),
    "reach": ("reach for {r}", "reach {r}", "move to {r}", "go to {r}"),
    "describe": ("Describe the picture.", "What do you see?", "What is on the table?",
                 "List the objects on the table.", "Which objects are there?", "Describe the scene.",
                 "What is shown in this image?", "What is in this picture?"),
    "greeting": ("Hello", "Hi", "Hi there!", "Good morning", "Hello, how are you?"),
}


def form(q):
    if q["task"] == "relation":
        return "most" if "ref" in q else "yesno" if "a" in q else "which"
    if q["task"] == "trajectory" and "to" not in q:
        return "reach"
    if q["task"] == "pointing" and q.get("all"):
        return "pointing all"
    return q["task"]


def phrase(q, rng):
    """One of the question's wordings."""
    fields, ref = {}, q.get("ref")
    if q["task"] in ("count", "presence"):
        fields = {"N": noun_text(ref, rng, many=True), "a": article(noun_text(ref, rng))}
    elif q["task"] == "relation" and ref is None:
        fields = {"b": ref_text(q["b"], rng), "rel": rng.choice(RELATIONS[q["rel"]])}
        if "a" in q:
            fields["a"] = ref_text(q["a"], rng)
    elif q.get("all"):
        fields = {"N": noun_text(ref, rng, many=True)}
    elif ref is not None:
        fields = {"r": ref_text(ref, rng), "f": ref_text(ref, rng, bare=True)}
        if "to" in q:
            fields["g"] = ref_text(q["to"], rng)
    text = rng.choice(TEMPLATES[form(q)]).format(**fields)
    return restyle(text, rng)


def restyle(text, rng):
    """The text as people write it: capitals and question marks may be missing."""
    chance = rng.random()
    if chance < 0.25:
        text = text.lower()
    elif chance < 0.4:
        text = text[0].upper() + text[1:]
    if rng.random() < 0.3:
        text = text.rstrip("?.")
    return text


def wrap(task, text):
    """RoboBrain's own sentence around the text; general questions stay as they are."""
    return WRAPPERS[task] % text if task in WRAPPERS else text


def in_context(earlier, text):
    """The server puts a session's earlier turns before the new question."""
    lines = ["[Previous conversation context]"]
    for question, answer in earlier:
        lines += ["User (with image): " + question, "Assistant: " + answer]
    return "\n".join(lines + ["[Current query]", text])


def in_turns(earlier):
    """The turns before a later question where a client sends the conversation as messages."""
    return "".join("%s<|im_end|>\n<|im_start|>assistant\n%s<|im_end|>\n<|im_start|>user\n" % e for e in earlier)


# -- choosing questions ------------------------------------------------------------------------------

def refs_of(obj, scene, rng):
    """A ref that names this object alone: often colour and kind, sometimes less."""
    both = {"kind": obj["kind"], "colour": obj["colour"]}
    less = [r for r in ({"kind": obj["kind"]}, {"colour": obj["colour"]}) if only(r, scene)]
    most = [r for m in MOST for r in ({"most": m}, {"most": m, "kind": obj["kind"]})
            if only(r, scene) is obj]
    chance = rng.random()
    if most and chance < 0.12:
        return rng.choice(most)
    if less and chance < 0.45:
        return rng.choice(less)
    if only(both, scene):
        return both
    return rng.choice(most) if most else None


def any_ref(scene, rng, hit=0.55):
    """A ref for count and presence; about half the time of something that is there."""
    kind, colour = rng.choice(KINDS), rng.choice(sorted(COLOURS))
    obj = rng.choice(scene["objects"])
    if rng.random() < hit:
        kind, colour = obj["kind"], obj["colour"]
    elif rng.random() < 0.6:                                # near misses teach more than wild ones
        kind, colour = (obj["kind"], colour) if rng.random() < 0.5 else (kind, obj["colour"])
    return rng.choice(({"kind": kind}, {"colour": colour}, {"kind": kind, "colour": colour}))


def choose(task, scene, rng):
    """A question of this task about this scene, or None."""
    obj = rng.choice(scene["objects"])
    if task in ("describe", "greeting"):
        return {"task": task}
    if task == "count":
        return {"task": task, "ref": {} if rng.random() < 0.4 else any_ref(scene, rng, 0.8)}
    if task == "presence":
        return {"task": task, "ref": any_ref(scene, rng, 0.4)}
    if task == "relation":
        return choose_relation(scene, rng)
    if task == "pointing" and rng.random() < 0.3:
        ref = rng.choice(({"kind": obj["kind"]}, {"colour": obj["colour"]}))
        return {"task": task, "ref": ref, "all": True}
    ref = refs_of(obj, scene, rng)
    if ref is None or (task == "colour" and "colour" in ref):
        return None
    q = {"task": task, "ref": ref}
    if task == "trajectory" and rng.random() < 0.8:
        q["to"] = refs_of(rng.choice(scene["objects"]), scene, rng)
        if q["to"] is None or "most" in q["to"]:
            return None
    return q


def choose_relation(scene, rng):
    if rng.random() < 0.25:
        return {"task": "relation", "ref": {"most": rng.choice(sorted(MOST))}}
    b = refs_of(rng.choice(scene["objects"]), scene, rng)
    q = {"task": "relation", "rel": rng.choice(sorted(RELATIONS)), "b": b}
    if rng.random() < 0.72:
        q["a"] = refs_of(rng.choice(scene["objects"]), scene, rng)
    return None if b is None or "most" in b or q.get("a", {}) is None or "most" in q.get("a", {}) else q


def choose_several(_, scene, rng):
    """Pointing where more than one thing may be meant, also by words that sound like one."""
    refs = [r for o in scene["objects"] for r in ({"kind": o["kind"]}, {"colour": o["colour"]},
                                                  {"kind": o["kind"], "colour": o["colour"]})]
    several = [r for r in refs if len(matches(r, scene)) > 1]
    ref = rng.choice(several if several and rng.random() < 0.85 else refs)
    return {"task": "pointing", "ref": ref, "all": rng.random() < 0.75}


def ask(task, scene, rng, tries=12, choose=choose):
    """(question dict, wording, solution) for this task, or None where the scene has nothing to ask."""
    for _ in range(tries):
        q = choose(task, scene, rng)
        solution = solve(q, scene) if q else None
        if solution:
            return q, phrase(q, rng), solution
    return None


MIX = (("count", 7), ("colour", 3), ("presence", 4), ("relation", 10), ("describe", 0.5), ("greeting", 0.2),
       ("grounding", 7), ("pointing", 4), ("affordance", 5), ("trajectory", 4))


def ask_any(scene, rng, mix=MIX):
    while True:
        task = rng.choices([t for t, _ in mix], [w for _, w in mix])[0]
        found = ask(task, scene, rng)
        if found:
            return found


if __name__ == "__main__":
    from scenes import make_scene
    rng = random.Random(3)
    for seed in range(30):
        q, text, solution = ask_any(make_scene(seed), rng)
        print(q["task"], "|", text, "|", solution["answer"])
