"""Moment matching: predict the classes of several rows of a bag together, as the counts determine them.

    L = mean over r ≤ order of CE( counted classes of r rows, predicted classes of r rows )
    counted: from the counts nₖ, drawing rows without replacement

LLP-MM 2026. For r = 1 .. order, compare two distributions of the classes of r different rows drawn from a bag:

- predicted, with independent rows: M_r(c_1 .. c_r) = (1 / (m)_r) sum over different i_1 .. i_r of the product of P_(i_j
  c_j)
- counted: the product of (n_(c_j) - the number of earlier c_j) / (m)_r

L = mean over r of the cross-entropy of the two. Order 1 is DLLP plus the entropy of the proportions. Order m, with all
rows of the bag, is the likelihood of its counts. Differences from the published code:

- Orders up to 3 use sums of powers instead of a dynamic programme over rows. This needs no loop and works in float32.
- The mean of a bag skips orders above its number of rows. With more than ten classes, orders stop at 2.
- Noisy counts may be fractional and give negative probabilities. These become 0, and the others are scaled to add to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from llpbench import Bags, Choice, Method, MethodParams, Model, Now, losses, register_method

UNIFORM = 1e-4
"""weight of the uniform distribution in predictions of pairs and triples, whose probabilities may round to 0"""
MANY = 10
"""largest number of classes for which triples are used"""


@dataclass(frozen=True)
class _MomentParams(MethodParams):
    order: Annotated[int, Choice(1, 2, 3)] = 3
    """largest number of rows drawn together"""


@register_method("moment-matching", version=1, reference="LLP-MM 2026", extra=True)
class MomentMatching(Method):
    """Match the classes of one, two and three rows of a bag to its counts."""

    Params = _MomentParams
    params: _MomentParams

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the loss, averaged over orders and over bags with known counts."""
        return _moment_loss(model.log_proba(bags), bags, self.params.order)


def _moment_loss(log_proba: Tensor, bags: Bags, order: int, uniform: float = UNIFORM) -> Tensor:
    """Return the mean cross-entropy of orders 1 to `order`, averaged over bags with known counts."""
    sizes = bags.mask.sum(dim=-1).float()
    classes = log_proba.shape[-1]
    total = -(bags.proportions * losses.bag_log_proba(log_proba, bags.mask)).sum(dim=-1)
    orders = torch.ones_like(total)
    for r in range(2, min(order, 2 if classes > MANY else 3) + 1):
        predicted = _drawn_classes(log_proba.exp().masked_fill(~bags.mask.unsqueeze(-1), 0.0), sizes, r)
        smooth = (1 - uniform) * predicted.clamp(min=0) + uniform / classes**r
        target = _counted_classes(bags.proportions * sizes.unsqueeze(-1), r)
        each = -(target * smooth.clamp(min=torch.finfo(smooth.dtype).tiny).log()).flatten(1).sum(dim=-1)
        total, orders = total + torch.where(sizes >= r, each, 0.0), orders + (sizes >= r)
    return losses.masked_mean(total / orders, bags.known)


def _drawn_classes(proba: Tensor, sizes: Tensor, order: int) -> Tensor:
    """Return P(classes of `order` different rows) [bags, classes, ..]; `proba` [bags, size, classes], 0 in padding."""
    one = proba.sum(dim=1)
    two = torch.einsum("kia,kib->kab", proba, proba)
    if order == 2:
        pairs = one[:, :, None] * one[:, None, :] - two
        return pairs / (sizes * (sizes - 1)).clamp(min=1)[:, None, None]
    three = torch.einsum("kia,kib,kic->kabc", proba, proba, proba)
    a, b, c = one[:, :, None, None], one[:, None, :, None], one[:, None, None, :]
    ab, ac, bc = two[:, :, :, None], two[:, :, None, :], two[:, None, :, :]
    triples = a * b * c - ab * c - ac * b - bc * a + 2 * three
    return triples / (sizes * (sizes - 1) * (sizes - 2)).clamp(min=1)[:, None, None, None]


def _counted_classes(counts: Tensor, order: int) -> Tensor:
    """Return P(classes of `order` rows drawn without replacement), from `counts` [bags, classes]."""
    same = torch.eye(counts.shape[-1], device=counts.device, dtype=counts.dtype)
    law = (counts[:, :, None] * (counts[:, None, :] - same)).clamp(min=0)
    if order == 3:
        law = law[..., None] * (counts[:, None, None, :] - same[:, None, :] - same[None, :, :]).clamp(min=0)
    total = law.flatten(1).sum(dim=-1).reshape(-1, *[1] * order)
    return torch.where(total > 0, law / total.clamp(min=1e-30), 0.0)
