"""Whole bags whose counts are known: probabilities that add up to them, and labels that match them."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog
from scipy.special import softmax

from llpbench.blocks.counts import BagCounts
from llpbench.core.bags import BaggedRows, FloatArray, IntArray

_LEAST = 1e-12
"""probability: what is surer has logits that nothing would move"""
_SMALL = 500
"""rows of a bag up to which labels are assigned as places: cubic in time, square in memory"""


def log_of(proba: FloatArray) -> FloatArray:
    """Logits [rows, classes] of probabilities; of none is any impossible."""
    return np.asarray(np.log(proba.astype(np.float64).clip(_LEAST, 1.0)))


def adding_up(logits: FloatArray, bags: BaggedRows, rounds: int = 2000) -> FloatArray:
    """[rows, classes] softmax(logits + b) with b of each bag such that its rows add up to its counts.

    `bags` has known counts alone. `BagCounts.shifts` does nearly all of it; then columns and rows are scaled in turn,
    which keeps the form, until every sum is right to a billionth of the bag's size. A class with a count of 0 gets
    nothing, which no shift can do.
    """
    of_row, sizes = bags.bag_of_row, bags.sizes.astype(np.float64)
    counts = bags.proportions * sizes[:, None]
    proba = softmax(logits + BagCounts(bags).shifts(logits)[of_row], axis=1)
    for _ in range(rounds):
        sums = np.stack([np.bincount(of_row, column, len(sizes)) for column in proba.T], axis=1)
        if (np.abs(sums - counts) <= 1e-9 * sizes[:, None]).all():
            break
        proba = proba * (counts / np.maximum(sums, 1e-300))[of_row]
        proba = proba / proba.sum(axis=1, keepdims=True)
    return np.asarray(proba)


def assigned(logits: FloatArray, bags: BaggedRows) -> IntArray:
    """[rows] classes, as many of each in every bag as `whole_counts` says, of the largest sum of log probabilities.

    `bags` has known counts alone. Of two classes, the rows with the largest logits get the second one.
    """
    labels = np.zeros(len(logits), dtype=np.int64)
    for index, counts in zip(bags.index, bags.whole_counts, strict=True):
        rows = index[index >= 0]
        labels[rows] = _two(logits[rows], counts) if len(counts) == 2 else _several(logits[rows], counts)
    return labels


def _two(logits: FloatArray, counts: IntArray) -> IntArray:
    labels = np.zeros(len(logits), dtype=np.int64)
    order = np.argsort(logits[:, 0] - logits[:, 1], kind="stable")
    labels[order[: counts[1]]] = 1
    return labels


def _several(logits: FloatArray, counts: IntArray) -> IntArray:
    """The transportation problem: for few rows an assignment of rows to places, else a linear program, whose vertices
    are whole."""
    rows, classes = logits.shape
    if rows <= _SMALL:
        places = np.repeat(np.arange(classes), counts)
        row, place = linear_sum_assignment(logits[:, places], maximize=True)
        labels = np.empty(rows, dtype=np.int64)
        labels[row] = places[place]
        return labels
    variables = np.arange(rows * classes)
    ones = np.ones(rows * classes)
    of_row = sparse.csr_array((ones, (variables // classes, variables)))
    of_class = sparse.csr_array((ones, (variables % classes, variables)))
    found = linprog(
        -logits.ravel(),
        A_eq=sparse.vstack([of_row, of_class]),
        b_eq=np.concatenate([np.ones(rows), counts]),
        bounds=(0, None),
        method="highs-ds",
    )
    if found.x is None:
        raise ValueError(f"no assignment of {rows} rows to counts {counts.tolist()}: {found.message}")
    return np.asarray(found.x.reshape(rows, classes).argmax(axis=1))
