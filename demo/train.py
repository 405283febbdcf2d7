"""Trains a demo model on the CPU.

  torchrun --standalone --nproc-per-node 2 train.py --vision 40 --all 120
  torchrun --standalone --nproc-per-node 2 train.py --family qwen3_vl --state ../build/demo-train-3 --vision 10 --all 70

For `--vision` minutes of processor time the vision encoder learns alone, through the helper heads, then for `--all`
minutes everything together; the rate falls to zero at the end of both.  There is one process for each core, with one thread: on a
busy machine threads that wait for each other at every matrix lose nearly all their time.  A step is 6 pictures of each
process with 15 questions each.

The second family starts from the first one's weights, as far as they fit (inherit.py), and its vision encoder learns
the features that the first demo has of each cell.

Every few minutes, and on SIGTERM or SIGINT, the state is written to the directory `--state`: weights, helper heads,
the optimizers' state, the time, and the curve.  The same command goes on from there, so nothing but these minutes is
lost by a kill; once the time is over it writes the family's checkpoint directory and ends at once.  --resume takes the
checkpoint directory's weights where there is no state; --export writes this directory at every save.
"""

import argparse
import csv
import math
import os
import signal
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import export
import inherit
import model as model_file
import model3
from batches import CODES, loader
from families import FAMILIES, HERE, TOKENIZER
from heads import Heads
from muon import Muon

FIELDS = ["date", "minutes", "phase", "step", "pictures", "loss", "helper", "kind", "tens", "pixels", "about",
          "far", *CODES]


def has_bf16():
    """Whether the processor multiplies matrices of bf16 faster than those of f32."""
    with open("/proc/cpuinfo") as f:
        words = f.read().split()
    return "amx_bf16" in words or "avx512_bf16" in words


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--family", choices=FAMILIES, default="qwen2_5_vl")
    p.add_argument("--state", default=os.path.join(HERE, "..", "build", "demo-train"),
                   help="directory of the state; each family needs its own (default: build/demo-train)")
    p.add_argument("--vision", type=float, default=40, help="minutes of processor time for the vision encoder alone")
    p.add_argument("--all", type=float, default=120, help="minutes of everything together, after these")
    p.add_argument("--resume", action="store_true", help="begin with the checkpoint directory's weights")
    p.add_argument("--export", action="store_true", help="write the checkpoint directory at every save")
    p.add_argument("--to", help="another checkpoint directory to write")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--batch", type=int, default=6, help="pictures of each process in a step with questions")
    p.add_argument("--seen", type=int, default=12, help="pictures of each process in a step without")
    p.add_argument("--helper", type=float, default=0.5, help="weight of the helper heads' loss")
    p.add_argument("--seeing", type=float, default=0.5, help="the vision encoder's share of the rate, once it can see")
    p.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16" if has_bf16() else "float32")
    p.add_argument("--compile", type=int, default=1)
    p.add_argument("--save-minutes", type=float, default=4)
    p.add_argument("--steps", type=int, help="stop after so many steps; to try it")
    return p.parse_args()


def optimizers(model, helpers, lr, seeing, dtype):
    """Muon for the matrices, AdamW for the rest; the vision encoder at a share of the rate once it can see."""
    groups = {}
    for name, p in model.named_parameters():
        matrix = p.dim() == 2 and "embed" not in name and "patch" not in name
        groups.setdefault((matrix, name.startswith("vision")), []).append(p)

    def some(matrix, vision):
        return {"params": groups[matrix, vision], "share": seeing if vision else 1.0}

    return (Muon([some(True, False), some(True, True)], lr=lr, dtype=dtype),
            torch.optim.AdamW([dict(some(False, False), weight_decay=0.0), dict(some(False, True), weight_decay=0.0),
                               {"params": helpers.parameters(), "share": 1.0}],
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
        self.family, self.dtype = FAMILIES[args.family], getattr(torch, args.dtype)
        self.file = os.path.join(args.state, "state.pt")
        self.encoder = self.family.encoder()
        self.model = self.family.model()
        self.prefixes = self.encoder.text_prefixes()
        self.helpers = nn.ModuleDict({"heads": Heads(self.model.conf["hidden_size"], self.family.release)})
        self.state = {"step": 0, "pictures": 0, "minutes": 0.0, "seed": 1_000_000 if not self.family.former else 2 * 10 ** 8}
        self.former = self.former_model() if self.family.former else None
        self.saved = {}                                     # of the optimizers, until the phase begins
        self.begin()
        if args.compile:
            for part in (model_file.Layer, model_file.VisionBlock, model3.Block):
                part.forward = torch.compile(part.forward, dynamic=False)

    def former_model(self):
        former = self.family.former.model().requires_grad_(False)
        export.from_family(former, os.path.join(self.family.former.folder, "model.safetensors"))
        return former

    def begin(self):
        """Loads the state, else the checkpoint directory, else the former family's weights."""
        if os.path.exists(self.file):
            full = torch.load(self.file, weights_only=True)
            self.model.load_state_dict(full["model"])
            self.helpers.load_state_dict(full["helpers"])
            self.state, self.saved = full["state"], full["optimizers"]
        elif self.args.resume:
            export.from_family(self.model, os.path.join(self.family.folder, "model.safetensors"))
            self.state["seed"] += 5 * 10 ** 7               # scenes that those weights have not seen
        elif self.former:
            patches, _, _, buckets, _ = next(loader(self.family.former, 3_000_000, 4, True))
            inherit.take_language(self.model, self.former, patches, [b[0] for b in buckets])
            patches, shown, *_ = next(loader(self.family, 3_000_000, 64, False))
            inherit.take_vision(self.model.vision, self.former.vision, patches, shown)
        for p in [*self.model.parameters(), *self.helpers.parameters()]:    # the same in all processes
            dist.broadcast(p.data, 0)

    def save(self, phase):
        """The state has a temporary name first: a process that is killed leaves the previous state."""
        os.makedirs(self.args.state, exist_ok=True)
        torch.save({"model": self.model.state_dict(), "helpers": self.helpers.state_dict(), "state": self.state,
                    "optimizers": {phase: [o.state_dict() for o in self.optimizers]}}, self.file + ".new")
        os.replace(self.file + ".new", self.file)
        if self.args.export:
            self.export()

    def export(self):
        export.write(self.model, self.args.to or self.family.folder, self.encoder.tok.token_to_id, TOKENIZER)

    def backward(self, batch, phase, tally):
        patches, shown, targets, buckets, texts = batch
        answers, extra, seen = torch.zeros(()), torch.zeros(()), {}
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            if phase == "all":
                hidden, middle, picture = self.model(patches, [b[0] for b in buckets], self.dtype)
                for ids, (branch, *_) in zip(self.prefixes, texts):
                    hidden += self.model.without_picture(ids, [branch], self.dtype)
                answers = answer_loss(self.model, hidden, list(buckets) + list(texts), tally)
            elif self.former:
                extra, seen["far"], picture = inherit.follow(self.model.vision, patches, self.former.vision, shown,
                                                             self.dtype)
            else:
                cells, deep = self.model.vision(patches, self.dtype)
                picture = sum(deep, cells)
        helper, figures = self.helpers["heads"](picture, targets)
        seen.update(figures)
        if phase == "all":
            loss, seen["about"], seen["found"], seen["side"] = self.helpers["heads"].referents(
                middle, buckets, picture, targets)
            helper = helper + loss
        weight = self.args.helper if phase == "all" or self.former else 1.0
        (answers + extra + weight * helper).backward()
        return answers.item(), helper.item(), seen

    def share(self, rate, stop):
        """Averages the gradients of all processes; the first process's rate and every stop flag go along."""
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
        """Both phases; a SIGTERM or SIGINT asks to save and stop."""
        asked = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.append(True))
        end = 0.0
        for phase, length in (("vision", self.args.vision), ("all", self.args.all)):
            start, end = end, end + length
            if self.state["minutes"] < end and self.run_phase(phase, start, end, asked):
                return
        if not self.rank:
            self.export()

    def run_phase(self, phase, start, end, asked):
        """Trains from minute `start` of the whole to `end`; returns whether it was stopped before."""
        args, state = self.args, self.state
        self.parameters = list(self.model.parameters()) + list(self.helpers.parameters())
        self.optimizers = optimizers(self.model, self.helpers, args.lr, args.seeing if phase == "all" or self.former else 1.0,
                                     self.dtype)
        for optimizer, saved in zip(self.optimizers, self.saved.pop(phase, ())):
            optimizer.load_state_dict(saved)
        pictures = args.batch if phase == "all" else args.seen
        data = loader(self.family, state["seed"] + state["pictures"], pictures, phase == "all", self.rank, self.ranks)
        began, before, shown, losses, tally = time.process_time(), state["minutes"], time.time(), [], {}
        self.worked = began
        count, kept, stop, over = 0, time.time(), False, False
        while not stop:
            answers, helper, seen = self.backward(next(data), phase, tally)
            done = min(1.0, (state["minutes"] - start) / (end - start))
            rate = min(1.0, (count + 1) / 30) * max(0.01, 0.5 + 0.5 * math.cos(math.pi * done))
            over = over or bool(asked) or state["minutes"] >= end or count + 1 == args.steps
            rate, stop = self.share(rate, over)
            self.update(rate)
            losses.append((answers, helper))
            count += 1
            state["step"] += 1
            state["pictures"] += pictures * self.ranks
            state["minutes"] = before + (time.process_time() - began) / 60
            if self.rank:
                continue
            if stop or time.time() - shown > 60:
                self.report(phase, losses, tally, seen, rate)
                shown, losses, tally = time.time(), [], {}
            if stop or time.time() - kept > args.save_minutes * 60:
                self.save(phase)
                kept = time.time()
        # All processes leave together, and agree on why: another's clock may be a little behind.
        finished = torch.tensor([float(not asked and count != args.steps)])
        dist.all_reduce(finished, op=dist.ReduceOp.MIN)
        state["minutes"] = max(end, state["minutes"]) if finished else state["minutes"]
        return not finished

    def report(self, phase, losses, tally, seen, rate):
        """A line of the curve: figures of the last minute, on scenes not seen before."""
        answers, helper = (sum(l[i] for l in losses) / len(losses) for i in range(2))
        row = {"date": time.strftime("%H:%M"), "minutes": "%.1f" % self.state["minutes"], "phase": phase,
               "step": self.state["step"], "pictures": self.state["pictures"], "loss": "%.4f" % answers,
               "helper": "%.4f" % helper, "kind": "%.3f" % seen["kind"], "tens": "%.3f" % seen["tens"],
               "pixels": "%.2f" % seen["pixels"], "about": "%.3f" % seen.get("about", 0),
               "far": "%.4f" % seen.get("far", 0)}
        for task, code in CODES.items():
            n, ok = tally.get(code, (0, 0))
            row[task] = "%.3f" % (ok / n) if n else ""
        os.makedirs(self.args.state, exist_ok=True)
        curve = os.path.join(self.args.state, "curve.csv")
        fresh = not os.path.exists(curve)
        with open(curve, "a", newline="") as f:
            writer = csv.DictWriter(f, FIELDS)
            if fresh:
                writer.writeheader()
            writer.writerow(row)
        worked, self.worked = (time.process_time() - self.worked) / len(losses), time.process_time()
        print("%s steps of %.2f s CPU, lr %.2f colour %.3f centre %.3f found %.3f side %.3f %s" % (
            len(losses), worked, rate, seen["colour"], seen["centre"], seen.get("found", 0), seen.get("side", 0),
              " ".join("%s=%s" % i for i in row.items())), flush=True)


if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:                               # without torchrun: one process
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    Trainer(args).run()
    dist.destroy_process_group()
