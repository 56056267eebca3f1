"""Facts about a run's bags for its record: their number, their sizes, and how much bags differ.

Both measures of difference compare the training bags with randomly formed bags. They need only proportions and
features, so they are available before training.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, Task
from llpbench.core.record import PROPORTION_BINS


def bag_facts(task: Task) -> dict[str, Any]:
    """Return the record's `bags`: numbers and sizes of bags, and a histogram of proportions for each class."""
    sizes = task.bags.sizes
    known = task.bags.proportions[task.bags.known]
    bins = np.minimum((known * PROPORTION_BINS).astype(int), PROPORTION_BINS - 1)
    facts = {
        "number": len(sizes),
        "sizes": [int(sizes.min()), float(np.median(sizes)), int(sizes.max())],
        "validation": len(task.validation.index),
        "test": len(task.test.index),
        "histograms": [np.bincount(each, minlength=PROPORTION_BINS).tolist() for each in bins.T],
        "spread": _short(spread(task.bags)),
        "separation": _short(separation(task.bags)),
    }
    return facts if task.rest is None else facts | task.rest._asdict()


def spread(bags: BaggedRows) -> float | None:
    """Return the variance of bag proportions relative to random bags of the same sizes: 1 if bags carry no information.

    With B bags of m_b rows, N rows in all, and the class proportions pi_c, this is sum_b m_b sum_c (p_bc - pi_c)^2
    divided by its expectation for randomly assigned rows, sum_c pi_c (1 - pi_c) N (B - 1) / (N - 1). Bags are weighted
    by their rows, because small bags, with proportions of 0 or 1 by chance, would dominate otherwise. None for one bag
    or class.
    """
    sizes, known = bags.sizes[bags.known], bags.proportions[bags.known]
    rows, prior = sizes.sum(), bags.prior
    expected = (prior * (1 - prior)).sum() * rows * (len(sizes) - 1) / max(rows - 1, 1)
    return float((sizes[:, None] * (known - prior) ** 2).sum() / expected) if expected > 0 else None


def separation(bags: BaggedRows) -> float | None:
    """Return the mean squared distance between rows of different bags, divided by the one between rows of a bag.

    Numbers are normalised and categories one-hot. Distances are averaged over pairs of bags and over bags. With v_S the
    mean squared distance of a bag's rows from their mean mu_S, the ratio is mean (v_S + v_T + |mu_S - mu_T|^2) over
    mean 2 v_S (inter- to intra-bag distance of LLP-Bench, Brahmbhatt et al. 2023). For random bags of m rows it is
    1 + 1 / (m - 1). None for a single bag, or if all rows within each bag are equal.
    """
    number, sizes = len(bags.sizes), bags.sizes
    if number < 2:
        return None
    of_row, rows = np.repeat(np.arange(number), sizes), bags.bag_by_bag
    within = between = 0.0
    for values in bags.rows.numeric[rows].T.astype(np.float64):
        mean = np.bincount(of_row, values, number) / sizes
        within += float((np.bincount(of_row, values**2, number) / sizes - mean**2).mean())
        between += _between(mean[:, None])
    for codes in bags.rows.categorical[rows].T:
        width = int(codes.max()) + 1
        shares = np.bincount(of_row * width + codes, minlength=number * width).reshape(number, width) / sizes[:, None]
        within += float((1 - (shares**2).sum(axis=1)).mean())
        between += _between(shares)
    return 1 + between / (2 * within) if within > 1e-12 else None


def _between(means: FloatArray) -> float:
    """Return the mean of |mu_S - mu_T|^2 over all pairs of different bags, for `means` [bags, columns]."""
    return float(2 * ((means - means.mean(axis=0)) ** 2).sum() / (len(means) - 1))


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
