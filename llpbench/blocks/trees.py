"""Gradient-boosted trees for any loss of rows, by XGBoost.

Reasons for XGBoost: its interface for custom losses is public, also for several classes; scikit-learn's is private and
did worse with the counts of bags (docs/direct-methods.md). Its wheel includes OpenMP, while LightGBM needs the
system's, which slim machines lack. `xgboost-cpu` is the same library without GPU code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from llpbench.blocks.boosting import BoostingRows
from llpbench.core.bags import FloatArray, IntArray, Rows
from llpbench.core.distinct import distinct_rows

if TYPE_CHECKING:
    import xgboost

_SMALL = 20_000
"""rows of a small table"""

Gradients = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""[rows, outputs] scores -> first and second derivatives of the loss, of the same shape"""


@dataclass(frozen=True)
class TreeSettings:
    """Settings for growing trees: small and regularised, since counts of bags say little about a row."""

    rounds: int
    leaves: int = 8
    learning_rate: float = 0.1
    penalty: float = 1.0
    """penalty of squared leaf values"""
    least: float = 5.0
    """least sum of second derivatives in a leaf"""
    features: float = 0.7
    """share of the features available to each tree"""


class TreeInput:
    """Conversion of rows to XGBoost's matrices."""

    def __init__(self, rows: Rows) -> None:
        """`rows` are the training rows."""
        self._encode = BoostingRows(rows)
        self._types = ["c" if categorical else "q" for categorical in self._encode.categorical]

    def __call__(self, rows: Rows, kind: type[xgboost.DMatrix]) -> xgboost.DMatrix:
        """Return a matrix of the given kind."""
        values = self._encode(rows).astype(np.float32)
        return kind(values, feature_types=self._types, enable_categorical=True, nthread=_threads(len(values)))

    def scores(self, booster: xgboost.Booster, rows: Rows) -> FloatArray:
        """Return a booster's scores [rows, outputs]."""
        import xgboost

        return margins(booster, self(rows, xgboost.DMatrix))


def _threads(rows: int) -> int:
    """Return one thread for small tables: their trees grow faster than threads start."""
    return torch.get_num_threads() if rows > _SMALL else 1


def margins(booster: xgboost.Booster, data: xgboost.DMatrix) -> FloatArray:
    """Return the sum of all trees [rows, outputs]."""
    found = np.asarray(booster.predict(data, output_margin=True), dtype=np.float64)
    return found.reshape(data.num_row(), -1)


class TreeRows:
    """Training rows, binned once for all trees."""

    def __init__(self, rows: Rows) -> None:
        import xgboost

        self.input = TreeInput(rows)
        self.same = distinct_rows(rows)
        """the distinct rows, if they are so few that trees are grown on them"""
        if self.same is None:
            self.data = self.input(rows, xgboost.QuantileDMatrix)
        else:
            self.data = self.input(Rows(*(part[self.same.first] for part in rows)), xgboost.QuantileDMatrix)

    def scores(self, booster: xgboost.Booster) -> FloatArray:
        """Return a booster's scores [rows, outputs] of the training rows, or of the distinct ones."""
        return margins(booster, self.data)

    def grow(
        self,
        gradients: Gradients,
        outputs: int,
        settings: TreeSettings,
        rng: np.random.Generator,
        place: IntArray | None = None,
    ) -> xgboost.Booster:
        """Return a booster of scores [rows, outputs] that starts from zero. Deterministic under `rng`.

        `place` [cells]: the distinct row of each cell of `BagCounts.folded`, whose gradients are summed.
        """
        import xgboost

        def objective(scores: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
            values = scores.reshape(-1, outputs).astype(np.float64)
            first, second = gradients(values if place is None else values[place])
            if place is not None:
                first, second = (_sums(each, place, len(values)) for each in (first, second))
            return (first, second) if outputs > 1 else (first.ravel(), second.ravel())

        options = {
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": settings.leaves,
            "eta": settings.learning_rate,
            "lambda": settings.penalty,
            "min_child_weight": settings.least,
            "colsample_bytree": settings.features,
            "base_score": 0.0,
            "seed": int(rng.integers(2**31)),
            "nthread": _threads(self.data.num_row()),
            "disable_default_eval_metric": True,
            "verbosity": 0,
        }
        if outputs > 1:
            options["num_class"] = outputs
        return xgboost.train(options, self.data, settings.rounds, obj=objective)


def _sums(values: FloatArray, place: IntArray, number: int) -> FloatArray:
    return np.stack([np.bincount(place, column, number) for column in values.T], axis=1)


def full_logits(scores: FloatArray) -> FloatArray:
    """Return logits [rows, classes] from [rows, outputs]; with two classes the output is the second one's logit."""
    return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
