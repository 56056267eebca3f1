"""Gradient-boosted trees for any loss of rows, by XGBoost.

XGBoost is used because its interface for custom losses is public, also for several classes. That of scikit-learn is
private and did worse with the counts of bags. LightGBM needs the system's OpenMP, which slim machines lack; XGBoost's
wheel includes it. `xgboost-cpu` is the same library without GPU code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import BoostingRows
from llpbench.blocks.distinct import distinct_rows
from llpbench.blocks.side_by_side import in_background
from llpbench.core.bags import BoolArray, FloatArray, IntArray, Rows

if TYPE_CHECKING:
    import xgboost


_CHUNK = 32_768
"""rows processed at once, so that all results of a tree fit into the CPU's cache"""
_FEW_CODES = 16
"""largest number of codes that are compared one by one"""


class TreeColumns:
    """Rows as columns, the input of trees."""

    def __init__(self, values: FloatArray) -> None:
        """`values` [rows, features] are float32, with NaN for missing values; categories are codes."""
        self.values = np.ascontiguousarray(values.T)
        missing = [np.isnan(column) for column in self.values]
        self.missing: list[BoolArray | None] = [each if each.any() else None for each in missing]

    def __len__(self) -> int:
        return int(self.values.shape[1])


@dataclass(frozen=True, eq=False)
class _ScoreTree:
    """A tree of XGBoost, with arrays over its nodes."""

    output: int
    """column of the scores to which the tree is added"""
    left: IntArray
    """left child of each node; -1 at a leaf"""
    right: IntArray
    feature: IntArray
    value: FloatArray
    """float32: the smallest number on the right side, or the value of a leaf"""
    missing_left: BoolArray
    """whether missing values go left"""
    categories: dict[int, IntArray]
    """codes that go right, at nodes of categorical features"""

    def __call__(self, columns: TreeColumns, rows: slice) -> FloatArray:
        """Return the value of each row's leaf [rows], in the arithmetic of XGBoost."""
        return np.asarray(self.value.take(self._leaf(0, columns, rows), mode="clip"))

    def _leaf(self, node: int, columns: TreeColumns, rows: slice) -> Any:
        """Return the node in which each row ends, starting at `node`: [rows], or one number for all rows.

        Node numbers are selected by bit operations, which are faster than a choice between two arrays.
        """
        kind = np.min_scalar_type(len(self.left))
        if self.left[node] < 0:
            return kind.type(node)
        feature = self.feature[node]
        column, missing = columns.values[feature, rows], columns.missing[feature]
        codes = self.categories.get(node)
        goes_left = column < self.value[node] if codes is None else _outside(column, codes)
        if missing is not None:
            goes_left = (goes_left & ~missing[rows]) | (missing[rows] & self.missing_left[node])
        left, right = (self._leaf(child, columns, rows) for child in (self.left[node], self.right[node]))
        return right ^ ((left ^ right) & np.negative(goes_left.astype(kind)))


def _outside(column: FloatArray, codes: IntArray) -> BoolArray:
    """Return whether values [rows] are not among `codes`; the result for NaN is undefined."""
    if len(codes) > _FEW_CODES:
        table = np.ones(codes.max() + 2, dtype=bool)
        table[codes] = False
        return np.asarray(table.take(np.nan_to_num(column).astype(np.intp), mode="clip"))
    inside: BoolArray = column == codes[0]
    for code in codes[1:]:
        inside |= column == code
    return ~inside


def trees_of(booster: xgboost.Booster) -> list[_ScoreTree]:
    """Return the trees of a booster, in their order."""
    model = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]["model"]
    return [_read(tree, int(output)) for tree, output in zip(model["trees"], model["tree_info"], strict=True)]


def _read(tree: dict[str, Any], output: int) -> _ScoreTree:
    segments = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    return _ScoreTree(
        output=output,
        left=np.array(tree["left_children"], dtype=np.int64),
        right=np.array(tree["right_children"], dtype=np.int64),
        feature=np.array(tree["split_indices"], dtype=np.int64),
        value=np.array(tree["split_conditions"], dtype=np.float32),
        missing_left=np.array(tree["default_left"], dtype=bool),
        categories={
            node: np.array(tree["categories"][start : start + size], dtype=np.int64) for node, start, size in segments
        },
    )


def add_scores(trees: list[_ScoreTree], columns: TreeColumns, scores: FloatArray) -> None:
    """Add the values of trees to `scores` [rows, outputs], one tree after the other."""
    for start in range(0, len(columns), _CHUNK):
        rows = slice(start, start + _CHUNK)
        for tree in trees:
            scores[rows, tree.output] += tree(columns, rows)


if TYPE_CHECKING:
    import xgboost

_SMALL = 20_000
"""largest number of rows of a small table"""
ONE_PART = 600_000
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


class TreeInput:
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

        return margins(booster, self(rows, xgboost.DMatrix))


def _threads_for_rows(rows: int) -> int:
    """Return the number of threads: one for small tables, because starting threads would take longer than a tree.

    Trees that grow beside other trees also have one thread.
    """
    return torch.get_num_threads() if rows > _SMALL and not in_background() else 1


def tree_seed(rng: np.random.Generator) -> int:
    """Return a seed for `TreeRows.grow`."""
    return int(rng.integers(2**31))


def number_of_parts(rows: int, bags: int) -> int:
    """Return the number of parts for a number of rows and bags."""
    return 1 if rows <= ONE_PART else max(min(round(rows / _PART_ROWS), bags // _PART_BAGS), 1)


def margins(booster: xgboost.Booster, data: xgboost.DMatrix) -> FloatArray:
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
    columns: TreeColumns | None = None
    """these rows; None if there is one part, or if `data` has distinct rows"""
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
        self.input = TreeInput(rows)
        self._same = distinct_rows(rows)
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
            number = number_of_parts(len(bag_of_row), bags)
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
                    self._parts.append(_TreePart(rows, some, data, TreeColumns(values)))
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
        trees = trees_of(booster) if self._parts[0].columns is not None else []
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            found = list(pool.map(partial(_scores_of_part, booster, trees), self._parts))
        scores = np.empty((sum(len(part.rows) for part in self._parts), found[0].shape[1]))
        for part, each in zip(self._parts, found, strict=True):
            scores[part.rows] = each
        return scores

    def grow(self, gradients: Sequence[Gradients], outputs: int, settings: TreeSettings, seed: int) -> xgboost.Booster:
        """Return a booster for scores [rows, outputs] that starts from zero. The result is determined by `seed`.

        `gradients` has one function for the rows of each part.
        """
        import xgboost

        def derivatives(scores: FloatArray, turn: int) -> tuple[FloatArray, FloatArray]:
            of_part = _of_distinct(gradients[turn], self._parts[turn])
            first, second = of_part(scores.reshape(-1, outputs).astype(np.float64))
            return (first, second) if outputs > 1 else (first.ravel(), second.ravel())

        options = _tree_options(settings, outputs, seed, _threads_for_rows(self._parts[0].data.num_row()))
        booster = xgboost.Booster(options, [part.data for part in self._parts])
        columns = [part.columns for part in self._parts if part.columns is not None]
        scores = [np.zeros((len(part), outputs), dtype=np.float32) for part in columns]
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for step in range(settings.rounds):  # as `xgboost.train`, with a part in each step
                turn = step % len(self._parts)
                data = self._parts[turn].data
                if columns:
                    now = scores[turn]
                else:  # as `booster.update`, which checks the names of features two more times
                    now = booster.predict(data, output_margin=True, training=True, validate_features=False)
                first, second = derivatives(now, turn)
                booster.boost(data, step, grad=first, hess=second)
                if columns:
                    list(pool.map(partial(add_scores, trees_of(booster[step])), columns, scores))
        return booster.reset()


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


def _scores_of_part(booster: xgboost.Booster, trees: list[_ScoreTree], part: _TreePart) -> FloatArray:
    """Return a booster's scores [rows, outputs] of a part. If the part has columns, `trees` must be the booster's."""
    if part.columns is None:
        found = margins(booster, part.data)
        return found if part.place is None else found[part.place]
    scores = np.zeros((len(part.rows), 1 + max(tree.output for tree in trees)), dtype=np.float32)
    add_scores(trees, part.columns, scores)
    return scores


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
