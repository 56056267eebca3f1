"""PLOT: DLLP, then pseudo-labels that match the counts, with mixup and a noise-tolerant loss.

    stage 1: L_bag;  stage 2: CE( y, f(x) ) + noise · RCE on mixed rows, labels y with Σᵢ [yᵢ = c] = nₖc

Liu, Wang, Qi, Tian & Shi 2021 (LLP-PLOT). After DLLP, the rows of each bag get the labels that match its counts with
the smallest total -log P. Labels are updated every epoch. Training uses mixtures of two rows, x = l x' + (1 - l) x'',
with l from Beta(1/2, 1/2) folded above 1/2. The loss is the symmetric cross-entropy L = CE(y, P) + noise * RCE,
RCE = -sum_c P_c log y_c, log 0 = -4 (Wang et al. 2019).

- `variant=distil` (PT-LLP, 2025) inserts twenty epochs of training on the first stage's probabilities.
- `variant=online` (LLP-DC, 2026) has one stage, L = L_bag + weight * mean over rows of [P_y >= threshold] CE(y, P).
  Labels y that match the counts are computed in each step.

Differences from the papers:

- Categories cannot be mixed. The embeddings of two rows of the step are mixed instead.
- Labels come from an assignment, which is the limit of the papers' transport with many rounds.
- Distillation takes a fixed number of epochs. In PT-LLP it takes a third of all epochs.

`tabllp-pse` differs from PLOT in its cost (distances from centroids) and in its loss (plain cross-entropy).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from llpbench.blocks.losses import masked_mean, proportion_loss
from llpbench.blocks.relabelling import in_known_bags, matching_labels
from llpbench.blocks.transport import counted_labels
from llpbench.blocks.views import random_partner
from llpbench.core.bags import Bags, FloatArray
from llpbench.core.method import Member, Method, MethodParams, Now, Stage
from llpbench.core.model import Model
from llpbench.core.ranges import AtLeast, Choice, LogUniform, Uniform, When
from llpbench.core.registry import register_method

LOG_OF_NONE = -4.0
"""value of log 0 in the reverse cross-entropy"""
DISTILLED_EPOCHS = 20


@dataclass(frozen=True)
class PLOTParams(MethodParams):
    """Hyperparameters of the stages, and of the terms added to the proportion loss."""

    variant: Annotated[str, Choice("plot", "distil", "online")] = "plot"
    """`plot`: a stage of labels; `distil`: a stage of distillation before it; `online`: new labels in each step"""
    noise: Annotated[float, LogUniform(0.01, 1.0), AtLeast(0.0), When("variant", "plot", "distil")] = 0.1
    """weight of the reverse cross-entropy"""
    mixup: Annotated[bool, Choice(True, False), When("variant", "plot", "distil")] = True
    """whether to mix rows"""
    weight: Annotated[float, LogUniform(0.05, 5.0), AtLeast(0.0), When("variant", "online")] = 0.5
    """weight of the loss of the labels in `online`"""
    threshold: Annotated[float, Uniform(0.6, 0.97), When("variant", "online")] = 0.95
    """rows are used if the probability of their label is at least this large"""


@register_method("plot", version=1, reference="Liu et al. 2021", family="pseudo-label", extra=True)
class PLOT(Method):
    """DLLP, then mixed rows with labels that match the counts, and symmetric cross-entropy."""

    Params = PLOTParams
    params: PLOTParams

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        distil = Stage("distil", unit="rows", epochs=DISTILLED_EPOCHS, judged=False)
        labels = Stage("labels", unit="rows", refresh=1)
        variants = {"plot": (labels,), "distil": (distil, labels), "online": ()}
        self.stages = (Stage("proportions"), *variants[self.params.variant])

    def prepare(self, member: Member, now: Now) -> FloatArray | None:
        """Return the targets [rows, classes] of stages on rows."""
        if now.stage == "proportions":
            return None
        proba = member.proba()
        return in_known_bags(proba, member.train) if now.stage == "distil" else matching_labels(proba, member.train)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the loss of the current stage."""
        told = bags.mask & bags.known.unsqueeze(-1)
        targets = torch.where(told.unsqueeze(-1), bags.proportions.unsqueeze(-2), 0.0)
        if now.stage == "labels":
            log_proba, targets = (
                self._mixed(model, bags, targets) if self.params.mixup else (model.log_proba(bags), targets)
            )
            return masked_mean(symmetric_loss(log_proba, targets, self.params.noise), told)
        log_proba = model.log_proba(bags)
        if now.stage == "distil":
            return masked_mean(-(targets * log_proba).sum(dim=-1), told)
        loss = proportion_loss(log_proba, bags)
        if self.params.variant == "online":
            loss = loss + self.params.weight * confident_loss(log_proba, bags, self.params.threshold)
        return loss

    def _mixed(self, model: Model, bags: Bags, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return log predictions and targets [bags, size, classes] of mixtures of two rows."""
        assert model.random is not None
        partner = random_partner(bags.mask.flatten(), model.random)
        share = folded_arcsine(model.random.uniform(*bags.mask.shape))[..., None]
        embeddings = model.network.encoder.embed(bags.rows)
        others = embeddings.flatten(0, 1)[partner].view_as(embeddings)
        mixed = torch.lerp(others, embeddings, share[..., None])
        z = model.network.encoder.encode(mixed, bags.mask, model.random).z
        return model.classify(z), torch.lerp(targets.flatten(0, 1)[partner].view_as(targets), targets, share)


def folded_arcsine(uniform: Tensor) -> Tensor:
    """Return numbers with distribution Beta(1/2, 1/2) folded above 1/2, from uniform numbers."""
    share = (uniform * (math.pi / 2)).sin().square()
    return torch.maximum(share, 1 - share)


def symmetric_loss(log_proba: Tensor, targets: Tensor, noise: float | Tensor) -> Tensor:
    """Return CE(y, P) + noise * RCE(y, P) [...]; `log_proba` and `targets` [..., classes]."""
    reverse = -(log_proba.exp() * targets.log().clamp(min=LOG_OF_NONE)).sum(dim=-1)
    return -(targets * log_proba).sum(dim=-1) + noise * reverse


def confident_loss(log_proba: Tensor, bags: Bags, threshold: float | Tensor) -> Tensor:
    """Return the mean over rows with known counts of [P_y >= threshold] CE(y, P); the labels y match the counts."""
    labels = counted_labels(log_proba.detach(), bags)
    chosen = (labels * log_proba).sum(dim=-1)
    sure = chosen.detach().exp() >= threshold
    return masked_mean(torch.where(sure, -chosen, 0.0), bags.mask & bags.known.unsqueeze(-1))
