"""AHIL: train on predicted labels, weighted by the entropies of the row and of the class in its bag.

    L = L_bag + weight · meanᵢ ωᵢ CE( argmax f(xᵢ), f(strong view) ),  ω from entropies of row and bag
    ωᵢ: larger if prediction and bag are certain;  strong view: with dropout and mixed features

Ma et al. 2025. A row i with predicted class c in bag k has the weight
w_i = exp(-H_i^2 / row_scale) exp(-(h_kc - log n_kc)^2 / bag_scale).

- H_i is the entropy of the row's prediction.
- h_kc is the entropy of P_jc / sum_j P_jc over the rows j of the bag. It equals log n_kc if n_kc rows certainly belong
  to the class and all others certainly do not.
- Weights have no gradient. A row has weight 0 if its bag does not contain its predicted class.

Differences from the published code:

- The weak view is the row without dropout. The strong view has dropout and mixed features. Tables cannot be cropped.
- DLLP trains first. If pseudo-labels are used from the start, as published, the method trains on its own noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from llpbench import Bags, Method, MethodParams, Model, Now, Stage, losses, register_method
from llpbench.blocks.views import mixed_view
from llpbench.core.ranges import AtLeast, LogUniform, Uniform


@dataclass(frozen=True)
class _AHILParams(MethodParams):
    """Hyperparameters of the pseudo-labels."""

    weight: Annotated[float, Uniform(0.1, 1.0), AtLeast(0.0)] = 0.5
    """weight of the pseudo-labels"""
    row_scale: Annotated[float, LogUniform(0.5, 40.0)] = 5.0
    """scale of a row's squared entropy"""
    bag_scale: Annotated[float, LogUniform(0.5, 40.0)] = 5.0
    """scale of the squared difference between a class's entropy in its bag and the log of its count"""
    mixup: Annotated[float, Uniform(0.3, 1.0)] = 0.8
    """weight of the row's own embeddings in the strong view's mixture"""


@register_method("ahil", version=1, reference="Ma et al. 2025", family="pseudo-label", extra=True)
class AHIL(Method):
    """DLLP with pseudo-labels, each weighted by two entropies."""

    Params = _AHILParams
    params: _AHILParams
    stages = (Stage("proportions"), Stage("labels"))

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return L_bag, plus the loss of weighted pseudo-labels in the stage of labels."""
        loss = losses.proportion_loss(model.log_proba(bags), bags)
        if now.stage == "proportions":
            return loss
        with torch.no_grad():
            weak = model.frozen().log_proba(bags)
            weights = _row_weights(weak, self.params.row_scale) * _bag_weights(weak, bags, self.params.bag_scale)
        strong = model.classify(mixed_view(model, bags, 0.1, self.params.mixup).z)
        chosen = strong.gather(-1, weak.argmax(dim=-1, keepdim=True)).squeeze(-1)
        inside = bags.mask & bags.known.unsqueeze(-1)
        return loss + self.params.weight * losses.masked_mean(-weights * chosen, inside)


def _row_weights(log_proba: Tensor, scale: float | Tensor) -> Tensor:
    """Return exp(-H^2 / scale) [bags, size], H the entropy of each row's prediction."""
    entropy = -(log_proba.exp() * log_proba).sum(dim=-1)
    return (-entropy.square() / scale).exp()


def _bag_weights(log_proba: Tensor, bags: Bags, scale: float | Tensor) -> Tensor:
    """Return exp(-(h_kc - log n_kc)^2 / scale) [bags, size], c the row's predicted class; 0 if its bag has no c."""
    counts = bags.proportions * bags.mask.sum(dim=-1, keepdim=True)
    inside = log_proba.masked_fill(~bags.mask.unsqueeze(-1), -1e9)
    share = inside.log_softmax(dim=-2)
    spread = -(share.exp() * share).sum(dim=-2)
    apart = spread - counts.clamp(min=1e-30).log()  # 69 or more for a class without rows
    return (-apart.square() / scale).exp().gather(-1, log_proba.argmax(dim=-1))
