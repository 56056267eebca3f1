"""Two views of the same row, for self-contrastive learning in pretraining and in methods with such a term.

*Feature mixup* (SAINT, Somepalli et al. 2021): CutMix replaces single values by those of another row. Then MixUp blends
the embeddings with those of another row. *Separated representation* (TabLLP-BDC) needs no augmentation: one view is the
row vector, the other the feature tokens of the same forward pass.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from llpbench.blocks.losses import info_nce
from llpbench.core.bags import Bags, Rows, Schema
from llpbench.core.model import MLP, Encoder, Encoding, Model, Random

MOST_COMPARED = 1024
"""largest number of rows of a bag that are compared; no bag of the paper is larger"""


def some_rows(mask: Tensor, random: Random | None, most: int = MOST_COMPARED) -> Tensor | None:
    """Return the positions [bags, most] of a sample of each bag in `mask` [bags, rows], or None for all rows.

    If every row is compared with every other, time and memory grow with the square of the rows. Larger bags are
    therefore represented by a random sample without replacement, padding last.

    Without a random stream, as in prediction, the sample is always the same.
    """
    if mask.shape[-1] <= most:
        return None
    stream = random if random is not None else Random(torch.zeros((), dtype=torch.int64, device=mask.device))
    return (stream.bits(*mask.shape) + mask.logical_not() * 2**32).argsort(dim=-1)[..., :most]


def at(values: Tensor, chosen: Tensor | None) -> Tensor:
    """Return `values` [bags, rows] or [bags, rows, dim] of the rows `chosen` [bags, most]; None: all rows."""
    if chosen is None:
        return values
    if values.dim() == chosen.dim():
        return values.gather(-1, chosen)
    return values.gather(-2, chosen.unsqueeze(-1).expand(*chosen.shape, values.shape[-1]))


class Projectors(nn.Module):
    """Projectors g1 and g2 from two views of a row to comparable vectors of unit length (SAINT's "diff" projectors).

    They have three layers, like the prediction head. For mixed views, their input is the concatenated row vector and
    feature tokens, each of unit length. If the encoder's tokens are not contextual, it is the row vector alone. `view`
    is `mixup` or `separated`.
    """

    def __init__(self, encoder: Encoder, schema: Schema, hidden: int, view: str = "mixup") -> None:
        super().__init__()
        self.view = view
        self.contextual = encoder.contextual
        tokens = schema.features * encoder.token_dim
        whole = encoder.dim + tokens if encoder.contextual else encoder.dim
        first, second = (encoder.dim, tokens) if view == "separated" else (whole, whole)
        self.g1 = MLP(first, hidden, hidden, encoder.dim)
        self.g2 = MLP(second, hidden, hidden, encoder.dim)

    def forward(self, clean: Encoding, other: Encoding) -> tuple[Tensor, Tensor]:
        """Return two vectors [..., dim] of unit length; separated views are both computed from `clean`."""
        if self.view == "separated":
            first, second = clean.z, clean.tokens.flatten(-2)
        else:
            first, second = self._whole(clean), self._whole(other)
        return F.normalize(self.g1(first).float(), dim=-1), F.normalize(self.g2(second).float(), dim=-1)

    def contrast(
        self, clean: Encoding, other: Encoding, mask: Tensor, temperature: float | Tensor, random: Random | None
    ) -> Tensor:
        """Return InfoNCE of two views of a step's rows; large bags are sampled (`some_rows`); `mask` [bags, size]."""
        chosen = some_rows(mask, random)
        first, second = (at(view, chosen).flatten(0, -2) for view in self(clean, other))
        return info_nce(first, second, at(mask, chosen).flatten(), temperature)

    def _whole(self, encoding: Encoding) -> Tensor:
        z = F.normalize(encoding.z, dim=-1)
        return torch.cat([z, F.normalize(encoding.tokens, dim=-1).flatten(-2)], dim=-1) if self.contextual else z


def mixed_view(model: Model, bags: Bags, cutmix: float, mixup: float) -> Encoding:
    """Encode rows with some values replaced (with probability `cutmix`) and with blended embeddings.

    An embedding becomes mixup * own + (1 - mixup) * another row's. In SAINT mixup is 0.3: mostly another row.
    """
    assert model.random is not None
    encoder = model.network.encoder
    rows = _cut_mix(bags.rows, bags.mask, cutmix, model.random)
    embeddings = encoder.embed(rows)
    flat = embeddings.flatten(0, 1)
    others = flat[random_partner(bags.mask.flatten(), model.random)].view_as(embeddings)
    return encoder.encode(mixup * embeddings + (1 - mixup) * others, bags.mask, model.random)


def _cut_mix(rows: Rows, mask: Tensor, probability: float, random: Random) -> Rows:
    """Replace each value, with `probability`, by that of another row of the step (the same row for all values)."""
    partner = random_partner(mask.flatten(), random)
    shape = mask.shape

    def mix(values: Tensor, replaced: Tensor) -> Tensor:
        others = values.flatten(0, 1)[partner].view_as(values)
        return torch.where(replaced, others, values)

    numeric = random.uniform(*shape, rows.numeric.shape[-1]) < probability
    categorical = random.uniform(*shape, rows.categorical.shape[-1]) < probability
    return Rows(mix(rows.numeric, numeric), mix(rows.categorical, categorical), mix(rows.missing, numeric))


def random_partner(mask: Tensor, random: Random) -> Tensor:
    """Return a random permutation [rows] int64 that maps real rows (`mask` [rows]) to real rows."""
    ordered = mask.logical_not().int().argsort(stable=True)  # rows first, then padding
    shuffled = (random.bits(len(mask)) + mask.logical_not() * 2**32).argsort()
    return torch.zeros_like(shuffled).scatter(0, ordered, shuffled)
