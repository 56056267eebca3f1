"""Transport of a bag's rows to its class counts: soft targets by Sinkhorn, labels by rank. Both work with vmap."""

from __future__ import annotations

import torch
from torch import Tensor

from llpbench.core.bags import Bags

NEVER = -1e9
"""logarithm of zero: finite, so that no difference is NaN"""
HARD = 0.05
"""entropy of the plan for hard labels of several classes"""


def transported(scores: Tensor, bags: Bags, entropy: float | Tensor, rounds: int = 20) -> Tensor:
    """Return the plan Q that minimises <Q, -scores> - entropy H(Q), with row sums 1 and column sums the counts.

    `scores` [bags, size, classes] are, for example, log probabilities; Q has the same shape and is 0 in padding.
    Sinkhorn runs `rounds` rounds on logarithms. The last step scales rows, so that each is a distribution; columns
    match up to convergence.
    """
    inside = bags.mask.unsqueeze(-1)
    counts = (bags.proportions * bags.mask.sum(dim=-1, keepdim=True)).clamp(min=0)
    wanted = torch.where(counts > 0, counts.clamp(min=1e-30).log(), NEVER).unsqueeze(-2)
    kernel = scores / entropy
    of_rows = torch.zeros_like(kernel[..., :1])
    of_columns = torch.zeros_like(wanted)
    for _ in range(rounds):
        of_columns = wanted - (kernel + of_rows).masked_fill(~inside, NEVER).logsumexp(dim=-2, keepdim=True)
        of_rows = -(kernel + of_columns).logsumexp(dim=-1, keepdim=True)
    return (kernel + of_rows + of_columns).exp().masked_fill(~inside, 0.0)


def counted_labels(log_proba: Tensor, bags: Bags) -> Tensor:
    """Return one-hot labels [bags, size, classes] that match the counts of bags; 0 in padding.

    With two classes, rows with the largest log odds get the second one (ties by position), which is exact. With more,
    labels are the largest elements of a transport plan and match counts nearly.
    """
    classes = log_proba.shape[-1]
    if classes > 2:
        labels = transported(log_proba, bags, HARD, rounds=100).argmax(dim=-1)
    else:
        odds = (log_proba[..., 1] - log_proba[..., 0]).masked_fill(~bags.mask, -torch.inf)
        rank = odds.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
        wanted = (bags.proportions[..., 1] * bags.mask.sum(dim=-1) - 0.5).ceil()  # as in `whole_counts`, halves go down
        labels = (rank < wanted.unsqueeze(-1)).long()
    hot = torch.nn.functional.one_hot(labels, classes).to(log_proba.dtype)
    return hot.masked_fill(~bags.mask.unsqueeze(-1), 0.0)
