"""Gradient-boosted trees, by XGBoost: for any loss of rows, and fitted to the counts of bags in two ways.

Let z be logits of rows, p their probabilities, and q the posterior given p and the counts of bags (`BagCounts`). The
gradient of the negative log likelihood with respect to z is p - q. EM replaces its second derivative by p (1 - p).
`boost_counts` grows one tree for each such step; `boost_posteriors` refits all trees to q a few times.

XGBoost is used because its interface for custom losses is public, also for several classes. That of scikit-learn is
private and did worse with the counts of bags. LightGBM needs the system's OpenMP, which slim machines lack; XGBoost's
wheel includes it. `xgboost-cpu` is the same library without GPU code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.special import expit, logit, softmax

from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import BoostingRows
from llpbench.blocks.distinct import Distinct
from llpbench.blocks.side_by_side import Found, workers
from llpbench.core.bags import FloatArray, IntArray, Rows

if TYPE_CHECKING:
    import xgboost


_SMALL = 20_000
"""largest number of rows of a small table"""
_ONE_PART = 600_000
"""largest number of rows that are one part"""
_PART_ROWS = 200_000
_PART_BAGS = 1000
"""smallest number of bags in a part"""

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

    def values(self, rows: Rows) -> FloatArray:
        """Return rows as numbers [rows, features], float32."""
        return self._encode(rows).astype(np.float32)

    def __call__(self, rows: Rows | FloatArray, kind: type[xgboost.DMatrix], **options: Any) -> xgboost.DMatrix:
        """Return a matrix of the given kind, from rows or from their `values`."""
        values = self.values(rows) if isinstance(rows, Rows) else rows
        threads = _threads_for_rows(len(values))
        types = self._types if "c" in self._types else None  # types of numbers only would slow down every tree
        return kind(values, feature_types=types, enable_categorical=True, nthread=threads, **options)

    def scores(self, booster: xgboost.Booster, rows: Rows) -> FloatArray:
        """Return a booster's scores [rows, outputs]."""
        import xgboost

        return _margins(booster, self(rows, xgboost.DMatrix))


def _threads_for_rows(rows: int) -> int:
    """Return the number of threads: one for small tables, because starting threads would take longer than a tree.

    Trees that grow beside other trees also have one thread.
    """
    return torch.get_num_threads() if rows > _SMALL and not _in_background() else 1


def _tree_seed(rng: np.random.Generator) -> int:
    """Return a seed for `TreeRows.grow`."""
    return int(rng.integers(2**31))


def _number_of_parts(rows: int, bags: int) -> int:
    """Return the number of parts for a number of rows and bags."""
    return 1 if rows <= _ONE_PART else max(min(round(rows / _PART_ROWS), bags // _PART_BAGS), 1)


def _margins(booster: xgboost.Booster, data: xgboost.DMatrix) -> FloatArray:
    """Return the sum of all trees [rows, outputs]."""
    found = np.asarray(booster.predict(data, output_margin=True), dtype=np.float64)
    return found.reshape(data.num_row(), -1)


@dataclass(frozen=True, eq=False)
class _TreePart:
    """Some of the training rows, binned."""

    rows: IntArray
    """indices of the rows, in ascending order"""
    bags: IntArray
    """bags of these rows, in ascending order"""
    data: xgboost.DMatrix
    """these rows, or the distinct rows"""
    values: FloatArray | None = None
    """[rows, features] these rows as numbers if there are several parts, since `data` is slow with single trees"""
    place: IntArray | None = None
    """[rows] the distinct row of each cell; None: each row is a row of `data`"""
    times: FloatArray | None = None
    """[rows] number of rows for which each cell stands"""


class TreeRows:
    """Training rows, binned once for all trees.

    Up to 600,000 rows are one part. More rows are divided into parts of whole bags, with about 200,000 rows in at least
    1,000 bags. Each tree is grown on the next part in turn, so the work for a tree does not grow with the rows.

    If few rows are distinct (`blocks.distinct`), equal rows of a bag become one row, called a cell. XGBoost then gets
    only the distinct rows, each with the sum of its cells' derivatives. The trees are the same.
    """

    def __init__(self, rows: Rows) -> None:
        self.input = _TreeInput(rows)
        self._same = Distinct.of_rows(rows)
        self._rows = rows if self._same is None else Rows(*(each[self._same.first] for each in rows))
        self._cells: tuple[BagCounts, IntArray] | None = None
        self._parts: list[_TreePart] = []

    def cells(self, counts: BagCounts) -> tuple[BagCounts, IntArray | slice]:
        """Return the counts of cells, and one row of each; without equal rows, `counts` and all rows."""
        if self._same is None:
            return counts, slice(None)
        if self._cells is None:
            self._cells = counts.folded(self._same)
        return self._cells

    def parts(self, bag_of_row: IntArray, bags: int) -> list[_TreePart]:
        """Return the parts. Bags are assigned to them at random, but the same way in every call.

        `bag_of_row` are the bags of rows, or of `cells`.
        """
        import xgboost

        if not self._parts:
            number = _number_of_parts(len(bag_of_row), bags)
            part_of_bag = np.random.default_rng(0).permutation(bags) % number
            split = [np.flatnonzero(part_of_bag[bag_of_row] == part) for part in range(number)]
            bags_of_part = [np.flatnonzero(part_of_bag == part) for part in range(number)]
            if self._same is not None and self._cells is not None:
                counts, first = self._cells
                assert counts.weights is not None
                data = self.input(self._rows, xgboost.QuantileDMatrix, weight=self._same.counts)
                place, times = self._same.place[first], counts.weights
                self._parts = [
                    _TreePart(cells, some, data, place=place[cells], times=times[cells])
                    for cells, some in zip(split, bags_of_part, strict=True)
                ]
            elif number == 1:
                self._parts = [_TreePart(split[0], bags_of_part[0], self.input(self._rows, xgboost.QuantileDMatrix))]
            else:
                reference = self.input(self.rows_for_bins(), xgboost.QuantileDMatrix)
                for rows, some in zip(split, bags_of_part, strict=True):
                    values = self.input.values(Rows(*(each[rows] for each in self._rows)))
                    data = self.input(values, xgboost.QuantileDMatrix, ref=reference)
                    self._parts.append(_TreePart(rows, some, data, values))
        return self._parts

    def rows_for_bins(self) -> Rows:
        """Return rows that contain every category; their quantiles are the bins of all parts."""
        count = len(self._rows.numeric)
        chosen = [np.arange(0, count, -(-count // _PART_ROWS))]
        chosen += [np.unique(codes, return_index=True)[1] for codes in self._rows.categorical.T]
        rows = np.unique(np.concatenate(chosen))
        return Rows(*(each[rows] for each in self._rows))

    def scores(self, booster: xgboost.Booster) -> FloatArray:
        """Return a booster's scores [rows, outputs] of the training rows, or of `cells`, after `grow`."""
        found = [
            _margins(booster, part.data) if part.values is None else _scores(booster, part.values)
            for part in self._parts
        ]
        scores = np.empty((sum(len(part.rows) for part in self._parts), found[0].shape[1]))
        for part, each in zip(self._parts, found, strict=True):
            scores[part.rows] = each if part.place is None else each[part.place]
        return scores

    def grow(self, gradients: Sequence[Gradients], outputs: int, settings: TreeSettings, seed: int) -> xgboost.Booster:
        """Return a booster for scores [rows, outputs] that starts from zero. The result is determined by `seed`.

        `gradients` has one function for the rows of each part. The booster has caches of the training rows until its
        `reset`.
        """
        import xgboost

        def derivatives(scores: FloatArray, turn: int) -> tuple[FloatArray, FloatArray]:
            of_part = _of_distinct(gradients[turn], self._parts[turn])
            first, second = of_part(scores.reshape(-1, outputs).astype(np.float64))
            return (first, second) if outputs > 1 else (first.ravel(), second.ravel())

        options = _tree_options(settings, outputs, seed, _threads_for_rows(self._parts[0].data.num_row()))
        booster = xgboost.Booster(options, [part.data for part in self._parts])
        scores = [np.zeros((len(part.rows), outputs), dtype=np.float32) for part in self._parts]
        for step in range(settings.rounds):  # as `xgboost.train`, with a part in each step
            turn = step % len(self._parts)
            data, values = self._parts[turn].data, self._parts[turn].values
            if values is None:  # as `booster.update`, which checks the names of features two more times
                now = booster.predict(data, output_margin=True, training=True, validate_features=False)
            else:
                steps = (max(step - len(self._parts), 0), step)  # since the last turn of this part
                now = scores[turn] = _scores(booster, values, scores[turn], steps)
            first, second = derivatives(now, turn)
            booster.boost(data, step, grad=first, hess=second)
        return booster

    def boost_counts(
        self, counts: BagCounts, prior: FloatArray, settings: TreeSettings, rng: np.random.Generator
    ) -> TreeLogits:
        """Boost the likelihood of the counts, starting from the logit of the prior [classes]."""
        offset = _start_of(prior)
        counts = self.cells(counts)[0]
        parts = self.parts(counts.bag_of_row, len(counts.sizes))
        gradients = [
            _likelihood_gradients(counts if len(parts) == 1 else counts.some(part.rows, part.bags), offset)
            for part in parts
        ]
        booster = self.grow(gradients, len(offset), settings, _tree_seed(rng))
        return TreeLogits(self.input, booster.reset(), offset)

    def boost_posteriors(
        self, counts: BagCounts, start: FloatArray, settings: TreeSettings, rounds: int, rng: np.random.Generator
    ) -> TreeLogits:
        """Run EM, starting from logits `start` [rows, classes] of the training rows, and refit all trees in each round.

        In each of `rounds`, trees are fitted by cross-entropy to q = softmax(z + b). The shift b of each bag makes the
        mean of q equal the bag's proportions. Inside `background`, another thread does so.
        """
        outputs = 1 if start.shape[1] == 2 else start.shape[1]
        counts, rows = self.cells(counts)
        logits = start[rows]
        parts = self.parts(counts.bag_of_row, len(counts.sizes))
        seeds = [_tree_seed(rng) for _ in range(rounds)]

        def refitted() -> xgboost.Booster:
            now = logits
            for seed in seeds:
                targets = counts.fitted(now)[:, -outputs:]
                booster = self.grow(
                    [_cross_entropy_gradients(targets[part.rows]) for part in parts], outputs, settings, seed
                )
                now = full_logits(self.scores(booster))
            return booster.reset()

        return TreeLogits(self.input, _later(refitted), np.zeros(outputs))


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


def _scores(
    booster: xgboost.Booster, values: FloatArray, start: FloatArray | None = None, steps: tuple[int, int] = (0, 0)
) -> FloatArray:
    """Return `start` [rows, outputs] plus the scores of the trees of some steps (default: of all)."""
    found = booster.inplace_predict(
        values, iteration_range=steps, predict_type="margin", base_margin=start, validate_features=False
    )
    return np.asarray(found).reshape(len(values), -1)


def _of_distinct(gradients: Gradients, part: _TreePart) -> Gradients:
    """Return gradients for the rows of a part's `data`, from `gradients` of its rows."""
    place, times = part.place, part.times
    if place is None or times is None:
        return gradients

    def summed(values: FloatArray, rows: int) -> FloatArray:
        return np.stack([np.bincount(place, times * column, rows) for column in values.T], axis=1)

    def distinct(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        first, second = gradients(scores[place])
        return summed(first, len(scores)), summed(second, len(scores))

    return distinct


def full_logits(scores: FloatArray) -> FloatArray:
    """Return logits [rows, classes] from [rows, outputs]; with two classes, the output is the second class's logit."""
    return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores


@dataclass(frozen=True, eq=False)
class TreeLogits:
    """Logits of rows by boosted trees."""

    input: _TreeInput
    booster: xgboost.Booster | Future[xgboost.Booster]
    """the trees; a future while they are grown in another thread"""
    offset: FloatArray
    """[outputs]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return logits [rows, classes]."""
        return full_logits(self.input.scores(self.grown(), rows) + self.offset)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with grown trees."""
        return {**self.__dict__, "booster": self.grown()}

    def grown(self) -> xgboost.Booster:
        """Return the trees, once they are grown."""
        return self.booster.result() if isinstance(self.booster, Future) else self.booster


@dataclass(frozen=True, eq=False)
class TreeProba:
    """Probabilities of rows by boosted trees."""

    logits: TreeLogits

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return np.asarray(softmax(self.logits(rows), axis=1))


def _start_of(prior: FloatArray) -> FloatArray:
    """Return the logits [outputs] of the prior [classes]."""
    prior = prior.clip(1e-6, 1 - 1e-6)
    return np.asarray(logit(prior[1:]) if len(prior) == 2 else np.log(prior))


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


_background: ContextVar[_Background | None] = ContextVar("background", default=None)


class _Background:
    """One more thread, and what it computes."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.results: list[Future[object]] = []


@contextmanager
def background() -> Iterator[None]:
    """Let `_later` compute in one more thread until the end of this context, if there are several workers.

    The end waits for the thread, and raises its first error.
    """
    if workers() == 1:
        yield
        return
    mine = _Background()
    token = _background.set(mine)
    try:
        with mine.pool:
            yield
        for result in mine.results:
            result.result()
    finally:
        _background.reset(token)


def _in_background() -> bool:
    """Return whether `_later` computes in another thread."""
    return _background.get() is not None


def _later(compute: Callable[[], Found]) -> Future[Found]:
    """Return a result that is computed in another thread inside `background`, and at once elsewhere."""
    mine = _background.get()
    if mine is None:
        done: Future[Found] = Future()
        done.set_result(compute())
        return done
    found = mine.pool.submit(copy_context().run, compute)
    mine.results.append(found)  # type: ignore[arg-type]
    return found
