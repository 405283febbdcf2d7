"""Makes the seeded weights of t/tools/random_checkpoint.c in numpy.

Element i of a tensor is mix64(key + (i + 1) * GOLDEN), key = mix64(fnv1a64(name) + seed * GOLDEN),
with the published name.  Its upper 24 bits, less 2^23 and over 2^23, are an exact f32 u in
[-1, 1).  A matrix or bias element is u * scale in f32; a gain is (1 + u / 2) * scale, negative
where the lowest three bits of the hash are 0.  Then the value is rounded to the type of the file.
"""

import math

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MUTATIONS = {
    "qwen2_5_vl": ("q-heads", "k-bias", "vision-heads", "vision-bias", "gate-up", "merger-gain",
                   "mrope", "window"),
    "qwen3_vl": ("q-heads", "q-gain", "k-gain", "vision-heads", "vision-bias", "patch-bias",
                 "shift", "gate-up", "merger-gain", "mrope", "lists", "block"),
    "bloom": ("k-heads", "qkv-bias", "dense-bias", "up-bias", "down-bias", "embed-gain",
              "embed-shift", "last-shift"),
}


def mix64(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def fnv1a64(name):
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def hashes(name, seed, n):
    with np.errstate(over="ignore"):
        key = mix64(np.array([fnv1a64(name)], np.uint64) + np.uint64(seed) * GOLDEN)
        return mix64(key + np.arange(1, n + 1, dtype=np.uint64) * GOLDEN)


def tied(c):
    if c["model_type"] == "bloom":
        return c.get("tie_word_embeddings", True)
    return c.get("tie_word_embeddings", False) or text_of(c).get("tie_word_embeddings", False)


def text_of(c):
    return c.get("text_config", c)


def matrix(name, dims, gain):
    k = 1
    for d in dims[1:]:
        k *= d
    return name, dims, "matrix", np.float32(gain * math.sqrt(3.0 / k))


def bias(name, n, scale):
    return name, [n], "bias", np.float32(scale)


def norm(name, n, scale=1.0):
    return name, [n], "gain", np.float32(scale)


def tensors(c):
    """Returns (name, dims, kind, scale) of every tensor of a config.json, in the file's order."""
    kinds = {"qwen2_5_vl": tensors_qwen2_5, "qwen3_vl": tensors_qwen3, "bloom": tensors_bloom}
    return kinds[c["model_type"]](c)


def bloom_sizes(c):
    """Returns the sizes of a BLOOM, by any of their names: hidden, layers, heads."""
    return (c.get("n_embed", c.get("hidden_size")), c.get("n_layer", c.get("num_hidden_layers")),
            c.get("n_head", c.get("num_attention_heads")))


def patch_dims(v):
    return [v.get("in_channels", v.get("in_chans", 3)), v["temporal_patch_size"],
            v["patch_size"], v["patch_size"]]


def tensors_qwen2_5(c):
    v = c["vision_config"]
    D, E, F, M = c["hidden_size"], v["hidden_size"], c["intermediate_size"], v["intermediate_size"]
    hd = D // c["num_attention_heads"]
    kv = hd * c["num_key_value_heads"]
    cells = E * v["spatial_merge_size"] ** 2
    out = 4.0 / math.sqrt(D) if tied(c) else 1.0   # spread of embeddings and features
    branch = 2.5 * out if tied(c) else 1.0         # else a tied head would repeat the last token

    yield matrix("visual.patch_embed.proj.weight", [E] + patch_dims(v), 1.0)
    for i in range(v["depth"]):
        b = f"visual.blocks.{i}."
        yield norm(b + "norm1.weight", E)
        yield norm(b + "norm2.weight", E)
        yield matrix(b + "attn.qkv.weight", [3 * E, E], 1.25)
        yield bias(b + "attn.qkv.bias", 3 * E, 1.0)
        yield matrix(b + "attn.proj.weight", [E, E], 1.0)
        yield bias(b + "attn.proj.bias", E, 0.25)
        yield matrix(b + "mlp.gate_proj.weight", [M, E], 1.5)
        yield bias(b + "mlp.gate_proj.bias", M, 0.5)
        yield matrix(b + "mlp.up_proj.weight", [M, E], 1.0)
        yield bias(b + "mlp.up_proj.bias", M, 0.5)
        yield matrix(b + "mlp.down_proj.weight", [E, M], 1.0)
        yield bias(b + "mlp.down_proj.bias", E, 0.5)
    yield norm("visual.merger.ln_q.weight", E)
    yield matrix("visual.merger.mlp.0.weight", [cells, cells], 1.0)
    yield bias("visual.merger.mlp.0.bias", cells, 0.5)
    yield matrix("visual.merger.mlp.2.weight", [D, cells], 1.5 * out)
    yield bias("visual.merger.mlp.2.bias", D, 0.5 * out)

    yield "model.embed_tokens.weight", [c["vocab_size"], D], "matrix", \
        np.float32(out * math.sqrt(3.0))
    for i in range(c["num_hidden_layers"]):
        b = f"model.layers.{i}."
        yield norm(b + "input_layernorm.weight", D)
        yield matrix(b + "self_attn.q_proj.weight", [D, D], 1.5)
        yield bias(b + "self_attn.q_proj.bias", D, 1.5)
        yield matrix(b + "self_attn.k_proj.weight", [kv, D], 1.5)
        yield bias(b + "self_attn.k_proj.bias", kv, 1.5)
        yield matrix(b + "self_attn.v_proj.weight", [kv, D], 1.0)
        yield bias(b + "self_attn.v_proj.bias", kv, 0.5)
        yield matrix(b + "self_attn.o_proj.weight", [D, D], branch)
        yield norm(b + "post_attention_layernorm.weight", D)
        yield matrix(b + "mlp.gate_proj.weight", [F, D], 1.5)
        yield matrix(b + "mlp.up_proj.weight", [F, D], 1.0)
        yield matrix(b + "mlp.down_proj.weight", [D, F], branch)
    yield norm("model.norm.weight", D)
    if not tied(c):
        yield matrix("lm_head.weight", [c["vocab_size"], D], 4.0)


def tensors_qwen3(c):
    t, v = c["text_config"], c["vision_config"]
    D, E, F, M = t["hidden_size"], v["hidden_size"], t["intermediate_size"], v["intermediate_size"]
    hd = t["head_dim"]
    q, kv = hd * t["num_attention_heads"], hd * t["num_key_value_heads"]
    cells = E * v["spatial_merge_size"] ** 2
    out = 4.0 / math.sqrt(D) if tied(c) else 1.0
    branch = 2.5 * out if tied(c) else 1.0

    def linear(name, dims, gain, shift):
        yield matrix(name + ".weight", dims, gain)
        yield bias(name + ".bias", dims[0], shift)

    def layer_norm(name, n):
        yield norm(name + ".weight", n)
        yield bias(name + ".bias", n, 0.5)

    def merger(name, n):
        yield from layer_norm(name + "norm", n)
        yield from linear(name + "linear_fc1", [cells, cells], 1.5, 0.5)
        yield from linear(name + "linear_fc2", [D, cells], 1.5 * out, 0.5 * out)

    yield from linear("model.visual.patch_embed.proj", [E] + patch_dims(v), 1.0, 0.5)
    yield "model.visual.pos_embed.weight", [v["num_position_embeddings"], E], "matrix", \
        np.float32(1)
    for i in range(v["depth"]):
        b = f"model.visual.blocks.{i}."
        yield from layer_norm(b + "norm1", E)
        yield from layer_norm(b + "norm2", E)
        yield from linear(b + "attn.qkv", [3 * E, E], 1.25, 1.0)
        yield from linear(b + "attn.proj", [E, E], 1.0, 0.25)
        yield from linear(b + "mlp.linear_fc1", [M, E], 1.5, 0.5)
        yield from linear(b + "mlp.linear_fc2", [E, M], 1.0, 0.5)
    yield from merger("model.visual.merger.", E)
    for i in range(len(v["deepstack_visual_indexes"])):
        yield from merger(f"model.visual.deepstack_merger_list.{i}.", cells)

    yield "model.language_model.embed_tokens.weight", [t["vocab_size"], D], "matrix", \
        np.float32(out * math.sqrt(3.0))
    for i in range(t["num_hidden_layers"]):
        b = f"model.language_model.layers.{i}."
        yield norm(b + "input_layernorm.weight", D)
        yield matrix(b + "self_attn.q_proj.weight", [q, D], 1.5)
        yield norm(b + "self_attn.q_norm.weight", hd, 2.0)
        yield matrix(b + "self_attn.k_proj.weight", [kv, D], 1.5)
        yield norm(b + "self_attn.k_norm.weight", hd)
        yield matrix(b + "self_attn.v_proj.weight", [kv, D], 1.0)
        yield matrix(b + "self_attn.o_proj.weight", [D, q], branch)
        yield norm(b + "post_attention_layernorm.weight", D)
        yield matrix(b + "mlp.gate_proj.weight", [F, D], 1.5)
        yield matrix(b + "mlp.up_proj.weight", [F, D], 1.0)
        yield matrix(b + "mlp.down_proj.weight", [D, F], branch)
    yield norm("model.language_model.norm.weight", D)
    if not tied(c):
        yield matrix("lm_head.weight", [t["vocab_size"], D], 4.0)


def tensors_bloom(c):
    D, layers, _ = bloom_sizes(c)

    def linear(name, dims, gain, shift):
        yield matrix(name + ".weight", dims, gain)
        yield bias(name + ".bias", dims[0], shift)

    def layer_norm(name):
        yield norm(name + ".weight", D)
        yield bias(name + ".bias", D, 0.5)

    yield matrix("word_embeddings.weight", [c["vocab_size"], D], 4.0)
    yield from layer_norm("word_embeddings_layernorm")
    for i in range(layers):
        b = f"h.{i}."
        yield from layer_norm(b + "input_layernorm")
        yield from linear(b + "self_attention.query_key_value", [3 * D, D], 1.25, 1.0)
        yield from linear(b + "self_attention.dense", [D, D], 2.5, 0.5)
        yield from layer_norm(b + "post_attention_layernorm")
        yield from linear(b + "mlp.dense_h_to_4h", [4 * D, D], 1.5, 0.5)
        yield from linear(b + "mlp.dense_4h_to_h", [D, 4 * D], 2.0, 0.5)
    yield from layer_norm("ln_f")
    if not tied(c):
        yield matrix("lm_head.weight", [c["vocab_size"], D], 4.0)


def rounded(x, kind):
    """Converts f32 to the file's element type and back, rounding halves to even."""
    if kind == "f16":
        return x.astype(np.float16).astype(np.float32)
    if kind == "bf16":
        b = x.view(np.uint32)
        b = (b + np.uint32(0x7FFF) + ((b >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
        return b.view(np.float32)
    return x


def values(name, dims, kind, scale, seed, gain, file_type):
    n = int(np.prod(dims))
    h = hashes(name, seed, n)
    u = ((h >> np.uint64(40)).astype(np.int32) - 2 ** 23).astype(np.float32) / np.float32(2 ** 23)
    if kind != "gain":
        x = u * scale
    elif gain == "trivial":
        x = np.ones(n, np.float32)
    else:
        x = (np.float32(1) + u * np.float32(0.5)) * scale
        x[(h & np.uint64(7)) == 0] *= np.float32(-1)
    return rounded(x, file_type).reshape(dims)


def swap_heads(x, first_row, head_dim, a, b):
    y = x.copy()
    ra, rb = first_row + a * head_dim, first_row + b * head_dim
    y[ra:ra + head_dim], y[rb:rb + head_dim] = x[rb:rb + head_dim], x[ra:ra + head_dim]
    return y


def mutate(w, c, name):
    """Changes weights (a dict) or config (a dict) as `random-checkpoint --mutate NAME` does."""
    if name not in MUTATIONS[c["model_type"]]:
        raise SystemExit(f"no mutation is called {name}")
    kinds = {"qwen2_5_vl": mutate_qwen2_5, "qwen3_vl": mutate_qwen3, "bloom": mutate_bloom}
    kinds[c["model_type"]](w, c, name)


def mutate_bloom(w, c, name):
    D, layers, heads = bloom_sizes(c)
    key = {"qkv-bias": f"h.{layers - 1}.self_attention.query_key_value.bias",
           "dense-bias": "h.0.self_attention.dense.bias",
           "up-bias": f"h.{layers - 1}.mlp.dense_h_to_4h.bias",
           "down-bias": "h.0.mlp.dense_4h_to_h.bias",
           "embed-gain": "word_embeddings_layernorm.weight",
           "embed-shift": "word_embeddings_layernorm.bias",
           "last-shift": "ln_f.bias"}
    if name == "k-heads":              # exchanges the first and the last head's keys in layer 0
        for t in ("weight", "bias"):
            k = "h.0.self_attention.query_key_value." + t
            w[k] = swap_heads(w[k], D // heads, D // heads, 0, 3 * (heads - 1))
    else:                              # gains are all ones, biases are removed
        w[key[name]] = np.full_like(w[key[name]], name == "embed-gain")


def mutate_qwen2_5(w, c, name):
    v = c["vision_config"]
    if name == "q-heads":              # exchanges the first and the last query head of layer 0
        hd = c["hidden_size"] // c["num_attention_heads"]
        for t in ("weight", "bias"):
            key = "model.layers.0.self_attn.q_proj." + t
            w[key] = swap_heads(w[key], 0, hd, 0, c["num_attention_heads"] - 1)
    elif name == "k-bias":             # removed in layer 0
        key = "model.layers.0.self_attn.k_proj.bias"
        w[key] = np.zeros_like(w[key])
    elif name == "vision-heads":       # exchanges the first and the last head of block 0, keys only
        hd = v["hidden_size"] // v["num_heads"]
        for t in ("weight", "bias"):
            key = "visual.blocks.0.attn.qkv." + t
            w[key] = swap_heads(w[key], v["hidden_size"], hd, 0, v["num_heads"] - 1)
    elif name == "vision-bias":        # removed from the last block's down projection
        key = f"visual.blocks.{v['depth'] - 1}.mlp.down_proj.bias"
        w[key] = np.zeros_like(w[key])
    elif name == "gate-up":            # change places in the last layer
        b = f"model.layers.{c['num_hidden_layers'] - 1}.mlp."
        g, u = b + "gate_proj.weight", b + "up_proj.weight"
        w[g], w[u] = w[u], w[g]
    elif name == "merger-gain":        # all ones
        key = "visual.merger.ln_q.weight"
        w[key] = np.ones_like(w[key])
    elif name == "mrope":              # exchanges the sections of time and rows
        s = c["rope_scaling"]["mrope_section"]
        s[0], s[1] = s[1], s[0]
    elif name == "window":             # block 0 windowed instead of full, or the reverse
        full = v["fullatt_block_indexes"]
        v["fullatt_block_indexes"] = full[1:] if full[:1] == [0] else [0] + full


def rope_of(c):
    t = text_of(c)
    return t.get("rope_parameters", t.get("rope_scaling"))


def mutate_qwen3(w, c, name):
    t, v = c["text_config"], c["vision_config"]
    last = t["num_hidden_layers"] - 1
    layer, block = "model.language_model.layers.", "model.visual.blocks."

    def fill(key, value):
        w[key] = np.full_like(w[key], value)

    def exchange(a, b):
        w[a], w[b] = w[b], w[a]

    if name == "q-heads":              # exchanges the first and the last query head of layer 0
        key = layer + "0.self_attn.q_proj.weight"
        w[key] = swap_heads(w[key], 0, t["head_dim"], 0, t["num_attention_heads"] - 1)
    elif name == "q-gain":             # all ones, in layer 0
        fill(layer + "0.self_attn.q_norm.weight", 1)
    elif name == "k-gain":             # all ones, in the last layer
        fill(f"{layer}{last}.self_attn.k_norm.weight", 1)
    elif name == "vision-heads":       # exchanges the first and the last head of block 0, keys only
        for kind in ("weight", "bias"):
            key = block + "0.attn.qkv." + kind
            w[key] = swap_heads(w[key], v["hidden_size"], v["hidden_size"] // v["num_heads"], 0,
                                v["num_heads"] - 1)
    elif name == "vision-bias":        # removed from the last block's second product
        fill(f"{block}{v['depth'] - 1}.mlp.linear_fc2.bias", 0)
    elif name == "patch-bias":         # removed
        fill("model.visual.patch_embed.proj.bias", 0)
    elif name == "shift":              # removed from block 0's first norm
        fill(block + "0.norm1.bias", 0)
    elif name == "gate-up":            # change places in the last layer
        exchange(f"{layer}{last}.mlp.gate_proj.weight", f"{layer}{last}.mlp.up_proj.weight")
    elif name == "merger-gain":        # all ones
        fill("model.visual.merger.norm.weight", 1)
    elif name == "mrope":              # the section of rows is time's
        s = rope_of(c)["mrope_section"]
        s[0], s[1] = s[0] + s[1], 0
    elif name == "lists":              # DeepStack's first and last merger change places
        n = len(v["deepstack_visual_indexes"]) - 1
        for part in ("norm", "linear_fc1", "linear_fc2"):
            for kind in ("weight", "bias") if n > 0 else ():
                b = "model.visual.deepstack_merger_list."
                exchange(f"{b}0.{part}.{kind}", f"{b}{n}.{part}.{kind}")
    elif name == "block":              # the first list is of the first block that has none
        taken = v["deepstack_visual_indexes"]
        if taken:
            taken[0] = min(set(range(v["depth"] + 1)) - set(taken))
