"""Support for scikit-learn's model selection: a scorer of bags, and names of nested parameters."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llpbench.core.errors import LLPBenchError

_NESTED = ("params", "encoder_params", "pretraining_params")
"""Arguments of `LLPClassifier` that are dictionaries: `params__strength` is `params={"strength": ...}`."""


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


def without_nested(current: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments in which those like `params__strength` are merged into the dictionaries of `current`."""
    plain = {name: value for name, value in given.items() if name.partition("__")[0] not in _NESTED or "__" not in name}
    for name, value in given.items():
        argument, nested, part = name.partition("__")
        if nested and argument in _NESTED:
            plain[argument] = {**(plain.get(argument, current[argument]) or {}), part: value}
    return plain
