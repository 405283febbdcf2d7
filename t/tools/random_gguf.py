#!/usr/bin/env python3
"""Writes random weights of a shape in bench/shapes/ as GGUF files for llama.cpp.

    t/tools/random_gguf.py SHAPE.json OUT

The files are OUT/text-q8_0.gguf (the language model, Q8_0; norms f32) and OUT/mmproj-f16.gguf (the
vision encoder, f16).  The script needs the package gguf from PyPI.  Weights are pieces of one pool
of random numbers: kernels do not branch on values, so the values do not affect times.
"""

import json
import os
import sys

import gguf
import numpy as np

POOL = 1 << 26                          # values
Q8_BLOCK, Q8_BYTES = 32, 34             # of Q8_0: an f16 scale, 32 int8


class Pool:
    def __init__(self):
        rng = np.random.default_rng(1)
        self.f32 = (rng.standard_normal(POOL, dtype=np.float32) * 0.02).astype(np.float32)
        self.f16 = self.f32.astype(np.float16)
        q8 = np.empty((POOL // Q8_BLOCK, Q8_BYTES), np.uint8)
        q8[:, :2] = np.frombuffer(np.float16(0.02 / 64).tobytes(), np.uint8)
        q8[:, 2:] = rng.integers(-127, 128, (len(q8), Q8_BLOCK), np.int8).view(np.uint8)
        self.q8 = q8.reshape(-1)

    @staticmethod
    def take(pool, n):
        return np.resize(pool, n)       # repeats the pool


class File:
    """Lists the tensors first and writes them after the header, one at a time."""

    def __init__(self, path, arch, pool):
        self.w = gguf.GGUFWriter(path, arch)
        self.pool = pool
        self.tensors = []

    def matrix(self, name, *shape, q8=False):
        self.tensors.append((name, shape, "q8" if q8 else "f16"))

    def vector(self, name, n, ones=False):
        self.tensors.append((name, (n,), "ones" if ones else "f32"))

    def linear(self, name, rows, columns, bias, q8=False):
        self.matrix(name + ".weight", rows, columns, q8=q8)
        if bias:
            self.vector(name + ".bias", rows)

    def finish(self):
        for name, shape, kind in self.tensors:
            n = int(np.prod(shape))

            if kind == "q8":
                row = shape[1] // Q8_BLOCK * Q8_BYTES
                self.w.add_tensor_info(name, (shape[0], row), np.dtype(np.uint8), shape[0] * row,
                                       raw_dtype=gguf.GGMLQuantizationType.Q8_0)
            elif kind == "f16":
                self.w.add_tensor_info(name, shape, np.dtype(np.float16), 2 * n)
            else:
                self.w.add_tensor_info(name, shape, np.dtype(np.float32), 4 * n)

        self.w.write_header_to_file()
        self.w.write_kv_data_to_file()
        self.w.write_ti_data_to_file()

        for name, shape, kind in self.tensors:
            n = int(np.prod(shape))
            data = (np.ones(n, np.float32) if kind == "ones"
                    else Pool.take(self.pool.q8, n // Q8_BLOCK * Q8_BYTES) if kind == "q8"
                    else Pool.take(self.pool.f16 if kind == "f16" else self.pool.f32, n))
            self.w.write_tensor_data(data)

        self.w.close()


SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>",
           "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>",
           "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]


def vocabulary(w, size):
    """Returns the bytes, then unused tokens, then Qwen's control tokens at Qwen's ids."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    tokens = [chr(b if b in printable else next(spare)) for b in range(256)]
    kinds = [1] * 256

    for i in range(151643 - 256):
        tokens.append(f"unused{i:06}")
        kinds.append(1)

    tokens += SPECIAL
    kinds += [3] * len(SPECIAL)

    for i in range(size - len(tokens)):
        tokens.append(f"[PAD{i}]")
        kinds.append(5)

    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    w.add_token_types(kinds)
    w.add_token_merges(["t o"])
    w.add_eos_token_id(151645)
    w.add_pad_token_id(151643)
    w.add_bos_token_id(151643)
    w.add_add_bos_token(False)
    w.add_chat_template("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
                        "{% endfor %}<|im_start|>assistant\n")


def text(c, path, pool):
    f = File(path, "qwen2vl", pool)
    hidden, mlp = c["hidden_size"], c["intermediate_size"]
    head = hidden // c["num_attention_heads"]

    f.w.add_context_length(c["max_position_embeddings"])
    f.w.add_embedding_length(hidden)
    f.w.add_block_count(c["num_hidden_layers"])
    f.w.add_feed_forward_length(mlp)
    f.w.add_head_count(c["num_attention_heads"])
    f.w.add_head_count_kv(c["num_key_value_heads"])
    f.w.add_rope_freq_base(c["rope_theta"])
    f.w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    f.w.add_rope_dimension_sections(c["rope_scaling"]["mrope_section"] + [0])
    f.w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    vocabulary(f.w, c["vocab_size"])

    f.matrix("token_embd.weight", c["vocab_size"], hidden, q8=True)
    f.vector("output_norm.weight", hidden, ones=True)

    for i in range(c["num_hidden_layers"]):
        b = f"blk.{i}."
        f.vector(b + "attn_norm.weight", hidden, ones=True)
        f.vector(b + "ffn_norm.weight", hidden, ones=True)
        f.linear(b + "attn_q", hidden, hidden, True, q8=True)
        f.linear(b + "attn_k", c["num_key_value_heads"] * head, hidden, True, q8=True)
        f.linear(b + "attn_v", c["num_key_value_heads"] * head, hidden, True, q8=True)
        f.linear(b + "attn_output", hidden, hidden, False, q8=True)
        f.linear(b + "ffn_gate", mlp, hidden, False, q8=True)
        f.linear(b + "ffn_up", mlp, hidden, False, q8=True)
        f.linear(b + "ffn_down", hidden, mlp, False, q8=True)

    f.finish()


def vision_encoder(c, path, pool):
    f = File(path, "clip", pool)
    v = c["vision_config"]
    hidden, mlp, patch, cell = (v["hidden_size"], v["intermediate_size"], v["patch_size"],
                                v["spatial_merge_size"] ** 2 * v["hidden_size"])

    f.w.add_type("mmproj")
    f.w.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    f.w.add_clip_has_vision_encoder(True)
    f.w.add_clip_projector_type("qwen2.5vl_merger")
    f.w.add_vision_projection_dim(v["out_hidden_size"])
    f.w.add_vision_image_size(560)
    f.w.add_vision_patch_size(patch)
    f.w.add_vision_embedding_length(hidden)
    f.w.add_vision_feed_forward_length(mlp)
    f.w.add_vision_block_count(v["depth"])
    f.w.add_vision_head_count(v["num_heads"])
    f.w.add_vision_image_mean([0.48145466, 0.4578275, 0.40821073])
    f.w.add_vision_image_std([0.26862954, 0.26130258, 0.27577711])
    f.w.add_vision_use_silu(True)
    f.w.add_vision_n_wa_pattern(v["fullatt_block_indexes"][0] + 1)
    f.w.add_vision_attention_layernorm_eps(1e-6)

    for name in ("v.patch_embd.weight", "v.patch_embd.weight.1"):
        f.matrix(name, hidden, 3, patch, patch)

    f.vector("v.post_ln.weight", hidden, ones=True)

    for i in range(v["depth"]):
        b = f"v.blk.{i}."
        f.vector(b + "ln1.weight", hidden, ones=True)
        f.vector(b + "ln2.weight", hidden, ones=True)

        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            f.linear(b + name, hidden, hidden, True)

        f.linear(b + "ffn_gate", mlp, hidden, True)
        f.linear(b + "ffn_up", mlp, hidden, True)
        f.linear(b + "ffn_down", hidden, mlp, True)

    f.linear("mm.0", cell, cell, True)
    f.linear("mm.2", v["out_hidden_size"], cell, True)
    f.finish()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)

    shape = json.load(open(sys.argv[1]))
    os.makedirs(sys.argv[2], exist_ok=True)
    numbers = Pool()
    text(shape, sys.argv[2] + "/text-q8_0.gguf", numbers)
    vision_encoder(shape, sys.argv[2] + "/mmproj-f16.gguf", numbers)
