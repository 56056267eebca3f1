"""SAINT: feature tokens and a [CLS] token under a transformer (Somepalli et al. 2021).

`saint` is the block as published in the authors' code, which the paper used: attention and feed-forward each add their
output to the *normalised* input. `saint-prenorm` is the textbook pre-norm block with a final LayerNorm. `saint-row`
adds attention between the rows of a step (SAINT's "colrow", depth 1): there a row's prediction depends on the others.

Left out of the published code: its attention dropout, which is created but never applied, and its dead parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench.bags import Rows, Schema
from llpbench.encoders._tokens import FeatureTokens
from llpbench.model import Encoder, Encoding, Random
from llpbench.registry import register_encoder


@dataclass(frozen=True)
class SaintParams:
    """The published sizes."""

    dim: int = 32
    """width of a token"""
    depth: int = 6
    """blocks"""
    heads: int = 8
    head_dim: int = 16
    numeric_hidden: int = 100
    """width of the MLP that embeds a number"""


class Attention(nn.Module):
    """Multi-head self-attention over the second-to-last dimension.

    Softmax is written out: rows have at most 40 tokens, and the backward of a fused kernel cannot be differentiated
    again, which LLP-VAT needs.
    """

    def __init__(self, dim: int, heads: int, head_dim: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = head_dim**-0.5
        self.qkv = nn.Linear(dim, 3 * heads * head_dim, bias=False)
        self.out = nn.Linear(heads * head_dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`x` [..., tokens, dim]; `mask` [tokens] bool, False where a token must not be attended to."""
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = (q * self.scale) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        mixed = scores.softmax(dim=-1) @ v
        out: Tensor = self.out(mixed.transpose(-3, -2).flatten(-2))
        return out


class FeedForward(nn.Module):
    """Linear to eight times the width, GEGLU, dropout, linear back."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.widen = nn.Linear(dim, 8 * dim)
        self.narrow = nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor, random: Random | None) -> Tensor:
        value, gate = self.widen(x).chunk(2, dim=-1)
        hidden = value * F.gelu(gate)
        if random is not None:
            hidden = random.dropout(hidden, self.dropout)
        narrowed: Tensor = self.narrow(hidden)
        return narrowed


class Block(nn.Module):
    """Attention and feed-forward. The skip path carries LN(x) as published, or x (`prenorm`)."""

    def __init__(self, dim: int, heads: int, head_dim: int, dropout: float, prenorm: bool) -> None:
        super().__init__()
        self.prenorm = prenorm
        self.norm_attention = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, head_dim)
        self.norm_feed_forward = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim, dropout)

    def forward(self, x: Tensor, random: Random | None, mask: Tensor | None = None) -> Tensor:
        u = self.norm_attention(x)
        x = self.attention(u, mask) + (x if self.prenorm else u)
        u = self.norm_feed_forward(x)
        out: Tensor = self.feed_forward(u, random) + (x if self.prenorm else u)
        return out


@register_encoder("saint", learning_rate=1e-4, hidden=256, reference="Somepalli et al. 2021")
class Saint(Encoder):
    """SAINT with attention between columns, the block as published."""

    Params = SaintParams
    prenorm: ClassVar[bool] = False

    def __init__(self, schema: Schema, params: SaintParams, dropout: float) -> None:
        super().__init__()
        self.dim = self.token_dim = params.dim
        self.features = FeatureTokens(schema, params.numeric_hidden, params.dim)
        self.cls = nn.Parameter(torch.randn(params.dim))
        self.blocks = nn.ModuleList(
            Block(params.dim, params.heads, params.head_dim, dropout, self.prenorm) for _ in range(params.depth)
        )
        self.norm = nn.LayerNorm(params.dim) if self.prenorm else nn.Identity()

    def embed(self, rows: Rows) -> Tensor:
        embedded: Tensor = self.features(rows)
        return embedded

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        x = torch.cat([self.cls.expand(*embeddings.shape[:-2], 1, self.dim), embeddings], dim=-2)
        x = self.norm(self.transform(x, mask, random))
        return Encoding(x[..., 0, :], x[..., 1:, :])

    def transform(self, x: Tensor, mask: Tensor, random: Random | None) -> Tensor:
        """[bags, size, tokens, dim] -> the same, through every block."""
        del mask  # a row never looks at another
        for block in self.blocks:
            x = block(x, random)
        return x


@register_encoder("saint-prenorm", learning_rate=1e-4, hidden=256, reference="Somepalli et al. 2021")
class SaintPrenorm(Saint):
    """SAINT with attention between columns, textbook pre-norm blocks and a final LayerNorm."""

    prenorm = True


@dataclass(frozen=True)
class SaintRowParams(SaintParams):
    """The published sizes where rows attend to rows."""

    depth: int = 1
    heads: int = 4
    row_head_dim: int = 64
    """head width of the attention between rows"""


@register_encoder("saint-row", learning_rate=1e-4, hidden=256, reference="Somepalli et al. 2021")
class SaintRow(Saint):
    """SAINT with attention between columns and between the rows of a step; depth 1."""

    Params = SaintRowParams
    row_interaction = True

    def __init__(self, schema: Schema, params: SaintRowParams, dropout: float) -> None:
        super().__init__(schema, params, dropout)
        width = (schema.features + 1) * params.dim
        self.row_blocks = nn.ModuleList(
            Block(width, params.heads, params.row_head_dim, dropout, self.prenorm) for _ in range(params.depth)
        )

    def transform(self, x: Tensor, mask: Tensor, random: Random | None) -> Tensor:
        bags, size, tokens, dim = x.shape
        for block, row_block in zip(self.blocks, self.row_blocks, strict=True):
            x = block(x, random)
            rows = row_block(x.reshape(bags * size, tokens * dim), random, mask.reshape(-1))
            x = rows.reshape(bags, size, tokens, dim)
        return x
