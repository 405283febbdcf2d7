#!/usr/bin/env python3
"""Computes peft's results for the prompts of lora/cases.txt.

    lora.py write [CASE...]        make the adapters and their results, in lora/ and expected/
    lora.py check [CASE...]        recompute from the adapters, compare (`make fidelity` runs this)
    lora.py mutations [CASE...]    how far small mistakes in an adapter's use move the results

An adapter's numbers are random, and so large that each module's product is a third of the module's
own matrix.  write takes the first seed whose greedy answer has no close call; the files are what
peft's save_pretrained() writes, in another type or with older names where the case says so.
"""

import json
import os
import re
import shutil
import sys

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

import reference

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
SHARE = 0.3


def read_cases():
    checkpoints = []
    with open(os.path.join(HERE, "lora", "cases.txt"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    reference.read_case_file([line + "\n" for line in lines if not line.startswith("#")], checkpoints)
    cases = {c.name: c for cp in checkpoints for c in cp.cases}
    name = None
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "case":
            name = rest.split()[0]
        if word == "lora":
            case = cases[name]
            case.type, case.names, config = rest.split(" ", 2)
            case.config = json.loads(config)
    return checkpoints


def directory(case):
    return os.path.join(HERE, "lora", case.name)


def old_name(key):
    key = key.replace("base_model.model.model.language_model.", "base_model.model.model.")
    return key.replace("base_model.model.model.visual.", "base_model.model.visual.")


def new_name(key):
    if ".language_model." in key or ".model.model.visual." in key:
        return key
    key = re.sub(r"^base_model\.model\.model\.", "base_model.model.model.language_model.", key)
    return key.replace("base_model.model.visual.", "base_model.model.model.visual.")


def fill(model, case, seed):
    """Random numbers for all modules, rounded to the file's type."""
    kind = TYPES[case.type]
    g = torch.Generator().manual_seed(seed)
    for module in model.modules():
        pairs = []
        if hasattr(module, "lora_A") and "default" in module.lora_A:
            pairs.append((module.lora_A["default"].weight, module.lora_B["default"].weight, False))
        if hasattr(module, "lora_embedding_A") and "default" in module.lora_embedding_A:
            pairs.append((module.lora_embedding_A["default"], module.lora_embedding_B["default"],
                          True))
        for a, b, table in pairs:
            with torch.no_grad():
                a.copy_(torch.randn(a.shape, generator=g) / a.shape[1] ** 0.5)
                b.copy_(torch.randn(b.shape, generator=g))
                w = module.base_layer.weight
                d = module.scaling["default"] * (b @ a)
                b *= SHARE * w.norm() / d.norm()
                a.copy_(a.to(kind).float())
                b.copy_(b.to(kind).float())
                bias = None if table else module.lora_B["default"].bias
                if bias is not None:
                    bias.copy_((torch.randn(bias.shape, generator=g) * 0.1).to(kind).float())


def save(model, case):
    path = directory(case)
    shutil.rmtree(path, ignore_errors=True)
    model.save_pretrained(path)
    os.remove(os.path.join(path, "README.md"))
    file = os.path.join(path, "adapter_model.safetensors")
    tensors = {k: v.to(TYPES[case.type]) for k, v in load_file(file).items()}
    if case.names == "old":
        tensors = {old_name(k): v for k, v in tensors.items()}
    save_file(tensors, file, metadata={"format": "pt"})
    print(f"{case.name}: {len(tensors)} tensors, {os.path.getsize(file)} bytes")


def load(model, case):
    """peft reads the files; its class has new names alone.

    peft also saves a table or a head that an adapter changes, which has the model's own numbers; here
    they are rounded to the file's type, and the model keeps its own.
    """
    path = directory(case)
    if case.names != "old":
        before = {k: v.clone() for k, v in model.state_dict().items()}
        out = PeftModel.from_pretrained(model, path).float().eval()
        for name, value in out.base_model.model.state_dict().items():
            if ".base_layer." in name:
                value.copy_(before[name.replace(".base_layer.", ".")])
        return out
    with open(os.path.join(path, "adapter_config.json"), encoding="utf-8") as f:
        config = LoraConfig(**{k: v for k, v in json.load(f).items()
                               if k in LoraConfig.__dataclass_fields__})
    out = get_peft_model(model, config)
    own = dict(out.named_parameters())
    for key, value in load_file(os.path.join(path, "adapter_model.safetensors")).items():
        if ".base_layer." in key:
            continue
        name = new_name(key).replace(".lora_A.weight", ".lora_A.default.weight")
        name = name.replace(".lora_B.weight", ".lora_B.default.weight")
        own[name].data.copy_(value.float())
    return out.float().eval()


def run(model, processor, case):
    """reference.run_case() with the module in the place where the model was."""
    return reference.run_case(model.base_model.model, processor, case)


def selected(names):
    for cp in read_cases():
        shape = reference.read_shape(cp)
        for case in cp.cases:
            if names and case.name not in names:
                continue
            yield (case, reference.make_model(shape, reference.make_weights(cp, shape)),
                   reference.make_processor(cp, shape))


def lean(out):
    """Of the sections those that the engine's test reads."""
    return {k: v for k, v in out.items() if k not in ("features", "deepstack", "grid", "patches")}


def write(names):
    for case, model, processor in selected(names):
        model = get_peft_model(model, LoraConfig(**case.config)).eval()
        for seed in range(1, 200):
            fill(model, case, seed)
            out = run(model, processor, case)
            why = reference.bad_answer(out, processor)
            if why in (None, "monotonous"):
                break
        else:
            raise SystemExit(f"{case.name}: no good seed, the last one has {why}")
        print(f"{case.name}: seed {seed}, smallest gap {out['gap'].min():.4f}")
        save(model, case)
        reference.write_ref(reference.ref_path(case), lean(out))


def check(names):
    worst = 0.0
    for case, model, processor in selected(names):
        old = reference.read_ref(reference.ref_path(case))
        new = run(load(model, case), processor, case)
        d = {k: reference.difference(old[k], new[k]) for k in old if not k.endswith("_ids")}
        worst = max(worst, max(d.values()))
        print(f"{case.name:18} " + " ".join(f"{k} {v:.1e}" for k, v in d.items()))
    print(f"largest difference {worst:.1e} of the spread, at most 1e-4 is taken")
    return 0 if worst <= 1e-4 else 1


# ---- mistakes ---------------------------------------------------------------------------------

def modules(model):
    for name, module in model.named_modules():
        if hasattr(module, "lora_A") and "default" in module.lora_A:
            yield name, module, module.lora_A["default"].weight, module.lora_B["default"].weight


def change_scale(model, change):
    n = 0
    for module in model.modules():
        if isinstance(getattr(module, "scaling", None), dict) and "default" in module.scaling:
            rank, s = module.r["default"], module.scaling["default"]
            module.scaling["default"] = change(s, rank)
            n += module.scaling["default"] != s
    return n


def exchange(model):
    """The parts of what is one matrix here: gate and up, k and v."""
    pairs, n = {}, 0
    for name, _, a, b in modules(model):
        for one, other in (("gate_proj", "up_proj"), ("k_proj", "v_proj")):
            for end in (one, other):
                if name.endswith(end):
                    pairs.setdefault((name[:-len(end)], one), []).append((a, b))
    for pair in pairs.values():
        if len(pair) == 2 and pair[0][0].shape == pair[1][0].shape:
            for x, y in zip(*pair):
                x.data, y.data = y.data.clone(), x.data.clone()
            n += 1
    return n


def transpose(model):
    n = 0
    for _, _, a, _ in modules(model):
        r, k = a.shape
        a.data = a.data.reshape(k, r).T.contiguous()
        n += r > 1
    return n


def leave_order(model):
    """BLOOM's rows of q, k and v of each head, as if q of all heads came first."""
    n = 0
    for name, module, _, b in modules(model):
        if name.endswith("query_key_value"):
            heads = model.config.n_head
            b.data = b.data.reshape(heads, 3, -1, b.shape[1]).transpose(0, 1).reshape(b.shape)
            n += heads > 1
    return n


def leave_tower(model):
    n = 0
    for name, _, _, b in modules(model):
        if ".visual." in name:
            b.data.zero_()
            n += 1
    return n


def after_silu(model):
    """The gate's product is added behind its function."""
    n = 0
    for _, module in model.named_modules():
        gate = getattr(module, "gate_proj", None)
        if gate is None or not hasattr(gate, "lora_A") or not hasattr(module, "up_proj"):
            continue

        def forward(x, m=module, g=gate):
            base = m.act_fn(g.base_layer(x))
            low = g.scaling["default"] * g.lora_B["default"](g.lora_A["default"](x))
            return m.down_proj((base + low) * m.up_proj(x))

        module.forward = forward
        n += 1
    return n


MISTAKES = {
    "alpha / root of r": lambda m: change_scale(m, lambda s, r: s * r ** 0.5),
    "parts exchanged": exchange,
    "A transposed": transpose,
    "B in the file's order": leave_order,
    "without the tower": leave_tower,
    "behind the SiLU": after_silu,
    "the scale twice": lambda m: change_scale(m, lambda s, r: s * s),
}


def mutations(names):
    """A mistake that changes nothing of a case, as the scale twice where it is 1, has no line."""
    lines = []
    for case, model, processor in selected(names):
        inputs = reference.make_inputs(processor, case)
        want = reference.prompt_logits(load(model, case).base_model.model, inputs)
        for what, mistake in MISTAKES.items():
            shape = reference.read_shape(case.checkpoint)
            base = reference.make_model(shape, reference.make_weights(case.checkpoint, shape))
            wrong = load(base, case)
            with torch.no_grad():
                if mistake(wrong) == 0:
                    continue
            got = reference.prompt_logits(wrong.base_model.model, inputs)
            largest, _ = reference.spread(want, got)
            if largest > 0:
                lines.append(f"{case.name:18} {what:22} {largest:9.2e}")
                print(lines[-1], flush=True)
    with open(os.path.join(HERE, "lora", "mutations.txt"), "w", encoding="utf-8") as f:
        f.write("# The largest difference of a logit, over the spread of all: lora.py mutations\n\n")
        f.write("\n".join(lines) + "\n")
    return 0 if min(float(line.split()[-1]) for line in lines) >= 1e-2 else 1


def main():
    torch.set_num_threads(2)
    commands = {"write": write, "check": check, "mutations": mutations}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        raise SystemExit(__doc__)
    return commands[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
