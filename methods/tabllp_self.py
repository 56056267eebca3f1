"""TabLLP-SELF: train on proportions, and make two augmented views of a row recognise each other.

    L = L_bag + weight · InfoNCE( g₁(clean view), g₂(mixed view) )
    g₁, g₂: projections of row vectors;  mixed view: features replaced by, and mixed with, those of other rows

This is the baseline that the TabLLP-BDC paper calls "inspired by SelfCLR-LLP". Its self-contrastive term uses SAINT's
feature mixup. The clean view is also used for classification, so a step takes two forward passes. The paper does not
give weights. Temperature, CutMix and MixUp are SAINT's. In ordered bags the augmentation is weaker, since rows are
mixed with similar rows of the same two bags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from llpbench import Bags, Encoder, Method, MethodParams, Model, Network, Now, Schema, losses, register_method
from llpbench.blocks.views import Projectors, mixed_view
from llpbench.core.ranges import Choice, LogUniform


@dataclass(frozen=True)
class _SelfParams(MethodParams):
    """Hyperparameters of the self-contrastive term."""

    weight: Annotated[float, LogUniform(1e-3, 1.0)] = 0.5
    """weight of the self-contrastive term"""
    temperature: Annotated[float, Choice(0.1, 0.3, 0.7)] = 0.7
    """temperature of InfoNCE"""
    cutmix: Annotated[float, Choice(0.1, 0.2, 0.3)] = 0.1
    """probability that a value is replaced by that of another row"""
    mixup: Annotated[float, Choice(0.3, 0.5, 0.8, 0.9)] = 0.3
    """weight of the row's own embeddings in a mixture"""


@register_method("tabllp-self", version=1, reference="TabLLP-BDC paper, after Somepalli et al. 2021")
class TabLLPSelf(Method):
    """DLLP with a self-contrastive term on views with mixed features."""

    Params = _SelfParams
    params: _SelfParams

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network with two projectors."""
        return super().build(encoder, schema).add(projectors=Projectors(encoder, schema, self.hidden))

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the proportion loss + weight * InfoNCE."""
        clean = model.encode(bags)
        mixed = mixed_view(model, bags, self.params.cutmix, self.params.mixup)
        contrast: Tensor = model.network.projectors.contrast(
            clean, mixed, bags.mask, self.params.temperature, model.random
        )
        return losses.proportion_loss(model.classify(clean.z), bags) + self.params.weight * contrast
