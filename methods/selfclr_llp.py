"""SelfCLR-LLP: train on proportions, and move the vectors of different rows apart.

    L = L_bag − weight · meanᵢ log softmaxⱼ( sim(zᵢ, zⱼ) )ᵢ
    sim: cosine similarity / `temperature`;  j: rows of the step

Nandy et al. 2022. Their code contrasts raw dot products of the last layer. A row is its own positive, and all other
rows of the step are negatives: no augmentation, no cosine, no temperature. A paper that compares with it describes a
term "inspired by NT-Xent". Both are available:

- `mode=cos` (default): cosines of the encoder's row vectors over a temperature, with the default prediction head.
- `mode=dot`: the published head of G vectors per class with ReLU. The largest is the logit of the class. The term uses
  dot products of all of them, with a penalty on the largest activation.

Differences of `dot` from the published code: G = 64 instead of 500, since the encoder has width 32 instead of 1,000.
Weight decay is that of AdamW instead of an L2 term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from torch import Tensor, nn
from torch.nn import functional as F

from llpbench import Bags, Method, MethodParams, Now, Schema, losses, register_method
from llpbench.blocks.views import at, some_rows
from llpbench.core.model import MLP, Encoder, Model, Network, Random
from llpbench.core.ranges import AtLeast, Choice, LogUniform, When


@dataclass(frozen=True)
class _SelfCLRParams(MethodParams):
    """Hyperparameters of the contrastive term."""

    mode: Annotated[str, Choice("cos", "dot")] = "cos"
    """compared values: cosines of row vectors, or dot products of the published head's activations"""
    scope: Annotated[str, Choice("step", "bag")] = "step"
    """negatives: all other rows of the step, as published, or only rows of the same bag"""
    weight: Annotated[float | None, LogUniform(1e-3, 1.0), AtLeast(0.0)] = None
    """weight of the contrastive term; None: 0.1 in `cos`, the published 0.5 in `dot`"""
    temperature: Annotated[float, LogUniform(0.05, 1.0), When("mode", "cos")] = 0.5
    """temperature of the cosines"""
    groups: Annotated[int, Choice(1, 8, 64, 500), When("mode", "dot")] = 64
    """vectors per class in the head of `dot`"""
    sparsity: Annotated[float, LogUniform(1e-4, 0.1), When("mode", "dot"), AtLeast(0.0)] = 0.01
    """weight of the penalty on the largest activation in `dot`"""

    def __post_init__(self) -> None:
        if self.weight is None:
            object.__setattr__(self, "weight", 0.1 if self.mode == "cos" else 0.5)


class _GroupedHead(nn.Module):
    """Published head: groups x classes activations with ReLU; a class's logit is the largest of its group."""

    def __init__(self, dim: int, hidden: int, groups: int, classes: int) -> None:
        super().__init__()
        self.layers = MLP(dim, hidden, hidden, groups * classes)
        self.classes = classes

    def activations(self, z: Tensor) -> Tensor:
        """Return activations [..., groups * classes]."""
        return self.layers(z).relu()

    def forward(self, z: Tensor) -> Tensor:
        """Return logits [..., classes] of row vectors."""
        return self.logits(self.activations(z))

    def logits(self, activations: Tensor) -> Tensor:
        """Return logits [..., classes] of activations."""
        return activations.reshape(*activations.shape[:-1], -1, self.classes).amax(dim=-2)


@register_method("selfclr-llp", version=1, reference="Nandy et al. 2022")
class SelfCLR(Method):
    """DLLP with a contrastive term in which all other rows are negatives."""

    Params = _SelfCLRParams
    params: _SelfCLRParams

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network; in `dot`, it has the published head."""
        network = super().build(encoder, schema)
        if self.params.mode == "dot":
            network.head = _GroupedHead(encoder.dim, self.hidden, self.params.groups, schema.classes)
        return network

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the proportion loss + weight * contrast (+ sparsity of the published head)."""
        z = model.encode(bags).z
        assert self.params.weight is not None, "filled in when the parameters are made"
        if self.params.mode == "cos":
            contrast = self._contrast(F.normalize(z.float(), dim=-1), bags.mask, model.random)
            return losses.proportion_loss(model.classify(z), bags) + self.params.weight * contrast
        head: Any = model.network.head
        activations = head.activations(z).float()
        logits = head.logits(activations)
        sparsity = losses.masked_mean(logits.sigmoid().amax(dim=-1), bags.mask)
        contrast = self._contrast(activations, bags.mask, model.random)
        bag_loss = losses.proportion_loss(logits.log_softmax(dim=-1), bags)
        return bag_loss + self.params.weight * contrast + self.params.sparsity * sparsity

    def _contrast(self, vectors: Tensor, mask: Tensor, random: Random | None) -> Tensor:
        """Return the contrastive term of `vectors` [bags, size, dim]; large bags are sampled (`some_rows`)."""
        scale = self.params.temperature if self.params.mode == "cos" else 1.0
        chosen = some_rows(mask, random)
        vectors, mask = at(vectors, chosen), at(mask, chosen)
        if self.params.scope == "step":
            vectors, mask = vectors.flatten(0, 1), mask.flatten()
        similarity = vectors @ vectors.transpose(-2, -1) / scale
        similarity = similarity.masked_fill(~(mask.unsqueeze(-1) & mask.unsqueeze(-2)), -1e9)
        own = similarity.log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1)  # each row is its own positive
        return losses.masked_mean(-own, mask)
