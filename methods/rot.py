"""RoT: train rows on targets that are close to their predictions and add up to the counts of their bag.

    stage 1: L_bag;  stage 2: meanᵢ CE( Qᵢ, f(xᵢ) )
    Qᵢ: targets of row i near f(xᵢ) that add up to the counts (optimal transport)

Dulac-Arnold, Zeghidour, Cuturi, Beyer & Vert 2019. The targets of a bag are the transport plan
Q = argmin <Q, -log P> - entropy * H(Q), without gradient. Rows of Q add up to 1 and columns nearly to the counts. The
loss is L = alpha KL(p || mean P) + (1 - alpha) mean_i CE(Q_i, P_i).

`stages=warm` trains DLLP first, then the second term alone. This is Soft-EROT of LLP-Bench, or with `labels=hard` its
OT-LLP. `joint` has both terms from the start and trains on its own noise. Differences from the published code:

- Sinkhorn has twenty rounds. The last round scales rows, so that targets are distributions. LLP-Bench always uses a
  thousand rounds (its stopping rule sums the whole plan), other published code three.
- Hard labels match the counts exactly, even if predictions are tied. OT-LLP labels every row that ties with the last.
- Targets come from predictions without dropout. Otherwise rows would be trained on sharpened dropout noise.
- The log count of a class that is absent from a bag is not clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from llpbench import Bags, Method, MethodParams, Model, Now, Stage, losses, register_method
from llpbench.blocks.assigning import transported
from llpbench.core.ranges import Choice, LogUniform, Uniform, When

_HARD = 0.05
"""entropy of the plan for hard labels of several classes"""


@dataclass(frozen=True)
class _ROTParams(MethodParams):
    """Hyperparameters of the targets."""

    stages: Annotated[str, Choice("warm", "joint")] = "warm"
    """`warm`: DLLP first, targets in a second stage; `joint`: both losses from the start"""
    labels: Annotated[str, Choice("soft", "hard")] = "soft"
    """targets of rows: the transport plan, or labels that match the counts"""
    entropy: Annotated[float, LogUniform(0.05, 1.0), When("labels", "soft")] = 0.2
    """weight of the plan's entropy; smaller values give harder targets"""
    alpha: Annotated[float, Uniform(0.3, 0.9), When("stages", "joint")] = 0.6
    """weight of the proportion loss"""


@register_method("rot", version=1, reference="Dulac-Arnold et al. 2019", family="pseudo-label", extra=True)
class ROT(Method):
    """Train rows on targets that are close to predictions and match the counts of bags."""

    Params = _ROTParams
    params: _ROTParams

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        transport = Stage("transport")
        self.stages = (Stage("proportions"), transport) if self.params.stages == "warm" else (transport,)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the proportion loss, the cross-entropy to targets, or both."""
        log_proba = model.log_proba(bags)
        if now.stage == "proportions":
            return losses.proportion_loss(log_proba, bags)
        with torch.no_grad():
            calm = model.frozen().log_proba(bags)
        rows = _row_targets_loss(log_proba, calm, bags, self.params.labels, self.params.entropy)
        if self.params.stages == "warm":
            return rows
        return self.params.alpha * losses.proportion_loss(log_proba, bags) + (1 - self.params.alpha) * rows


def _row_targets_loss(log_proba: Tensor, calm: Tensor, bags: Bags, labels: str, entropy: float | Tensor) -> Tensor:
    """Return mean_i CE(target of row i, P_i), averaged over bags with known counts.

    `log_proba` [bags, size, classes]; `calm`: the same without dropout, from which targets are computed.
    """
    targets = _counted_labels(calm, bags) if labels == "hard" else transported(calm, bags, entropy)
    each = -(targets * log_proba).masked_fill(~bags.mask.unsqueeze(-1), 0.0).sum(dim=(-2, -1))
    return losses.masked_mean(each / bags.mask.sum(dim=-1), bags.known)


def _counted_labels(log_proba: Tensor, bags: Bags) -> Tensor:
    """Return one-hot labels [bags, size, classes] that match the counts of bags; 0 in padding.

    With two classes, rows with the largest log odds get the second one (ties by position), which is exact. With more,
    labels are the largest elements of a transport plan and match counts nearly.
    """
    classes = log_proba.shape[-1]
    if classes > 2:
        labels = transported(log_proba, bags, _HARD, rounds=100).argmax(dim=-1)
    else:
        odds = (log_proba[..., 1] - log_proba[..., 0]).masked_fill(~bags.mask, -torch.inf)
        rank = odds.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
        wanted = (bags.proportions[..., 1] * bags.mask.sum(dim=-1) - 0.5).ceil()  # as in `whole_counts`, halves go down
        labels = (rank < wanted.unsqueeze(-1)).long()
    hot = one_hot(labels, classes).to(log_proba.dtype)
    return hot.masked_fill(~bags.mask.unsqueeze(-1), 0.0)
