"""What a record says of a run's bags: how many, how large, and how much they differ from one another.

Both figures of difference compare training bags with what they would be without any reason to share a bag. They are
known before anything is trained, from proportions and features alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, Task
from llpbench.core.record import PROPORTION_BINS


def bag_facts(task: Task) -> dict[str, Any]:
    """`bags`, as a record has it: numbers and sizes of bags, and for each class how its proportions are distributed."""
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
    """The variance of bags' proportions over that of random bags of these sizes: 1 where bags carry no information.

    A bag weighs as many rows as it has, else bags of a few rows, whose proportions chance alone makes 0 or 1, would
    outweigh all others: sum_b m_b sum_c (p_bc - pi_c)^2, of B bags of m_b of N rows and shares pi_c of all rows, over
    its expectation under random assignment of the same rows, sum_c pi_c (1 - pi_c) N (B - 1) / (N - 1). None for one
    bag or class.
    """
    sizes, known = bags.sizes[bags.known], bags.proportions[bags.known]
    rows, prior = sizes.sum(), bags.prior
    expected = (prior * (1 - prior)).sum() * rows * (len(sizes) - 1) / max(rows - 1, 1)
    return float((sizes[:, None] * (known - prior) ** 2).sum() / expected) if expected > 0 else None


def separation(bags: BaggedRows) -> float | None:
    """How much farther apart two rows of different bags are than two of one bag: mean squared distance over the same.

    Of normalised numbers and of categories as 0 and 1; over pairs of bags, over bags. With v_S the mean squared
    distance of a bag's rows from their mean mu_S, that is mean (v_S + v_T + |mu_S - mu_T|^2) over mean 2 v_S (the ratio
    of inter- to intra-bag distance of LLP-Bench, Brahmbhatt et al. 2023). 1 + 1 / (m - 1) for random bags of m rows.
    None of a single bag, and where rows of a bag are all alike.
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
    """Mean of |mu_S - mu_T|^2 over all pairs of different bags, of means [bags, columns]."""
    return float(2 * ((means - means.mean(axis=0)) ** 2).sum() / (len(means) - 1))


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
