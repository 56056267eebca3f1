"""EPRM: DLLP with another distance between mean predictions and proportions.

    L = meanₖ ‖ meanᵢ f(xᵢ) − p̄ₖ ‖²,  or another distance

Empirical proportion risk minimisation, Yu, Choromanski, Kumar, Jebara & Chang 2014: L = mean over bags of the distance
between mean_i f(x_i) and the proportions. The paper uses the absolute distance with a tolerance (`insensitive`).
`square` is DLLP-MSE of LLP-Bench, and `bce` is its DLLP-BCE. With two classes, `bce` is twice DLLP's loss plus a
constant: use `dllp` instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from llpbench import Bags, Choice, LogUniform, Method, MethodParams, Model, Now, When, losses, register_method


@dataclass(frozen=True)
class _EPRMParams(MethodParams):
    loss: Annotated[str, Choice("square", "insensitive", "bce")] = "square"
    """distance of a bag's mean prediction from its proportions, summed over classes"""
    tolerance: Annotated[float, LogUniform(0.003, 0.3), When("loss", "insensitive")] = 0.03
    """absolute distance up to which the loss is 0"""


@register_method("eprm", version=1, reference="Yu et al. 2014", extra=True)
class EPRM(Method):
    """Match mean predictions to proportions by the square or another distance."""

    Params = _EPRMParams
    params: _EPRMParams

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the mean distance of bags with known counts."""
        log_mean = losses.bag_log_proba(model.log_proba(bags), bags.mask)
        each = _distance(log_mean, bags.proportions, self.params.loss, self.params.tolerance)
        return losses.masked_mean(each, bags.known)


def _distance(log_mean: Tensor, proportions: Tensor, kind: str, tolerance: float | Tensor) -> Tensor:
    """Return the distance [bags] between mean predictions, given as logs, and `proportions`, both [bags, classes]."""
    if kind == "bce":
        own = torch.eye(log_mean.shape[-1], dtype=torch.bool, device=log_mean.device)
        other = log_mean.unsqueeze(-2).masked_fill(own, -torch.inf).logsumexp(dim=-1)
        return -(proportions * log_mean + (1 - proportions) * other).sum(dim=-1)
    residuals = log_mean.exp() - proportions
    if kind == "square":
        return residuals.square().sum(dim=-1)
    return (residuals.abs() - tolerance).relu().sum(dim=-1)
