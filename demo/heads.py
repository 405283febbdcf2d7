"""Helpers of training, not part of the model: what each cell of the picture shows.

They read kind, colour and coordinates directly from the vision encoder's output and so teach it in
minutes what answers alone would take hours to teach.
"""

import torch
import torch.nn.functional as F
from torch import nn

from batches import NUMBERS
from scenes import COLOURS, KINDS, SIZE

UNIT = SIZE / 9                         # pixels; the unit of distances


class Heads(nn.Module):
    def __init__(self, width, release):
        super().__init__()
        self.whole, self.coarse = release.shares or SIZE, release.coarse
        self.steps = self.whole // self.coarse + 1          # classes of "tens"
        self.parts = (len(KINDS) + 1, len(COLOURS) + 1, 2, NUMBERS * self.steps, NUMBERS * 10, NUMBERS)
        self.query, self.key = nn.Linear(width, 2 * 64), nn.Linear(width, 64)
        self.which = nn.Linear(width, 65)
        self.apart = nn.ModuleList(nn.Linear(width, 2) for _ in range(2))
        self.about = nn.ModuleList(nn.Linear(width, 2 * NUMBERS * self.steps) for _ in range(2))
        self.out = nn.Linear(width, sum(self.parts))
        nn.init.normal_(self.out.weight, std=0.02)

    def forward(self, picture, targets):
        """picture [B, 81, D], targets of batches.cell_targets -> loss, figures."""
        kind, colour, flag, coords = targets
        x = F.rms_norm(picture.float(), picture.shape[-1:])
        k, c, f, tens, units, value = self.out(x).float().split(self.parts, dim=-1)
        shown = kind > 0
        coords = coords[shown]                                          # [n, NUMBERS]
        tens, units = tens[shown].view(-1, NUMBERS, self.steps), units[shown].view(-1, NUMBERS, 10)
        coarse, fine = coords // self.coarse, coords % self.coarse * 10 // self.coarse
        value, place = value[shown], coords.float() * 9 / self.whole - 4.5
        loss = {
            "kind": F.cross_entropy(k.flatten(0, 1), kind.flatten()),
            "colour": F.cross_entropy(c.flatten(0, 1), colour.flatten()),
            "centre": F.cross_entropy(f.flatten(0, 1), flag.flatten()),
            "tens": F.cross_entropy(tens.flatten(0, 1), coarse.flatten()),
            "units": F.cross_entropy(units.flatten(0, 1), fine.flatten()),
            "value": F.l1_loss(value, place),
        }
        with torch.no_grad():
            seen = {"kind": (k.argmax(-1) == kind)[shown].float().mean(),
                    "colour": (c.argmax(-1) == colour)[shown].float().mean(),
                    "centre": (f.argmax(-1) == flag)[flag > 0].float().mean(),
                    "tens": (tens.argmax(-1) == coarse).float().mean(),
                    "pixels": (value - place).abs().mean() * UNIT}
        total = (loss["kind"] * 2 + loss["colour"] * 2 + loss["centre"] + loss["tens"]
                 + 0.2 * loss["units"] + loss["value"])
        return total, seen

    def referents(self, states, buckets, picture, targets):
        """Finds the subject of a question from the states between the language model's layers.

        After the second layer the last word of the text must point at the cells of its object; after the
        third it must know the object's coordinates, after the fourth the question's last token must.  Where
        things are counted it must tell their cells.  So the model looks up before it has to spell.
        """
        def rows(state, which):
            found = []
            for m, (_, _, _, ends, _, _) in zip(state, buckets):
                at = ends[:, :, which, None, None].expand(-1, -1, 1, m.shape[-1])
                found.append(m.gather(2, at)[:, :, 0])
            x = torch.cat(found, dim=1).float()                         # [B, Q, D]
            return F.rms_norm(x, x.shape[-1:])

        wanted = torch.cat([b[4] for b in buckets], dim=1)              # [B, Q, 2, NUMBERS]
        known = wanted[..., 0] >= 0
        keys = self.key(F.rms_norm(picture.float(), picture.shape[-1:]))            # [B, 81, 64]
        queries = self.query(rows(states[1], 0)).unflatten(-1, (2, 64))
        scores = torch.einsum("bqok,bck->bqoc", queries, keys).float() / 8
        cells = (wanted[:, :, :, None] == targets[3][:, None, None]).all(-1) & known[..., None]
        known = known & cells.any(-1)
        chance = scores.log_softmax(-1).masked_fill(~cells, -1e4).logsumexp(-1)
        loss = -chance[known].mean()
        for which, layer in ((0, 2), (1, 3)):
            out = self.about[which](rows(states[layer], which)).float().unflatten(-1, (2, NUMBERS, self.steps))[known]
            loss = loss + F.cross_entropy(out.flatten(0, 1), wanted[known].flatten() // self.coarse)
        both = known.all(-1)                # of two objects also how far they are apart, right and down
        middle = (wanted[..., (0, 1)] + wanted[..., (2, 3)]).float() / 2
        middle[..., 1] = wanted[..., 3].float()                         # down counts where they stand
        apart = ((middle[:, :, 0] - middle[:, :, 1]) * 9 / self.whole)[both]
        for which, layer in ((0, 2), (1, 3)):
            guess = self.apart[which](rows(states[layer], which)).float()[both]
            far = F.smooth_l1_loss(guess, apart, reduction="sum")
            order = F.binary_cross_entropy_with_logits(guess * 2, (apart > 0).float(), reduction="sum")
            loss = loss + (far + 0.5 * order) / max(1, guess.numel())     # a batch may have no two objects
        counted = torch.cat([b[5] for b in buckets], dim=1)             # [B, Q, 81]
        which = self.which(rows(states[1], 0)).float()
        scores_of = torch.einsum("bqk,bck->bqc", which[..., :64], keys.float()) / 8 + which[..., 64:]
        asked = counted[..., 0] >= 0
        loss = loss + 2 * F.binary_cross_entropy_with_logits(scores_of[asked], counted[asked].float(),
                                                             pos_weight=torch.tensor(4.0))
        with torch.no_grad():
            hit = (out.argmax(-1) == wanted[known] // self.coarse).float().mean().item()
            side = ((guess > 0) == (apart > 0)).float().mean().item()
            found = cells.gather(-1, scores.argmax(-1, keepdim=True))[..., 0][known].float().mean().item()
        return loss, hit, found, side
