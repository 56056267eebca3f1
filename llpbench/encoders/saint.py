"""SAINT: feature tokens and a [CLS] token under a transformer (Somepalli et al. 2021).

- `saint` has the block of the authors' code, which the paper used: attention and feed-forward each add their output to
  the *normalised* input.
- `saint-prenorm` has the textbook pre-norm block and a final LayerNorm.
- `saint-row` adds attention between the rows of a step (SAINT's "colrow", depth 1). A row's prediction then
  depends on the other rows.

The attention dropout of the authors' code, which was never applied, and its unused parameters are omitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench.blocks.attention import LANES, Block
from llpbench.blocks.tokens import FeatureTokens
from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoder, Encoding, Random
from llpbench.core.registry import register_encoder


@dataclass(frozen=True)
class _SaintParams:
    """Published sizes."""

    dim: int = 32
    """width of a token"""
    depth: int = 6
    """number of blocks"""
    heads: int = 8
    head_dim: int = 16
    numeric_hidden: int = 100
    """width of the MLP that embeds a number"""


@register_encoder("saint", version=1, learning_rate=1e-4, hidden=256, reference="Somepalli et al. 2021")
class _Saint(Encoder):
    """SAINT with attention between columns, with the published block."""

    Params = _SaintParams
    compiles = True
    prenorm: ClassVar[bool] = False

    def __init__(self, schema: Schema, params: _SaintParams, dropout: float) -> None:
        super().__init__()
        self.dim = self.token_dim = params.dim
        self.features = FeatureTokens(schema, params.numeric_hidden, params.dim)
        self.cls = nn.Parameter(torch.randn(params.dim))
        self.blocks = nn.ModuleList(
            Block(params.dim, params.heads, params.head_dim, dropout, self.prenorm) for _ in range(params.depth)
        )
        self.norm = nn.LayerNorm(params.dim) if self.prenorm else nn.Identity()

    def embed(self, rows: Rows) -> Tensor:
        return self.features(rows)

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        x = torch.cat([self.cls.expand(*embeddings.shape[:-2], 1, self.dim), embeddings], dim=-2)
        z, tokens = self.transform(x, mask, random)
        return Encoding(self.norm(z), self.norm(tokens))

    def transform(self, x: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        """Pass [bags, size, tokens, dim] through every block; [CLS] comes first."""
        if torch.compiler.is_compiling() and x.device.type == "cpu":
            return self._by_lanes(x, random)
        for block in self.blocks:
            x = block(x, random)
        return Encoding(x[..., 0, :], x[..., 1:, :])

    def _by_lanes(self, x: Tensor, random: Random | None) -> Encoding:
        """Run `transform` in the layout that is fast on a CPU if compiled.

        The last block computes [CLS] and the feature tokens one after the other. The compiler skips the tokens if they
        are not used.
        """
        rows = x.flatten(0, -3)
        lanes = _to_lanes(rows)
        *blocks, last = cast("list[Block]", list(self.blocks))
        for block in blocks:
            lanes = block.lanes(lanes, random)
        z, tokens = (
            last.lanes(lanes, random, part).permute(0, 3, 2, 1).flatten(0, 1)[: len(rows)].unflatten(0, x.shape[:-2])
            for part in (slice(1), slice(1, None))
        )
        return Encoding(z.squeeze(-2), tokens)


def _to_lanes(x: Tensor) -> Tensor:
    """Return [rows, tokens, dim] as [blocks, dim, tokens, `LANES`]; zeros fill the last block."""
    rows, tokens, dim = x.shape
    padded = F.pad(x, (0, 0, 0, 0, 0, -rows % LANES))
    return padded.view(-1, LANES, tokens, dim).permute(0, 3, 2, 1)


@register_encoder("saint-prenorm", version=1, learning_rate=1e-4, hidden=256, reference="Somepalli et al. 2021")
class _SaintPrenorm(_Saint):
    """SAINT with attention between columns, textbook pre-norm blocks and a final LayerNorm."""

    prenorm = True


@dataclass(frozen=True)
class _SaintRowParams(_SaintParams):
    """Published sizes with attention between rows."""

    depth: int = 1
    heads: int = 4
    row_head_dim: int = 64
    """head width of the attention between rows"""


@register_encoder("saint-row", version=1, learning_rate=1e-4, hidden=256, reference="Somepalli et al. 2021")
class _SaintRow(_Saint):
    """SAINT with attention between columns and between the rows of a step, with depth 1."""

    Params = _SaintRowParams
    compiles = False  # a single block
    row_interaction = True

    def __init__(self, schema: Schema, params: _SaintRowParams, dropout: float) -> None:
        super().__init__(schema, params, dropout)
        width = (schema.features + 1) * params.dim
        self.row_blocks = nn.ModuleList(
            Block(width, params.heads, params.row_head_dim, dropout, self.prenorm) for _ in range(params.depth)
        )

    def transform(self, x: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        bags, size, tokens, dim = x.shape
        for block, row_block in zip(self.blocks, self.row_blocks, strict=True):
            x = block(x, random)
            rows = row_block(x.reshape(bags * size, tokens * dim), random, mask.reshape(-1))
            x = rows.reshape(bags, size, tokens, dim)
        return Encoding(x[..., 0, :], x[..., 1:, :])
