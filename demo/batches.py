"""Makes training batches without end, in a worker process: pictures, cell targets and packed questions."""

import random
import signal

import numpy as np
import torch
from tokenizers import Tokenizer

from questions import (GENERAL, MIX, TASKS, WRAPPERS, ask, ask_any, box_text, choose_several, in_context, in_turns,
                       matches, ref_text, wrap)
from scenes import COLOURS, KINDS, SIZE, make_scene, render
from text_tasks import content_spans, draw, server_words

CELL = 28
CODES = {task: i for i, task in enumerate(TASKS + ("describe", "greeting", "TASK", "TITLE", "STEPS", "BLIND"))}
# (tasks, questions of each picture, tokens of each): a bucket's questions are padded to one length
BUCKETS = ((GENERAL, 6, 24), (("grounding",), 3, 48), (("affordance",), 2, 60), (("pointing",), 2, 96),
           (("trajectory",), 1, 130), ("context", 1, 320))
# (what is asked without a picture, how many of it in a batch, tokens of each)
TEXTS = (("TASK", 8, 36), ("TITLE", 16, 44), ("STEPS", 12, 272), ("BLIND", 8, 60))
LATE = ("pointing", "affordance", "trajectory", "trajectory")      # what suffers most from a long history
GENERAL_MIX = tuple((t, w) for t, w in MIX if t in GENERAL)


def patches_of(picture):
    """u8 [324, 588]: patches in window order, each (channel, y, x)."""
    parts = np.asarray(picture).reshape(3, 3, 2, 14, 3, 3, 2, 14, 3)
    return np.ascontiguousarray(parts.transpose(0, 4, 1, 5, 2, 6, 8, 3, 7)).reshape(324, 588)


def coordinates(obj):
    return list(obj["box"]) + list(obj["grasp"]) + list(obj["point"])


def home_cell(obj):
    x, y = obj["point"]
    return min(8, y // CELL) * 9 + min(8, x // CELL)


def cell_targets(scene):
    """Returns the content of each of the 81 cells: kind, colour, centre flag, and its object's ten coordinates."""
    kind, colour, flag = (np.zeros(81, np.int64) for _ in range(3))
    coords, best = np.zeros((81, 10), np.int64), np.full(81, 1e9)
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
                coords[cell] = coordinates(obj)
        flag[home] = 1
    return kind, colour, flag, np.clip(coords, 0, SIZE - 1)


class Encoder:
    """Turns a question and its answer into ids and the weight of each id as a target."""

    def __init__(self, path):
        self.tok = Tokenizer.from_file(path)
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
        before = self.ids("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
                          "<|vision_start|>")
        return before, self.ids("<|vision_end|>")

    def text_prefixes(self):
        """The ids before a message without a picture, for each of TEXTS."""
        words = dict(server_words(), BLIND="You are a helpful assistant.")
        return [self.ids("<|im_start|>system\n%s<|im_end|>\n<|im_start|>user\n" % words[kind]) for kind, _, _ in TEXTS]

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
        asked = self.tok.encode(turns + wrap(task, text), add_special_tokens=False)
        last = len(turns) + (WRAPPERS[task].index("%s") if task in WRAPPERS else 0) + len(text)
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
        """The same for a message without a picture; of a plan what is decided counts, not its punctuation."""
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


def context_question(scene, rng):
    """A later question of a session: up to five earlier ones come before it."""
    task = rng.choice(LATE) if rng.random() < 0.6 else None
    new = task and draw_question((task,), scene, rng) or ask_any(scene, rng)
    earlier = [ask_any(scene, rng) for _ in range(rng.choice((1, 1, 2, 3, 4, 5, 5)))]
    text, told = new[1], [(t, s["answer"]) for _, t, s in earlier]
    if new[0]["task"] in ("affordance", "trajectory") and rng.random() < 0.3:      # a step of a pipeline
        box = box_text(new[2]["about"][0]["box"])
        told[-1] = ref_text(new[0]["ref"], rng), box
        text += "\nPrevious result: " + box
    if rng.random() < 0.3:
        return new[0], text, new[2], in_turns([(wrap(q["task"], t), a) for (q, _, _), (t, a) in zip(earlier, told)])
    return new[0], in_context(told, text), new[2], ""


def pack(scene, encoder, rng):
    """For each bucket: ids, weights [Q, T], the task codes [Q], where text and question end [Q, 2]
    the coordinates of the objects they are about [Q, 2, 10], -1 for none, and which cells hold a thing to
    be counted [Q, 81], -1 where nothing is."""
    found = []
    for tasks, count, size in BUCKETS:
        ids = np.full((count, size), encoder.pad, np.int64)
        weights = np.zeros((count, size), np.float32)
        codes, ends = np.full(count, -1, np.int64), np.zeros((count, 2), np.int64)
        about, counted = np.full((count, 2, 10), -1, np.int64), np.full((count, 81), -1, np.int64)
        for i in range(count):
            for _ in range(8):
                asked = context_question(scene, rng) if tasks == "context" else draw_question(tasks, scene, rng)
                row = asked and encoder.row(asked[0]["task"], asked[1], asked[2]["answer"], size, *asked[3:])
                if row:
                    ids[i], weights[i], ends[i] = row
                    codes[i] = CODES[asked[0]["task"]]
                    for j, obj in enumerate(asked[2].get("about", ())):
                        about[i, j] = np.clip(coordinates(obj), 0, SIZE - 1)
                    if asked[0]["task"] in ("count", "presence", "pointing"):
                        counted[i] = 0
                        counted[i, [home_cell(o) for o in matches(asked[0]["ref"], scene)]] = 1
                    break
        found.append((ids, weights, codes, ends, about, counted))
    return found


def pack_texts(encoder, rng):
    """For each of TEXTS: ids, weights [1, Q, T] and codes [1, Q]."""
    found = []
    for kind, count, size in TEXTS:
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

    def __init__(self, seed, size, tokenizer=None, rank=0, ranks=1):
        self.seed, self.size, self.tokenizer, self.rank, self.ranks = seed, size, tokenizer, rank, ranks

    def __iter__(self):
        torch.set_num_threads(1)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)       # the trainer saves first, then stops its worker
        at = self.seed + self.rank
        encoder = Encoder(self.tokenizer) if self.tokenizer else None
        while True:
            patches, targets, packed = [], [], []
            for _ in range(self.size):
                scene = make_scene(at)
                at += self.ranks
                patches.append(patches_of(render(scene)))
                targets.append(cell_targets(scene))
                if encoder:
                    packed.append(pack(scene, encoder, random.Random(at)))
            targets = [torch.from_numpy(np.stack(t)) for t in zip(*targets)]
            buckets = [[torch.from_numpy(np.stack([p[b][i] for p in packed])) for i in range(6)]
                       for b in range(len(BUCKETS) if packed else 0)]
            texts = pack_texts(encoder, random.Random(at ^ 0x7E87)) if encoder else []
            yield torch.from_numpy(np.stack(patches)), targets, buckets, texts


def loader(seed, size, tokenizer=None, rank=0, ranks=1):
    return iter(torch.utils.data.DataLoader(Batches(seed, size, tokenizer, rank, ranks), batch_size=None,
                                            num_workers=1, prefetch_factor=4))
