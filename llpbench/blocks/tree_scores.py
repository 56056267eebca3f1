"""Scores of rows by XGBoost's trees, computed in numpy.

A tree that is grown on one part of the rows is needed for the other rows at once. XGBoost scores rows of its binned
matrices one by one, which takes longer than growing the tree. Here each split is a comparison of a whole column.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.core.bags import BoolArray, FloatArray, IntArray

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
class ScoreTree:
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


def trees_of(booster: xgboost.Booster) -> list[ScoreTree]:
    """Return the trees of a booster, in their order."""
    model = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]["model"]
    return [_read(tree, int(output)) for tree, output in zip(model["trees"], model["tree_info"], strict=True)]


def _read(tree: dict[str, Any], output: int) -> ScoreTree:
    segments = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    return ScoreTree(
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


def add_scores(trees: list[ScoreTree], columns: TreeColumns, scores: FloatArray) -> None:
    """Add the values of trees to `scores` [rows, outputs], one tree after the other."""
    for start in range(0, len(columns), _CHUNK):
        rows = slice(start, start + _CHUNK)
        for tree in trees:
            scores[rows, tree.output] += tree(columns, rows)
