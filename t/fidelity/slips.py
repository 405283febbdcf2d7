"""Mistakes in the models' arithmetic that no change of the weights or of config.json can make.

Each function makes one in a model of transformers.  `reference.py mutations` measures how far it
moves the results.
"""

import math

import torch
from torch import nn


def mergers(model):
    return [model.model.visual.merger] + list(model.model.visual.deepstack_merger_list)


class Reshaped(nn.Module):
    """A norm over rows of another length, with its gain and shift repeated or cut to that."""

    def __init__(self, norm, gain, shift):
        super().__init__()
        self.norm, self.gain, self.shift = norm, gain, shift

    def forward(self, x):
        rows = x.view(-1, *self.gain.shape)
        y = nn.functional.layer_norm(rows, self.gain.shape[-1:], None, None, self.norm.eps)
        return (y * self.gain + self.shift).view(x.shape)


def merger_joined(model):
    """The merger's norm is taken after four patches are joined, not before."""
    m = model.model.visual.merger
    n = m.hidden_size // len(m.norm.weight)
    m.norm = Reshaped(m.norm, m.norm.weight.repeat(n), m.norm.bias.repeat(n))


def lists_apart(model):
    """The norms of DeepStack's mergers are taken before four patches are joined, not after."""
    n = model.config.vision_config.spatial_merge_size ** 2
    for m in mergers(model)[1:]:
        m.norm = Reshaped(m.norm, m.norm.weight.view(n, -1), m.norm.bias.view(n, -1))


def no_shift(model):
    """LayerNorm has no shift, anywhere in the vision encoder."""
    for m in model.model.visual.modules():
        if isinstance(m, nn.LayerNorm):
            m.bias.data.zero_()


def gelu_blocks(model):
    """The blocks have the exact GELU in place of the tanh form."""
    for block in model.model.visual.blocks:
        block.mlp.act_fn = nn.GELU()


def gelu_mergers(model):
    """The mergers have the tanh form of GELU in place of the exact one."""
    for m in mergers(model):
        m.act_fn = nn.GELU(approximate="tanh")


def corners(model):
    """Positions are sampled at the centres of patches, so that corners are not aligned."""
    v = model.model.visual
    side, merge = v.num_grid_per_side, v.spatial_merge_size

    def sample(grid):
        out = []
        table = v.pos_embed.weight.t().view(1, -1, side, side)
        for n, h, w in grid.tolist():
            p = nn.functional.interpolate(table, (h, w), mode="bilinear", align_corners=False)
            p = p[0].permute(1, 2, 0).view(h // merge, merge, w // merge, merge, -1)
            out += [p.transpose(1, 2).flatten(0, 3)] * n
        return torch.cat(out)

    v.fast_pos_embed_interpolate = sample


def no_positions(model):
    """The learned positions are left out."""
    model.model.visual.pos_embed.weight.data.zero_()


def no_q_norm(model):
    for layer in model.model.language_model.layers:
        layer.self_attn.q_norm = nn.Identity()


def no_k_norm(model):
    for layer in model.model.language_model.layers:
        layer.self_attn.k_norm = nn.Identity()


def sections_apart(model):
    """Pairs have their axes in three ranges, as in Qwen2.5-VL, not interleaved."""
    rotary = model.model.language_model.rotary_emb

    def fill(freqs, sections):
        parts = freqs.split(sections, dim=-1)
        return torch.cat([part[i] for i, part in enumerate(parts)], dim=-1)

    rotary.apply_interleaved_mrope = fill


def move_lists(model, change):
    text = model.model.language_model
    forward = text.forward

    def moved(*args, **kwargs):
        if kwargs.get("deepstack_visual_embeds"):
            change(kwargs)
        return forward(*args, **kwargs)

    text.forward = moved


def lists_late(model):
    """DeepStack's lists are added a layer later than they should be."""
    def change(kwargs):
        lists = kwargs["deepstack_visual_embeds"]
        kwargs["deepstack_visual_embeds"] = [torch.zeros_like(lists[0])] + lists

    move_lists(model, change)


def lists_early(model):
    """DeepStack's lists are added before their layers, not after them."""
    def change(kwargs):
        first, *others = kwargs["deepstack_visual_embeds"]
        kwargs["inputs_embeds"] = kwargs["inputs_embeds"].clone()
        kwargs["inputs_embeds"][kwargs["visual_pos_masks"]] += first
        kwargs["deepstack_visual_embeds"] = others

    move_lists(model, change)


def lists_listed(model):
    """DeepStack's lists are added in the order of config.json, not in the order of the blocks."""
    def change(kwargs):
        taken = model.config.vision_config.deepstack_visual_indexes
        lists = kwargs["deepstack_visual_embeds"]
        kwargs["deepstack_visual_embeds"] = [lists[sorted(taken).index(i)] for i in taken]

    move_lists(model, change)


def frames_swapped(model):
    """The two frames of a pair have each other's weights."""
    proj = model.model.visual.patch_embed.proj
    proj.weight.data = proj.weight.data.flip(2)


def time_step(model):
    """The time of frames moves on half as fast."""
    model.model.config.vision_config.tokens_per_second /= 2


def bloom_layers(model):
    return model.transformer.h


def move_alibi(model, slopes):
    """ALiBi has other slopes: a function of their number."""
    def build(mask, heads, dtype):
        at = (mask.cumsum(-1) - 1) * mask
        bias = torch.tensor(slopes(heads)).view(1, heads, 1) * at[:, None, :]
        return bias.view(-1, 1, mask.shape[-1]).to(dtype)

    model.transformer.build_alibi_tensor = build


def usual_slopes(heads):
    c = 2 ** int(math.log2(heads))
    return ([2 ** (-8 * (i + 1) / c) for i in range(c)]
            + [2 ** (-4 * (2 * i + 1) / c) for i in range(heads - c)])


def no_alibi(model):
    move_alibi(model, lambda heads: [0.0] * heads)


def slopes_sorted(model):
    """Heads beyond a power of two have their slopes between the others'."""
    move_alibi(model, lambda heads: sorted(usual_slopes(heads), reverse=True))


def slopes_even(model):
    """Slopes fall evenly, whatever the number of heads is."""
    move_alibi(model, lambda heads: [2 ** (-8 * (i + 1) / heads) for i in range(heads)])


def no_embed_norm(model):
    model.transformer.word_embeddings_layernorm = nn.Identity()


def no_mean(model):
    """Norms do not take the mean off."""
    class Rms(nn.Module):
        def __init__(self, norm):
            super().__init__()
            self.norm = norm

        def forward(self, x):
            n = self.norm
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + n.eps) * n.weight + n.bias

    for layer in bloom_layers(model):
        layer.input_layernorm = Rms(layer.input_layernorm)
        layer.post_attention_layernorm = Rms(layer.post_attention_layernorm)


def residual_normed(model):
    for layer in bloom_layers(model):
        layer.apply_residual_connection_post_layernorm = True


def gelu_exact(model):
    """The exact GELU in place of the tanh form."""
    for layer in bloom_layers(model):
        layer.mlp.gelu_impl = nn.GELU()


def qkv_stacked(model):
    """The rows of all heads' queries stand before those of keys and values."""
    for layer in bloom_layers(model):
        a = layer.self_attention
        a._reshape = lambda fused, a=a: tuple(
            part.unflatten(-1, (a.num_heads, a.head_dim)).transpose(1, 2)
            for part in fused.chunk(3, -1))


SLIPS = {
    "bloom": {f.__name__.replace("_", "-"): f for f in (
        no_alibi, slopes_sorted, slopes_even, no_embed_norm, no_mean, residual_normed, gelu_exact,
        qkv_stacked)},
    "qwen2_5_vl": {f.__name__.replace("_", "-"): f for f in (frames_swapped, time_step)},
    "qwen3_vl": {f.__name__.replace("_", "-"): f for f in (
        frames_swapped, corners, no_positions, merger_joined, lists_apart, lists_late, lists_early,
        lists_listed, sections_apart, no_q_norm, no_k_norm, gelu_blocks, gelu_mergers, no_shift)},
}
