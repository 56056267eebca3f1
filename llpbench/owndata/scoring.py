"""Coarse-grained criteria of predictions on bags of any sizes, without labels."""

from __future__ import annotations

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, Holdout
from llpbench.core.criteria import CRITERIA
from llpbench.core.metrics import holdout_criteria

_RISKS = ("dsq", "easyllp")
MOST_PADDED = 2**24
"""Largest size of a padded group, bags x longest x classes. Bags of a group have similar sizes."""


def coarse_criteria(proba: FloatArray, bags: BaggedRows) -> dict[str, float]:
    """Return coarse-grained criteria of predictions [rows, classes] by name: means over bags with known counts.

    Debiased risks are left out. They are no means over bags, because they compare each bag with all others.
    """
    known = np.flatnonzero(bags.known)
    order = known[np.argsort(-bags.sizes[known], kind="stable")]
    sums: dict[str, float] = {}
    while len(order):
        longest = int(bags.sizes[order[0]])
        alike = int((2 * bags.sizes[order] >= longest).sum())
        some, order = np.split(order, [min(alike, max(MOST_PADDED // (longest * proba.shape[1]), 1))])
        counts = bags.proportions[some] * bags.sizes[some, None]
        holdout = Holdout(bags.rows, bags.padded(some, longest), counts, labels=None)
        for name, value in holdout_criteria(proba, holdout).items():
            sums[name] = sums.get(name, 0.0) + value * len(some)
    means = {name for name, each in CRITERIA.items() if each.regime == "coarse"}.difference(_RISKS)
    return {name: total / len(known) for name, total in sums.items() if name in means}
