"""ResNet for tables: residual blocks of two linear layers (Gorishniy et al. 2021).

LayerNorm replaces the published BatchNorm, since batch statistics come from one bag in ordered bags. The first dropout
of a block uses the method's rate. There is no second dropout.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from llpbench.blocks.tokens import CategoricalTokens
from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoder, Encoding, Random
from llpbench.core.registry import register_encoder


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
        hidden = self.widen(self.norm(x)).relu()
        if random is not None:
            hidden = random.dropout(hidden, self.dropout)
        out: Tensor = x + self.narrow(hidden)
        return out


@register_encoder(
    "resnet", version=1, learning_rate=1e-3, hidden=64, numbers="scores", reference="Gorishniy et al. 2021"
)
class _ResNet(Encoder):
    """Residual network with LayerNorm, on normal scores of numbers."""

    Params = _ResNetParams
    contextual = False
    inputs: Tensor

    def __init__(self, schema: Schema, params: _ResNetParams, dropout: float) -> None:
        super().__init__()
        self.dim, self.token_dim = params.dim, params.category_dim
        self.categories = CategoricalTokens(schema, params.category_dim) if schema.cardinalities else None
        self.missing = nn.Parameter(torch.zeros(schema.numeric)) if schema.numeric else None
        # a number is the first entry of its token; the other entries are zero and not used
        width, first = params.category_dim, len(schema.cardinalities)
        numbers = torch.arange(first, first + schema.numeric) * width
        self.register_buffer("inputs", torch.cat([torch.arange(first * width), numbers]))
        self.first = nn.Linear(len(self.inputs), params.dim)
        self.blocks = nn.ModuleList(_ResidualBlock(params.dim, params.hidden, dropout) for _ in range(params.depth))
        self.norm = nn.LayerNorm(params.dim)

    def embed(self, rows: Rows) -> Tensor:
        kinds = [] if self.categories is None else [self.categories(rows)]
        if self.missing is not None:
            numbers = torch.where(rows.missing, self.missing, rows.numeric).unsqueeze(-1)
            kinds.append(torch.cat([numbers, numbers.new_zeros(*numbers.shape[:-1], self.token_dim - 1)], dim=-1))
        return torch.cat(kinds, dim=-2)

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        x = self.first(embeddings.flatten(-2)[..., self.inputs])
        for block in self.blocks:
            x = block(x, random)
        return Encoding(self.norm(x).relu(), embeddings)
