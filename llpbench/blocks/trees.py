"""Gradient-boosted trees, by XGBoost: for any loss of rows, and fitted to the counts of bags in two ways.

Let z be logits of rows, p their probabilities, and q the posterior given p and the counts of bags (`BagCounts`). The
gradient of the negative log likelihood with respect to z is p - q. EM replaces its second derivative by p (1 - p).
`boost_counts` grows one tree for each such step; `boost_posteriors` refits all trees to q a few times.

XGBoost is used because its interface for custom losses is public, also for several classes. That of scikit-learn is
private and did worse with the counts of bags. LightGBM needs the system's OpenMP, which slim machines lack; XGBoost's
wheel includes it. `xgboost-cpu` is the same library without GPU code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.special import expit, logit, softmax

from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import BoostingRows
from llpbench.blocks.distinct import Distinct
from llpbench.blocks.side_by_side import are_shared
from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, Rows

if TYPE_CHECKING:
    import xgboost


_SMALL = 20_000
"""largest number of rows of a small table"""

Gradients = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""[rows, outputs] scores -> first and second derivatives of the loss, of the same shape"""


@dataclass(frozen=True)
class TreeSettings:
    """Settings for growing trees. Trees are small and regularised, since counts of bags say little about a row."""

    rounds: int
    leaves: int = 8
    learning_rate: float = 0.1
    penalty: float = 1.0
    """penalty on squared leaf values"""
    least: float = 5.0
    """smallest sum of second derivatives in a leaf"""
    features: float = 0.7
    """fraction of the features that are available to each tree"""


class _TreeInput:
    """Conversion of rows to XGBoost's matrices."""

    def __init__(self, rows: Rows) -> None:
        """`rows` are the training rows."""
        self._encode = BoostingRows(rows)
        self._types = ["c" if categorical else "q" for categorical in self._encode.categorical]
        self.complete: BoolArray = np.asarray(~np.isnan(self._encode(rows)).any(axis=0))
        """[columns] whether no training row lacks a value"""

    def __call__(self, rows: Rows, kind: type[xgboost.DMatrix], **options: Any) -> xgboost.DMatrix:
        """Return a matrix of the given kind."""
        values = self._encode(rows).astype(np.float32)
        threads = _threads_for_rows(len(values))
        types = self._types if "c" in self._types else None  # types of numbers only would slow down every tree
        return kind(values, feature_types=types, enable_categorical=True, nthread=threads, **options)


def _threads_for_rows(rows: int) -> int:
    """Return the number of threads: one for small tables, because starting threads would take longer than a tree.

    Trees that grow beside other trees also have one thread.
    """
    return 1 if rows <= _SMALL or are_shared() else torch.get_num_threads()


def _margins(booster: xgboost.Booster, data: xgboost.DMatrix) -> FloatArray:
    """Return the sum of all trees [rows, outputs]."""
    found = np.asarray(booster.predict(data, output_margin=True), dtype=np.float64)
    return found.reshape(data.num_row(), -1)


class TreeRows:
    """Training rows, binned once for all trees, with the counts of their bags.

    If few rows are distinct (`blocks.distinct`), equal rows of a bag become one row, called a cell. XGBoost then gets
    only the distinct rows, each with the sum of its cells' derivatives. The trees are the same.
    """

    def __init__(self, train: BaggedRows) -> None:
        """All counts in `train` must be known."""
        import xgboost

        self._prior, self._same = train.prior, Distinct.of_rows(train.rows)
        self.counts, self._first = BagCounts(train), np.arange(len(train.bag_of_row))
        """counts of rows or cells, and one row of each"""
        rows, weight = train.rows, None
        if self._same is not None:
            self.counts, self._first = self.counts.folded(self._same)
            rows, weight = Rows(*(each[self._same.first] for each in rows)), self._same.counts
        self.input = _TreeInput(train.rows)
        self.data = self.input(rows, xgboost.QuantileDMatrix, weight=weight)
        """the rows, or the distinct rows"""
        self._threads = _threads_for_rows(self.data.num_row())

    def scores(self, booster: xgboost.Booster) -> FloatArray:
        """Return a booster's scores [rows or cells, outputs]."""
        scores = _margins(booster, self.data)
        return scores if self._same is None else scores[self._same.place[self._first]]

    def grow(self, gradients: Gradients, outputs: int, settings: TreeSettings, seed: int) -> xgboost.Booster:
        """Return a booster for scores [rows or cells, outputs] that starts from zero; `seed` determines the result.

        The booster has caches of the training rows until its `reset`.
        """
        import xgboost

        gradients = self._of_data(gradients)
        options = _tree_options(settings, outputs, seed, self._threads)
        booster = xgboost.Booster(options, [self.data])
        for step in range(settings.rounds):  # as `booster.update`, which checks the names of features two more times
            now = booster.predict(self.data, output_margin=True, training=True, validate_features=False)
            first, second = gradients(now.reshape(-1, outputs).astype(np.float64))
            if outputs == 1:
                first, second = first.ravel(), second.ravel()
            booster.boost(self.data, step, grad=first, hess=second)
        return booster

    def _of_data(self, gradients: Gradients) -> Gradients:
        """Return gradients for the rows of `data`, from `gradients` of rows or cells."""
        if self._same is None:
            return gradients
        place, times = self._same.place[self._first], self.counts.weights
        assert times is not None

        def summed(values: FloatArray, rows: int) -> FloatArray:
            return np.stack([np.bincount(place, times * column, rows) for column in values.T], axis=1)

        def distinct(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
            first, second = gradients(scores[place])
            return summed(first, len(scores)), summed(second, len(scores))

        return distinct

    def boost_counts(self, settings: TreeSettings, seed: int) -> TreeLogits:
        """Boost the likelihood of the counts, starting from the logit of the prior."""
        prior = self._prior.clip(1e-6, 1 - 1e-6)
        offset = logit(prior[1:]) if len(prior) == 2 else np.log(prior)
        booster = self.grow(_likelihood_gradients(self.counts, offset), len(offset), settings, seed)
        return TreeLogits.of(self.input, booster, offset)

    def boost_posteriors(self, start: FloatArray, settings: TreeSettings, seeds: Sequence[int]) -> TreeLogits:
        """Run EM, starting from logits `start` [rows, classes] of the training rows, and refit all trees in each round.

        Each of `seeds` is that of a round. Trees are fitted by cross-entropy to q = softmax(z + b). The shift b of each
        bag makes the mean of q equal the bag's proportions.
        """
        outputs = 1 if start.shape[1] == 2 else start.shape[1]
        logits = start[self._first]
        for seed in seeds:
            gradients = _cross_entropy_gradients(self.counts.fitted(logits)[:, -outputs:])
            booster = self.grow(gradients, outputs, settings, seed)
            logits = full_logits(self.scores(booster))
        return TreeLogits.of(self.input, booster, np.zeros(outputs))


def _tree_options(settings: TreeSettings, outputs: int, seed: int, threads: int) -> dict[str, Any]:
    """Return the parameters of a booster that starts from zero."""
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
        "seed": seed,
        "nthread": threads,
        "disable_default_eval_metric": True,
        "verbosity": 0,
    }
    return options | ({"num_class": outputs} if outputs > 1 else {})


def full_logits(scores: FloatArray) -> FloatArray:
    """Return logits [rows, classes] from [rows, outputs]; with two classes, the output is the second class's logit."""
    return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores


@dataclass(frozen=True, eq=False)
class TreeLogits:
    """Logits of rows by boosted trees."""

    input: _TreeInput
    booster: xgboost.Booster
    offset: FloatArray
    """[outputs]"""

    @classmethod
    def of(cls, data: _TreeInput, booster: xgboost.Booster, offset: FloatArray) -> TreeLogits:
        """Return the logits of a booster without its caches.

        At a split of a column without gaps in training, new rows without a value follow most of the training rows. By
        default XGBoost sends all of them to the same side.
        """
        model = json.loads(booster.reset().save_raw("json"))
        for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
            left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
            weights, free = np.array(tree["sum_hessian"]), data.complete[tree["split_indices"]] & (left >= 0)
            sides = np.where(free, weights[left] >= weights[right], tree["default_left"])
            tree["default_left"] = sides.astype(int).tolist()
        booster.load_model(bytearray(json.dumps(model), "utf-8"))
        return cls(data, booster, offset)

    def __call__(self, rows: Rows) -> FloatArray:
        """Return logits [rows, classes]."""
        import xgboost

        return full_logits(_margins(self.booster, self.input(rows, xgboost.DMatrix)) + self.offset)


@dataclass(frozen=True, eq=False)
class TreeProba:
    """Probabilities of rows by boosted trees."""

    logits: TreeLogits

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return np.asarray(softmax(self.logits(rows), axis=1))


def _likelihood_gradients(counts: BagCounts, offset: FloatArray) -> Gradients:
    """Return a function for the gradients of the negative log likelihood of some counts."""

    def binary(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = expit(scores[:, 0] + offset)
        q = counts.binary_posterior(p)
        return (p - q)[:, None], (p * (1 - p))[:, None]

    def several(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = softmax(scores + offset, axis=1)
        return p - counts.posterior(p), p * (1 - p)

    return binary if len(offset) == 1 else several


def _cross_entropy_gradients(targets: FloatArray) -> Gradients:
    """Return a function for the gradients of the cross-entropy to class probabilities `targets` [rows, outputs]."""

    def gradients(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1)
        return p - targets, p * (1 - p)

    return gradients
