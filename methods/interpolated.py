"""Interpolated loss: the weighted mean of the losses of `dllp` and `bag-soft-label`.

    L = ρ KL( p̄ₖ ‖ meanᵢ f(xᵢ) ) + (1 − ρ) meanᵢ KL( p̄ₖ ‖ f(xᵢ) ),  ρ: `rho`

Javanmard et al. 2024 (PriorBoost) show that the loss of rows is the loss of bags plus a penalty on differences between
the rows of a bag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from llpbench import Bags, Method, MethodParams, Model, Now, Uniform, losses, register_method


@dataclass(frozen=True)
class _InterpolatedParams(MethodParams):
    rho: Annotated[float, Uniform(0.0, 1.0)] = 0.7
    """weight of the loss of `dllp`; the loss of `bag-soft-label` has weight 1 - rho"""


@register_method("interpolated", version=1, reference="after Javanmard et al. 2024")
class Interpolated(Method):
    """Weighted mean of the losses of DLLP and of bag soft labels."""

    Params = _InterpolatedParams
    params: _InterpolatedParams

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the weighted mean of both losses."""
        log_proba, rho = model.log_proba(bags), self.params.rho
        return rho * losses.proportion_loss(log_proba, bags) + (1 - rho) * _row_loss(log_proba, bags)


def _row_loss(log_proba: Tensor, bags: Bags) -> Tensor:
    """Return mean_i KL(p || prediction of row i), averaged over bags with known counts.

    It is the mean of the logs; `proportion_loss` is the log of the mean. Proportions are soft labels of rows.
    """
    target = bags.proportions.unsqueeze(-2)
    each = (torch.xlogy(target, target) - target * log_proba).sum(dim=-1).masked_fill(~bags.mask, 0.0)
    return losses.masked_mean(each.sum(dim=-1) / bags.mask.sum(dim=-1), bags.known)
