"""Losses on bags: pure functions of tensors. Every mean over a bag goes through its mask."""

from __future__ import annotations

import torch
from torch import Tensor

from llpbench.core.bags import Bags
from llpbench.core.method import Pairs


def bag_log_proba(log_proba: Tensor, mask: Tensor) -> Tensor:
    """Log of each bag's mean prediction: logsumexp over its rows minus log of its size.

    `log_proba` [bags, size, classes], `mask` [bags, size] -> [bags, classes]. Without clamps, stable in float32.
    """
    inside = mask.unsqueeze(-1)
    total = log_proba.masked_fill(~inside, -torch.inf).logsumexp(dim=-2)
    return total - mask.sum(dim=-1, keepdim=True).log()


def proportion_loss(log_proba: Tensor, bags: Bags) -> Tensor:
    """Mean over the known bags of KL(p || mean prediction of the bag), 0 where they agree. Every bag counts once.

    DLLP, Ardehaly & Culotta 2017. The log of the mean, not the mean of the logs: published code that confuses the two
    makes every row match its bag's proportions.
    On bags of one row it is cross-entropy (minus the target's entropy).
    """
    target = bags.proportions
    divergence: Tensor = (torch.xlogy(target, target) - target * bag_log_proba(log_proba, bags.mask)).sum(dim=-1)
    return masked_mean(divergence, bags.known)


def row_loss(log_proba: Tensor, bags: Bags) -> Tensor:
    """Mean over the known bags of mean_i KL(p || prediction of row i): each row has its bag's proportions for a label.

    The mean of the logs, where `proportion_loss` has the log of the mean; bag soft labels, in steps of whole bags.
    """
    target = bags.proportions.unsqueeze(-2)
    each = (torch.xlogy(target, target) - target * log_proba).sum(dim=-1).masked_fill(~bags.mask, 0.0)
    return masked_mean(each.sum(dim=-1) / bags.mask.sum(dim=-1), bags.known)


def count_loss(log_proba: Tensor, bags: Bags, exact: int = 12) -> Tensor:
    """Mean over the known bags of -log P(counts), rows independent given their predictions.

    Its gradient by a row's logits is its prediction minus its posterior given the count (Zhang et al. 2020; count loss:
    Shukla et al. 2023). Where no bag of the step has more than `exact` rows it is exact (Poisson-binomial), else the
    normal approximation with 1/12 added to the variance, that of rounding to a whole count. More than two classes: the
    sum over classes of each against the rest, a composite likelihood.
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
    """[bags] log P(`count` rows of each bag are of class `label`), `count` [bags] nearly whole.

    In logarithms, so that sure and wrong predictions have their loss and their gradient: 1 - p is 0 in float32 from a
    logit of 17 on.
    """
    others = [c for c in range(log_proba.shape[-1]) if c != label]
    # padding is certainly of another class; finite, as logaddexp of two infinities has no gradient
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
    """The normal approximation of `_poisson_binomial`, for counts that need not be whole."""
    p = log_proba[..., label].exp().masked_fill(~mask, 0.0)
    variance = (p * (1 - p)).sum(dim=-1) + 1 / 12
    return -(count - p.sum(dim=-1)).square() / (2 * variance) - (2 * torch.pi * variance).log() / 2


def info_nce(a: Tensor, b: Tensor, mask: Tensor, temperature: float | Tensor) -> Tensor:
    """Each row finds itself among the other view's rows: cross-entropy to the identity, both directions averaged.

    `a`, `b` [rows, dim] of unit length, `mask` [rows]. SAINT, Somepalli et al. 2021, with a mean over rows.
    """
    similarity = _among((a / temperature) @ b.T, mask, mask)
    forward, backward = (similarity.log_softmax(dim=dim).diagonal() for dim in (1, 0))
    return masked_mean(-(forward + backward) / 2, mask)


def instance_contrast(similarity: Tensor, mask: Tensor) -> Tensor:
    """Every row is its own positive, all others are negatives: mean_i -log softmax_j(similarity_ij)_i.

    `similarity` [..., rows, rows], `mask` [..., rows]. SelfCLR-LLP, Nandy et al. 2022. It spreads the rows, whatever
    their class.
    """
    chosen = _among(similarity, mask, mask).log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1)
    return masked_mean(-chosen, mask)


def difference_contrast(similarity: Tensor, pairs: Pairs, rows: Tensor, columns: Tensor, both: bool = True) -> Tensor:
    """Supervised InfoNCE of pseudo-positive pairs: each row finds its partner among the rows of the other bag.

    `similarity` [n, m] (already over the temperature), `rows` [n] and `columns` [m] bool: no padding. Mean over the
    positive pairs, 0 if there are none; of both directions or the first alone (TabLLP-BDC, L_Diff).
    """
    partner = pairs.partner.clamp(min=0)[:, None]
    similarity = _among(similarity, rows, columns)
    chosen = similarity.log_softmax(dim=1).gather(1, partner)
    if both:
        chosen = (chosen + similarity.log_softmax(dim=0).gather(1, partner)) / 2
    return masked_mean(-chosen.squeeze(1), pairs.positive)


def cosine_embedding(cosine: Tensor, pairs: Pairs, margin: float) -> Tensor:
    """Positive pairs are drawn together, the other assigned pairs pushed apart (torch's CosineEmbeddingLoss).

    `cosine` [n, m]; mean over all assigned pairs of 1 - cos, or max(0, cos - margin).
    """
    paired = cosine.gather(1, pairs.partner.clamp(min=0)[:, None]).squeeze(1)
    each = torch.where(pairs.positive, 1 - paired, (paired - margin).relu())
    return masked_mean(each, pairs.partner >= 0)


def bag_contrast(cosine: Tensor, similarity: Tensor, margin: float) -> Tensor:
    """Bags with similar proportions are drawn together, others pushed apart (TabLLP-BDC, L_Bag).

    (1 - M) max(0, cos - margin) + M (1 - cos); `cosine` of two bag vectors, `similarity` M of their proportions.
    """
    return (1 - similarity) * (cosine - margin).relu() + similarity * (1 - cosine)


def ramp_up(progress: Tensor, length: Tensor | float) -> Tensor:
    """exp(-5 (1 - t/T)^2), 1 from T on: the ramp of Laine & Aila 2017, as in LLP-VAT and TabLLP-BDC."""
    return torch.exp(-5.0 * (1.0 - (progress / length).clamp(max=1.0)).square())


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of the values where the mask is True, 0 if it is nowhere."""
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)


def _among(similarity: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Similarities [..., n, m] without any share of padding: finite, so that rows of padding are no NaN."""
    return similarity.masked_fill(~(rows.unsqueeze(-1) & columns.unsqueeze(-2)), -1e9)
