"""Residuals of bags (mean predictions minus proportions), alone and in pairs.

If rows are independent of bags, the difference of two residuals has no common offset. For all sizes m,
(1/m_k + 1/m_l)^-1 |r_k - r_l|^2 is then an unbiased estimate of sum_c Var(y_c - f_c), the Brier score without bias^2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from llpbench.core.bags import Bags


def means_of_bags(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over each bag's rows: `values` [bags, size, classes], `mask` [bags, size] -> [bags, classes]."""
    total: Tensor = values.masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=-2)
    return total / mask.sum(dim=-1, keepdim=True).clamp(min=1)


def bag_residuals(log_proba: Tensor, bags: Bags) -> Tensor:
    """Return mean prediction minus proportion of each bag, 0 if counts are suppressed: [bags, classes]."""
    residuals: Tensor = means_of_bags(log_proba.exp(), bags.mask) - bags.proportions
    return residuals.masked_fill(~bags.known.unsqueeze(-1), 0.0)


def bag_sizes(bags: Bags) -> Tensor:
    """Return the number of rows of each bag [bags], 0 if counts are suppressed."""
    sizes: Tensor = (bags.mask & bags.known.unsqueeze(-1)).sum(dim=-1).float()
    return sizes


def mean_residual(residuals: Tensor, sizes: Tensor) -> Tensor:
    """Return the residual of all rows [classes], the mean of `residuals` [bags, classes] weighted by `sizes`."""
    return (residuals * sizes.unsqueeze(-1)).sum(dim=0) / sizes.sum().clamp(min=1.0)


def mean_of_others(means: Tensor, sizes: Tensor) -> Tensor:
    """Return the mean over the rows of all other bags, from `means` [bags, ...]; 0 if there are no other bags.

    `sizes` [bags] are 0 for bags to ignore.
    """
    others = sizes.sum() - sizes
    weights = sizes.unsqueeze(0) * (1.0 - torch.eye(len(sizes), device=sizes.device))
    return (weights @ means) / others.clamp(min=1.0).unsqueeze(-1)
