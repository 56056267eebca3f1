"""Computation of validation criteria and test metrics. Their names and directions are in `criteria.py`.

The functions for validation process all members of a population at once (leading dimension [members]) on the device.
Only their results are copied. Test metrics are computed once per run, with scikit-learn if it has them.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from llpbench.core.bags import FloatArray, Holdout, IntArray
from llpbench.core.record import Judged

_LEAST = 1e-15
"""smallest probability, so that a certain and wrong prediction has a finite log loss, 34.5"""


def _auc(scores: Tensor, positive: Tensor) -> Tensor:
    """Return the area under the ROC curve [...] float64, from `scores` and `positive` [..., rows].

    Ties count half. NaN if a class is absent or any score is NaN.
    """
    ordered = scores.sort(dim=-1).values
    below = torch.searchsorted(ordered, scores.contiguous(), right=False)
    up_to = torch.searchsorted(ordered, scores.contiguous(), right=True)
    rank = (below + up_to + 1).double() / 2  # average rank among ties, counted from 1
    positives = positive.double().sum(dim=-1)
    negatives = positive.shape[-1] - positives
    rank_sum = (rank * positive).sum(dim=-1)
    value = (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)
    return value.masked_fill(scores.isnan().any(dim=-1), torch.nan)  # NaN is sorted behind all numbers


def macro_auc(proba: Tensor, labels: Tensor) -> Tensor:
    """Return the AUC of the positive class, or with more than two classes the mean of one-against-rest AUCs.

    `proba` [..., rows, classes] and `labels` [..., rows] give [...]. The mean omits classes without rows.
    """
    classes = proba.shape[-1]
    if classes == 2:
        return _auc(proba[..., 1], labels == 1)
    each = torch.stack([_auc(proba[..., c], labels == c) for c in range(classes)], dim=-1)
    return each.nanmean(dim=-1)


def _bag_means(proba: Tensor, index: Tensor) -> Tensor:
    """Return the mean prediction of each bag, [members, bags, classes].

    `proba` [members, rows, classes], `index` [members, bags, size] (-1: padding).
    """
    inside = (index >= 0).unsqueeze(-1)
    members = torch.arange(len(proba), device=proba.device)[:, None, None]
    return (proba[members, index.clamp(min=0)] * inside).sum(dim=-2) / inside.sum(dim=-2)


def mpiou(predicted: Tensor, target: Tensor, known: Tensor | None = None) -> Tensor:
    """Return the mean over bags of mean_c min(p, q) / max(p, q), over the classes where p or q is positive.

    `predicted` and `target` [..., bags, classes] give [...]. `known` [..., bags] bool marks the bags that count (None:
    all).
    """
    larger = torch.maximum(predicted, target)
    counted = larger > 0
    ratio = torch.where(counted, torch.minimum(predicted, target) / larger.where(counted, torch.ones_like(larger)), 0.0)
    return _over_bags(ratio.sum(dim=-1) / counted.sum(dim=-1), known)


def l1(predicted: Tensor, target: Tensor, known: Tensor | None = None) -> Tensor:
    """Return the mean over bags of sum_c |p - q|, in [0, 2]. Shapes as for `mpiou`."""
    return _over_bags((predicted - target).abs().sum(dim=-1), known)


def _kl(predicted: Tensor, target: Tensor, known: Tensor | None = None) -> Tensor:
    """Return the mean over bags of KL(target || predicted). Shapes as for `mpiou`."""
    tiny = torch.finfo(predicted.dtype).tiny  # a prediction that underflows gives a large value, not NaN
    each = (torch.xlogy(target, target) - target * predicted.clamp(min=tiny).log()).sum(dim=-1)
    return _over_bags(each, known)


def _likelihood(proba: Tensor, predicted: Tensor, target: Tensor, index: Tensor, known: Tensor | None = None) -> Tensor:
    """Return the mean over bags of log P(counts), if rows are independent given their predictions.

    `proba` [members, rows, classes], `predicted` (its bag means) and `target` [members, bags, classes], `index`
    [members, bags, size] -> [members].

    It is a normal approximation over all classes except the last, with mean sum_i p_i and covariance
    sum_i (diag p_i - p_i p_i'). Each variance is increased by 1/12, the variance of rounding to a whole count, so that
    the value is finite if all predictions are certain. Unlike a distance of proportions, it requires a closer match
    from bags with confident predictions, and weights bags by their information.
    """
    inside = (index >= 0).unsqueeze(-1)
    members = torch.arange(len(proba), device=proba.device)[:, None, None]
    rows = (proba[members, index.clamp(min=0)] * inside)[..., :-1]
    size = inside.sum(dim=-2)
    mean = predicted[..., :-1] * size
    covariance = torch.diag_embed(mean + 1 / 12) - rows.transpose(-1, -2) @ rows
    factor, failed = torch.linalg.cholesky_ex(covariance)  # failed: a diverged member, whose value is NaN
    away = torch.linalg.solve_triangular(factor, (target[..., :-1] * size - mean).unsqueeze(-1), upper=False)
    scale = factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
    constant = rows.shape[-1] * math.log(2 * math.pi) / 2
    value = -away.square().sum(dim=(-2, -1)) / 2 - scale - constant
    return _over_bags(value.masked_fill(failed > 0, torch.nan), known)


def _debiased_square(predicted: Tensor, target: Tensor, sizes: Tensor, known: Tensor) -> Tensor:
    """Return the mean over bags of m |p - q|^2 - (m - 1) |P - Q|^2, an estimate of the square loss of single rows.

    P and Q are the proportions and the mean prediction of all rows in known bags. In bags of independent rows,
    m |p - q|^2 is the square loss of rows plus (m - 1) times the squared offset (DSQ; Li et al. 2024). `predicted` and
    `target` [members, bags, classes], `sizes` and `known` [members, bags] -> [members].
    """
    residual = predicted - target
    rows = (sizes * known).unsqueeze(-1)
    offset = (residual * rows).sum(dim=-2, keepdim=True) / rows.sum(dim=-2, keepdim=True)
    each = sizes * residual.square().sum(dim=-1) - (sizes - 1) * offset.square().sum(dim=-1)
    return _over_bags(each, known)


def _easy_llp(proba: Tensor, predicted: Tensor, target: Tensor, index: Tensor, known: Tensor) -> Tensor:
    """Return the mean over bags and their rows of sum_c w_c |e_c - f|^2, with w = m p - (m - 1) P.

    P are the proportions of all rows in known bags, and f the prediction of a row. In bags of independent rows w is an
    unbiased estimate of the row's label, which may be far outside [0, 1] (Busa-Fekete et al. 2023). Shapes as for
    `_likelihood`.
    """
    sizes = (index >= 0).sum(dim=-1)
    rows = (sizes * known).unsqueeze(-1)
    prior = (target * rows).sum(dim=-2, keepdim=True) / rows.sum(dim=-2, keepdim=True)
    weights = sizes.unsqueeze(-1) * target - (sizes - 1).unsqueeze(-1) * prior
    squares = _bag_means(proba.square().sum(dim=-1, keepdim=True), index).squeeze(-1)
    return _over_bags(1 + squares - 2 * (weights * predicted).sum(dim=-1), known)


def _over_bags(values: Tensor, known: Tensor | None) -> Tensor:
    """Return the mean of `values` [..., bags] over bags with known counts, all with equal weight; NaN without any."""
    if known is None:
        return values.mean(dim=-1)
    return torch.where(known, values, 0.0).sum(dim=-1) / known.sum(dim=-1)


def validation_criteria(
    proba: Tensor, labels: Tensor | None, index: Tensor, target: Tensor, known: Tensor
) -> dict[str, Tensor]:
    """Return the criteria of `criteria.CRITERIA` for every member; without `labels` only the coarse-grained ones.

    `proba` [members, rows, classes] float64, `labels` [members, rows], `index` [members, bags, size], `target`
    [members, bags, classes] float64 proportions, `known` [members, bags]. Returns [members] float64 by name. The
    coarse-grained criteria never use `labels`. If any prediction of a member is NaN, all its criteria are NaN.
    """
    broken = proba.isnan().any(dim=(-2, -1))
    hard = torch.nn.functional.one_hot(proba.argmax(dim=-1), proba.shape[-1]).double()
    soft_bags, hard_bags = _bag_means(proba, index), _bag_means(hard, index)
    fine = {}
    if labels is not None:
        hits = (proba.argmax(dim=-1) == labels).double()
        fine = {"auc": macro_auc(proba, labels), "accuracy": hits.mean(dim=-1)}
    found = fine | {
        "mpiou": mpiou(soft_bags, target, known),
        "mpiou-hard": mpiou(hard_bags, target, known),
        "l1": l1(soft_bags, target, known),
        "l1-hard": l1(hard_bags, target, known),
        "kl": _kl(soft_bags, target, known),
        "likelihood": _likelihood(proba, soft_bags, target, index, known),
        "dsq": _debiased_square(soft_bags, target, (index >= 0).sum(dim=-1), known),
        "easyllp": _easy_llp(proba, soft_bags, target, index, known),
    }
    return {name: value.masked_fill(broken, torch.nan) for name, value in found.items()}


def holdout_criteria(proba: FloatArray, holdout: Holdout) -> dict[str, float]:
    """Return the criteria of predictions [rows, classes] on a holdout."""
    labels = None if holdout.labels is None else torch.from_numpy(holdout.labels)[None]
    bags = (torch.from_numpy(part)[None] for part in (holdout.index, holdout.proportions, holdout.known))
    values = validation_criteria(torch.from_numpy(proba.astype(np.float64))[None], labels, *bags)
    return {name: float(value[0]) for name, value in values.items()}


def test_metrics(proba: FloatArray, holdout: Holdout) -> dict[str, float]:
    """Return every metric of `criteria.METRICS` for predictions [rows, classes] of the test rows.

    Without labels it returns only the metrics of bags.
    """
    values = holdout_criteria(proba, holdout)
    of_bags = {"mpiou": values["mpiou"], "l1": values["l1"]}
    if holdout.labels is None:
        return of_bags
    from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score

    labels, classes = holdout.labels, proba.shape[1]
    predicted = proba.argmax(axis=1)
    one_hot = np.eye(classes)[labels]
    present = one_hot.any(axis=0)
    return {
        "auc": values["auc"],
        "accuracy": values["accuracy"],
        "average-precision": float(
            average_precision_score(labels, proba[:, 1])
            if classes == 2
            else average_precision_score(one_hot[:, present], proba[:, present], average="macro")
        ),
        "macro-f1": float(f1_score(labels, predicted, average="macro")),
        "balanced-accuracy": float(balanced_accuracy_score(labels, predicted)),
        "log-loss": _log_loss(proba, labels),
        "brier": brier_score(proba, labels),
        "ece": _expected_calibration_error(proba, labels),
        **of_bags,
    }


def _log_loss(proba: FloatArray, labels: IntArray) -> float:
    """Return the mean over rows of -log P(label), with probabilities clipped to at least `_LEAST`."""
    return float(-np.log(proba[np.arange(len(labels)), labels].clip(min=_LEAST)).mean())


def brier_score(proba: FloatArray, labels: IntArray) -> float:
    """Return the mean squared distance between probabilities [rows, classes] and labels, from 0 to 2."""
    return float(((proba - np.eye(proba.shape[1])[labels]) ** 2).sum(axis=1).mean())


def _reliability(proba: FloatArray, labels: IntArray, bins: int = 10) -> list[list[float]]:
    """Return the data of a reliability diagram: observed frequencies in equal-width bins of the predicted probability.

    Each non-empty bin gives [rows, mean probability, observed frequency]. With two classes, the diagram shows the
    positive class; with more, each class against the rest, pooled.
    """
    classes = [1] if proba.shape[1] == 2 else list(range(proba.shape[1]))
    predicted, true = proba[:, classes].ravel(), (labels[:, None] == np.array(classes)).ravel()
    bin_of = np.minimum((predicted * bins).astype(int), bins - 1).clip(min=0)
    rows = np.bincount(bin_of, minlength=bins)
    sums = [np.bincount(bin_of, each, minlength=bins) for each in (predicted, true)]
    return [
        [int(n), round(float(p / n), 4), round(float(t / n), 4)] for n, p, t in zip(rows, *sums, strict=True) if n > 0
    ]


def verdict(proba: FloatArray, holdout: Holdout) -> Judged:
    """Return the evaluation of predictions [rows, classes] of the test rows, as in a record."""
    found = Judged(test={**test_metrics(proba, holdout)})
    if holdout.labels is not None:
        found["reliability"] = _reliability(proba, holdout.labels)
    return found


def _expected_calibration_error(proba: FloatArray, labels: IntArray, bins: int = 15) -> float:
    """Return the mean of |accuracy - confidence| over equal-width bins of confidence, weighted by rows."""
    confidence, hit = proba.max(axis=1), proba.argmax(axis=1) == labels
    bin_of_row = np.minimum((confidence * bins).astype(int), bins - 1)
    size = np.bincount(bin_of_row, minlength=bins)
    gap = np.abs(np.bincount(bin_of_row, hit - confidence, minlength=bins))
    return float(gap[size > 0].sum() / len(labels))
