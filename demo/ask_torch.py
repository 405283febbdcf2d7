"""Answers the evaluation's questions without a server, greedily: one token at a time with a key cache.

The model is the training code's, which check.py compares with transformers; a batch is a few scenes with
all their questions, so each picture is seen once.
"""

import os

import torch

import export
from batches import TEXTS
from families import family_of
from model import HEAD, SCALE, axes, rotate, text_places
from questions import in_context
from scenes import render

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")
LONGEST, LONGEST_TEXT = 90, 300         # tokens of an answer, of one about a message alone


class Session:
    """The keys and values of some prefixes [B, P] and of their questions [B, Q, room]."""

    def __init__(self, model, prefix, places, deep, questions, room):
        B = len(prefix)
        self.model, self.room = model, room
        self.prefix, self.own = [], []
        self.start = int(places[-1, 0]) + 1
        self.run(prefix[:, None], places.expand(B, 1, -1, -1), None, deep)
        self.own = [[torch.zeros(B, questions, room, layer.kv, HEAD) for _ in range(2)] for layer in model.layers]

    def run(self, x, at, index, deep=()):
        """x [B, Q, T, D] at positions `at`; stored at `index` [B, Q, T], or as the prefix where that is None, with
        the deep features of its picture."""
        model, conf = self.model, self.model.conf
        freq = conf["rope_theta"] ** (-torch.arange(HEAD // 2).float() * 2 / HEAD)
        angle = at.float()[..., axes(conf)] * freq
        angle = torch.cat((angle, angle), -1)[:, :, :, None]
        for i, layer in enumerate(model.layers):
            h = layer.norm1(x)
            q, k = (rotate(norm(f(h).unflatten(-1, (-1, HEAD))), angle.cos(), angle.sin())
                    for f, norm in ((layer.q, layer.q_norm), (layer.k, layer.k_norm)))
            x = x + layer.o(self.attend(i, q, k, layer.v(h).unflatten(-1, (-1, HEAD)), index))
            h = layer.norm2(x)
            x = x + layer.down(torch.nn.functional.silu(layer.gate(h)) * layer.up(h))
            if i < len(deep):
                x = model.deepened(x.flatten(0, 2), deep[i], x.shape[2]).view_as(x)
        return model.norm(x)

    def attend(self, i, q, k, v, index):
        T = q.shape[2]
        if index is None:
            self.prefix.append((k, v))
            seen = torch.ones(T, T, dtype=torch.bool).tril()
        else:
            where = index[..., None, None].expand_as(k)
            for store, new in zip(self.own[i], (k, v)):
                store.scatter_(2, where, new)
            k, v = (torch.cat((p.expand(-1, q.shape[1], -1, -1, -1), o), dim=2)
                    for p, o in zip(self.prefix[i], self.own[i]))
            P = k.shape[2] - self.room
            seen = torch.arange(k.shape[2]) - P <= index[..., None]
            seen = seen[:, :, None, None]                                   # [B, Q, 1, 1, T, P + room]
        q = q.unflatten(3, (k.shape[3], -1)).permute(0, 1, 3, 4, 2, 5)      # [B, Q, kv, rep, T, HEAD]
        k, v = (t.permute(0, 1, 3, 2, 4)[:, :, :, None] for t in (k, v))
        scores = (q @ k.transpose(-1, -2) * SCALE).masked_fill(~seen, -1e30)
        return (scores.softmax(-1) @ v).permute(0, 1, 4, 2, 3, 5).flatten(3)

    def tokens(self, ids, index):
        at = (index + self.start)[..., None].expand(-1, -1, -1, 3)
        return self.run(self.model.embed(ids), at, index)


def picture_prefix(model, family, scenes):
    pictures = torch.stack([torch.from_numpy(family.patches(render(s))) for s in scenes])
    cells, deep = model.vision(pictures, torch.float32)
    return model.behind(cells), model.places(), deep


@torch.no_grad()
def answer(model, encoder, prefix, questions, longest=LONGEST):
    """A prefix, its places and deep features, texts [B][Q] -> answers [B][Q]."""
    ids = [[encoder.ids(t) + encoder.tail for t in row] for row in questions]
    B, Q = len(ids), len(ids[0])
    lengths = torch.tensor([[len(r) for r in row] for row in ids])
    T = int(lengths.max())
    padded = torch.tensor([[r + [encoder.pad] * (T - len(r)) for r in row] for row in ids])
    session = Session(model, *prefix, Q, T + longest)
    hidden = session.tokens(padded, torch.arange(T).expand(B, Q, T))
    last = hidden.gather(2, (lengths - 1)[..., None, None].expand(-1, -1, 1, hidden.shape[-1]))[:, :, 0]
    found, done = [], torch.zeros(B, Q, dtype=torch.bool)
    for step in range(longest):
        token = model.logits(last).argmax(-1)
        done = done | (token == encoder.end) | (token == encoder.pad)
        if done.all():
            break
        found.append(torch.where(done, encoder.pad, token))
        last = session.tokens(token[..., None], (lengths + step)[..., None])[:, :, 0]
    out = torch.stack(found, -1).tolist()
    return [[encoder.tok.decode([t for t in row if t != encoder.pad]) for row in rows] for rows in out]


def load(folder=None):
    folder = folder or FOLDER
    family = family_of(folder)
    model = family.model().eval()
    export.from_family(model, os.path.join(folder, "model.safetensors"))
    return model, family.encoder()


def rounds_of(scenes, together):
    """Returns the questions that are asked at once: all of a scene, or the first ones, then the second ones, ..."""
    if not together:
        return [scenes]
    return [[[row[i]] for row in scenes if i < len(row)] for i in range(max(map(len, scenes)))]


def asked_text(item, earlier, release):
    text = in_context([(e["text"], e["answer"]) for e in earlier[-5:]], item["text"]) if earlier else item["text"]
    return release.wrap(item["task"], text)


def ask_torch(items, folder=None, size=8, together=False):
    """Fills in item["answer"]; the items of a scene are neighbours.  Together: they form one session."""
    torch.set_num_threads(1)
    model, encoder = load(folder)
    scenes, earlier = [], {}
    for item in items:
        if not scenes or scenes[-1][0]["scene"] is not item["scene"]:
            scenes.append([])
        scenes[-1].append(item)
    for rows in rounds_of(scenes, together):
        rows.sort(key=len)              # rows of a batch have equally many questions
        while rows:
            some = [r for r in rows[:size] if len(r) == len(rows[0])]
            rows = rows[len(some):]
            texts = [[asked_text(i, earlier.get(id(i["scene"]), ()), encoder.release) for i in row] for row in some]
            prefix = picture_prefix(model, family_of(folder or FOLDER), [r[0]["scene"] for r in some])
            for row, answers in zip(some, answer(model, encoder, prefix, texts)):
                for item, text in zip(row, answers):
                    item["answer"] = text
                if together:
                    earlier.setdefault(id(row[0]["scene"]), []).append(row[0])


@torch.no_grad()
def ask_torch_texts(items, folder=None, size=30):
    """Fills in item["answer"] of messages without a picture."""
    torch.set_num_threads(1)
    model, encoder = load(folder)
    for (kind, _, _), ids in zip(TEXTS, encoder.text_prefixes()):
        some = [i for i in items if i["kind"] == kind]
        for at in range(0, len(some), size):
            part = some[at:at + size]
            prefix = model.embedded(ids, 1, torch.float32), text_places(0, len(ids)), ()
            for item, text in zip(part, answer(model, encoder, prefix, [[i["text"] for i in part]], LONGEST_TEXT)[0]):
                item["answer"] = text
