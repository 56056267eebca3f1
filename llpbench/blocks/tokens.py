"""Embeddings of single features, vectorised over columns."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from llpbench.core.bags import Rows, Schema


class CategoricalTokens(nn.Module):
    """One embedding table for all categorical columns; code 0 of a column means missing or unseen."""

    offsets: Tensor

    def __init__(self, schema: Schema, dim: int) -> None:
        super().__init__()
        ends = torch.tensor((0, *schema.cardinalities)).cumsum(0)
        self.register_buffer("offsets", ends[:-1])
        self.table = nn.Embedding(int(ends[-1]), dim)

    def forward(self, rows: Rows) -> Tensor:
        """Return tokens [..., categorical features, dim]."""
        return self.table(rows.categorical + self.offsets)


class _NumericTokens(nn.Module):
    """A small MLP 1 -> hidden -> ReLU -> dim for each numeric column, with a learned vector for missing values."""

    def __init__(self, schema: Schema, hidden: int, dim: int) -> None:
        super().__init__()
        columns = schema.numeric
        # as in nn.Linear: uniform within 1/sqrt(number of inputs), which is 1 here
        self.weight_in = nn.Parameter(torch.empty(columns, hidden).uniform_(-1, 1))
        self.bias_in = nn.Parameter(torch.empty(columns, hidden).uniform_(-1, 1))
        bound = hidden**-0.5
        self.weight_out = nn.Parameter(torch.empty(columns, hidden, dim).uniform_(-bound, bound))
        self.bias_out = nn.Parameter(torch.empty(columns, dim).uniform_(-bound, bound))
        self.missing = nn.Parameter(torch.randn(columns, dim))

    def forward(self, rows: Rows) -> Tensor:
        """Return tokens [..., numeric features, dim]."""
        hidden = (rows.numeric.unsqueeze(-1) * self.weight_in + self.bias_in).relu()
        tokens = torch.einsum("...fh,fhd->...fd", hidden, self.weight_out) + self.bias_out
        return torch.where(rows.missing.unsqueeze(-1), self.missing, tokens)


class FeatureTokens(nn.Module):
    """All features of a row: categorical columns first, then numeric ones (SAINT's order)."""

    def __init__(self, schema: Schema, hidden: int, dim: int) -> None:
        super().__init__()
        self.categorical = CategoricalTokens(schema, dim) if schema.cardinalities else None
        self.numeric = _NumericTokens(schema, hidden, dim) if schema.numeric else None

    def forward(self, rows: Rows) -> Tensor:
        """Return tokens [..., features, dim]."""
        kinds = [tokens(rows) for tokens in (self.categorical, self.numeric) if tokens is not None]
        return torch.cat(kinds, dim=-2)
