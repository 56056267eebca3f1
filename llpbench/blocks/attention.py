"""Attention and feed-forward blocks of SAINT (Somepalli et al. 2021).

Each is written in two layouts, with the same weights and the same result up to rounding. `forward` takes [..., tokens,
dim] and is the reference. `lanes` takes [blocks, dim, tokens, `LANES`]: a block holds a few rows, innermost, and fits a
CPU's cache. Attention over a row's few tokens is then element-wise. A compiler turns it into vector instructions across
rows instead of thousands of tiny matrix products, without transposes in between.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench.core.model import Random, dropped_out

LANES = 32
"""rows in a block"""


def _product_lanes(weight: Tensor, x: Tensor) -> Tensor:
    """Return the product of `weight` [out, dim] with the second dimension of `x` [blocks, dim, tokens, lanes]."""
    blocks, _, tokens, lanes = x.shape
    return torch.bmm(weight.expand(blocks, -1, -1), x.flatten(2)).unflatten(2, (tokens, lanes))


def _linear_lanes(layer: nn.Linear, x: Tensor) -> Tensor:
    """Apply `layer` along the second dimension of [blocks, dim, tokens, lanes]."""
    return _product_lanes(layer.weight, x) + layer.bias[:, None, None]


def _norm_lanes(layer: nn.LayerNorm, x: Tensor) -> Tensor:
    """Apply `layer` along the second dimension of [blocks, dim, tokens, lanes], in float32."""
    centred = x.float() - x.float().mean(dim=1, keepdim=True)
    scale = (centred.square().mean(dim=1, keepdim=True) + layer.eps).rsqrt()
    return centred * scale * layer.weight[:, None, None] + layer.bias[:, None, None]


class Attention(nn.Module):
    """Multi-head self-attention over the second-to-last dimension.

    Softmax is written out: rows have at most 40 tokens, and LLP-VAT needs second derivatives, which fused kernels lack.
    """

    def __init__(self, dim: int, heads: int, head_dim: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = head_dim**-0.5
        self.qkv = nn.Linear(dim, 3 * heads * head_dim, bias=False)
        self.out = nn.Linear(heads * head_dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map `x` [..., tokens, dim] to the same shape; `mask` [tokens] bool is False for tokens to ignore."""
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = (q * self.scale) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        mixed = scores.softmax(dim=-1) @ v
        return self.out(mixed.transpose(-3, -2).flatten(-2))

    def lanes(self, x: Tensor, part: slice) -> Tensor:
        """Map `x` [blocks, dim, tokens, lanes] to the same layout for the tokens of `part`, which attend to all."""
        queries, others = self.qkv.weight.tensor_split([len(self.qkv.weight) // 3])
        q = _product_lanes(queries, x[:, :, part]).unflatten(1, (self.heads, -1))  # [blocks, heads, dim, tokens, lanes]
        k, v = _product_lanes(others, x).unflatten(1, (2, self.heads, -1)).unbind(1)
        scores = ((q * self.scale).unsqueeze(4) * k.unsqueeze(3)).sum(dim=2)  # [blocks, heads, tokens, tokens, lanes]
        weights = scores.float().softmax(dim=3).to(v.dtype)
        mixed = (weights.unsqueeze(2) * v.unsqueeze(3)).sum(dim=4)
        return _linear_lanes(self.out, mixed.flatten(1, 2))


class _FeedForward(nn.Module):
    """Linear layer to eight times the width, GEGLU, dropout, linear layer back."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.widen = nn.Linear(dim, 8 * dim)
        self.narrow = nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor, random: Random | None) -> Tensor:
        value, gate = self.widen(x).chunk(2, dim=-1)
        return self.narrow(dropped_out(value * F.gelu(gate), self.dropout, random))

    def lanes(self, x: Tensor, random: Random | None) -> Tensor:
        """Map `x` [blocks, dim, tokens, lanes] to the same shape."""
        value, gate = _linear_lanes(self.widen, x).chunk(2, dim=1)
        return _linear_lanes(self.narrow, dropped_out(value * F.gelu(gate), self.dropout, random))


class Block(nn.Module):
    """Attention and feed-forward. The skip connection adds LN(x), as published, or x with `prenorm`."""

    def __init__(self, dim: int, heads: int, head_dim: int, dropout: float, prenorm: bool) -> None:
        super().__init__()
        self.prenorm = prenorm
        self.norm_attention = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, head_dim)
        self.norm_feed_forward = nn.LayerNorm(dim)
        self.feed_forward = _FeedForward(dim, dropout)

    def forward(self, x: Tensor, random: Random | None, mask: Tensor | None = None) -> Tensor:
        u = self.norm_attention(x)
        x = self.attention(u, mask) + (x if self.prenorm else u)
        u = self.norm_feed_forward(x)
        return self.feed_forward(u, random) + (x if self.prenorm else u)

    def lanes(self, x: Tensor, random: Random | None, part: slice = slice(None)) -> Tensor:
        """Map `x` [blocks, dim, tokens, lanes] to the same layout for the tokens of `part`."""
        u = _norm_lanes(self.norm_attention, x)
        x = self.attention.lanes(u, part) + (x if self.prenorm else u)[:, :, part]
        u = _norm_lanes(self.norm_feed_forward, x)
        return self.feed_forward.lanes(u, random) + (x if self.prenorm else u)
