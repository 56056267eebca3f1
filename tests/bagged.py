"""Rows and bags written out by hand, as direct methods and the blocks below them receive them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Ragged, Rows, Schema
from llpbench.core.registry import METHODS


def rows_of(numeric: Collection[Any], categorical: Collection[Any] | None = None) -> Rows:
    """Rows with these values; NaN is missing, as 0 with a mark."""
    values = np.array(numeric, dtype=np.float64)
    codes = np.zeros((len(values), 0)) if categorical is None else np.array(categorical)
    missing = np.isnan(values)
    return Rows(np.where(missing, 0, values).astype(np.float32), codes.astype(np.int64), missing)


def in_bags(rows: Rows, bags: Collection[Any], counts: Collection[Any]) -> BaggedRows:
    """Rows in these bags, which may differ in size, with these class counts."""
    longest = max(map(len, bags))
    index = np.array([[*bag, *[-1] * (longest - len(bag))] for bag in bags], dtype=np.int64)
    return BaggedRows(rows=rows, index=index, counts=np.array(counts, dtype=np.float64))


def labelled(rows: Rows, labels: IntArray, bags: Collection[Any], classes: int = 2) -> BaggedRows:
    """Rows in these bags, with the class counts of these labels."""
    return in_bags(rows, bags, [np.bincount(labels[bag], minlength=classes) for bag in bags])


def schema_of(train: BaggedRows, *cardinalities: int) -> Schema:
    """What the methods are told of such rows."""
    classes = train.counts.shape[1]
    prior: FloatArray = train.counts.sum(axis=0) / train.counts.sum()
    return Schema(train.rows.numeric.shape[1], cardinalities, classes, tuple(prior.tolist()), rows_per_step=1)


def predict(name: str, train: BaggedRows, other: Rows, *cardinalities: int, **params: object) -> FloatArray:
    """Probabilities that the method of this name, fitted on bags, gives other rows."""
    declared = METHODS.get(name)
    method = declared(declared.Params(**params))
    return np.asarray(method.fit(train, schema_of(train, *cardinalities), np.random.default_rng(0))(other))


def repeated(classes: int) -> BaggedRows:
    """3,000 rows, few of them distinct, in six bags, two small ones among them."""
    rng, sizes = np.random.default_rng(0), np.array([900, 600, 5, 1000, 3, 492])
    of_row = np.repeat(np.arange(6), sizes)
    rows = Rows(
        rng.integers(0, np.array([1, 4, 3, 2, 2, 3])[of_row])[:, None].astype(np.float32),
        rng.integers(0, 3, (3000, 1)),
        np.repeat([[False], [True]], [2999, 1], axis=0),
    )
    label = (rng.random(3000) * (0.6 + 0.3 * rows.numeric[:, 0]) * classes).astype(int).clip(0, classes - 1)
    counts = np.zeros((6, classes))
    np.add.at(counts, (of_row, label), 1.0)
    return BaggedRows(rows, Ragged(np.arange(3000), sizes), counts)
