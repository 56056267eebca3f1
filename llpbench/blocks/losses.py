"""Losses on bags: pure functions of tensors. All means over bags respect their masks.

The residual of a bag is its mean prediction minus its proportions. If rows are independent of bags, the difference of
two residuals has no common offset. For all sizes m, (1/m_k + 1/m_l)^-1 |r_k - r_l|^2 is then an unbiased estimate of
sum_c Var(y_c - f_c), the Brier score without bias^2.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from llpbench.core.bags import Bags


def bag_log_proba(log_proba: Tensor, mask: Tensor) -> Tensor:
    """Return the log of each bag's mean prediction: logsumexp over its rows minus log of its size.

    `log_proba` [bags, size, classes], `mask` [bags, size] -> [bags, classes]. Stable in float32 without clamps.
    """
    inside = mask.unsqueeze(-1)
    total = log_proba.masked_fill(~inside, -torch.inf).logsumexp(dim=-2)
    return total - mask.sum(dim=-1, keepdim=True).log()


def proportion_loss(log_proba: Tensor, bags: Bags) -> Tensor:
    """Return KL(p || mean prediction of the bag), averaged over bags with known counts with equal weights.

    DLLP, Ardehaly & Culotta 2017. It uses the log of the mean, not the mean of the logs. Some published code confuses
    the two, so every row must match its bag's proportions. In bags of one row it is cross-entropy minus the entropy of
    the target.
    """
    target = bags.proportions
    divergence: Tensor = (torch.xlogy(target, target) - target * bag_log_proba(log_proba, bags.mask)).sum(dim=-1)
    return masked_mean(divergence, bags.known)


def count_loss(log_proba: Tensor, bags: Bags, exact: int = 12) -> Tensor:
    """Return -log P(counts), averaged over bags with known counts. Rows are independent given their predictions.

    The gradient with respect to a row's logits is its prediction minus its posterior given the count (Zhang et al.
    2020; count loss: Shukla et al. 2023). The loss is exact (Poisson-binomial) if the bags of a step, padded, have at
    most `exact` rows. Otherwise it is a normal approximation, with 1/12 added to the variance for rounding to whole
    counts. For more than two classes it is a sum over classes, each against the rest (a composite likelihood).
    """
    likelihood = _poisson_binomial if log_proba.shape[-2] <= exact else _normal
    chosen = [1] if log_proba.shape[-1] == 2 else list(range(log_proba.shape[-1]))
    sizes = bags.mask.sum(dim=-1)
    total = torch.zeros_like(bags.proportions[..., 0])
    for label in chosen:
        count = bags.proportions[..., label] * sizes
        total = total - likelihood(log_proba, label, bags.mask, count)
    return masked_mean(total, bags.known)


def _poisson_binomial(log_proba: Tensor, label: int, mask: Tensor, count: Tensor) -> Tensor:
    """Return log P(`count` rows of each bag are of class `label`) [bags]; `count` [bags] is nearly whole.

    It is computed in logarithms. Otherwise confident wrong predictions would have no loss or gradient: from a logit of
    17 on, 1 - p is 0 in float32.
    """
    others = [c for c in range(log_proba.shape[-1]) if c != label]
    # padding belongs to another class; the value is finite, since logaddexp of two infinities has no gradient
    yes = log_proba[..., label].masked_fill(~mask, _NEVER)
    no = log_proba[..., others].logsumexp(dim=-1).masked_fill(~mask, 0.0)
    known = torch.full_like(yes[..., :1], _NEVER).expand(*yes.shape[:-1], yes.shape[-1])
    known = torch.cat([torch.zeros_like(yes[..., :1]), known], dim=-1)
    for row in range(yes.shape[-1]):
        one_more = torch.nn.functional.pad(known[..., :-1], (1, 0), value=_NEVER) + yes[..., row, None]
        known = torch.logaddexp(known + no[..., row, None], one_more)
    here = torch.arange(known.shape[-1], device=known.device) == count.round().unsqueeze(-1)
    return torch.where(here, known, 0.0).sum(dim=-1)


_NEVER = -1e9


def _normal(log_proba: Tensor, label: int, mask: Tensor, count: Tensor) -> Tensor:
    """Return the normal approximation of `_poisson_binomial`, for counts that may be fractional."""
    p = log_proba[..., label].exp().masked_fill(~mask, 0.0)
    variance = (p * (1 - p)).sum(dim=-1) + 1 / 12
    return -(count - p.sum(dim=-1)).square() / (2 * variance) - (2 * torch.pi * variance).log() / 2


def info_nce(a: Tensor, b: Tensor, mask: Tensor, temperature: float | Tensor) -> Tensor:
    """Return the cross-entropy of finding each row among the rows of the other view, averaged over both directions.

    `a`, `b` [rows, dim] are of unit length; `mask` [rows]. SAINT, Somepalli et al. 2021, with a mean over rows.
    """
    # padding has a finite value, so that padded rows are not NaN
    similarity = ((a / temperature) @ b.T).masked_fill(~(mask.unsqueeze(-1) & mask.unsqueeze(-2)), -1e9)
    forward, backward = (similarity.log_softmax(dim=dim).diagonal() for dim in (1, 0))
    return masked_mean(-(forward + backward) / 2, mask)


def ramp_up(progress: Tensor, length: Tensor | float) -> Tensor:
    """Return exp(-5 (1 - t/T)^2), and 1 from T on: the ramp of Laine & Aila 2017, as in LLP-VAT and TabLLP-BDC."""
    return torch.exp(-5.0 * (1.0 - (progress / length).clamp(max=1.0)).square())


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the values selected by `mask`, 0 if there are none."""
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)


class BagMeans(NamedTuple):
    """Means of the values of rows in each bag."""

    means: Tensor
    """[bags, classes]"""
    sizes: Tensor
    """[bags] number of rows; 0 if counts are suppressed, so that no mean over bags uses the bag"""

    @classmethod
    def of(cls, values: Tensor, bags: Bags) -> BagMeans:
        """Return the means of `values` [bags, size, classes]."""
        total = values.masked_fill(~bags.mask.unsqueeze(-1), 0.0).sum(dim=-2)
        sizes = (bags.mask & bags.known.unsqueeze(-1)).sum(dim=-1).float()
        return cls(total / bags.mask.sum(dim=-1, keepdim=True).clamp(min=1), sizes)

    @classmethod
    def residuals(cls, log_proba: Tensor, bags: Bags) -> BagMeans:
        """Return mean prediction minus proportion of each bag, 0 if counts are suppressed."""
        means, sizes = cls.of(log_proba.exp(), bags)
        return cls((means - bags.proportions).masked_fill(~bags.known.unsqueeze(-1), 0.0), sizes)

    @property
    def overall(self) -> Tensor:
        """The mean of all rows [classes]."""
        return (self.means * self.sizes.unsqueeze(-1)).sum(dim=0) / self.sizes.sum().clamp(min=1.0)

    def of_others(self, alone: Tensor | float) -> Tensor:
        """Return the mean over the rows of all other bags [bags, classes]; `alone` if there are no other bags."""
        others = self.sizes.sum() - self.sizes
        weights = self.sizes.unsqueeze(0) * (1.0 - torch.eye(len(self.sizes), device=self.sizes.device))
        mean = (weights @ self.means) / others.clamp(min=1.0).unsqueeze(-1)
        return torch.where((others > 0).unsqueeze(-1), mean, alone)
