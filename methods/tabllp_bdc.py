"""TabLLP-BDC: contrastive learning that makes the vectors of similar rows in two bags more similar.

    L(t) = λ(t) · weight · L_Diff + γ(t) L_bag,  λ = exp(−5 (1 − t/T)²),  γ = max(1 − λ, gamma_floor)
    λ rises, γ falls, at least to `gamma_floor` (default 0)
    L_Diff: InfoNCE on pairs of similar rows of two bags, as many as the counts allow to have equal classes

The paper of this benchmark. A loss is computed on a pair of bags.

- The pair generator assigns the rows of two bags to each other by the cosine of their row vectors.
- Counts alone show that sum_c min(n_1c, n_2c) pairs of equal class are possible. This number of assigned pairs, the
  most similar ones, are the positives.
- L_Diff is supervised InfoNCE on these pairs.
- lambda(t) ramps up L_Diff while L_LLP fades out.

The canonical form starts from pretraining: run it with `--pretraining self+bag`. Choices where the paper is silent or
contradicts itself:

- T is the largest number of epochs and t counts from zero, so gamma never becomes exactly 0. L_Diff does not reach the
  prediction head. `gamma_floor` keeps the head consistent with the encoder.
- Pairs use the row vector (the output at [CLS]) that the head uses. `representation=tokens` averages the feature tokens
  instead.
- L_Diff is a mean over positive pairs and both directions, since the order of the two bags is arbitrary.
- Negatives are all rows of the other bag for InfoNCE, and the other assigned pairs for the cosine embedding loss.
- The third objective in the paper's table of components is `self-contrastive`. It replaces L_Diff by the term of
  TabLLP-SELF.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional as F

from llpbench import Bags, Method, MethodParams, Now, Pairs, Reports, Schema, Stage, losses, register_method
from llpbench.blocks.pairing import pseudo_pairs
from llpbench.blocks.views import Projectors, at, mixed_view, some_rows
from llpbench.core.model import Encoder, Encoding, Model, Network, Random
from llpbench.core.ranges import AtLeast, Choice, LogUniform, When

_OF_PAIRS = When("objective", "sup-info-nce", "cosine-embedding")


@dataclass(frozen=True)
class _BDCParams(MethodParams):
    """Components in the paper's table, and their hyperparameters."""

    generator: Annotated[str, Choice("linear", "greedy"), _OF_PAIRS] = "linear"
    """generator of pseudo-pairs: linear sum assignment, or the most similar pair first"""
    objective: Annotated[str, Choice("sup-info-nce", "cosine-embedding", "self-contrastive")] = "sup-info-nce"
    """difference-contrastive loss"""
    representation: Annotated[str, Choice("cls", "tokens"), _OF_PAIRS] = "cls"
    """which vectors are compared: the row vectors, or the means of the feature tokens"""
    direction: Annotated[str, Choice("both", "forward"), When("objective", "sup-info-nce")] = "both"
    """direction of InfoNCE: both, or only from the first bag to the second"""
    temperature: Annotated[float, LogUniform(0.05, 1.0), When("objective", "sup-info-nce")] = 0.1
    """temperature of InfoNCE between bags"""
    margin: Annotated[float, Choice(0.0, 0.1, 0.3, 0.5), When("objective", "cosine-embedding")] = 0.0
    """margin of the cosine embedding loss"""
    weight: Annotated[float, LogUniform(0.1, 10.0), AtLeast(0.0)] = 1.0
    """weight of the difference-contrastive loss after the ramp"""
    ramp: Annotated[int | None, Choice(None, 100, 200, 300)] = None
    """epochs until lambda is 1; None: the largest number of epochs"""
    gamma_floor: Annotated[float, Choice(0.0, 0.05, 0.1)] = 0.0
    """smallest weight of the proportion loss"""
    self_temperature: Annotated[float, Choice(0.1, 0.3, 0.7), When("objective", "self-contrastive")] = 0.7
    """temperature of the self-contrastive objective"""
    cutmix: Annotated[float, Choice(0.1, 0.2, 0.3), When("objective", "self-contrastive")] = 0.1
    """probability that the self-contrastive objective replaces a value by that of another row"""
    mixup: Annotated[float, Choice(0.3, 0.5, 0.8, 0.9), When("objective", "self-contrastive")] = 0.3
    """weight of the row's own embeddings in the mixtures of the self-contrastive objective"""


@register_method("tabllp-bdc", version=2, reference="TabLLP-BDC paper")
class TabLLPBDC(Method, Reports):
    """Difference-contrastive finetuning on pseudo-pairs of rows of two bags."""

    Params = _BDCParams
    params: _BDCParams

    def __init__(self, params: MethodParams | None = None) -> None:
        """Declare the ramp, whose length is a hyperparameter."""
        super().__init__(params)
        self.stages = (Stage(ramp=self.params.ramp or 1.0),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network, with projectors for the self-contrastive objective."""
        network = super().build(encoder, schema)
        if self.params.objective == "self-contrastive":
            network.add(projectors=Projectors(encoder, schema, self.hidden))
        return network

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return lambda(t) * weight * L_Diff + gamma(t) * L_LLP."""
        encoding = model.encode(bags)
        ramp = self.schedules(now)
        difference = ramp["lambda"] * self.params.weight * self._difference(model, encoding, bags)
        return difference + ramp["gamma"] * losses.proportion_loss(model.classify(encoding.z), bags)

    def schedules(self, now: Now) -> dict[str, Tensor]:
        """Return lambda(t) = exp(-5 (1 - t/T)^2) and gamma(t) = max(1 - lambda(t), gamma_floor), t the epoch."""
        rising = losses.ramp_up(now.epoch, self.params.ramp or now.epochs)
        return {"lambda": rising, "gamma": (1.0 - rising).clamp(min=self.params.gamma_floor)}

    def pseudo_pairs(self, model: Model, bags: Bags) -> Pairs:
        """Return the pairs between the first two bags, or between samples of long bags."""
        vectors, mask, counts, chosen = self._compared(model.encode(bags), bags, model.random)
        pairs = pseudo_pairs(_cosine(vectors[:2]), mask[0], mask[1], counts[:2], self.params.generator)
        if chosen is None:
            return pairs
        partner = torch.where(pairs.partner < 0, -1, chosen[1][pairs.partner.clamp(min=0)])
        nothing = torch.full_like(bags.mask[0], -1, dtype=torch.int64)
        positive = torch.zeros_like(bags.mask[0]).scatter(0, chosen[0], pairs.positive)
        return Pairs(nothing.scatter(0, chosen[0], partner), positive)

    def _compared(
        self, encoding: Encoding, bags: Bags, random: Random | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Return vectors [bags, size, dim], mask and counts of the compared rows, and their positions (None: all).

        Bags of more than `views.MOST_COMPARED` rows are sampled. Class frequencies in a sample are those of the bag.
        """
        chosen = some_rows(bags.mask, random)
        vectors, mask = at(self._vectors(encoding), chosen), at(bags.mask, chosen)
        share = mask.sum(dim=-1, keepdim=True) / bags.mask.sum(dim=-1, keepdim=True)
        return vectors, mask, bags.counts if chosen is None else bags.counts * share, chosen

    def _difference(self, model: Model, encoding: Encoding, bags: Bags) -> Tensor:
        if self.params.objective == "self-contrastive":
            mixed = mixed_view(model, bags, self.params.cutmix, self.params.mixup)
            return model.network.projectors.contrast(
                encoding, mixed, bags.mask, self.params.self_temperature, model.random
            )
        if len(bags.mask) % 2:
            raise ValueError(f"pairs of bags need an even number of bags per step, got {len(bags.mask)}")
        vectors, mask, counts, _ = self._compared(encoding, bags, model.random)
        pairs = zip(torch.split(vectors, 2), torch.split(mask, 2), torch.split(counts, 2), strict=True)
        return torch.stack([self._pair_loss(*pair) for pair in pairs]).mean()

    def _pair_loss(self, vectors: Tensor, mask: Tensor, counts: Tensor) -> Tensor:
        """Return L_Diff of two bags: `vectors` [2, size, dim], `mask` [2, size], `counts` [2, classes]."""
        cosine = _cosine(vectors)
        pairs = pseudo_pairs(cosine, mask[0], mask[1], counts, self.params.generator)
        if self.params.objective == "cosine-embedding":
            return _cosine_embedding(cosine, pairs, self.params.margin)
        both = self.params.direction == "both"
        return _difference_contrast(cosine / self.params.temperature, pairs, mask[0], mask[1], both)

    def _vectors(self, encoding: Encoding) -> Tensor:
        """Return the compared vectors [bags, size, dim], of unit length."""
        vectors = encoding.z if self.params.representation == "cls" else encoding.tokens.mean(dim=-2)
        return F.normalize(vectors.float(), dim=-1)


def _cosine(vectors: Tensor) -> Tensor:
    """Return the cosines [size, size] between the rows of two bags, `vectors` [2, size, dim] of unit length."""
    return vectors[0] @ vectors[1].T


def _difference_contrast(similarity: Tensor, pairs: Pairs, rows: Tensor, columns: Tensor, both: bool = True) -> Tensor:
    """Return the supervised InfoNCE of pseudo-positive pairs: each row must find its partner in the other bag.

    `similarity` [n, m] is already divided by the temperature; `rows` [n] and `columns` [m] bool mark real rows. The
    loss is a mean over positive pairs (0 without any) and over both directions, or only the first (L_Diff).
    """
    partner = pairs.partner.clamp(min=0)[:, None]
    similarity = similarity.masked_fill(~(rows.unsqueeze(-1) & columns.unsqueeze(-2)), -1e9)
    chosen = similarity.log_softmax(dim=1).gather(1, partner)
    if both:
        chosen = (chosen + similarity.log_softmax(dim=0).gather(1, partner)) / 2
    return losses.masked_mean(-chosen.squeeze(1), pairs.positive)


def _cosine_embedding(cosine: Tensor, pairs: Pairs, margin: float) -> Tensor:
    """Return a loss that attracts positive pairs and repels other assigned pairs (torch's CosineEmbeddingLoss).

    With `cosine` [n, m], it is the mean over all assigned pairs of 1 - cos or max(0, cos - margin).
    """
    paired = cosine.gather(1, pairs.partner.clamp(min=0)[:, None]).squeeze(1)
    each = torch.where(pairs.positive, 1 - paired, (paired - margin).relu())
    return losses.masked_mean(each, pairs.partner >= 0)
