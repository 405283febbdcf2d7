"""Muon: momentum whose update is made orthogonal, for the matrices; they learn in far fewer steps."""

import torch


def orthogonal(g, dtype):
    """The nearest orthogonal matrices of g [n, r, c], by five Newton-Schulz steps."""
    x = g.to(dtype)
    tall = x.shape[1] > x.shape[2]
    x = x.transpose(1, 2) if tall else x
    x = x / (x.float().flatten(1).norm(dim=1)[:, None, None] + 1e-7).to(dtype)
    for _ in range(5):
        a = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return (x.transpose(1, 2) if tall else x).float()


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0.95, weight_decay=0.05, dtype=torch.bfloat16):
        self.dtype = dtype
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                state["m"].lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(state["m"], group["momentum"])
                r, c = p.shape
                parts = update.chunk(3) if r == 3 * c else (update,)        # a fused q, k, v is three
                for part, target in zip(parts, p.chunk(3) if r == 3 * c else (p,)):
                    shapes.setdefault(tuple(part.shape), []).append((part, target))
            for (r, c), pairs in shapes.items():
                updates = orthogonal(torch.stack([u for u, _ in pairs]), self.dtype)
                scale = group["lr"] * 0.2 * max(r, c) ** 0.5
                for update, (_, target) in zip(updates, pairs):
                    target.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-scale)
