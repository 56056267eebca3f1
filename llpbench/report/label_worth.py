"""Labels that bags are worth: the number of labelled rows from which a fixed learner reaches the AUC of an entry.

`leaderboards/core/label-curves.csv` has the test AUC of three learners by number of labelled training rows, on the
splits of the benchmark (`python -m benchmarks.labels_per_bag curves`). The mean curve over datasets is inverted at the
mean AUC of an entry. Between two numbers of rows, AUC is linear in the logarithm of rows; a single row has AUC 50.
Intervals are quantiles over datasets, and seeds of each, drawn again with replacement.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from pandas import DataFrame, Series, read_csv

from llpbench.core import PACKAGE
from llpbench.core.bags import FloatArray
from llpbench.report.statistics import CONFIDENCE

LEARNERS = ("forest", "boosting", "logistic")
"""reference learners; the first one, which needs the fewest labels, defines the column of leaderboards"""

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""numbers of labelled rows"""

_DRAWS = 400
"""bootstrap samples of an interval"""


@cache
def label_curves() -> DataFrame:
    """Return the published curves, AUC x 100: (learner, dataset, seed) x `SIZES`. Empty if they are not installed."""
    for folder in (PACKAGE, PACKAGE.parent):
        if (path := folder / "leaderboards" / "core" / "label-curves.csv").is_file():
            return read_csv(path, index_col=["learner", "dataset", "seed"]).rename(columns=int).sort_index() * 100
    return DataFrame(columns=[*SIZES])


def label_worth(scores: DataFrame, bags: Series, learner: str = LEARNERS[0]) -> DataFrame:
    """Return `per_bag` with its interval (`low`, `high`), and `labels` in all bags, by entry.

    `scores`: AUC x 100, (dataset, seed) x entries. `bags`: training bags of each dataset; their geometric mean
    counts. Without curves of all datasets there is no result.
    """
    datasets = [*scores.index.unique(0)]
    curves = label_curves()
    known = {*curves.index[curves.index.get_level_values(0) == learner].get_level_values(1)} if len(curves) else {*()}
    if not datasets or not {*datasets} <= known:
        return DataFrame(columns=["per_bag", "low", "high", "labels"])
    rows = [
        (scores.loc[name].to_numpy(), curves.loc[(learner, name)].to_numpy(), np.log(bags[name])) for name in datasets
    ]
    rng = np.random.default_rng(0)

    def again(values: FloatArray) -> FloatArray:
        return np.asarray(values[rng.integers(len(values), size=len(values))].mean(axis=0))

    def drawn() -> FloatArray:
        some = [rows[place] for place in rng.integers(len(rows), size=len(rows))]
        labels = _labels(_mean([again(auc) for auc, _, _ in some]), _mean([again(curve) for _, curve, _ in some]))
        return np.asarray(labels / np.exp(_mean([number for *_, number in some])))

    labels = _labels(
        _mean([auc.mean(axis=0) for auc, _, _ in rows]), _mean([curve.mean(axis=0) for _, curve, _ in rows])
    )
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile([drawn() for _ in range(_DRAWS)], (tail, 1 - tail), axis=0)
    per_bag = labels / np.exp(_mean([number for *_, number in rows]))
    return DataFrame({"per_bag": per_bag, "low": low, "high": high, "labels": labels}, scores.columns)


def _mean(values: list[FloatArray]) -> FloatArray:
    return np.asarray(np.mean(values, axis=0))


def _labels(auc: FloatArray, curve: FloatArray) -> FloatArray:
    """Return the labelled rows at which the mean `curve` reaches each `auc`, from 1 to the last of `SIZES`."""
    rising = np.maximum.accumulate([50.0, *curve])
    return np.asarray(np.exp(np.interp(auc, rising, np.log([1, *SIZES]))))
