"""Attention and feed-forward blocks, as SAINT has them (Somepalli et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench.core.model import Random


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
