"""MLP: concatenated feature embeddings under two layers with LayerNorm. Fast on a CPU.

LayerNorm replaces BatchNorm. In ordered bags, batch statistics come from one bag, so BatchNorm would differ between
training and test.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from llpbench.blocks.tokens import FeatureTokens
from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoder, Encoding, Random, dropped_out
from llpbench.core.registry import register_encoder


@dataclass(frozen=True)
class MLPParams:
    """Network sizes."""

    token_dim: int = 8
    """width of a feature's embedding"""
    numeric_hidden: int = 16
    """width of the MLP that embeds a number"""
    hidden: int = 128
    """width of the first layer"""
    dim: int = 64
    """width of the row vector"""


@register_encoder("mlp", version=1, learning_rate=1e-3, hidden=64)
class MLPEncoder(Encoder):
    """Feature embeddings under an MLP with LayerNorm: the encoder of the preset `quick`."""

    Params = MLPParams
    contextual = False

    def __init__(self, schema: Schema, params: MLPParams, dropout: float) -> None:
        super().__init__()
        self.dim, self.token_dim = params.dim, params.token_dim
        self.dropout = dropout
        self.features = FeatureTokens(schema, params.numeric_hidden, params.token_dim)
        self.first = nn.Linear(schema.features * params.token_dim, params.hidden)
        self.norm_first = nn.LayerNorm(params.hidden)
        self.second = nn.Linear(params.hidden, params.dim)
        self.norm_second = nn.LayerNorm(params.dim)

    def embed(self, rows: Rows) -> Tensor:
        return self.features(rows)

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        x = dropped_out(self.norm_first(self.first(embeddings.flatten(-2))).relu(), self.dropout, random)
        z = self.norm_second(self.second(x)).relu()
        return Encoding(z, embeddings)
