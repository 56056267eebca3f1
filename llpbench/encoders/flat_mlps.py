"""MLPs on all features of a row side by side: RealMLP, TabM and ResNet.

RealMLP: an MLP with periodic embeddings of numbers (Holzmüller, Grinsztajn & Steinwart 2024).

Only the architecture is the authors'. Their schedules, label smoothing and initial biases are not used: the engine uses
AdamW with one constant rate, and bag losses have no labels. Some parameters have a multiple of the learning rate. They
are stored divided by this multiple, which is equivalent under Adam.

TabM: MLPs that share their weights (Gorishniy, Kotelnikov & Babenko 2025).

All copies share each layer. A copy has its own input and output factors, biases and head. Initially, copies differ
only in the input factors of the first layer, one per feature. Training minimises the mean of their losses; the authors
call this crucial. So a bag loss gets the predictions of one copy at a time.

Differences from the authors' code:

- Weight decay and head come from the method.
- A category with more levels than `most_one_hot` has an embedding.
- A missing number has a learned value.

ResNet: residual blocks of two linear layers (Gorishniy et al. 2021).

LayerNorm replaces the published BatchNorm, since batch statistics come from one bag in ordered bags. The first dropout
of a block uses the method's rate. There is no second dropout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench.blocks.tokens import CategoricalTokens
from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoder, Encoding, Random, dropped_out
from llpbench.core.registry import register_encoder

SCALE_RATE, SLOW_RATE = 6.0, 0.1
"""multiples of the learning rate for input factors, and for biases, embeddings of numbers and activations"""


@dataclass(frozen=True)
class _RealMLPParams:
    """Published sizes."""

    dim: int = 256
    """width of each layer and of the row vector"""
    depth: int = 3
    """number of layers"""
    frequencies: int = 16
    """number of cosines in the embedding of a number"""
    number_dim: int = 4
    """width of a number's embedding, including the number itself"""
    category_dim: int = 8
    """width of a category's embedding"""
    most_one_hot: int = 9
    """largest number of levels of a one-hot category"""


class _PeriodicEmbedding(nn.Module):
    """PBLD embedding of a number x as [x, W cos(2 pi w x + b) + c], with separate parameters for each column."""

    def __init__(self, columns: int, params: _RealMLPParams) -> None:
        super().__init__()
        width, bound = params.number_dim - 1, params.frequencies**-0.5
        shape = (columns, params.frequencies)
        self.frequency = nn.Parameter(0.1 * torch.randn(*shape) / SLOW_RATE)
        self.phase = nn.Parameter(torch.empty(*shape).uniform_(-math.pi, math.pi) / SLOW_RATE)
        self.weight = nn.Parameter(torch.empty(*shape, width).uniform_(-bound, bound) / SLOW_RATE)
        self.bias = nn.Parameter(torch.empty(columns, width).uniform_(-bound, bound) / SLOW_RATE)
        self.missing = nn.Parameter(torch.randn(columns, params.number_dim))

    def forward(self, rows: Rows) -> Tensor:
        """Return embeddings [..., numeric features, width]."""
        x = rows.numeric.unsqueeze(-1)
        waves = (SLOW_RATE * (2.0 * math.pi * x * self.frequency + self.phase)).cos()
        found = SLOW_RATE * (torch.einsum("...fk,fkd->...fd", waves, self.weight) + self.bias)
        return torch.where(rows.missing.unsqueeze(-1), self.missing, torch.cat([x, found], dim=-1))


class _ScaledLayer(nn.Module):
    """A linear layer with standard normal weights divided by the root of `fan_in`, and a learned blend with SELU."""

    def __init__(self, fan_in: int, fan_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(fan_in, fan_out))
        self.bias = nn.Parameter(torch.zeros(fan_out))
        self.blend = nn.Parameter(torch.ones(fan_out) / SLOW_RATE)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., fan_in] to [..., fan_out]."""
        x = x @ self.weight / math.sqrt(len(self.weight)) + SLOW_RATE * self.bias
        return x + SLOW_RATE * self.blend * (F.selu(x) - x)


class _FlatEncoder(Encoder):
    """Layers on all features side by side: one-hot categories of few levels, embeddings of others, and numbers."""

    contextual = False
    inputs: Tensor
    """columns of the padded features that layers use"""
    one_hot: Tensor

    def add_features(
        self, schema: Schema, category_dim: int, most_one_hot: int, number_dim: int, numbers: Callable[[], Any]
    ) -> list[int]:
        """Add embeddings, with `numbers` of width `number_dim`; return the number of columns of each feature.

        With `most_one_hot` -1 all categories have embeddings.
        """
        self.token_dim = max(category_dim, number_dim, most_one_hot)
        self.categories = CategoricalTokens(schema, category_dim) if schema.cardinalities else None
        self.numbers = numbers() if schema.numeric else None
        # code 0 (missing or unseen) is not a level: in a one-hot category it is all zeros
        levels = torch.tensor([cardinality - 1 for cardinality in schema.cardinalities], dtype=torch.long)
        self.register_buffer("one_hot", levels <= most_one_hot)
        widths: list[int] = torch.where(self.one_hot, levels, category_dim).tolist() + [number_dim] * schema.numeric
        places = [place * self.token_dim + torch.arange(width) for place, width in enumerate(widths)]
        self.register_buffer("inputs", torch.cat(places))
        return widths

    def embed(self, rows: Rows) -> Tensor:
        kinds = []
        if self.categories is not None:
            codes = rows.categorical.unsqueeze(-1)
            one_hot = (codes == 1 + torch.arange(self.token_dim, device=codes.device)).float()
            kinds.append(torch.where(self.one_hot.unsqueeze(-1), one_hot, self._padded(self.categories(rows))))
        if self.numbers is not None:
            kinds.append(self._padded(self.numbers(rows)))
        return torch.cat(kinds, dim=-2)

    def _padded(self, embedded: Tensor) -> Tensor:
        return F.pad(embedded, (0, self.token_dim - embedded.shape[-1]))


@register_encoder(
    "realmlp",
    version=1,
    learning_rate=1e-2,
    hidden=64,
    numbers="robust",
    reference="Holzmüller, Grinsztajn & Steinwart 2024",
)
class _RealMLP(_FlatEncoder):
    """MLP with periodic embeddings, on robust scores of numbers."""

    Params = _RealMLPParams

    def __init__(self, schema: Schema, params: _RealMLPParams, dropout: float) -> None:
        super().__init__()
        self.dim, self.dropout = params.dim, dropout
        widths = params.category_dim, params.most_one_hot, params.number_dim
        self.add_features(schema, *widths, lambda: _PeriodicEmbedding(schema.numeric, params))
        self.scale = nn.Parameter(torch.ones(len(self.inputs)) / SCALE_RATE)
        sizes = [len(self.inputs), *[params.dim] * params.depth]
        self.layers = nn.ModuleList(_ScaledLayer(*pair) for pair in pairwise(sizes))

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        x = embeddings.flatten(-2)[..., self.inputs] * (SCALE_RATE * self.scale)
        for layer in self.layers:
            x = dropped_out(layer(x), self.dropout, random)
        return Encoding(x, embeddings)


@dataclass(frozen=True)
class _TabMParams:
    """Published sizes."""

    copies: int = 32
    """number of networks with shared weights"""
    dim: int = 512
    """width of each layer and of the row vector"""
    depth: int = 3
    """number of layers"""
    periodic: bool = False
    """whether numbers have the periodic embeddings of RealMLP"""
    category_dim: int = 8
    """width of a category's embedding"""
    most_one_hot: int = 16
    """largest number of levels of a one-hot category"""


@dataclass(frozen=True)
class _TabMSmallParams(_TabMParams):
    """Smaller sizes for CPUs."""

    copies: int = 8
    dim: int = 128
    depth: int = 2
    periodic: bool = True


class _PlainNumbers(nn.Module):
    """Unchanged numbers, with a learned value for missing ones."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.missing = nn.Parameter(torch.zeros(columns))

    def forward(self, rows: Rows) -> Tensor:
        """Return numbers [..., numeric features, 1]."""
        return torch.where(rows.missing, self.missing, rows.numeric).unsqueeze(-1)


class _AdaptedLayer(nn.Module):
    """A linear layer of one copy: shared weights with input and output factors, and a bias."""

    def __init__(self, fan_in: int, fan_out: int) -> None:
        super().__init__()
        bound = fan_in**-0.5
        self.weight = nn.Parameter(torch.empty(fan_in, fan_out).uniform_(-bound, bound))
        self.scale_in = nn.Parameter(torch.ones(fan_in))
        self.scale_out = nn.Parameter(torch.ones(fan_out))
        self.bias = nn.Parameter(torch.empty(fan_out).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., fan_in] to [..., fan_out]."""
        return (x * self.scale_in) @ self.weight * self.scale_out + self.bias


@register_encoder(
    "tabm", version=1, learning_rate=2e-3, hidden=64, numbers="scores", reference="Gorishniy, Kotelnikov & Babenko 2025"
)
class _TabM(_FlatEncoder):
    """32 MLPs with shared weights, trained by the mean of their losses, on normal scores of numbers."""

    Params: type[_TabMParams] = _TabMParams

    def __init__(self, schema: Schema, params: _TabMParams, dropout: float) -> None:
        super().__init__()
        self.copies, self.dim, self.dropout = params.copies, params.dim, dropout
        self.periodic = params.periodic
        sizes = _RealMLPParams()
        number_dim = sizes.number_dim if params.periodic else 1
        widths = self.add_features(
            schema,
            params.category_dim,
            params.most_one_hot,
            number_dim,
            lambda: _PeriodicEmbedding(schema.numeric, sizes) if params.periodic else _PlainNumbers(schema.numeric),
        )
        self.widths = torch.tensor(widths)
        """number of input columns of each feature"""
        shapes = pairwise([len(self.inputs), *[params.dim] * params.depth])
        self.layers = nn.ModuleList(_AdaptedLayer(*shape) for shape in shapes)
        names = [name for name, _ in self.named_parameters() if name.startswith("layers.")]
        self.of_copy = tuple(name for name in names if not name.endswith(".weight"))
        self._vary()

    def another(self) -> _TabM:
        other = deepcopy(self)
        other._vary()
        return other

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        x = embeddings.flatten(-2)[..., self.inputs]
        for layer in self.layers:
            x = dropped_out(layer(x).relu(), self.dropout, random)
        return Encoding(x, embeddings)

    def _vary(self) -> None:
        """Draw the input factors of the first layer, one per feature: normal for embedded numbers, otherwise signs."""
        factors = torch.randn(len(self.widths))
        factors = factors if self.periodic else factors.sign()
        with torch.no_grad():
            self.layers[0].get_parameter("scale_in").copy_(factors.repeat_interleave(self.widths))


@register_encoder(
    "tabm-small",
    version=1,
    learning_rate=2e-3,
    hidden=64,
    numbers="scores",
    reference="Gorishniy, Kotelnikov & Babenko 2025",
)
class _TabMSmall(_TabM):
    """8 MLPs with shared weights and periodic embeddings of numbers, for CPUs, on normal scores of numbers."""

    Params = _TabMSmallParams


@dataclass(frozen=True)
class _ResNetParams:
    """Network sizes."""

    category_dim: int = 8
    """width of a category's embedding"""
    dim: int = 192
    """width of the row vector and of the residual stream"""
    hidden: int = 384
    """width inside a block"""
    depth: int = 2
    """number of blocks"""


class _ResidualBlock(nn.Module):
    """The block x + Linear(Dropout(ReLU(Linear(LayerNorm(x)))))."""

    def __init__(self, dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm = nn.LayerNorm(dim)
        self.widen = nn.Linear(dim, hidden)
        self.narrow = nn.Linear(hidden, dim)

    def forward(self, x: Tensor, random: Random | None) -> Tensor:
        """Map [..., dim] to the same shape."""
        return x + self.narrow(dropped_out(self.widen(self.norm(x)).relu(), self.dropout, random))


@register_encoder(
    "resnet", version=1, learning_rate=1e-3, hidden=64, numbers="scores", reference="Gorishniy et al. 2021"
)
class _ResNet(_FlatEncoder):
    """Residual network with LayerNorm, on normal scores of numbers."""

    Params = _ResNetParams
    missing: Tensor

    def __init__(self, schema: Schema, params: _ResNetParams, dropout: float) -> None:
        super().__init__()
        self.dim = params.dim
        self.register_parameter("missing", nn.Parameter(torch.zeros(schema.numeric)) if schema.numeric else None)
        self.add_features(schema, params.category_dim, -1, 1, lambda: self._filled)
        self.register_buffer("one_hot", self.one_hot, persistent=False)  # not in files of weights
        self.first = nn.Linear(len(self.inputs), params.dim)
        self.blocks = nn.ModuleList(_ResidualBlock(params.dim, params.hidden, dropout) for _ in range(params.depth))
        self.norm = nn.LayerNorm(params.dim)

    def _filled(self, rows: Rows) -> Tensor:
        return torch.where(rows.missing, self.missing, rows.numeric).unsqueeze(-1)

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        x = self.first(embeddings.flatten(-2)[..., self.inputs])
        for block in self.blocks:
            x = block(x, random)
        return Encoding(self.norm(x).relu(), embeddings)
