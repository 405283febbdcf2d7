"""Trains the committed weights further in little processor time: the model keeps its abilities and learns more.

  python adapt.py eyes --until 17:20        the vision encoder: dark tables, haze, a camera held askew
  python adapt.py words --until 17:20       the language model: questions late in a session, several points
  python adapt.py join                      both into model/

Each is one process with one thread and changes its own half alone, so they run side by side and need not wait
for each other.  They write ../build/demo-eyes and ../build/demo-words every few minutes and go on from there.

The vision encoder learns from its former self: on a dark or hazy picture its cells are to be what the old encoder's
are on the plain picture of the same scene, whose camera is as much askew.  That needs no answers, gives each of 81
cells 256 target numbers, and leaves the language model's half as it is.  The language model learns several questions of
a scene behind the same earlier turns, which are read once for all of them; it keeps to its former self where a
message has no picture.  The weights that are written are the mean of those of the last hundred steps.
"""

import argparse
import math
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import export
from ask_torch import FOLDER, load
from batches import (CODES, GENERAL_MIX, TEXTS, cell_targets, crowded, draw_look, draw_question, pack_texts,
                     patches_of)
from model import text_places
from questions import GENERAL, ask_any, in_context, in_turns, wrap
from scenes import make_scene, render
from train import answer_loss

BUILD = os.path.join(os.path.dirname(FOLDER), "..", "build")
PARTS = ("eyes", "words")
SEED = {"eyes": 400_000_000, "words": 500_000_000}      # neither the first training's nor the evaluation's
QUERY = "[Current query]\n"
LATER = ((("count",), 3), (GENERAL, 2), (("grounding",), 3), (("pointing",), 12), (("affordance",), 2),
         (("trajectory",), 2))
EYES, SCENES = 4, 2                                     # pictures of a step of the eyes, of the words
TEXT_MIX = (("TASK", 1, 8), ("TITLE", 1, 12), ("STEPS", 3, 4), ("BLIND", 1, 8))     # how often, and how many
KEPT = 0.99                                             # of the average of the weights in each step
QUESTIONS = 6                                           # behind the same earlier turns
LONGEST = 150                                           # tokens of one of them


def file_of(part):
    return os.path.join(BUILD, "demo-" + part, "weights.safetensors")


def is_vision(name):
    return name.startswith("vision.")


# -- training data -----------------------------------------------------------------------------------

def tensor_of(scene):
    return torch.from_numpy(patches_of(render(scene)))


def pair_of_looks(seed, rng):
    """The picture of a scene, dark or hazy, and the plain one; which cells show something."""
    look = draw_look(rng)
    if "dark" not in look and "contrast" not in look:
        look += (rng.choice(("dark", "contrast")),) if rng.random() < 0.8 else ()
    scene = make_scene(seed, look=look)
    plain = dict(scene, look=scene["look"] & {"turned"})
    return tensor_of(scene), tensor_of(plain), torch.from_numpy(cell_targets(scene)[0] > 0)


def earlier_of(scene, rng):
    """Returns the turns before a question, as the server puts a session's turns, or as a client's messages."""
    turns = [ask_any(scene, rng) for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 5)))]
    if turns and rng.random() < 0.2:
        return in_turns([(wrap(q["task"], t), s["answer"]) for q, t, s in turns]), ()
    return "", [(t, s["answer"]) for _, t, s in turns]


def split(encoder, turns, earlier, task, text):
    """The ids of a question in two: what all questions of its kind share, and its own."""
    whole = wrap(task, in_context(earlier, text) if earlier else text)
    shared = whole.index(QUERY) + len(QUERY) if earlier else 0
    return encoder.ids(turns + whole[:shared]), encoder.ids(whole[shared:])


def weights_of(encoder, task, answer):
    """The model tends to forget the last of several points, so whether another one follows counts most."""
    weights = encoder.weights(task, answer)
    if task == "pointing":
        weights = [5 * w if token in encoder.ends else w for token, w in zip(answer, weights)] + weights[-1:]
    return weights


def session_of(scene, encoder, rng, tasks, turns="", earlier=()):
    """Questions of some tasks behind the same earlier turns: shared ids, and ids, weights, codes [1, Q(, T)]."""
    rows, shared, seen = [], [], set()
    for _ in range(4 * QUESTIONS):
        asked = draw_question(tasks, scene, rng)
        if not asked or asked[1] in seen or asked[0]["task"] == "greeting":
            continue
        seen.add(asked[1])
        task, answer = asked[0]["task"], encoder.ids(asked[2]["answer"])
        shared, own = split(encoder, turns, earlier, task, asked[1])
        row = encoder.filled(own + encoder.tail, answer, weights_of(encoder, task, answer), LONGEST)
        if row:
            rows.append(row + (CODES[task],))
        if len(rows) == QUESTIONS:
            break
    if not rows:
        return None
    ids, weights, codes = (np.array(part) for part in zip(*rows))
    longest = int((ids != encoder.pad).sum(1).max())
    return shared, (torch.tensor(ids[None, :, :longest]), torch.tensor(weights[None, :, :longest]).float(),
                    torch.tensor(codes[None]))


# -- the two halves ----------------------------------------------------------------------------------

def prefix_loss(model, picture, shared, bucket, tally):
    """picture [1, 81, D] -> the answers' loss behind it and the shared ids."""
    pieces = [model.embedded(model.before, 1, picture.dtype), picture, model.embedded(model.after, 1, picture.dtype)]
    places = model.places()
    if shared:
        pieces.append(model.embedded(shared, 1, picture.dtype))
        places = torch.cat((places, text_places(int(places[-1, 0]) + 1, len(shared))))
    hidden, _ = model.read(torch.cat(pieces, 1), places, [bucket[0]], picture.dtype)
    return answer_loss(model, hidden, [bucket], tally)


def eyes_step(job, seed, rng, tally):
    """Cells like the teacher's, of some pictures."""
    looks, plains, shown = (torch.stack(t) for t in zip(*(pair_of_looks(seed + i, rng) for i in range(EYES))))
    with torch.no_grad():
        wanted = job.teacher.vision(plains, torch.float32)[0]
    far = (job.model.vision(looks, torch.float32)[0] - wanted).pow(2).mean(-1) / wanted.pow(2).mean()
    (far * torch.where(shown, 4.0, 1.0)).mean().backward()
    tally["far"] = tally.get("far", []) + [far[shown].mean().item()]
    return EYES


def text_step(job, rng, tally):
    """Messages without a picture: the teacher is the former self, and the right answers count as well."""
    at = rng.choices(range(len(TEXTS)), [often for _, often, _ in TEXT_MIX])[0]
    bucket = [part[:, :TEXT_MIX[at][2]] for part in pack_texts(job.encoder, rng)[at]]
    hidden = job.model.without_picture(job.prefixes[at], bucket[:1], torch.float32)
    answers = bucket[1][:, :, 1:] > 0
    with torch.no_grad():
        former = job.teacher.without_picture(job.prefixes[at], bucket[:1], torch.float32)[0]
        former = job.teacher.logits(former[:, :, :-1][answers]).log_softmax(-1)
    mine = job.model.logits(hidden[0][:, :, :-1][answers]).log_softmax(-1)
    far = F.kl_div(mine, former, reduction="batchmean", log_target=True)
    (far + 0.3 * answer_loss(job.model, hidden, [bucket], tally)).backward()
    tally["far"] = tally.get("far", []) + [far.item()]


def words_step(job, seed, rng, tally):
    """Some scenes, each with one kind of question after other turns; and messages without a picture."""
    for i in range(SCENES):
        tasks = rng.choices([t for t, _ in LATER], [w for _, w in LATER])[0]
        like = crowded(rng) if tasks == ("pointing",) and rng.random() < 0.6 else None
        scene = make_scene(seed + i, like=like, look=draw_look(rng) if rng.random() < 0.8 else ())
        asked = session_of(scene, job.encoder, rng, tasks, *earlier_of(scene, rng))
        if asked:
            with torch.no_grad():
                picture = job.model.vision(tensor_of(scene)[None], torch.float32)[0]
            (prefix_loss(job.model, picture, *asked, tally) / SCENES).backward()
    if rng.random() < 0.4:
        text_step(job, rng, tally)
    return SCENES


def clock(text):
    now = time.localtime()
    hour, minute = map(int, text.split(":"))
    return time.mktime((now.tm_year, now.tm_mon, now.tm_mday, hour, minute, 0, 0, 0, -1))


class Job:
    def __init__(self, args):
        self.args = args
        self.model, self.encoder = load()
        self.prefixes = self.encoder.text_prefixes()
        self.teacher = load()[0].requires_grad_(False)
        for part in PARTS if args.both else (args.part,):
            if os.path.exists(file_of(part)):
                self.model.load_state_dict(load_file(file_of(part)), strict=False)
        self.mine = {n: p for n, p in self.model.named_parameters() if is_vision(n) == (args.part == "eyes")}
        for name, p in self.model.named_parameters():
            p.requires_grad_(name in self.mine)
        self.average = {n: p.detach().clone() for n, p in self.mine.items()}
        self.optimizer = torch.optim.AdamW(self.mine.values(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0)

    def save(self):
        os.makedirs(os.path.dirname(file_of(self.args.part)), exist_ok=True)
        save_file(self.average, file_of(self.args.part) + ".new")
        os.replace(file_of(self.args.part) + ".new", file_of(self.args.part))

    def run(self):
        start, end = time.time(), clock(self.args.until)
        shown = saved = start
        seed, count, tally = SEED[self.args.part] + int(start) % 10_000_000 * 7, 0, {}
        rng, step = random.Random(seed), eyes_step if self.args.part == "eyes" else words_step
        while time.time() < end:
            done = (time.time() - start) / (end - start)
            for group in self.optimizer.param_groups:
                group["lr"] = self.args.lr * min(1.0, (count + 1) / 20) * max(0.02, 0.5 + 0.5 * math.cos(math.pi * done))
            seed += step(self, seed, rng, tally)
            torch.nn.utils.clip_grad_norm_(self.mine.values(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            count += 1
            for name, p in self.average.items():
                p.lerp_(self.mine[name].detach(), max(1 - KEPT, 1 / count))
            if time.time() - shown > 60:
                self.report(count, tally)
                shown, tally = time.time(), {}
            if time.time() - saved > 180:
                self.save()
                saved = time.time()
        self.save()

    def report(self, count, tally):
        far = tally.pop("far", [])
        names = {code: name for name, code in CODES.items()}
        print(time.strftime("%H:%M"), count, "far %.4f" % (sum(far) / len(far)) if far else "",
              " ".join("%s=%d/%d" % (names[c], ok, n) for c, (n, ok) in sorted(tally.items())), flush=True)


def join():
    model, encoder = load()
    for part in PARTS:
        if os.path.exists(file_of(part)):
            model.load_state_dict(load_file(file_of(part)), strict=False)
    return model, encoder


def main():
    p = argparse.ArgumentParser()
    p.add_argument("part", choices=PARTS + ("join",))
    p.add_argument("--until", help="HH:MM of today, where the learning rate reaches its end")
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--both", action="store_true", help="also start from the other half's new weights")
    p.add_argument("--to", default=FOLDER, help="of join: the checkpoint directory to write")
    args = p.parse_args()
    torch.set_num_threads(1)
    if args.part == "join":
        model, encoder = join()
        export.write(model, args.to, encoder.tok.token_to_id)
    else:
        Job(args).run()


if __name__ == "__main__":
    main()
