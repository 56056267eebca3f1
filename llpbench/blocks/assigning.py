"""Class probabilities of rows that add up to the counts of bags, and labels that match these counts.

`transported` works on tensors, also with vmap.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from llpbench.core.bags import BaggedRows, Bags, FloatArray, IntArray, Ragged

_LEAST = 1e-12
"""smallest probability; the logits of smaller ones could not be shifted enough"""
_SMALL = 500
"""largest bag that is solved as a dense assignment; its time is cubic, its memory square in the rows"""


_NEVER = -1e9
"""logarithm of zero: finite, so that no difference is NaN"""


def log_of(proba: FloatArray) -> FloatArray:
    """Return the logarithms [rows, classes] of probabilities, clipped so that all are finite."""
    return np.asarray(np.log(proba.astype(np.float64).clip(_LEAST, 1.0)))


def assigned(logits: FloatArray, bags: BaggedRows) -> IntArray:
    """Return the classes [rows] that match the `whole_counts` of every bag and have the largest sum of `logits`.

    All counts in `bags` must be known. With two classes, the rows with the largest logits get the second one. Raises
    `ValueError` if a logit is NaN.
    """
    if np.isnan(logits).any():
        raise ValueError("predictions must be numbers to assign labels")
    labels = np.zeros(len(logits), dtype=np.int64)
    for rows, counts in zip(Ragged(bags.bag_by_bag, bags.sizes), bags.whole_counts, strict=True):
        labels[rows] = _two(logits[rows], counts) if len(counts) == 2 else _several(logits[rows], counts)
    return labels


def _two(logits: FloatArray, counts: IntArray) -> IntArray:
    labels = np.zeros(len(logits), dtype=np.int64)
    order = np.argsort(logits[:, 0] - logits[:, 1], kind="stable")
    labels[order[: counts[1]]] = 1
    return labels


def _several(logits: FloatArray, counts: IntArray) -> IntArray:
    """Solve the transportation problem: for small bags as a dense assignment, for others by `_along_paths`."""
    if len(logits) > _SMALL:
        return _along_paths(logits, counts)
    from scipy.optimize import linear_sum_assignment  # takes long to import, and `llpbench plan` does not need it

    places = np.repeat(np.arange(len(counts)), counts)
    row, place = linear_sum_assignment(logits[:, places], maximize=True)
    labels = np.empty(len(logits), dtype=np.int64)
    labels[row] = places[place]
    return labels


def _along_paths(logits: FloatArray, counts: IntArray) -> IntArray:
    """Solve the same problem by successive shortest paths between classes.

    Each class has a price. If each row takes its best class at these prices, no assignment with the same counts is
    better. Prices that nearly match the counts leave a few surplus rows. Each of them moves at the least cost, possibly
    through other classes, so the assignment stays optimal for its counts (Ahuja, Magnanti & Orlin 1993, chapter 9).
    """
    classes = len(counts)
    labels = np.asarray((logits + _prices(logits, counts)).argmax(axis=1))
    while (surplus := np.bincount(labels, minlength=classes) - counts).any():
        cost, mover = np.full((classes, classes), np.inf), np.zeros((classes, classes), dtype=np.int64)
        for label in range(classes):
            rows = np.flatnonzero(labels == label)
            if len(rows):
                loss = logits[rows, label, None] - logits[rows]
                least = loss.argmin(axis=0)
                cost[label], mover[label] = loss[least, np.arange(classes)], rows[least]
        np.fill_diagonal(cost, np.inf)
        distance, before = np.where(surplus > 0, 0.0, np.inf), np.full(classes, -1)
        for _ in range(classes - 1):  # Bellman-Ford; there are no negative cycles
            through = distance[:, None] + cost
            best = through.argmin(axis=0)
            nearer = through[best, np.arange(classes)] < distance - 1e-9
            distance[nearer], before[nearer] = through[best[nearer], nearer], best[nearer]
        label = int(np.where(surplus < 0, distance, np.inf).argmin())
        while before[label] >= 0:
            labels[mover[before[label], label]] = label
            label = int(before[label])
    return labels


def _prices(logits: FloatArray, counts: IntArray) -> FloatArray:
    """Return prices [classes] for logits that nearly match the counts, from a sequence of ever harder softmaxes."""
    prices, wanted = np.zeros(len(counts)), np.log(np.maximum(counts, 1e-9))
    for softness in (1.0, 0.3, 0.1, 0.03, 0.01):
        for _ in range(50):
            step = wanted - np.log(np.maximum(softmax((logits + prices) / softness, axis=1).sum(axis=0), 1e-9))
            prices += softness * step
            if np.abs(step).max() < 1e-3:
                break
    return prices


def transported(scores: Tensor, bags: Bags, entropy: float | Tensor, rounds: int = 20) -> Tensor:
    """Return the plan Q that minimises <Q, -scores> - entropy H(Q), with row sums 1 and column sums the counts.

    `scores` [bags, size, classes] are, for example, log probabilities; Q has the same shape and is 0 in padding.
    Sinkhorn runs `rounds` rounds on logarithms. The last step scales rows, so that each is a distribution. If scores
    are confident, the columns only come near the counts.
    """
    inside = bags.mask.unsqueeze(-1)
    counts = (bags.proportions * bags.mask.sum(dim=-1, keepdim=True)).clamp(min=0)
    wanted = torch.where(counts > 0, counts.clamp(min=1e-30).log(), _NEVER).unsqueeze(-2)
    kernel = scores / entropy
    of_rows = torch.zeros_like(kernel[..., :1])
    of_columns = torch.zeros_like(wanted)
    for _ in range(rounds):
        of_columns = wanted - (kernel + of_rows).masked_fill(~inside, _NEVER).logsumexp(dim=-2, keepdim=True)
        of_rows = -(kernel + of_columns).logsumexp(dim=-1, keepdim=True)
    return (kernel + of_rows + of_columns).exp().masked_fill(~inside, 0.0)
