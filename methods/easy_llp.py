"""EasyLLP: train rows on weighted losses whose sum is an unbiased estimate of the supervised loss in random bags.

    L = meanₖ meanᵢ Σ_c (mₖ p̄ₖc − (mₖ − 1) π_c) ℓ_c(xᵢ)
    ℓ_c(xᵢ): loss of row i if its class were c

Busa-Fekete, Choi, Dick, Gentile & Medina 2023, with l_c the loss for label c. The weights add up to 1. If rows are
independent of bags, the expectation of L is the supervised loss.

`baseline=others` is UPM (Applebaum, Dick, Gentile, Kaplan & Koren 2025). It subtracts the mean loss l of the step's
other bags before weighting: L_k = sum_c (p_kc - pi_c) sum_i (l_ic - l_c) + sum_c pi_c l_c. This is also unbiased. Its
variance is smaller if losses have much in common.

Weights are about +- sqrt(m), so L may be negative. With `cross-entropy` it has no lower bound. Differences from the
published code:

- All rows of a bag are weighted, while LLP-Bench draws one.
- The mean of the other bags excludes the bag itself and weights all rows equally. Other published code includes the
  bag, and its prior ignores the sizes of bags.
- `square` is the Brier score |e_c - P|^2. A published square error is sum_c w_c (1 - P_c)^2 alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from llpbench import Bags, Choice, Method, MethodParams, Model, Now, losses, register_method


@dataclass(frozen=True)
class _EasyLLPParams(MethodParams):
    loss: Annotated[str, Choice("square", "cross-entropy")] = "square"
    """loss of a row for a given label"""
    baseline: Annotated[str, Choice("none", "others")] = "none"
    """loss that is subtracted before weighting: none, or the mean loss of the step's other bags (UPM)"""


@register_method("easy-llp", version=1, reference="Busa-Fekete et al. 2023; Applebaum et al. 2025", extra=True)
class EasyLLP(Method):
    """Unbiased estimate of the supervised loss from weighted rows."""

    Params = _EasyLLPParams
    params: _EasyLLPParams

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the estimate."""
        means = losses.BagMeans.of(_class_losses(model.log_proba(bags), self.params.loss), bags)
        return losses.masked_mean(_bag_estimates(means, bags, self.params.baseline), bags.known)


def _class_losses(log_proba: Tensor, kind: str) -> Tensor:
    """Return the loss of a prediction for each label c [..., classes]: -log P_c, or |e_c - P|^2."""
    if kind == "cross-entropy":
        return -log_proba
    proba = log_proba.exp()
    return 1 - 2 * proba + proba.square().sum(dim=-1, keepdim=True)


def _bag_estimates(of_bags: losses.BagMeans, bags: Bags, baseline: str) -> Tensor:
    """Return unbiased estimates [bags] of the mean loss, from the means of `_class_losses` in each bag.

    Nothing is subtracted if a step has no other bag.
    """
    means, sizes = of_bags
    level, subtracted = means, torch.zeros_like(means)
    if baseline == "others":
        level, subtracted = of_bags.of_others(alone=means), of_bags.of_others(alone=0.0)
    contrast = ((bags.proportions - bags.prior) * (means - subtracted)).sum(dim=-1)
    return sizes * contrast + (bags.prior * level).sum(dim=-1)
