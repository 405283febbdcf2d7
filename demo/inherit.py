"""The second demo's start: what the first one's weights say, where the two architectures have a common part.

Embedding, norms, attention and MLP of the language model are the first demo's, so that words, tasks and text
without a picture need not be learnt again.  The two differ in four things:

- Queries, keys and values have no bias.  The normed rows have directions in which they hardly differ; the bias is
  put there, as least squares over some rows have it.
- Queries and keys are normed by head.  The gain is what their mean size was.
- There are ten heads.  The two new ones begin with nothing in the output matrix.
- The MLP is smaller.  It keeps the neurons that added most.

The vision encoder has another width and begins with random weights; it learns the first one's features of each cell,
and its patches after some blocks through a matrix that is not part of the model.
"""

import torch
import torch.nn.functional as F
from torch import nn

from model import HEAD

HINTS = (1, 3, 5)                       # the blocks whose patches are learnt from


# -- the language model ------------------------------------------------------------------------------

def rows_seen(former, patches, branches):
    """The output of the two norms of every layer for some pictures and questions: [(rows, rows)]."""
    found = [[None, None] for _ in former.layers]

    def keep(i, j):
        return lambda module, args, out: found[i].__setitem__(j, out.detach())

    hooks = [getattr(layer, "norm%d" % (j + 1)).register_forward_hook(keep(i, j))
             for i, layer in enumerate(former.layers) for j in range(2)]
    former(patches, branches, torch.float32)
    for hook in hooks:
        hook.remove()
    return found


def without_bias(linear, rows):
    """A matrix that gives for such rows nearly what the matrix and its bias give."""
    square = rows.T @ rows / len(rows)
    square += 1e-3 * square.diagonal().mean() * torch.eye(len(square))
    one = torch.linalg.solve(square, rows.mean(0))                  # rows @ one is about 1
    return linear.weight + torch.outer(linear.bias, one)


def take_attention(ours, theirs, rows):
    for name in ("q", "k", "v"):
        weight = without_bias(getattr(theirs, name), rows)
        if name != "v":
            getattr(ours, name + "_norm").weight.fill_((rows @ weight.T).pow(2).mean().sqrt())
        if name != "q":
            getattr(ours, name).weight.copy_(weight)
    # The heads of a group share a key; the new ones are the last of each group.
    old, new = (t.heads // t.kv for t in (theirs, ours))
    ours.q.weight.view(ours.kv, new, HEAD, -1)[:, :old] = without_bias(theirs.q, rows).view(theirs.kv, old, HEAD, -1)
    to = ours.o.weight.view(-1, ours.kv, new, HEAD)
    to.zero_()[:, :, :old] = theirs.o.weight.view(-1, theirs.kv, old, HEAD)


def take_mlp(ours, theirs, rows):
    added = (F.silu(theirs.gate(rows)) * theirs.up(rows)).pow(2).mean(0) * theirs.down.weight.pow(2).sum(0)
    kept = added.topk(ours.gate.out_features).indices.sort().values
    ours.gate.weight.copy_(theirs.gate.weight[kept])
    ours.up.weight.copy_(theirs.up.weight[kept])
    ours.down.weight.copy_(theirs.down.weight[:, kept])


@torch.no_grad()
def take_language(ours, theirs, patches, branches):
    """patches and branches are of the former's own pictures and words."""
    ours.embed.weight.copy_(theirs.embed.weight)
    ours.norm.weight.copy_(theirs.norm.weight)
    for layer, former, (first, second) in zip(ours.layers, theirs.layers, rows_seen(theirs, patches, branches)):
        layer.norm1.weight.copy_(former.norm1.weight)
        layer.norm2.weight.copy_(former.norm2.weight)
        take_attention(layer, former, first)
        take_mlp(layer, former, second)


# -- the vision encoder ------------------------------------------------------------------------------

class Hints(nn.Module):
    """The way from patches of the new encoder to the old one's; not part of the model."""

    def __init__(self, conf, former):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(conf["hidden_size"], former["hidden_size"]) for _ in HINTS)

    def loss(self, vision, patches, former, shown):
        """Returns the loss, how far the cells are from the former's, and the cells with the deep features."""
        states = vision.states(patches, torch.float32)
        with torch.no_grad():
            wanted, theirs = former_states(former, shown)
        cells, deep = vision.merged(states)
        far = distance(cells, wanted)
        between = sum(distance(m(states[i]), theirs[i]) for m, i in zip(self.maps, HINTS))
        return 3 * far + 0.3 * between, far.item(), sum(deep, cells)


def distance(mine, wanted):
    return (mine - wanted).pow(2).mean() / wanted.var()


def former_states(former, shown):
    """The former encoder's cells, and its patches after every block, in the order of cells row by row."""
    found = []
    hooks = [block.register_forward_hook(
        lambda module, args, out: found.append(out.unflatten(1, (-1, 4))[:, former.raster].flatten(1, 2)))
        for block in former.blocks]
    cells, _ = former(shown, torch.float32)
    for hook in hooks:
        hook.remove()
    return cells, found
