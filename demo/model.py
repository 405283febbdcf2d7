"""The demo's model for training: Qwen2.5-VL's arithmetic for one fixed picture size.

A 252x252 picture is 18x18 patches and 9x9 merged cells.  Patches come in window order (3x3 windows of
3x3 cells of 2x2 patches), so that a window is a plain reshape.  model3.py has the other family's vision encoder;
the language model of both is here, and the configuration tells their differences.

Many questions share one picture: the prefix (system turn and picture) is computed once, and every question is a
branch which sees the prefix and itself, with the positions it would have if it stood alone.

Letters: B pictures, P prefix tokens, Q questions of a picture, T tokens of a question, D width.
"""

import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "family": "qwen2_5_vl", "qk_norm": False, "interleaved": False,
    "vocab_size": 768, "hidden_size": 256, "intermediate_size": 576, "num_hidden_layers": 5,
    "num_attention_heads": 8, "num_key_value_heads": 2, "rope_theta": 10000.0, "mrope_section": [4, 6, 6],
    "rms_norm_eps": 1e-6,
    "vision": {"depth": 6, "hidden_size": 192, "intermediate_size": 512, "num_heads": 6,
               "fullatt_block_indexes": [1, 3, 5], "window_size": 84, "patch_size": 14},
}
GRID, CELLS = 18, 9                     # patches and merged cells along a side
HEAD = 32                               # every head's width, in both parts; not in model3's vision encoder
SCALE = HEAD ** -0.5


def rms_norm(x, weight):
    return F.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), 1e-6)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return rms_norm(x, self.weight)


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def window_order():
    """Row and column of each patch, in the order the patches come: [324, 2]."""
    at = [(r * 6 + c * 2 + i, s * 6 + d * 2 + j) for r in range(3) for s in range(3) for c in range(3)
          for d in range(3) for i in range(2) for j in range(2)]
    return torch.tensor(at)


def raster_from_windows():
    """Index of each cell, row by row, within the windows' order: [81]."""
    cells = window_order()[::4] // 2
    return torch.argsort(cells[:, 0] * CELLS + cells[:, 1])


class VisionBlock(nn.Module):
    def __init__(self, conf, full):
        super().__init__()
        width, inner = conf["hidden_size"], conf["intermediate_size"]
        self.heads, self.full = conf["num_heads"], full
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gate, self.up = nn.Linear(width, inner), nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def attend(self, x, cos, sin):
        B, N, D = x.shape
        groups = 1 if self.full else 9
        q, k, v = self.qkv(x).view(B, N, 3, self.heads, HEAD).unbind(2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        q, k, v = (t.reshape(B * groups, N // groups, self.heads, HEAD).transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(B, N, D))

    def forward(self, x, cos, sin):
        x = x + self.attend(self.norm1(x), cos, sin)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Vision(nn.Module):
    def __init__(self, conf, out):
        super().__init__()
        width = conf["hidden_size"]
        self.patch = nn.Linear(588, width, bias=False)      # both frames of the family's patch in one
        self.blocks = nn.ModuleList(VisionBlock(conf, i in conf["fullatt_block_indexes"])
                                    for i in range(conf["depth"]))
        self.ln_q = Norm(width)
        self.merge1, self.merge2 = nn.Linear(4 * width, 4 * width), nn.Linear(4 * width, out)
        freq = 1.0 / 10000.0 ** (torch.arange(0, HEAD // 2, 2).float() / (HEAD // 2))
        angle = (window_order()[:, :, None].float() * freq).flatten(1)      # [324, 16] rows then columns
        angle = torch.cat((angle, angle), dim=-1)[:, None, :]
        mean = torch.tensor((0.48145466, 0.4578275, 0.40821073)).repeat_interleave(196)
        std = torch.tensor((0.26862954, 0.26130258, 0.27577711)).repeat_interleave(196)
        for name, value in (("cos", angle.cos()), ("sin", angle.sin()), ("mean", mean), ("std", std),
                            ("raster", raster_from_windows())):
            self.register_buffer(name, value, persistent=False)

    def forward(self, patches, dtype):
        """patches u8 [B, 324, 588] in window order -> [B, 81, D] row by row, and no deep features."""
        x = self.patch((patches.float() / 255.0 - self.mean).div_(self.std).to(dtype))
        cos, sin = self.cos.to(dtype), self.sin.to(dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        x = self.ln_q(x).reshape(len(x), CELLS * CELLS, -1)
        return self.merge2(F.gelu(self.merge1(x)))[:, self.raster], ()


class Layer(nn.Module):
    def __init__(self, conf):
        super().__init__()
        D, F_, self.heads = conf["hidden_size"], conf["intermediate_size"], conf["num_attention_heads"]
        self.kv = conf["num_key_value_heads"]
        self.norm1, self.norm2 = Norm(D), Norm(D)
        self.q, self.k, self.v = (nn.Linear(D, n * HEAD, bias=not conf["qk_norm"])
                                  for n in (self.heads, self.kv, self.kv))
        self.q_norm, self.k_norm = (Norm(HEAD) if conf["qk_norm"] else nn.Identity() for _ in range(2))
        self.o = nn.Linear(self.heads * HEAD, D, bias=False)
        self.gate, self.up = nn.Linear(D, F_, bias=False), nn.Linear(D, F_, bias=False)
        self.down = nn.Linear(F_, D, bias=False)

    def attend(self, x, cos, sin, shape):
        """x [N, D] is the prefix [B, P] followed by the branches [B, Q, T] of each bucket."""
        B, P, buckets, masks = shape
        q = rotate(self.q_norm(self.q(x).view(-1, self.heads, HEAD)), cos, sin) * SCALE
        k = rotate(self.k_norm(self.k(x).view(-1, self.kv, HEAD)), cos, sin)
        v = self.v(x).view(-1, self.kv, HEAD)
        rep = self.heads // self.kv                         # query heads which share a key head
        # A gradient of split is one copy; that of a slice would be a tensor of zeros as large as the whole.
        sizes = [B * P] + [B * Q * T for Q, T in buckets]
        parts = zip(*(t.split(sizes) for t in (q, k, v)))

        def grouped(t, rows, T):
            """[rows*T, kv*n, HEAD] -> [rows, kv, n*T, HEAD]"""
            n = t.shape[1] // self.kv
            return t.view(rows, T, self.kv, n, HEAD).permute(0, 2, 3, 1, 4).reshape(rows, self.kv, n * T, HEAD)

        def flat(t, rows, T):
            return t.view(rows, self.kv, rep, T, HEAD).permute(0, 3, 1, 2, 4).reshape(rows * T, -1)

        qp, kp, vp = (grouped(t, B, P) for t in next(parts))
        scores = (qp @ kp.transpose(-1, -2)).view(B, self.kv, rep, P, P) + masks[0]
        outs = [flat(scores.softmax(-1).view(B, self.kv, rep * P, P) @ vp, B, P)]
        for (Q, T), mask, part in zip(buckets, masks[1:], parts):
            rows, n = B * Q, rep * T
            qs, ks, vs = (grouped(t, rows, T) for t in part)
            across = qs.view(B, Q, self.kv, n, HEAD).transpose(1, 2).reshape(B, self.kv, Q * n, HEAD)
            seen = (across @ kp.transpose(-1, -2)).view(B, self.kv, Q, n, P).transpose(1, 2)
            own = (qs @ ks.transpose(-1, -2)).view(B, Q, self.kv, rep, T, T) + mask
            seen, own = torch.cat((seen, own.view(B, Q, self.kv, n, T)), dim=-1).softmax(-1).split((P, T), dim=-1)
            seen = seen.transpose(1, 2).reshape(B, self.kv, Q * n, P) @ vp
            own = own.reshape(rows, self.kv, n, T) @ vs
            seen = seen.view(B, self.kv, Q, n, HEAD).transpose(1, 2).reshape(rows, self.kv, n, HEAD)
            outs.append(flat(seen + own, rows, T))
        return self.o(torch.cat(outs))

    def forward(self, x, cos, sin, shape):
        x = x + self.attend(self.norm1(x), cos, sin, shape)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def axes(conf):
    """Which of time, row and column turns each pair of a head's numbers: [HEAD / 2]."""
    sections = conf["mrope_section"]
    if not conf["interleaved"]:
        return torch.tensor([a for a, n in enumerate(sections) for _ in range(n)])
    return torch.tensor([i % 3 if i < 3 * sections[i % 3] else 0 for i in range(HEAD // 2)])


def text_places(first, count):
    return torch.arange(first, first + count)[:, None].expand(-1, 3)


class Model(nn.Module):
    """prefix: token ids before the picture, the picture's 81 places, the ids after it."""

    def __init__(self, before, after, conf=CONFIG, vision=Vision):
        super().__init__()
        self.conf, self.before, self.after = conf, list(before), list(after)
        self.vision = vision(conf["vision"], conf["hidden_size"])
        self.embed = nn.Embedding(conf["vocab_size"], conf["hidden_size"])
        self.layers = nn.ModuleList(Layer(conf) for _ in range(conf["num_hidden_layers"]))
        self.norm = Norm(conf["hidden_size"])
        self.reset()

    def reset(self):
        depth = {"vision": len(self.vision.blocks), "layers": len(self.layers)}
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)
            elif p.dim() == 2:
                nn.init.normal_(p, std=p.shape[1] ** -0.5 * (0.8 if "embed" not in name else 0.5))
                if any(s in name for s in (".proj.", ".o.", ".down.")):
                    p.data.mul_((2 * depth[name.split(".")[0]]) ** -0.5)

    def places(self):
        """Places on the three axes for a prefix with a picture: [P, 3]."""
        n = len(self.before)
        cells = torch.arange(CELLS * CELLS)
        picture = torch.stack((torch.zeros_like(cells), cells // CELLS, cells % CELLS), 1) + n
        return torch.cat((text_places(0, n), picture, text_places(n + CELLS, len(self.after))))

    def angles(self, prefix, buckets, B, dtype):
        """For a prefix with such places, and for each bucket's branches behind it."""
        places = [prefix.repeat(B, 1)]
        places += [text_places(int(prefix[-1, 0]) + 1, T).repeat(B * Q, 1) for Q, T in buckets]
        freq = self.conf["rope_theta"] ** (-torch.arange(HEAD // 2).float() * 2 / HEAD)
        angle = torch.cat(places).float()[:, axes(self.conf)] * freq
        angle = torch.cat((angle, angle), dim=-1)[:, None, :]
        return angle.cos().to(dtype), angle.sin().to(dtype)

    def masks(self, buckets, P, dtype):
        return [torch.full((T, T), -3e4).triu(1).to(dtype) for T in [P] + [T for _, T in buckets]]

    def embedded(self, ids, B, dtype):
        return self.embed(torch.tensor(ids, dtype=torch.long)).to(dtype).expand(B, -1, -1)

    def forward(self, patches, branches, dtype=torch.bfloat16):
        """patches u8 [B, 324, n], branches: ids [B, Q, T] -> for each bucket the normed last states, the same
        after every layer (without the norm), and the picture's features."""
        picture, deep = self.vision(patches, dtype)
        return *self.read(self.behind(picture), self.places(), branches, dtype, deep), sum(deep, picture)

    def behind(self, picture):
        """The prefix of a picture: [B, P, D]."""
        before, after = (self.embedded(ids, len(picture), picture.dtype) for ids in (self.before, self.after))
        return torch.cat((before, picture, after), dim=1)

    def without_picture(self, ids, branches, dtype=torch.bfloat16):
        """The normed last states of each bucket behind a prefix of text alone; branches: ids [1, Q, T]."""
        return self.read(self.embedded(ids, 1, dtype), text_places(0, len(ids)), branches, dtype)[0]

    def deepened(self, x, deep, P):
        """x [N, D], whose first rows are prefixes [B, P], and `deep` [B, 81, D] added to the pictures' rows."""
        rows = F.pad(deep, (0, 0, len(self.before), P - len(self.before) - deep.shape[1])).flatten(0, 1)
        prefix, rest = x.split((len(rows), len(x) - len(rows)))
        return torch.cat((prefix + rows, rest))

    def read(self, prefix, places, branches, dtype, deep=()):
        B, P = prefix.shape[:2]
        buckets = [tuple(b.shape[1:]) for b in branches]
        x = torch.cat([prefix.reshape(B * P, -1)] + [self.embed(b.reshape(-1)).to(dtype) for b in branches])
        cos, sin = self.angles(places, buckets, B, dtype)
        shape = (B, P, buckets, self.masks(buckets, P, dtype))
        states = []
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, shape)
            if i < len(deep):
                x = self.deepened(x, deep[i], P)
            states.append(x)

        def parts(t):
            _, *found = t.split([B * P] + [b.numel() for b in branches])
            return [f.view(*b.shape, -1) for f, b in zip(found, branches)]

        return parts(self.norm(x)), [parts(s) for s in states]

    def logits(self, hidden):
        return F.linear(hidden, self.embed.weight.to(hidden.dtype))
