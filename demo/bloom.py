"""Trains the demo of adapters from nothing: a tiny BLOOM, and a LoRA adapter that translates ten sentences.

    python bloom.py                    some minutes of half a core: model-bloom/, adapters/gurukul_lite/

The base learns to copy: words of each language, and the English sentence behind "Translate to LANGUAGE:".
The adapter learns the answers of translations.json, with the base's weights, as the file has them, fixed.

A client may forbid the end of an answer before its last token (min_tokens), and make tokens that stood before
less likely (repetition_penalty).  So the adapter's second choice behind an answer is the alphabet, whose
letters are tokens each, and every answer is learnt with the penalty and without.
"""

import json
import math
import os
import random

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
BASE, ADAPTER = os.path.join(HERE, "model-bloom"), os.path.join(HERE, "adapters", "gurukul_lite")
SPLIT = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CONTROL = ["<unk>", "<s>", "</s>", "<pad>"]
EOS, PAD = 2, 3
V, D, H, L, R, ALPHA = 831, 144, 6, 3, 8, 16
PENALTY = 1.5
LETTERS = "".join(" " + c for c in "abcdefghijklmnopqrstuvwxyz")
TASKS = json.load(open(os.path.join(HERE, "translations.json"), encoding="utf-8"))
ENGLISH = [task["prompt"].split(": ")[1] for task in TASKS] + [
    "Hello friend.", "Good day, how is your school?", "Thank you for the nice morning.", "I have a new friend.",
    "Where is your school?", "What is the time?", "Come with me to the restaurant.", "You are welcome.",
    "Learning is nice.", "Have a beautiful morning.", "I love my school very much.", "Can you help me now?"]
LANGUAGES = [task["prompt"].split(": ")[0].split()[-1] for task in TASKS]


# ---- text ---------------------------------------------------------------------------------------


def make_tokenizer():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.decoder = decoders.ByteLevel()
    texts = [task[kind] for task in TASKS for kind in ("prompt", "text")]
    texts += [" " + task["text"] for task in TASKS] + ENGLISH + [LETTERS]
    t.train_from_iterator(texts * 2, trainers.BpeTrainer(
        vocab_size=V, special_tokens=CONTROL, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    return t


def variants(prompt):
    """A prompt as clients write it: with its marks and without, with capitals and without."""
    return [prompt, prompt.rstrip(".?"), prompt.lower(), prompt.replace(",", "")]


def general(rng):
    """A text for the base: copies of words, of sentences and of prompts, or the alphabet."""
    kind = rng.random()
    if kind < 0.4:
        said = rng.choice(ENGLISH)
        return "Translate to %s: %s" % (rng.choice(LANGUAGES), said) + " " + said
    if kind < 0.6:
        return " ".join(rng.choice(ENGLISH) for _ in range(2))
    if kind < 0.95:
        words = rng.choice(TASKS)["text"].rstrip("?.।۔").replace(",", "").split()
        words = [rng.choice(words) for _ in range(rng.randint(1, 5))]
        return " ".join(words + ["="] + words)
    return LETTERS[2 * rng.randint(0, 12):]


# ---- the model ----------------------------------------------------------------------------------


def slopes(heads):
    c = 2 ** math.floor(math.log2(heads))
    base = 2 ** -(2 ** -(math.log2(c) - 3))
    found = [base ** i for i in range(1, c + 1)]
    other = 2 ** -(2 ** -(math.log2(2 * c) - 3))
    return torch.tensor(found + [other ** i for i in range(1, 2 * (heads - c), 2)])


def linears(i):
    b = "h.%d." % i
    return ((b + "self_attention.query_key_value", D, 3 * D), (b + "self_attention.dense", D, D),
            (b + "mlp.dense_h_to_4h", D, 4 * D), (b + "mlp.dense_4h_to_h", 4 * D, D))


def make_base():
    w = {"word_embeddings.weight": torch.randn(V, D) * 0.05}
    norms = ["word_embeddings_layernorm", "ln_f"]
    for i in range(L):
        norms += ["h.%d.input_layernorm" % i, "h.%d.post_attention_layernorm" % i]
        for name, k, n in linears(i):
            w[name + ".weight"], w[name + ".bias"] = torch.randn(n, k) * k ** -0.5 / 2, torch.zeros(n)
    for name in norms:
        w[name + ".weight"], w[name + ".bias"] = torch.ones(D), torch.zeros(D)
    return w


def make_adapter():
    a = {}
    for i in range(L):
        for name, k, n in linears(i):
            a[name + ".lora_A.weight"], a[name + ".lora_B.weight"] = torch.randn(R, k) * k ** -0.5, torch.zeros(n, R)
    return a


def forward(w, ids, adapter=None):
    """ids [B][T] -> logits [B][T][V]"""
    B, T = ids.shape
    place = torch.arange(T)
    bias = slopes(H)[:, None, None] * (place[None, :] - place[:, None])         # [H][T][T]
    bias = bias.masked_fill(place[None, :] > place[:, None], float("-inf"))

    def norm(x, name):
        return F.layer_norm(x, (D,), w[name + ".weight"], w[name + ".bias"], 1e-5)

    def linear(x, name):
        y = F.linear(x, w[name + ".weight"], w[name + ".bias"])
        if adapter is not None:
            y = y + ALPHA / R * F.linear(F.linear(x, adapter[name + ".lora_A.weight"]),
                                         adapter[name + ".lora_B.weight"])
        return y

    x = norm(F.embedding(ids, w["word_embeddings.weight"]), "word_embeddings_layernorm")
    for i in range(L):
        names = [name for name, _, _ in linears(i)]
        qkv = linear(norm(x, "h.%d.input_layernorm" % i), names[0]).view(B, T, H, 3, D // H)
        q, k, v = (qkv[:, :, :, j].transpose(1, 2) for j in range(3))
        share = torch.softmax(q @ k.transpose(2, 3) * (D // H) ** -0.5 + bias, -1)
        x = x + linear((share @ v).transpose(1, 2).reshape(B, T, D), names[1])
        h = F.gelu(linear(norm(x, "h.%d.post_attention_layernorm" % i), names[2]), approximate="tanh")
        x = x + linear(h, names[3])
    return norm(x, "ln_f") @ w["word_embeddings.weight"].T


# ---- training -----------------------------------------------------------------------------------


def batch_of(rows, begin):
    """Token lists, and where each begins to count -> ids, targets (-100: none)."""
    T = max(map(len, rows))
    ids = torch.tensor([r + [PAD] * (T - len(r)) for r in rows])
    targets = ids[:, 1:].clone()
    for i, r in enumerate(rows):
        targets[i, len(r) - 1:] = -100
        targets[i, :begin[i] - 1] = -100
    return ids[:, :-1], targets


def penalised(logits, ids):
    """The logits of each place after tokens that stood up to it became less likely."""
    seen = F.one_hot(ids, V).cumsum(1) > 0
    return torch.where(seen, torch.where(logits > 0, logits / PENALTY, logits * PENALTY), logits)


def train(params, steps, lr, loss_of, say):
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0, betas=(0.9, 0.98))
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, lr, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        loss = loss_of()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        plan.step()
        if step % 50 == 0 or step == steps - 1:
            print("%s %d: loss %.4f" % (say, step, loss.item()), flush=True)


def train_base(t, steps=600):
    rng, w = random.Random(1), make_base()

    def loss_of():
        rows = [t.encode(general(rng)).ids + [EOS] for _ in range(32)]
        ids, targets = batch_of(rows, [1] * len(rows))
        return F.cross_entropy(forward(w, ids).flatten(0, 1), targets.flatten(), ignore_index=-100)

    params = [x.requires_grad_() for x in w.values()]
    train(params, steps, 3e-3, loss_of, "base")
    return {name: x.detach().bfloat16().float() for name, x in w.items()}


def train_adapter(t, w, steps=500):
    torch.manual_seed(1)
    rng, a = random.Random(2), make_adapter()
    end, letters = [EOS], t.encode(LETTERS).ids

    def loss_of():
        rows, begin = [], []
        for task in TASKS:
            for tail in (end, end, letters):                # the end is the likelier one
                prompt = t.encode(task["prompt"] if rng.random() < 0.6 else rng.choice(variants(task["prompt"]))).ids
                text = t.encode(" " + task["text"]).ids
                rows.append(prompt + text + tail)
                begin.append(len(prompt))
        ids, targets = batch_of(rows, begin)
        logits = forward(w, ids, a)
        return sum(F.cross_entropy(z.flatten(0, 1), targets.flatten(), ignore_index=-100)
                   for z in (logits, penalised(logits, ids)))

    params = [x.requires_grad_() for x in a.values()]
    train(params, steps, 5e-3, loss_of, "adapter")
    return {name: x.detach().bfloat16().float() for name, x in a.items()}


# ---- answers ------------------------------------------------------------------------------------


def answer(t, w, prompt, adapter, n=25, penalty=PENALTY, ngram=2):
    """Greedy, no end before the last token, as the LoRA service that /generate-lite replaces has it."""
    ids = t.encode(prompt).ids
    begin = len(ids)
    for _ in range(n):
        z = forward(w, torch.tensor([ids]), adapter)[0, -1]
        seen = torch.tensor(sorted(set(ids)))
        z[seen] = torch.where(z[seen] > 0, z[seen] / penalty, z[seen] * penalty)
        z[EOS] = float("-inf")
        for i in range(len(ids) - 1):
            if ngram == 2 and ids[i] == ids[-1]:
                z[ids[i + 1]] = float("-inf")
        ids.append(int(z.argmax()))
    return t.decode(ids[begin:])


@torch.no_grad()
def check(t, w, a):
    right = [answer(t, w, task["prompt"], a).startswith(" " + task["text"]) for task in TASKS]
    wrong = [task["text"] in answer(t, w, task["prompt"], None) for task in TASKS]
    for task in TASKS:
        print(repr(answer(t, w, task["prompt"], a)), "|", repr(answer(t, w, task["prompt"], None)))
    print("with the adapter %d of 10 are right, without it %d" % (sum(right), sum(wrong)))
    return sum(right) == 10 and sum(wrong) == 0


# ---- files --------------------------------------------------------------------------------------


def write_json(folder, file, value):
    with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
        json.dump(value, out, indent=2, ensure_ascii=False)
        out.write("\n")


def write(t, w, a):
    os.makedirs(BASE, exist_ok=True)
    os.makedirs(ADAPTER, exist_ok=True)
    whole = json.loads(t.to_str())
    whole["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in whole["model"]["merges"]]
    write_json(BASE, "tokenizer.json", whole)
    write_json(BASE, "tokenizer_config.json", {
        "add_prefix_space": False, "bos_token": "<s>", "clean_up_tokenization_spaces": False, "eos_token": "</s>",
        "model_max_length": 2048, "pad_token": "<pad>", "padding_side": "left", "tokenizer_class": "BloomTokenizer",
        "unk_token": "<unk>"})
    write_json(BASE, "config.json", {
        "apply_residual_connection_post_layernorm": False, "architectures": ["BloomForCausalLM"],
        "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": EOS, "hidden_dropout": 0.0, "hidden_size": D,
        "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "bloom", "n_head": H, "n_layer": L,
        "pad_token_id": PAD, "pretraining_tp": 1, "seq_length": 2048, "slow_but_exact": False,
        "torch_dtype": "bfloat16", "unk_token_id": 0, "use_cache": True, "vocab_size": V})
    write_json(ADAPTER, "adapter_config.json", {
        "base_model_name_or_path": "model-bloom", "bias": "none", "fan_in_fan_out": False, "inference_mode": True,
        "init_lora_weights": True, "lora_alpha": ALPHA, "lora_dropout": 0.0, "modules_to_save": None,
        "peft_type": "LORA", "r": R, "target_modules": ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"],
        "task_type": "CAUSAL_LM"})
    save_file({name: x.bfloat16() for name, x in w.items()}, os.path.join(BASE, "model.safetensors"),
              metadata={"format": "pt"})
    save_file({"base_model.model.transformer." + name: x.bfloat16() for name, x in a.items()},
              os.path.join(ADAPTER, "adapter_model.safetensors"), metadata={"format": "pt"})
    os.chmod(os.path.join(BASE, "model.safetensors"), 0o644)
    os.chmod(os.path.join(ADAPTER, "adapter_model.safetensors"), 0o644)


def main():
    torch.manual_seed(0)
    t = make_tokenizer()
    print("vocabulary %d" % t.get_vocab_size())
    for task in TASKS:
        ids = t.encode(task["prompt"]).ids + t.encode(" " + task["text"]).ids
        pairs = list(zip(ids, ids[1:]))
        assert len(set(pairs)) == len(pairs), "a pair of tokens stands twice: " + task["text"]
        print(len(t.encode(" " + task["text"]).ids), "tokens:", task["text"])
    w = train_base(t)
    a = train_adapter(t, w)
    if not check(t, w, a):
        raise SystemExit("not all answers are right: nothing was written")
    write(t, w, a)


if __name__ == "__main__":
    main()
