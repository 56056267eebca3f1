"""Scores of predictions on bags of any sizes, without labels; support for scikit-learn's model selection."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, Holdout
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
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


def bag_scorer(estimator: Any, X: Any, bags: Any) -> float:
    """Return how well mean predictions agree with the counts of held-out bags; larger is better.

    The score is minus the KL divergence of `LLPClassifier.score_bags`. Use it as `scoring=` in scikit-learn's model
    selection. Pass bags as labels, and counts of all bags and `unmatched="drop"` to `fit`. The classifier may be the
    last step of a pipeline.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from llpbench import LLPClassifier, bag_scorer
    >>> rows = pd.DataFrame({"age": [20, 30, 40, 50, 60, 70] * 4})
    >>> district = [row // 3 for row in range(24)]
    >>> search = GridSearchCV(
    ...     LLPClassifier("bag-mean-linear"),
    ...     {"params__strength": [0.1, 10.0]},
    ...     scoring=bag_scorer,
    ...     cv=GroupKFold(2),
    ... )
    >>> counts = {bag: 1 + bag % 2 for bag in range(8)}
    >>> search = search.fit(rows, district, groups=district, counts=counts, unmatched="drop")
    >>> bool(search.best_score_ < 0)
    True
    """
    steps = getattr(estimator, "steps", None)
    model = estimator if steps is None else estimator[-1]
    if not hasattr(model, "score_bags"):
        raise LLPBenchError(f"bag_scorer needs an LLPClassifier, got {type(model).__name__}.")
    rows = X if steps is None or len(steps) == 1 else estimator[:-1].transform(X)
    return -float(model.score_bags(rows, bags, unmatched="drop")["kl"])
