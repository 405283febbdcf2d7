"""Trains the demo model on the CPU.

  torchrun --standalone --nproc-per-node 2 train.py --phase vision --until 09:15
  torchrun --standalone --nproc-per-node 2 train.py --resume --until 11:15

The first trains the vision encoder through the helper heads, the second everything together.  There is one
process for each core, with one thread: on a busy machine threads that wait for each other at every matrix
lose nearly all their time.  A step is 6 pictures of each process with 17 questions each.

Every few minutes the checkpoint directory, state.json and curve.csv are written.  --resume goes on from the
directory alone, wherever it was copied to; where build/demo-train.pt is still there, its f32 weights and helper
heads are taken instead.
"""

import argparse
import csv
import json
import math
import os
import signal
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import export
import model as model_file
from batches import CODES, Encoder, loader
from heads import Heads
from model import CONFIG, Model
from muon import Muon

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "model")
STATE, CURVE = os.path.join(HERE, "state.json"), os.path.join(HERE, "curve.csv")
FULL = os.path.join(HERE, "..", "build", "demo-train.pt")
FIELDS = ["date", "minutes", "phase", "step", "pictures", "loss", "helper", "kind", "tens", "pixels", "about",
          *CODES]


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--phase", choices=("vision", "all"), default="all")
    p.add_argument("--until", required=True, help="HH:MM of today, where the learning rate reaches its end")
    p.add_argument("--resume", action="store_true")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--batch", type=int, default=6, help="pictures of each process")
    p.add_argument("--helper", type=float, default=0.5, help="weight of the helper heads' loss")
    p.add_argument("--seeing", type=float, default=0.5, help="the vision encoder's share of the rate")
    p.add_argument("--compile", type=int, default=1)
    p.add_argument("--save-minutes", type=float, default=5)
    return p.parse_args()


def clock(text):
    now = time.localtime()
    hour, minute = map(int, text.split(":"))
    return time.mktime((now.tm_year, now.tm_mon, now.tm_mday, hour, minute, 0, 0, 0, -1))


def optimizers(model, heads, lr, seeing):
    """Muon for the matrices, AdamW for the rest; the vision encoder at a share of the rate once it can see."""
    groups = {}
    for name, p in model.named_parameters():
        matrix = p.dim() == 2 and "embed" not in name and "patch" not in name
        groups.setdefault((matrix, name.startswith("vision")), []).append(p)

    def some(matrix, vision):
        return {"params": groups[matrix, vision], "share": seeing if vision else 1.0}

    return (Muon([some(True, False), some(True, True)], lr=lr),
            torch.optim.AdamW([dict(some(False, False), weight_decay=0.0), dict(some(False, True), weight_decay=0.0),
                               {"params": heads.parameters(), "share": 1.0}],
                              lr=lr, betas=(0.9, 0.98), weight_decay=0.01))


def answer_loss(model, hidden, buckets, tally):
    """Weighted cross-entropy of the answers' tokens; tally[task] counts questions answered exactly."""
    total = weight_sum = 0.0
    for h, (ids, weights, codes, *_) in zip(hidden, buckets):
        wanted = weights[:, :, 1:] > 0
        logits = model.logits(h[:, :, :-1][wanted]).float()
        target, weight = ids[:, :, 1:][wanted], weights[:, :, 1:][wanted]
        total = total + (F.cross_entropy(logits, target, reduction="none") * weight).sum()
        weight_sum += weight.sum()
        with torch.no_grad():
            strict = weight > 0.9               # unit digits and punctuation do not count
            wrong = torch.zeros(wanted.shape, dtype=torch.bool)
            wrong[wanted] = (logits.argmax(-1) != target) & strict
            right = ~wrong.any(-1)
            for code in codes.unique().tolist():
                if code >= 0:
                    n, ok = tally.get(code, (0, 0))
                    tally[code] = (n + (codes == code).sum().item(), ok + right[codes == code].sum().item())
    return total / weight_sum


class Trainer:
    def __init__(self, args):
        self.args, self.rank, self.ranks = args, dist.get_rank(), dist.get_world_size()
        self.encoder = Encoder(os.path.join(FOLDER, "tokenizer.json"))
        self.model = Model(*self.encoder.prefix())
        self.prefixes = self.encoder.text_prefixes()
        self.heads = Heads(CONFIG["hidden_size"])
        self.state = {"step": 0, "pictures": 0, "minutes": 0.0, "seed": 1_000_000}
        if args.resume:
            self.load()
        self.parameters = list(self.model.parameters()) + list(self.heads.parameters())
        self.optimizers = optimizers(self.model, self.heads, args.lr, args.seeing if args.phase == "all" else 1.0)
        tokenizer = os.path.join(FOLDER, "tokenizer.json") if args.phase == "all" else None
        self.data = loader(self.state["seed"] + self.state["pictures"], args.batch, tokenizer,
                           self.rank, self.ranks)
        if args.compile:
            for part in (model_file.Layer, model_file.VisionBlock):
                part.forward = torch.compile(part.forward, dynamic=False)

    def load(self):
        with open(STATE) as f:
            self.state = json.load(f)
        if os.path.exists(FULL):
            full = torch.load(FULL)
            self.model.load_state_dict(full["model"])
            self.heads.load_state_dict(full["heads"], strict=False)
        else:
            export.from_family(self.model, os.path.join(FOLDER, "model.safetensors"))

    def save(self):
        export.write(self.model, FOLDER, self.encoder.tok.token_to_id)
        os.makedirs(os.path.dirname(FULL), exist_ok=True)
        torch.save({"model": self.model.state_dict(), "heads": self.heads.state_dict()}, FULL + ".new")
        os.replace(FULL + ".new", FULL)
        with open(STATE, "w") as f:
            json.dump({k: round(v, 2) for k, v in self.state.items()}, f)
            f.write("\n")

    def rate(self, count, start, end):
        done = min(1.0, (time.time() - start) / (end - start))
        return min(1.0, (count + 1) / 30) * max(0.01, 0.5 + 0.5 * math.cos(math.pi * done))

    def backward(self, batch, tally):
        patches, targets, buckets, texts = batch
        with torch.autocast("cpu", dtype=torch.bfloat16):
            if self.args.phase == "vision":
                picture, answers = self.model.vision(patches, torch.bfloat16), torch.zeros(())
            else:
                hidden, middle, picture = self.model(patches, [b[0] for b in buckets])
                for ids, (branch, *_) in zip(self.prefixes, texts):
                    hidden += self.model.without_picture(ids, [branch])
                answers = answer_loss(self.model, hidden, list(buckets) + list(texts), tally)
        helper, seen = self.heads(picture, targets)
        if self.args.phase == "all":
            loss, seen["about"], seen["found"], seen["side"] = self.heads.referents(middle, buckets, picture, targets)
            helper = helper + loss
        weight = 1.0 if self.args.phase == "vision" else self.args.helper
        (answers + weight * helper).backward()
        return answers.item(), helper.item(), seen

    def share(self, rate, stop):
        """Averages the gradients of all processes; the first one's rate and anyone's wish to stop go along."""
        grads = [p.grad for p in self.parameters if p.grad is not None]
        mine = torch.tensor([rate if self.rank == 0 else 0.0, float(stop)])
        flat = torch.cat([g.flatten() for g in grads] + [mine])
        dist.all_reduce(flat)
        rate, stop = flat[-2:].tolist()
        flat /= self.ranks
        for g, part in zip(grads, flat[:-2].split([g.numel() for g in grads])):
            g.copy_(part.view_as(g))
        return rate, stop > 0

    def update(self, rate):
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.args.lr * rate * group["share"]
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def run(self):
        """Until the time is over, or a SIGTERM or SIGINT asks to save and stop."""
        asked = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.append(True))
        start, end = time.time(), clock(self.args.until)
        before, shown, saved, losses, tally = self.state["minutes"], start, start, [], {}
        count, stop = 0, False
        while not stop:
            answers, helper, seen = self.backward(next(self.data), tally)
            rate, stop = self.share(self.rate(count, start, end), bool(asked) or time.time() > end)
            self.update(rate)
            losses.append((answers, helper))
            count += 1
            self.state["step"] += 1
            self.state["pictures"] += self.args.batch * self.ranks
            self.state["minutes"] = before + (time.time() - start) / 60
            if self.rank:
                continue
            if time.time() - shown > 60:
                self.report(losses, tally, seen, rate)
                shown, losses, tally = time.time(), [], {}
            if stop or time.time() - saved > self.args.save_minutes * 60:
                self.save()
                saved = time.time()

    def report(self, losses, tally, seen, rate):
        """A line of the curve: figures of the last minute, on scenes not seen before."""
        answers, helper = (sum(l[i] for l in losses) / len(losses) for i in range(2))
        row = {"date": time.strftime("%H:%M"), "minutes": "%.1f" % self.state["minutes"], "phase": self.args.phase,
               "step": self.state["step"], "pictures": self.state["pictures"], "loss": "%.4f" % answers,
               "helper": "%.4f" % helper, "kind": "%.3f" % seen["kind"], "tens": "%.3f" % seen["tens"],
               "pixels": "%.2f" % seen["pixels"], "about": "%.3f" % seen.get("about", 0)}
        for task, code in CODES.items():
            n, ok = tally.get(code, (0, 0))
            row[task] = "%.3f" % (ok / n) if n else ""
        fresh = not os.path.exists(CURVE)
        with open(CURVE, "a", newline="") as f:
            writer = csv.DictWriter(f, FIELDS)
            if fresh:
                writer.writeheader()
            writer.writerow(row)
        print("%s lr %.2f colour %.3f centre %.3f found %.3f side %.3f %s" % (
            len(losses), rate, seen["colour"], seen["centre"], seen.get("found", 0), seen.get("side", 0),
              " ".join("%s=%s" % i for i in row.items())), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    Trainer(arguments()).run()
    dist.destroy_process_group()
