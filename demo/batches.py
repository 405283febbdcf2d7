"""Makes training batches without end, in a worker process: pictures, cell targets and packed questions."""

import random
import signal

import numpy as np
import torch
from tokenizers import Tokenizer

from PIL import Image

from questions import (GENERAL, MIX, TASKS, ask, ask_any, choose_several, in_context, in_turns, matches, ref_text)
from release import FIRST
from scenes import COLOURS, KINDS, LOOKS, SIZE, make_scene, render
from text_tasks import content_spans, draw, server_words

CELL = 28
CODES = {task: i for i, task in enumerate(TASKS + ("describe", "greeting", "TASK", "TITLE", "STEPS", "BLIND"))}
# (tasks, questions of each picture, tokens of each): a bucket's questions are padded to one length
BUCKETS = ((GENERAL, 6, 24), (("grounding",), 3, 48), (("affordance",), 2, 60), (("pointing",), 2, 96),
           (("trajectory",), 1, 130), ("context", 1, 320))
BUCKETS_25 = ((GENERAL, 4, 24), (("grounding",), 2, 54), (("affordance",), 5, 80), (("pointing",), 4, 104),
              (("trajectory",), 1, 190), ("context", 1, 352))
# (kind of message without a picture, messages of a batch, tokens of each)
TEXTS = (("TASK", 8, 36), ("TITLE", 16, 44), ("STEPS", 12, 272), ("BLIND", 8, 60))
TEXTS_FEW = (("TASK", 4, 36), ("TITLE", 4, 44), ("STEPS", 2, 272), ("BLIND", 4, 60))     # for a model that has learnt them
NUMBERS = 12                            # coordinates of an object: two boxes, two points
LATE = ("pointing", "affordance", "grounding", "trajectory")      # the tasks that suffer most from a long history
GENERAL_MIX = tuple((t, w) for t, w in MIX if t in GENERAL)


def patches_of(picture):
    """u8 [324, 588]: patches in window order, each (channel, y, x)."""
    parts = np.asarray(picture).reshape(3, 3, 2, 14, 3, 3, 2, 14, 3)
    return np.ascontiguousarray(parts.transpose(0, 4, 1, 5, 2, 6, 8, 3, 7)).reshape(324, 588)


def patches_of_cells(picture):
    """u8 [324, 768]: patches of the enlarged picture, cell by cell, row by row, each (channel, y, x)."""
    parts = np.asarray(picture.resize((288, 288), Image.BICUBIC)).reshape(9, 2, 16, 9, 2, 16, 3)
    return np.ascontiguousarray(parts.transpose(0, 3, 1, 4, 6, 2, 5)).reshape(324, 768)


def draw_look(rng):
    """The look of a scene to learn from: each alone, now and then two, often none."""
    chance = rng.random()
    if chance < 0.3:
        return ()
    if chance < 0.85:
        return (rng.choice(LOOKS + ("turned",)),)
    return rng.choice((("dark", "turned"), ("contrast", "turned")))


def crowded(rng):
    """Kinds and colours of a scene in which two or three objects often share a name."""
    kinds, colours = rng.sample(KINDS, 2), rng.sample(sorted(COLOURS), 3)
    return [(rng.choice(kinds), rng.choice(colours)) for _ in range(rng.randint(3, 6))]


def any_scene(seed):
    """A scene of any look, sometimes crowded."""
    rng = random.Random(seed ^ 0x100C)
    return make_scene(seed, like=crowded(rng) if rng.random() < 0.2 else None,
                      look=draw_look(rng) if rng.random() < 0.85 else ())


def coordinates(obj, release):
    """The coordinates of an object as the model writes them."""
    values = [*obj["box"], *obj["grasp"], *obj["point"], *obj["hold"]]
    return release.scaled(np.clip(values, 0, SIZE - 1).tolist())


def home_cell(obj):
    x, y = obj["point"]
    return min(8, y // CELL) * 9 + min(8, x // CELL)


def cell_targets(scene, release=FIRST):
    """Returns the content of each of the 81 cells: kind, colour, centre flag, and its object's coordinates."""
    kind, colour, flag = (np.zeros(81, np.int64) for _ in range(3))
    coords, best = np.zeros((81, NUMBERS), np.int64), np.full(81, 1e9)
    for obj in scene["objects"]:
        x1, y1, x2, y2 = obj["box"]
        px, py = obj["point"]
        home = home_cell(obj)
        for cell in range(81):
            cx, cy = cell % 9 * CELL, cell // 9 * CELL
            wide = min(x2, cx + CELL) - max(x1, cx)
            high = min(y2, cy + CELL) - max(y1, cy)
            if cell != home and (wide <= 0 or high <= 0 or wide * high < 0.2 * CELL * CELL):
                continue
            distance = -1 if cell == home else (px - cx - 14) ** 2 + (py - cy - 14) ** 2
            if distance < best[cell]:
                best[cell] = distance
                kind[cell] = KINDS.index(obj["kind"]) + 1
                colour[cell] = sorted(COLOURS).index(obj["colour"]) + 1
                coords[cell] = coordinates(obj, release)
        flag[home] = 1
    return kind, colour, flag, coords


class Encoder:
    """Turns a question and its answer into ids and the weight of each id as a target."""

    def __init__(self, path, release=FIRST):
        self.tok, self.release = Tokenizer.from_file(path), release
        self.tail = self.ids("<|im_end|>\n<|im_start|>assistant\n")
        self.end = self.tok.token_to_id("<|im_end|>")
        self.pad = self.tok.token_to_id("<|endoftext|>")
        self.digits = {self.tok.token_to_id(str(d)) for d in range(10)}
        self.ends = {i for t, i in self.tok.get_vocab().items() if ")" in t}
        self.marks = {i for t, i in self.tok.get_vocab().items() if not any(c.isalnum() for c in t.replace("Ġ", ""))}

    def ids(self, text):
        return self.tok.encode(text, add_special_tokens=False).ids

    def prefix(self):
        """The ids before and after the picture's places."""
        return self.ids(self.start(self.release.system) + "<|vision_start|>"), self.ids("<|vision_end|>")

    @staticmethod
    def start(system):
        """The text before the user's first words."""
        header = "<|im_start|>system\n%s<|im_end|>\n" % system if system else ""
        return header + "<|im_start|>user\n"

    def text_prefixes(self):
        """The ids before a message without a picture, for each of TEXTS."""
        words = dict(server_words(), BLIND=self.release.system)
        return [self.ids(self.start(words[kind])) for kind, _, _ in TEXTS]

    def weights(self, task, answer):
        if task in GENERAL:
            return [5.0] * len(answer) + [1.0]
        found = []
        for i, token in enumerate(answer):
            if token in self.digits:
                more = i + 1 < len(answer) and answer[i + 1] in self.digits
                found.append(1.0 if more else 0.8)
            else:
                found.append(0.9 if token in self.ends else 0.15 if token in self.marks else 1.0)
        return found + [0.2]

    def row(self, task, text, answer, size, turns=""):
        """ids [size], weights [size] and where the text and the whole question end; None where it does not fit."""
        asked = self.tok.encode(turns + self.release.wrap(task, text), add_special_tokens=False)
        last = len(turns) + self.release.text_end(task, text)
        text_end = max(i for i, (_, end) in enumerate(asked.offsets) if end <= last)
        question, answer = asked.ids + self.tail, self.ids(answer)
        row = self.filled(question, answer, self.weights(task, answer), size)
        return row and row + ((text_end, len(question) - 1),)

    def filled(self, question, answer, weights, size):
        ids = question + answer + [self.end]
        if len(ids) > size:
            return None
        fill = size - len(ids)
        return ids + [self.pad] * fill, [0.0] * len(question) + weights + [0.0] * fill

    def text_row(self, kind, text, answer, size):
        """The same for a message without a picture; of a plan the decisions count, not the punctuation."""
        found = self.tok.encode(answer, add_special_tokens=False)
        weights = [2.0 if kind == "TASK" else 1.0] * len(found.ids)
        if kind == "STEPS":
            spans = content_spans(answer)
            weights = [1.0 if any(a < end and start < b for a, b in spans) else 0.15 for start, end in found.offsets]
        return self.filled(self.ids(text) + self.tail, found.ids, weights + [1.0], size)


def draw_question(tasks, scene, rng):
    if tasks is GENERAL:
        if rng.random() < 0.01:
            return ask("greeting", scene, rng)
        return ask_any(scene, rng, GENERAL_MIX)
    if tasks[0] == "grounding" and rng.random() < 0.06:
        return ask("describe", scene, rng)
    if tasks[0] == "pointing" and rng.random() < 0.45:
        return ask("pointing", scene, rng, choose=choose_several)
    return ask(rng.choice(tasks), scene, rng)


def context_question(scene, rng, release=FIRST):
    """A later question of a session: up to five earlier ones come before it."""
    task = rng.choice(LATE) if rng.random() < 0.6 else None
    new = task and draw_question((task,), scene, rng) or ask_any(scene, rng)
    earlier = [ask_any(scene, rng) for _ in range(rng.choice((1, 1, 2, 3, 4, 5, 5)))]
    text, turns = new[1], [(t, release.answer(q, s)) for q, t, s in earlier]
    if new[0]["task"] in ("affordance", "trajectory") and rng.random() < 0.3:      # a step of a pipeline
        box = release.box(new[2]["about"][0]["box"])
        turns[-1] = ref_text(new[0]["ref"], rng), box
        text += "\nPrevious result: " + box
    if rng.random() < 0.3:
        return new[0], text, new[2], in_turns([(release.wrap(q["task"], t), a)
                                               for (q, _, _), (t, a) in zip(earlier, turns)])
    return new[0], in_context(turns, text), new[2], ""


def pack(scene, encoder, rng, buckets=BUCKETS):
    """For each bucket: ids, weights [Q, T], the task codes [Q], where text and question end [Q, 2]
    the coordinates of the objects they are about [Q, 2, NUMBERS], -1 for none, and which cells hold a thing to
    be counted [Q, 81], -1 where nothing is."""
    found, release = [], encoder.release
    for tasks, count, size in buckets:
        ids = np.full((count, size), encoder.pad, np.int64)
        weights = np.zeros((count, size), np.float32)
        codes, ends = np.full(count, -1, np.int64), np.zeros((count, 2), np.int64)
        about, counted = np.full((count, 2, NUMBERS), -1, np.int64), np.full((count, 81), -1, np.int64)
        for i in range(count):
            for _ in range(8):
                asked = (context_question(scene, rng, release) if tasks == "context"
                         else draw_question(tasks, scene, rng))
                row = asked and encoder.row(asked[0]["task"], asked[1], release.answer(asked[0], asked[2]), size,
                                            *asked[3:])
                if row:
                    ids[i], weights[i], ends[i] = row
                    codes[i] = CODES[asked[0]["task"]]
                    for j, obj in enumerate(asked[2].get("about", ())):
                        about[i, j] = coordinates(obj, release)
                    if asked[0]["task"] in ("count", "presence", "pointing"):
                        counted[i] = 0
                        counted[i, [home_cell(o) for o in matches(asked[0]["ref"], scene)]] = 1
                    break
        found.append((ids, weights, codes, ends, about, counted))
    return found


def pack_texts(encoder, rng, texts=TEXTS):
    """For each of `texts`: ids, weights [1, Q, T] and codes [1, Q]."""
    found = []
    for kind, count, size in texts:
        rows = []
        while len(rows) < count:
            row = encoder.text_row(kind, *draw(kind, rng), size)
            if row:
                rows.append(row)
        ids, weights = zip(*rows)
        found.append((torch.tensor(ids)[None], torch.tensor(weights)[None], torch.full((1, count), CODES[kind])))
    return found


class Batches(torch.utils.data.IterableDataset):
    """Scenes from `seed` on, each seen once by one of the processes."""

    def __init__(self, family, seed, size, words, rank=0, ranks=1):
        self.family, self.seed, self.size, self.words, self.rank, self.ranks = family, seed, size, words, rank, ranks

    def __iter__(self):
        torch.set_num_threads(1)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)       # the trainer saves first, then stops its worker
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        at, family = self.seed + self.rank, self.family
        encoder, former = family.encoder(), family.former
        while True:
            patches, shown, targets, packed = [], [], [], []
            for _ in range(self.size):
                scene = any_scene(at) if former else make_scene(at)
                at += self.ranks
                picture = render(scene)
                patches.append(family.patches(picture))
                targets.append(cell_targets(scene, family.release))
                if self.words:
                    packed.append(pack(scene, encoder, random.Random(at), family.buckets))
                elif former:
                    shown.append(former.patches(picture))
            targets = [torch.from_numpy(np.stack(t)) for t in zip(*targets)]
            buckets = [[torch.from_numpy(np.stack([p[b][i] for p in packed])) for i in range(6)]
                       for b in range(len(family.buckets) if packed else 0)]
            texts = pack_texts(encoder, random.Random(at ^ 0x7E87), family.texts) if self.words else []
            yield (torch.from_numpy(np.stack(patches)), torch.from_numpy(np.stack(shown)) if shown else None,
                   targets, buckets, texts)


def loader(family, seed, size, words, rank=0, ranks=1):
    """Batches of pictures, the same pictures for the family's former self where it teaches, and with `words` the
    questions."""
    return iter(torch.utils.data.DataLoader(Batches(family, seed, size, words, rank, ranks), batch_size=None,
                                            num_workers=1, prefetch_factor=4))
