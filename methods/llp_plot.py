"""PLOT: DLLP, then pseudo-labels that match the counts, with mixup and a noise-tolerant loss.

    stage 1: L_bag;  stage 2: CE( y, f(x) ) + noise · RCE on mixed rows, labels y with Σᵢ [yᵢ = c] = nₖc
    RCE: cross-entropy with label and prediction exchanged;  mixed rows: means of two rows

Liu, Wang, Qi, Tian & Shi 2021 (LLP-PLOT). After DLLP, the rows of each bag get the labels that match its counts with
the smallest total -log P. Labels are updated every epoch. Training uses mixtures of two rows, x = l x' + (1 - l) x'',
with l from Beta(1/2, 1/2) folded above 1/2. The loss is the symmetric cross-entropy L = CE(y, P) + noise * RCE,
RCE = -sum_c P_c log y_c, log 0 = -4 (Wang et al. 2019).

Differences from the paper:

- Categories cannot be mixed. The embeddings of two rows of the step are mixed instead.
- Labels come from an assignment, which is the limit of the paper's transport with many rounds.

`tabllp-pse` differs from PLOT in its cost (distances from centroids) and in its loss (plain cross-entropy).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from llpbench import BaggedRows, Bags, FloatArray, Member, Method, MethodParams, Now, Stage, losses, register_method
from llpbench.blocks.assigning import assigned, log_of
from llpbench.blocks.views import random_partner
from llpbench.core.model import Model
from llpbench.core.ranges import AtLeast, Choice, LogUniform

LOG_OF_NONE = -4.0
"""value of log 0 in the reverse cross-entropy"""


@dataclass(frozen=True)
class _PLOTParams(MethodParams):
    """Hyperparameters of the stage of labels."""

    noise: Annotated[float, LogUniform(0.01, 1.0), AtLeast(0.0)] = 0.1
    """weight of the reverse cross-entropy"""
    mixup: Annotated[bool, Choice(True, False)] = True
    """whether to mix rows"""


@register_method("plot", version=1, reference="Liu et al. 2021", family="pseudo-label", extra=True)
class PLOT(Method):
    """DLLP, then mixed rows with labels that match the counts, and symmetric cross-entropy."""

    Params = _PLOTParams
    params: _PLOTParams
    stages = (Stage("proportions"), Stage("labels", unit="rows", refresh=1))

    def prepare(self, member: Member, now: Now) -> FloatArray | None:
        """Return the targets [rows, classes] of the stage on rows."""
        return None if now.stage == "proportions" else _matching_labels(member.proba(), member.train)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the loss of the current stage."""
        if now.stage == "proportions":
            return losses.proportion_loss(model.log_proba(bags), bags)
        known = bags.known & (bags.proportions.sum(dim=-1) > 0)  # `prepare` has made all rows known
        told = bags.mask & known.unsqueeze(-1)
        targets = torch.where(told.unsqueeze(-1), bags.proportions.unsqueeze(-2), 0.0)
        log_proba, targets = (
            self._mixed(model, bags, told, targets) if self.params.mixup else (model.log_proba(bags), targets)
        )
        return losses.masked_mean(_symmetric_loss(log_proba, targets, self.params.noise), told)

    def _mixed(self, model: Model, bags: Bags, told: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return log predictions and targets [bags, size, classes] of mixtures of two rows, the second one `told`."""
        assert model.random is not None
        partner = random_partner(told.flatten(), model.random)
        share = _folded_arcsine(model.random.uniform(*bags.mask.shape))[..., None]
        embeddings = model.network.encoder.embed(bags.rows)
        others = embeddings.flatten(0, 1)[partner].view_as(embeddings)
        mixed = torch.lerp(others, embeddings, share[..., None])
        z = model.network.encoder.encode(mixed, bags.mask, model.random).z
        return model.classify(z), torch.lerp(targets.flatten(0, 1)[partner].view_as(targets), targets, share)


def _folded_arcsine(uniform: Tensor) -> Tensor:
    """Return numbers with distribution Beta(1/2, 1/2) folded above 1/2, from uniform numbers."""
    share = (uniform * (math.pi / 2)).sin().square()
    return torch.maximum(share, 1 - share)


def _symmetric_loss(log_proba: Tensor, targets: Tensor, noise: float | Tensor) -> Tensor:
    """Return CE(y, P) + noise * RCE(y, P) [...]; `log_proba` and `targets` [..., classes]."""
    reverse = -(log_proba.exp() * targets.log().clamp(min=LOG_OF_NONE)).sum(dim=-1)
    return -(targets * log_proba).sum(dim=-1) + noise * reverse


def _matching_labels(proba: FloatArray, train: BaggedRows) -> FloatArray:
    """Return one-hot labels [rows, classes] that match counts with the least total -log P; 0 in suppressed bags."""
    known = train.known[train.bag_of_row]
    targets = np.zeros(proba.shape)
    targets[known] = np.eye(proba.shape[1])[assigned(log_of(proba[known]), train.where_known())]
    return targets
