"""The second demo's model for training: Qwen3-VL's arithmetic for one fixed picture size.

A 288x288 picture is 18x18 patches and 9x9 merged cells, as many as the first demo's picture has, so that the first
demo's features of a cell can be learnt from.  Cells come row by row, each as 2x2 patches.  The learned positions
are of a grid of 12x12 and are interpolated.  One block's output goes to a merger of its own, too, whose features are
added to the picture's rows after the language model's first layer.

Letters: B pictures, N patches, E the encoder's width, D the language model's.
"""

import torch
import torch.nn.functional as F
from torch import nn

from model import CELLS, GRID, rotate

CONFIG = {
    "family": "qwen3_vl", "qk_norm": True, "interleaved": True, "vocab_size": 768, "hidden_size": 256,
    "intermediate_size": 320, "num_hidden_layers": 5, "num_attention_heads": 10, "num_key_value_heads": 2,
    "rope_theta": 10000.0, "mrope_section": [6, 5, 5], "rms_norm_eps": 1e-6,
    "vision": {"depth": 6, "hidden_size": 192, "intermediate_size": 320, "num_heads": 6, "patch_size": 16,
               "places": 12, "deepstack_visual_indexes": [3]},
}
SIDE = 288


def cell_order():
    """Row and column of each patch, in the order the patches come: [324, 2]."""
    return torch.tensor([(r * 2 + i, c * 2 + j) for r in range(CELLS) for c in range(CELLS)
                         for i in range(2) for j in range(2)])


def taps(places):
    """The four places of the learned grid that each patch is between, and their weights: [4, 324] both."""
    at = torch.linspace(0, places - 1, GRID)[cell_order()]                      # [324, 2]
    low = at.long()
    high, part = (low + 1).clamp(max=places - 1), at - low
    found = [((y[:, 0] * places + x[:, 1]), v * w)
             for y, v in ((low, 1 - part[:, 0]), (high, part[:, 0]))
             for x, w in ((low, 1 - part[:, 1]), (high, part[:, 1]))]
    return torch.stack([i for i, _ in found]), torch.stack([w for _, w in found])


class LayerNorm(nn.LayerNorm):
    def __init__(self, width):
        super().__init__(width, eps=1e-6)

    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class Block(nn.Module):
    def __init__(self, conf):
        super().__init__()
        width, inner = conf["hidden_size"], conf["intermediate_size"]
        self.heads = conf["num_heads"]
        self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def attend(self, x, cos, sin):
        B, N, E = x.shape
        q, k, v = self.qkv(x).view(B, N, 3, self.heads, -1).unbind(2)
        q, k, v = (t.transpose(1, 2) for t in (rotate(q, cos, sin), rotate(k, cos, sin), v))
        out = F.scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(B, N, E))

    def inner(self, x):
        return F.gelu(self.up(x), approximate="tanh")

    def mlp(self, x):
        return self.down(self.inner(x))

    def forward(self, x, cos, sin):
        x = x + self.attend(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class Merger(nn.Module):
    """Of the last block each patch is normed before four are joined, of the others the four together."""

    def __init__(self, width, out, joined):
        super().__init__()
        self.norm = LayerNorm(4 * width if joined else width)
        self.merge1, self.merge2 = nn.Linear(4 * width, 4 * width), nn.Linear(4 * width, out)

    def forward(self, x):
        x = x.unflatten(1, (-1, 4))
        x = self.norm(x.flatten(2)) if self.norm.weight.numel() > x.shape[-1] else self.norm(x).flatten(2)
        return self.merge2(F.gelu(self.merge1(x)))


class Vision(nn.Module):
    def __init__(self, conf, out):
        super().__init__()
        width, self.conf = conf["hidden_size"], conf
        self.patch = nn.Linear(768, width)                  # both frames of the family's patch in one
        self.pos_embed = nn.Embedding(conf["places"] ** 2, width)
        self.blocks = nn.ModuleList(Block(conf) for _ in range(conf["depth"]))
        self.merger = Merger(width, out, False)
        self.deep = nn.ModuleList(Merger(width, out, True) for _ in conf["deepstack_visual_indexes"])
        half = width // conf["num_heads"] // 2
        freq = 1.0 / 10000.0 ** (torch.arange(0, half, 2).float() / half)
        angle = (cell_order()[:, :, None].float() * freq).flatten(1)            # rows then columns
        angle = torch.cat((angle, angle), dim=-1)[:, None, :]
        index, weight = taps(conf["places"])
        for name, value in (("cos", angle.cos()), ("sin", angle.sin()), ("index", index), ("weight", weight)):
            self.register_buffer(name, value, persistent=False)

    def embedded(self, patches, dtype):
        places = (self.pos_embed(self.index) * self.weight[..., None]).sum(0)   # [324, E]
        return self.patch((patches.float() / 127.5 - 1).to(dtype)) + places.to(dtype)

    def states(self, patches, dtype):
        """patches u8 [B, 324, 768] -> [B, N, E] after every block."""
        x, found = self.embedded(patches, dtype), []
        for block in self.blocks:
            x = block(x, self.cos.to(dtype), self.sin.to(dtype))
            found.append(x)
        return found

    def merged(self, states):
        """The cells, [B, 81, D] row by row, and the same of each of the deep mergers."""
        deep = zip(self.deep, self.conf["deepstack_visual_indexes"])
        return self.merger(states[-1]), tuple(merger(states[i]) for merger, i in deep)

    def forward(self, patches, dtype):
        return self.merged(self.states(patches, dtype))
