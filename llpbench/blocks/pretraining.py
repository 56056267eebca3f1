"""Pretraining: first weights for any method with an encoder, and a separate factor in every comparison.

`self`: two views of a row recognise each other (SAINT, Somepalli et al. 2021). `bag`: bags with similar proportions get
similar vectors (TabLLP-BDC, L_Bag). `self+bag`: both. Features are always reconstructed as well: those of mixed rows,
or with separated views those of unchanged rows. Only the encoder's weights are used later. Pretraining has the data of
every method: training rows, bags and class counts.

Choices that the paper does not specify:

- The margin of L_Bag is 0.
- Terms of rows are averaged, not summed.
- The weighted sum, which the paper writes as a matrix, is the mean of its rows. Weights come from cosine similarities
  through a query matrix (initially the identity), so that equal similarities give the plain mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench.blocks.attention import Attention
from llpbench.blocks.losses import masked_mean
from llpbench.blocks.views import Projectors, at, mixed_view, some_rows
from llpbench.core.bags import Bags, Rows, Schema
from llpbench.core.method import Method, MethodParams, Now, Stage
from llpbench.core.metrics import l1, mpiou
from llpbench.core.model import MLP, Encoder, Encoding, Model, Network
from llpbench.core.ranges import AtLeast, Choice, LogUniform


@dataclass(frozen=True)
class PretrainingParams(MethodParams):
    """Components in the paper's table, and their hyperparameters. `hidden` is the width of projectors."""

    epochs: Annotated[int, AtLeast(1)] = 50
    view: Annotated[str, Choice("mixup", "separated")] = "mixup"
    """views of the self-contrastive task: feature mixup, or separated representation"""
    aggregator: Annotated[str, Choice("weighted-sum", "attention")] = "weighted-sum"
    """how rows form a bag vector: by cosine similarity, or by attention between rows"""
    projection: Annotated[bool, Choice(False, True)] = False
    """whether to use a projector before the aggregator"""
    similarity: Annotated[str, Choice("mpiou", "l1")] = "mpiou"
    """similarity of the proportions of two bags: mPIoU, or 1 - L1/2"""
    margin: Annotated[float, Choice(0.0, 0.1, 0.3, 0.5)] = 0.0
    """cosine below which bags with different proportions are not pushed apart"""
    bag_weight: Annotated[float, LogUniform(0.01, 10.0)] = 1.0
    """alpha, the weight of the bag-contrastive task"""
    self_weight: Annotated[float, LogUniform(0.01, 10.0)] = 1.0
    """beta, the weight of the self-contrastive task and the reconstruction"""
    number_weight: Annotated[float, Choice(1.0, 10.0)] = 10.0
    """kappa, the weight of the squared error of reconstructed numbers; the cross-entropy of categories has weight 1"""
    temperature: Annotated[float, Choice(0.1, 0.3, 0.7)] = 0.7
    """temperature of the self-contrastive task"""
    cutmix: Annotated[float, Choice(0.1, 0.2, 0.3)] = 0.1
    """probability that a value is replaced by that of another row"""
    mixup: Annotated[float, Choice(0.3, 0.5, 0.8, 0.9)] = 0.3
    """weight of the row's own embeddings in a mixture"""


class Pretraining(Method):
    """Self-contrastive, bag-contrastive and denoising tasks on pairs of bags."""

    Params = PretrainingParams
    params: PretrainingParams

    def __init__(self, tasks: str, params: PretrainingParams | None = None) -> None:
        """`tasks`: `self`, `bag` or `self+bag`."""
        super().__init__(params)
        self.tasks = tasks.split("+")
        self.stages = (Stage("pretraining", epochs=self.params.epochs, judged=False),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return a network of the encoder, a decoder of features, projectors and an aggregator of bags."""
        network = Network(encoder, nn.Identity()).add(decoder=Decoder(encoder, schema))
        if "self" in self.tasks:
            network.add(projectors=Projectors(encoder, schema, self.hidden, self.params.view))
        if "bag" in self.tasks:
            weighted = self.params.aggregator == "weighted-sum"
            network.add(aggregator=_WeightedSum(encoder.dim) if weighted else _IntersampleAttention(encoder.dim))
            projected = MLP(encoder.dim, self.hidden, self.hidden, encoder.dim)
            network.add(bag_projector=projected if self.params.projection else nn.Identity())
        return network

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return alpha L_Bag + beta (L_NCE + reconstruction)."""
        del now
        params, network = self.params, model.network
        clean = model.encode(bags)
        mixed = clean if params.view == "separated" else mixed_view(model, bags, params.cutmix, params.mixup)
        own = network.decoder(mixed, bags.rows, bags.mask, params.number_weight)
        if "self" in self.tasks:
            own = own + network.projectors.contrast(clean, mixed, bags.mask, params.temperature, model.random)
        loss: Tensor = params.self_weight * own
        if "bag" in self.tasks:
            loss = loss + params.bag_weight * self.bag_loss(model, clean, bags)
        return loss

    def bag_loss(self, model: Model, encoding: Encoding, bags: Bags) -> Tensor:
        """Return L_Bag, averaged over the pairs of bags with known counts."""
        if len(bags.mask) % 2:
            raise ValueError(f"pairs of bags need an even number of bags a step, got {len(bags.mask)}")
        chosen = some_rows(bags.mask, model.random)
        z, mask = model.network.bag_projector(at(encoding.z, chosen)), at(bags.mask, chosen)
        vectors = torch.stack([model.network.aggregator(*bag) for bag in zip(z, mask, strict=True)])
        cosine = F.cosine_similarity(vectors[::2].float(), vectors[1::2].float(), dim=-1)
        likeness = self.likeness(bags.proportions[::2], bags.proportions[1::2])
        known = bags.known[::2] & bags.known[1::2]
        return masked_mean(_bag_contrast(cosine, likeness, self.params.margin), known)

    def likeness(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the similarities [pairs], between 0 and 1, of proportions [pairs, classes]."""
        one, other = first.unsqueeze(-2), second.unsqueeze(-2)
        return mpiou(one, other) if self.params.similarity == "mpiou" else 1 - l1(one, other) / 2


def _bag_contrast(cosine: Tensor, similarity: Tensor, margin: float) -> Tensor:
    """Return a loss that attracts bags with similar proportions and repels others (TabLLP-BDC, L_Bag).

    It is (1 - M) max(0, cos - margin) + M (1 - cos), with the `cosine` of two bag vectors and the `similarity` M of
    their proportions.
    """
    return (1 - similarity) * (cosine - margin).relu() + similarity * (1 - cosine)


class _WeightedSum(nn.Module):
    """Bag vector mean_i sum_j softmax_j(s u_i W u_j) z_j, with u the rows z scaled to length 1 (TabLLP-BDC, WS)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.eye(dim))
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, z: Tensor, mask: Tensor) -> Tensor:
        """Map `z` [size, dim] and `mask` [size] to [dim]."""
        unit = F.normalize(z, dim=-1)
        logits = unit @ self.query @ unit.T * self.scale
        attention = logits.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        weights = torch.where(mask[:, None], attention, 0.0).sum(dim=0) / mask.sum()
        return weights @ z


class _IntersampleAttention(nn.Module):
    """Bag vector: the mean of multi-head attention between its rows (TabLLP-BDC, IA; SAINT's row attention)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.attention = Attention(dim, heads=4, head_dim=64)

    def forward(self, z: Tensor, mask: Tensor) -> Tensor:
        """Map `z` [size, dim] and `mask` [size] to [dim]."""
        mixed = self.attention(z, mask)
        return torch.where(mask[:, None], mixed, 0.0).sum(dim=0) / mask.sum()


class Decoder(nn.Module):
    """Reconstruction of every feature from its token, by an MLP 5 times as wide as a token (SAINT).

    If tokens are not contextual, features are reconstructed from the row vector.
    """

    def __init__(self, encoder: Encoder, schema: Schema) -> None:
        super().__init__()
        self.contextual = encoder.contextual
        self.numbers = schema.numeric
        dim = encoder.token_dim if encoder.contextual else encoder.dim
        hidden = 5 * encoder.token_dim
        self.weight = nn.Parameter(torch.empty(schema.features, dim, hidden).uniform_(-(dim**-0.5), dim**-0.5))
        self.bias = nn.Parameter(torch.zeros(schema.features, hidden))
        self.categories = nn.ModuleList(nn.Linear(hidden, cardinality) for cardinality in schema.cardinalities)
        self.number_weight = nn.Parameter(torch.empty(schema.numeric, hidden).uniform_(-(hidden**-0.5), hidden**-0.5))
        self.number_bias = nn.Parameter(torch.zeros(schema.numeric))

    def forward(self, encoding: Encoding, rows: Rows, mask: Tensor, number_weight: float) -> Tensor:
        """Return the cross-entropy of categories + the weighted squared error of numbers, averaged over rows.

        Cross-entropies are summed over features, squared errors averaged. Missing numbers are ignored; a missing
        category is a category.
        """
        if self.contextual:
            hidden = torch.einsum("...fd,fdh->...fh", encoding.tokens, self.weight)
        else:
            hidden = torch.einsum("...d,fdh->...fh", encoding.z, self.weight)
        hidden = (hidden + self.bias).relu()
        categories, numbers = hidden.split([len(self.categories), self.numbers], dim=-2)  # SAINT's order
        loss = hidden.new_zeros(())
        # gradients of unbind are one tensor; indexing would fill a tensor of zeros for each category
        for layer, one, code in zip(self.categories, categories.unbind(-2), rows.categorical.unbind(-1), strict=True):
            log_proba = layer(one).float().log_softmax(dim=-1)
            loss = loss - masked_mean(log_proba.gather(-1, code.unsqueeze(-1)).squeeze(-1), mask)
        if self.numbers:
            predicted = (numbers * self.number_weight).sum(dim=-1) + self.number_bias
            known = mask.unsqueeze(-1) & ~rows.missing
            loss = loss + number_weight * masked_mean((predicted.float() - rows.numeric).square(), known)
        return loss
