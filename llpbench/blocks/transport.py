"""Transport of a bag's rows to its class counts: soft targets by Sinkhorn. It works with vmap."""

from __future__ import annotations

import torch
from torch import Tensor

from llpbench.core.bags import Bags

_NEVER = -1e9
"""logarithm of zero: finite, so that no difference is NaN"""


def transported(scores: Tensor, bags: Bags, entropy: float | Tensor, rounds: int = 20) -> Tensor:
    """Return the plan Q that minimises <Q, -scores> - entropy H(Q), with row sums 1 and column sums the counts.

    `scores` [bags, size, classes] are, for example, log probabilities; Q has the same shape and is 0 in padding.
    Sinkhorn runs `rounds` rounds on logarithms. The last step scales rows, so that each is a distribution; columns
    match up to convergence.
    """
    inside = bags.mask.unsqueeze(-1)
    counts = (bags.proportions * bags.mask.sum(dim=-1, keepdim=True)).clamp(min=0)
    wanted = torch.where(counts > 0, counts.clamp(min=1e-30).log(), _NEVER).unsqueeze(-2)
    kernel = scores / entropy
    of_rows = torch.zeros_like(kernel[..., :1])
    of_columns = torch.zeros_like(wanted)
    for _ in range(rounds):
        of_columns = wanted - (kernel + of_rows).masked_fill(~inside, _NEVER).logsumexp(dim=-2, keepdim=True)
        of_rows = -(kernel + of_columns).logsumexp(dim=-1, keepdim=True)
    return (kernel + of_rows + of_columns).exp().masked_fill(~inside, 0.0)
