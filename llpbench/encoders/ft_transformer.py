"""FT-Transformer: linear feature tokens and a [CLS] token under a pre-norm transformer (Gorishniy et al. 2021).

As in the authors' code, there is no normalisation before the first attention; they call this crucial. Differences from
the authors' code:

- The feed-forward part uses the method's dropout rate.
- Weight decay also applies to tokens, norms and biases.
- The method's head replaces the linear layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoder, Encoding, Random, dropped_out
from llpbench.core.registry import register_encoder


@dataclass(frozen=True)
class _FTTransformerParams:
    """Published sizes with three blocks."""

    dim: int = 192
    """width of a token"""
    depth: int = 3
    """number of blocks"""
    heads: int = 8
    """attention heads"""
    attention_dropout: float = 0.2
    """dropout of attention weights"""


@dataclass(frozen=True)
class _FTTransformerSmallParams(_FTTransformerParams):
    """Published sizes with one block."""

    dim: int = 96
    depth: int = 1
    attention_dropout: float = 0.1


class _LinearTokens(nn.Module):
    """A linear token for each feature: x w + b for a number x, embedding + b for a category.

    Categorical columns come first. A missing number has a learned vector, as in `blocks.tokens`.
    """

    offsets: Tensor

    def __init__(self, schema: Schema, dim: int) -> None:
        super().__init__()

        def uniform(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*shape).uniform_(-(dim**-0.5), dim**-0.5))

        ends = torch.tensor((0, *schema.cardinalities)).cumsum(0)
        self.register_buffer("offsets", ends[:-1])
        self.categories = uniform(int(ends[-1]), dim) if schema.cardinalities else None
        self.weight = uniform(schema.numeric, dim) if schema.numeric else None
        self.missing = uniform(schema.numeric, dim) if schema.numeric else None
        self.bias = uniform(len(schema.cardinalities) + schema.numeric, dim)

    def forward(self, rows: Rows) -> Tensor:
        """Return tokens [..., features, dim]."""
        kinds = []
        if self.categories is not None:
            kinds.append(self.categories[rows.categorical + self.offsets])
        if self.weight is not None and self.missing is not None:
            numbers = rows.numeric.unsqueeze(-1) * self.weight
            kinds.append(torch.where(rows.missing.unsqueeze(-1), self.missing, numbers))
        return torch.cat(kinds, dim=-2) + self.bias


class _FTBlock(nn.Module):
    """Pre-norm attention and feed-forward with ReGLU."""

    def __init__(self, params: _FTTransformerParams, dropout: float, *, first: bool) -> None:
        super().__init__()
        dim, hidden = params.dim, 4 * params.dim // 3
        self.heads, self.attention_dropout, self.dropout = params.heads, params.attention_dropout, dropout
        self.norm_attention = nn.Identity() if first else nn.LayerNorm(dim)
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.norm_feed_forward = nn.LayerNorm(dim)
        self.widen = nn.Linear(dim, 2 * hidden)
        self.narrow = nn.Linear(hidden, dim)
        for layer in (self.query, self.key, self.value, self.out):
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, random: Random | None) -> Tensor:
        """Map [..., tokens, dim] to the same shape."""
        x = x + self._attention(self.norm_attention(x), random)
        value, gate = self.widen(self.norm_feed_forward(x)).chunk(2, dim=-1)
        return x + self.narrow(dropped_out(value * gate.relu(), self.dropout, random))

    def _attention(self, x: Tensor, random: Random | None) -> Tensor:
        """Attend with an explicit softmax: the backward pass of a fused kernel cannot be differentiated again."""
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(-3, -2) for layer in (self.query, self.key, self.value)
        )
        weights = ((q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)).softmax(dim=-1)
        weights = dropped_out(weights, self.attention_dropout, random)
        return self.out((weights @ v).transpose(-3, -2).flatten(-2))


@register_encoder(
    "ft-transformer", version=1, learning_rate=1e-4, hidden=64, numbers="scores", reference="Gorishniy et al. 2021"
)
class _FTTransformer(Encoder):
    """FT-Transformer with three blocks, on normal scores of numbers."""

    Params = _FTTransformerParams
    compiles = True

    def __init__(self, schema: Schema, params: _FTTransformerParams, dropout: float) -> None:
        super().__init__()
        self.dim = self.token_dim = params.dim
        self.features = _LinearTokens(schema, params.dim)
        self.cls = nn.Parameter(torch.empty(params.dim).uniform_(-(params.dim**-0.5), params.dim**-0.5))
        self.blocks = nn.ModuleList(_FTBlock(params, dropout, first=place == 0) for place in range(params.depth))
        self.norm = nn.LayerNorm(params.dim)

    def embed(self, rows: Rows) -> Tensor:
        return self.features(rows)

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        x = torch.cat([self.cls.expand(*embeddings.shape[:-2], 1, self.dim), embeddings], dim=-2)
        for block in self.blocks:
            x = block(x, random)
        x = self.norm(x)
        return Encoding(x[..., 0, :].relu(), x[..., 1:, :])


@register_encoder(
    "ft-transformer-small",
    version=1,
    learning_rate=1e-4,
    hidden=64,
    numbers="scores",
    reference="Gorishniy et al. 2021",
)
class _FTTransformerSmall(_FTTransformer):
    """FT-Transformer with one narrow block, for CPUs, on normal scores of numbers."""

    Params = _FTTransformerSmallParams
    compiles = False
