"""TabM: MLPs that share their weights (Gorishniy, Kotelnikov & Babenko 2025).

All copies share each layer. A copy has its own input and output factors, biases and head. Initially, copies differ
only in the input factors of the first layer, one per feature. Training minimises the mean of their losses; the authors
call this crucial. So a bag loss gets the predictions of one copy at a time.

Differences from the authors' code:

- Weight decay and head come from the method.
- A category with more levels than `most_one_hot` has an embedding.
- A missing number has a learned value.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoding, Random
from llpbench.core.registry import register_encoder
from llpbench.encoders.realmlp import FlatEncoder, PeriodicEmbedding, RealMLPParams


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
        out: Tensor = (x * self.scale_in) @ self.weight * self.scale_out + self.bias
        return out


@register_encoder(
    "tabm", version=1, learning_rate=2e-3, hidden=64, numbers="scores", reference="Gorishniy, Kotelnikov & Babenko 2025"
)
class TabM(FlatEncoder):
    """32 MLPs with shared weights, trained by the mean of their losses, on normal scores of numbers."""

    Params: type[_TabMParams] = _TabMParams

    def __init__(self, schema: Schema, params: _TabMParams, dropout: float) -> None:
        super().__init__()
        self.copies, self.dim, self.dropout = params.copies, params.dim, dropout
        self.periodic = params.periodic
        sizes = RealMLPParams()
        number_dim = sizes.number_dim if params.periodic else 1
        widths = self.add_features(
            schema,
            params.category_dim,
            params.most_one_hot,
            number_dim,
            lambda: PeriodicEmbedding(schema.numeric, sizes) if params.periodic else _PlainNumbers(schema.numeric),
        )
        self.widths = torch.tensor(widths)
        """number of input columns of each feature"""
        shapes = pairwise([len(self.inputs), *[params.dim] * params.depth])
        self.layers = nn.ModuleList(_AdaptedLayer(*shape) for shape in shapes)
        names = [name for name, _ in self.named_parameters() if name.startswith("layers.")]
        self.of_copy = tuple(name for name in names if not name.endswith(".weight"))
        self._vary()

    def another(self) -> TabM:
        other = deepcopy(self)
        other._vary()
        return other

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        x = embeddings.flatten(-2)[..., self.inputs]
        for layer in self.layers:
            x = layer(x).relu()
            if random is not None:
                x = random.dropout(x, self.dropout)
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
class TabMSmall(TabM):
    """8 MLPs with shared weights and periodic embeddings of numbers, for CPUs, on normal scores of numbers."""

    Params = _TabMSmallParams
