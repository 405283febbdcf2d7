"""RoboBrain's two releases: the words that ask for a task, and the form of its answer.

Release 2.0 writes pixels of the picture.  Release 2.5 writes shares of the picture's sides, 0 to 1000, does
affordance by pointing, and gives each point of a trajectory a depth.  On the toy table this depth is a distance
in metres: 1.5 at the upper edge of the picture and 0.5 at the lower one, for the place where an object stands.
Questions and their solutions are the same for both, and have scene pixels.
"""

import re

from questions import WRAPPERS, box_text, points_text
from scenes import SIZE

SYSTEM = "You are a helpful assistant."
WRAPPERS_25 = {
    "pointing": "%s. Please provide its 2D coordinates. Your answer should be formatted as a tuple, i.e. [(x, y)],"
                " where the tuple contains the x and y coordinates of a point satisfying the conditions above.",
    "trajectory": "Please predict 3D end-effector-centric waypoints to complete the task successfully. The task is"
                  " \"%s\". Your answer should be formatted as a list of tuples, i.e., [(x1, y1, d1), (x2, y2, d2),"
                  " ...], where each tuple contains the x and y coordinates and the depth of the point.",
    "grounding": WRAPPERS["grounding"],
}
WRAPPERS_25["affordance"] = WRAPPERS_25["pointing"]


def depth(y):
    return 1.5 - y / SIZE


class Release:
    shares, coarse = 0, 10              # 0: pixels; the step of a number without its last digits
    system, wrappers = SYSTEM, WRAPPERS  # the system message of a conversation without one

    def wrap(self, task, text):
        """RoboBrain's own sentence around the text; general questions stay as they are."""
        return self.wrappers[task] % text if task in self.wrappers else text

    def text_end(self, task, text):
        """Where the client's text ends in what wrap() gives."""
        return (self.wrappers[task].index("%s") if task in self.wrappers else 0) + len(text)

    def scaled(self, values):
        """Scene pixels as the model writes them."""
        return [min(self.shares, round(v * self.shares / SIZE)) for v in values] if self.shares else list(values)

    def box(self, box):
        return box_text(self.scaled(box))

    def answer(self, q, solution):
        return solution["answer"]

    # The coordinates of an answer, in scene pixels; an empty list where it has another form.

    def pixels(self, values):
        return [v * SIZE / self.shares for v in values] if self.shares else list(values)

    def boxes(self, answer):
        return [self.pixels(v) for v in numbers(answer, 4)]

    def points(self, answer, task):
        return [self.pixels(v) for v in numbers(answer, 2)]


class Release25(Release):
    shares, coarse = 1000, 20
    system, wrappers = None, WRAPPERS_25

    def answer(self, q, solution):
        if q["task"] == "grounding":
            return self.box(solution["box"])
        if q["task"] == "affordance":
            return points_text([self.scaled(solution["about"][0]["hold"])])
        if q["task"] == "pointing":
            return points_text([self.scaled(o["point"]) for o in solution["objects"]])
        if q["task"] == "trajectory":
            points = solution["path"]
            first, last = (depth(y) for y in solution["feet"])
            deep = [first + (last - first) * i / (len(points) - 1) for i in range(len(points))]
            return "[" + ", ".join("(%d, %d, %.1f)" % (*self.scaled(p), d) for p, d in zip(points, deep)) + "]"
        return solution["answer"]

    def points(self, answer, task):
        if task != "trajectory":
            return super().points(answer, task)
        triple = r"\((\d+), ?(\d+), ?\d+(?:\.\d+)?\)"
        if not re.fullmatch(r"\[%s(?:, ?%s)*\]" % (triple, triple), answer.strip()):
            return []
        return [self.pixels(map(int, p)) for p in re.findall(triple, answer)]


def numbers(text, size):
    """The integers of "[(1, 2), (3, 4)]" in groups of `size`; empty if the text has another form."""
    body = text.strip()
    shape = "".join(c for c in body if not c.isdigit() and c != "-").replace(" ", "")
    values = [int(w) for w in "".join(c if c.isdigit() else " " for c in body).split()]
    groups = len(values) // size if size else 0
    inner = ",".join(["(" + "," * (size - 1) + ")"] * groups) if size == 2 else ",,,"
    if not values or len(values) % size or shape != "[" + inner + "]":
        return []
    return [values[i:i + size] for i in range(0, len(values), size)]


RELEASES = {"2.0": Release(), "2.5": Release25()}
FIRST, SECOND = RELEASES["2.0"], RELEASES["2.5"]
