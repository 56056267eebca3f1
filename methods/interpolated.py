"""Interpolated loss: the weighted mean of the losses of `dllp` and `bag-soft-label`.

    L = ρ KL( p̄ₖ ‖ meanᵢ f(xᵢ) ) + (1 − ρ) meanᵢ KL( p̄ₖ ‖ f(xᵢ) ),  ρ: `rho`

Javanmard et al. 2024 (PriorBoost) show that the loss of rows is the loss of bags plus a penalty on differences between
the rows of a bag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

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
        return rho * losses.proportion_loss(log_proba, bags) + (1 - rho) * losses.row_loss(log_proba, bags)
