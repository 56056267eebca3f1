"""Losses on bags: pure functions of tensors. Every mean over a bag goes through its mask."""

from __future__ import annotations

import torch
from torch import Tensor

from llpbench.bags import Bags


def bag_log_proba(log_proba: Tensor, mask: Tensor) -> Tensor:
    """Log of each bag's mean prediction: logsumexp over its rows minus log of its size.

    `log_proba` [bags, size, classes], `mask` [bags, size] -> [bags, classes]. Without clamps, stable in float32
    (spec 0, bag loss numerics).
    """
    inside = mask.unsqueeze(-1)
    total = log_proba.masked_fill(~inside, -torch.inf).logsumexp(dim=-2)
    return total - mask.sum(dim=-1, keepdim=True).log()


def proportion_loss(log_proba: Tensor, bags: Bags) -> Tensor:
    """Mean over bags of KL(p || mean prediction of the bag), 0 where they agree.

    DLLP, Ardehaly & Culotta 2017; spec A1 and "bag loss numerics". The log of the mean, not the mean of the logs: the
    published confusion of the two makes every row match its bag's proportions (spec 0, "the classic DLLP bug").
    On bags of one row it is cross-entropy (minus the target's entropy).
    """
    target = bags.proportions
    divergence: Tensor = (torch.xlogy(target, target) - target * bag_log_proba(log_proba, bags.mask)).sum(dim=-1)
    return divergence.mean()
