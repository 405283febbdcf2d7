"""The second demo's start: what the first one's weights say, where the two architectures have a common part.

Embedding, norms, attention and MLP of the language model are the first demo's, so that words, tasks and text
without a picture need not be learnt again.  The two differ in four things:

- Queries, keys and values have no bias.  The normed rows have directions in which they hardly differ; the bias is
  put there, as least squares over some rows have it.
- Queries and keys are normed by head.  The gain is what their mean size was.
- There are ten heads.  The two new ones begin with nothing in the output matrix.
- The MLP is smaller.  It keeps the neurons that added most.

The vision encoder has the first one's width and heads.  Attention and the merger are the first one's, and three things
are fitted to what it computes of some pictures: the matrix of the patches, which are 16 pixels wide instead of 14,
and the MLPs, which have no gate.  Half of the first one's blocks look at a window alone and these look at everything,
so the start is far off; training pulls the patches after each block, and the cells, towards the first one's.
"""

import torch
import torch.nn.functional as F

from model import HEAD


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

def cells_in_rows(former, x):
    """[B, 324, n] in the order of windows -> the patches of each cell, row by row."""
    return x.unflatten(1, (-1, 4))[:, former.raster].flatten(1, 2)


def solve(rows, wanted):
    """The matrix and the bias that give `wanted` [N, n] for `rows` [N, m], by least squares."""
    rows = torch.cat((rows, torch.ones(len(rows), 1)), 1).double()
    square = rows.T @ rows
    square += 1e-6 * square.diagonal().mean() * torch.eye(len(square))
    found = torch.linalg.solve(square, rows.T @ wanted.double()).float().T
    return found[:, :-1], found[:, -1]


def take_linear(ours, weight, bias):
    ours.weight.copy_(weight)
    ours.bias.copy_(bias)


def fit_mlp(block, rows, wanted, steps=400, batch=4096):
    """Fits the MLP to [N, E] -> [N, E]: by gradients, its last matrix in the end by least squares."""
    parameters = [block.up.weight, block.up.bias, block.down.weight, block.down.bias]
    optimizer = torch.optim.Adam(parameters, lr=4e-3)
    for step in range(steps):
        some = torch.randint(len(rows), (batch,))
        optimizer.param_groups[0]["lr"] = 4e-3 * (1 - step / steps)
        optimizer.zero_grad()
        with torch.enable_grad():
            distance(block.mlp(rows[some]), wanted[some]).backward()
        optimizer.step()
    optimizer.zero_grad()
    take_linear(block.down, *solve(block.inner(rows), wanted))


@torch.no_grad()
def take_vision(ours, theirs, patches, shown):
    """patches and shown: the same pictures, as each of the two takes them."""
    found = {}
    for name, module in theirs.named_modules():
        module.register_forward_hook(lambda _, args, out, name=name: found.update({name: (args[0], out)}))
    theirs(shown, torch.float32)
    for module in theirs.modules():
        module._forward_hooks.clear()
    take_linear(ours.patch, *solve((patches.float() / 127.5 - 1).flatten(0, 1),
                                   cells_in_rows(theirs, found["patch"][1]).flatten(0, 1)))
    for i, (block, former) in enumerate(zip(ours.blocks, theirs.blocks)):
        for name in ("qkv", "proj"):
            take_linear(getattr(block, name), getattr(former, name).weight, getattr(former, name).bias)
        for name in ("norm1", "norm2"):
            getattr(block, name).weight.copy_(getattr(former, name).weight)
        rows, wanted = found["blocks.%d.norm2" % i][0], found["blocks.%d.down" % i][1]
        fit_mlp(block, block.norm2(rows).flatten(0, 1), wanted.flatten(0, 1))
    ours.merger.norm.weight.copy_(theirs.ln_q.weight)
    for name in ("merge1", "merge2"):
        take_linear(getattr(ours.merger, name), getattr(theirs, name).weight, getattr(theirs, name).bias)
    for nothing in [ours.pos_embed] + [deep.merge2 for deep in ours.deep]:
        nothing.weight.zero_()


def follow(vision, patches, former, shown, dtype):
    """Returns the loss, how far the cells are from the former's, and the cells with the deep features."""
    states = vision.states(patches, dtype)
    with torch.no_grad():
        wanted, theirs = former_states(former, shown, dtype)
    cells, deep = vision.merged(states)
    far = distance(cells, wanted)
    between = sum(distance(mine, his) for mine, his in zip(states, theirs))
    return 3 * far + 0.3 * between, far.item(), sum(deep, cells)


def distance(mine, wanted):
    return (mine.float() - wanted.float()).pow(2).mean() / wanted.float().var()


def former_states(former, shown, dtype):
    """The former encoder's cells, and its patches after every block, in the order of cells row by row."""
    found = []
    hooks = [block.register_forward_hook(
        lambda module, args, out: found.append(cells_in_rows(former, out))) for block in former.blocks]
    cells, _ = former(shown, dtype)
    for hook in hooks:
        hook.remove()
    return cells, found
