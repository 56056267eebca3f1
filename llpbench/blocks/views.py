"""Two views of the same row, for self-contrastive learning in pretraining and in methods with such a term.

*Feature mixup* (SAINT, Somepalli et al. 2021): CutMix replaces single cells by those of another row, then MixUp blends
the embeddings with another row's. *Separated representation* (TabLLP-BDC) needs no augmentation: one view is the row
vector, the other the feature tokens of the same forward pass.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench.blocks.losses import info_nce
from llpbench.blocks.sampling import at, some_rows
from llpbench.core.bags import Bags, Rows, Schema
from llpbench.core.model import MLP, Encoder, Encoding, Model, Random

View = Literal["mixup", "separated"]


class Projectors(nn.Module):
    """Projectors g1 and g2 from two views of a row to comparable vectors of unit length (SAINT's "diff" projectors).

    For mixed views, their input is the row vector and the feature tokens, each of unit length, concatenated. If the
    encoder's tokens are not contextual, it is the row vector alone. Three layers, like the prediction head.
    """

    def __init__(self, encoder: Encoder, schema: Schema, hidden: int, view: View = "mixup") -> None:
        super().__init__()
        self.view = view
        self.contextual = encoder.contextual
        tokens = schema.features * encoder.token_dim
        whole = encoder.dim + tokens if encoder.contextual else encoder.dim
        first, second = (encoder.dim, tokens) if view == "separated" else (whole, whole)
        self.g1 = MLP(first, hidden, hidden, encoder.dim)
        self.g2 = MLP(second, hidden, hidden, encoder.dim)

    def forward(self, clean: Encoding, other: Encoding) -> tuple[Tensor, Tensor]:
        """Return two [..., dim] of unit length; separated views take both from `clean`."""
        if self.view == "separated":
            first, second = clean.z, clean.tokens.flatten(-2)
        else:
            first, second = self._whole(clean), self._whole(other)
        return F.normalize(self.g1(first).float(), dim=-1), F.normalize(self.g2(second).float(), dim=-1)

    def _whole(self, encoding: Encoding) -> Tensor:
        z = F.normalize(encoding.z, dim=-1)
        return torch.cat([z, F.normalize(encoding.tokens, dim=-1).flatten(-2)], dim=-1) if self.contextual else z


def self_contrast(
    projectors: Any,
    clean: Encoding,
    other: Encoding,
    mask: Tensor,
    temperature: float | Tensor,
    random: Random | None,
) -> Tensor:
    """Return InfoNCE of two views of a step's rows (of long bags, a sample: `sampling.py`); `mask` [bags, size]."""
    chosen = some_rows(mask, random)
    first, second = (at(view, chosen).flatten(0, -2) for view in projectors(clean, other))
    return info_nce(first, second, at(mask, chosen).flatten(), temperature)


def mixed_view(model: Model, bags: Bags, cutmix: float, mixup: float) -> Encoding:
    """Encode rows with some cells replaced (probability `cutmix`) and their embeddings blended.

    e' = mixup * own + (1 - mixup) * another row's. SAINT publishes mixup = 0.3: the view is mostly another row.
    """
    assert model.random is not None
    encoder = model.network.encoder
    rows = cut_mix(bags.rows, bags.mask, cutmix, model.random)
    embeddings = encoder.embed(rows)
    flat = embeddings.flatten(0, 1)
    others = flat[random_partner(bags.mask.flatten(), model.random)].view_as(embeddings)
    encoding: Encoding = encoder.encode(mixup * embeddings + (1 - mixup) * others, bags.mask, model.random)
    return encoding


def cut_mix(rows: Rows, mask: Tensor, probability: float, random: Random) -> Rows:
    """Replace each cell, with `probability`, by the same column of another row of the step (one row for all cells)."""
    partner = random_partner(mask.flatten(), random)
    shape = mask.shape

    def mix(values: Tensor, replaced: Tensor) -> Tensor:
        others = values.flatten(0, 1)[partner].view_as(values)
        return torch.where(replaced, others, values)

    numeric = random.uniform(*shape, rows.numeric.shape[-1]) < probability
    categorical = random.uniform(*shape, rows.categorical.shape[-1]) < probability
    return Rows(mix(rows.numeric, numeric), mix(rows.categorical, categorical), mix(rows.missing, numeric))


def random_partner(mask: Tensor, random: Random) -> Tensor:
    """Return a random permutation of the rows where `mask` [rows] is True, and of padding by itself. [rows] int64"""
    ordered = mask.logical_not().int().argsort(stable=True)  # rows first, then padding
    shuffled = (random.bits(len(mask)) + mask.logical_not() * 2**32).argsort()
    return torch.zeros_like(shuffled).scatter(0, ordered, shuffled)
