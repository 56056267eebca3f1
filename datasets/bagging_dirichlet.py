"""Bags with class proportions from a Dirichlet distribution, made from labels.

Papers use such bags to control how much bags differ. Only the proportions depend on the labels. Methods get the same
information as with other bags. Features do not decide which rows share a bag, so bags are never confounded.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.ranges import AtLeast
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import grouped, shuffled

_SCALINGS = 1000
_LEAST = 1e-12
"""smallest proportion; smaller ones would be lost in the scaling of counts"""


@register_bagging("dirichlet", version=1)
def _dirichlet(
    table: Table, rows: IntArray, size: int, rng: Generator, *, alpha: Annotated[float, AtLeast(_LEAST)] = 5.0
) -> IntArray:
    """Draw bag proportions from Dirichlet(alpha x class proportions), with random rows of each class.

    Their standard deviation is sqrt(p (1 - p) / (alpha + 1)): a small `alpha` makes nearly pure bags, a large one
    random bags. Draws are scaled until the bags contain all rows of each class.
    """
    classes = len(table.classes)
    labels = table.row_labels[rows]
    available = np.bincount(labels, minlength=classes)
    drawn = _gamma(alpha * available / len(rows), len(rows) // size, rng)
    counts = _whole(_scaled(drawn, size, available), size, available)
    bag_of_row = np.empty(len(rows), dtype=np.int64)
    for label in range(classes):
        own = shuffled(np.flatnonzero(labels == label), rng)
        bag_of_row[own] = np.repeat(np.arange(len(counts)), counts[:, label])
    return grouped(rows, bag_of_row)


def _gamma(shapes: FloatArray, number: int, rng: Generator) -> FloatArray:
    """Return draws [number, shapes] from Gamma(shape, 1), up to a factor per row; 0 if the shape is 0.

    Divided by their sum, the draws of a row have a Dirichlet distribution.
    """
    from scipy.special import gammaincinv, gammaln

    # inverse distribution function of raw bits, which are the same in all releases of numpy
    bits = rng.bit_generator.random_raw(number * len(shapes)).reshape(number, len(shapes))
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    drawn = np.where(shapes > 0, gammaincinv(np.maximum(shapes, _LEAST), uniform), 0.0)
    lost = drawn.sum(axis=1) == 0  # too small for a double: near 0 the distribution is x^shape / Gamma(shape + 1)
    divisor = np.where(shapes > 0, shapes, 1.0)
    logs = np.where(shapes > 0, (np.log(uniform[lost]) + gammaln(divisor + 1)) / divisor, -np.inf)
    drawn[lost] = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(drawn)


def _scaled(drawn: FloatArray, size: int, available: IntArray) -> FloatArray:
    """Return counts [bags, classes] near the ratios of `drawn`: rows add up to `size`, columns to `available`.

    Rows and columns are scaled in turn (Sinkhorn). Rows come last, so that bags are full.
    """
    present = available > 0
    counts = np.where(present, np.maximum(drawn / drawn.sum(axis=1, keepdims=True), _LEAST), 0.0)
    for _ in range(_SCALINGS):
        counts = counts * size / counts.sum(axis=1, keepdims=True)
        total = counts.sum(axis=0)
        if np.abs(total - available).max() < 0.5:
            break
        counts = counts * np.where(present, available / np.where(present, total, 1.0), 0.0)
    return np.asarray(counts * size / counts.sum(axis=1, keepdims=True))


def _whole(counts: FloatArray, size: int, available: IntArray) -> IntArray:
    """Return whole numbers [bags, classes] near `counts` with the same sums; other bags compensate for rounding."""
    left, owed = available.astype(np.int64).copy(), np.zeros(len(available))
    found = np.empty(counts.shape, dtype=np.int64)
    for bag, exact in enumerate(counts):
        wanted = np.minimum(np.maximum(exact + owed, 0.0), left)
        taken = np.floor(wanted).astype(np.int64)
        while (lacking := size - taken.sum()) != 0:  # one row at a time, largest rounding error first
            short = wanted - taken
            order = np.argsort(-short if lacking > 0 else short, kind="stable")
            able = order[(taken[order] < left[order]) if lacking > 0 else (taken[order] > 0)][: abs(lacking)]
            taken[able] += np.sign(lacking)
        owed += exact - taken
        left -= taken
        found[bag] = taken
    return found
