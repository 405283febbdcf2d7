"""Helpers of training, not part of the model: what each cell of the picture shows.

They read kind, colour and coordinates straight from the vision tower's output and so teach it in
minutes what answers alone would take hours to teach.
"""

import torch
import torch.nn.functional as F
from torch import nn

from scenes import COLOURS, KINDS

PARTS = (len(KINDS) + 1, len(COLOURS) + 1, 2, 260, 100, 10)


class Heads(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = nn.Linear(width, sum(PARTS))
        nn.init.normal_(self.out.weight, std=0.02)

    def forward(self, picture, targets):
        """picture [B, 81, D], targets of batches.cell_targets -> loss, figures."""
        kind, colour, flag, coords = targets
        x = F.rms_norm(picture.float(), picture.shape[-1:])
        k, c, f, tens, units, value = self.out(x).float().split(PARTS, dim=-1)
        shown = kind > 0
        coords = coords[shown]                                          # [n, 10]
        tens, units = tens[shown].view(-1, 10, 26), units[shown].view(-1, 10, 10)
        value = value[shown]
        loss = {
            "kind": F.cross_entropy(k.flatten(0, 1), kind.flatten()),
            "colour": F.cross_entropy(c.flatten(0, 1), colour.flatten()),
            "centre": F.cross_entropy(f.flatten(0, 1), flag.flatten()),
            "tens": F.cross_entropy(tens.flatten(0, 1), (coords // 10).flatten()),
            "units": F.cross_entropy(units.flatten(0, 1), (coords % 10).flatten()),
            "value": F.l1_loss(value, coords.float() / 28 - 4.5),
        }
        with torch.no_grad():
            seen = {"kind": (k.argmax(-1) == kind)[shown].float().mean(),
                    "colour": (c.argmax(-1) == colour)[shown].float().mean(),
                    "centre": (f.argmax(-1) == flag)[flag > 0].float().mean(),
                    "tens": (tens.argmax(-1) == coords // 10).float().mean(),
                    "pixels": (value - (coords.float() / 28 - 4.5)).abs().mean() * 28}
        total = (loss["kind"] * 2 + loss["colour"] * 2 + loss["centre"] + loss["tens"]
                 + 0.2 * loss["units"] + loss["value"])
        return total, seen
