"""Rows with known labels. Each becomes a bag of one row, and is removed from its old bag and from that bag's counts."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import BaggedRows, FloatArray, IntArray
from llpbench.core.errors import LLPBenchError, argument
from llpbench.core.text import plural
from llpbench.data.bag_tables import rows_of_bags
from llpbench.data.reading_bags import as_pandas, require_same_order
from llpbench.tables.texts import as_text, without_decimals

_LABELS = argument("labels=")
_ROUNDED = 0.005
"""Largest rounding error of a count that was computed from a proportion, as a share of the bag's rows."""


def read_labels(labels: Any, X: Any, classes: Sequence[Hashable]) -> IntArray:
    """Return the position in `classes` of each row's label [rows], -1 where the label is missing.

    Raises `LLPBenchError` for a wrong number of labels, and for a label that is not in `classes`.
    """
    labels = as_pandas(labels)
    if isinstance(labels, pd.Series) and isinstance(X, pd.DataFrame):
        require_same_order("labels", labels.index, X.index)
    series = isinstance(labels, pd.Series)
    column = pd.Series(labels.to_numpy() if series else labels, dtype=object, name=labels.name if series else None)
    if len(column) != len(X):
        raise LLPBenchError(
            f"labels must have an entry for each of the {len(X):,} rows, got {len(column):,}. Give None for rows "
            "whose label is not known."
        )
    found = column.map({label: place for place, label in enumerate(classes)})
    foreign = column[found.isna() & column.notna()]
    if len(foreign):
        named = "" if column.name is None else f" in column {column.name!r}"
        number = int((foreign == foreign.iloc[0]).sum())
        raise LLPBenchError(
            f"labels{named} must be {' or '.join(map(repr, classes))}, got {foreign.iloc[0]!r} "
            f"({plural(number, 'such row')}). Correct these labels, leave them empty, or use another "
            "column."
        )
    return np.asarray(found.fillna(-1).to_numpy(dtype=np.int64))


def labels_of_column(column: pd.Series) -> pd.Series:
    """Return a column of a file as labels, None where it is empty; whole numbers lose their decimals."""
    known = column.notna() & (column.astype(str).str.strip() != "")
    return as_text(column).str.strip().map(without_decimals, na_action="ignore").astype(object).where(known, None)


def with_labels(
    train: BaggedRows,
    label: IntArray,
    places: IntArray,
    names: Sequence[Hashable],
    classes: Sequence[Hashable],
    *,
    of_rows: bool,
) -> BaggedRows:
    """Return bags in which each labelled row is a bag of one.

    Parameters
    ----------
    train : training rows; some may be repeated
    label : [rows of X] position of the class, -1 where it is not known
    places : [rows] position in X of each training row; repetitions of a labelled row form one bag
    names : names of bags
    classes : names of classes
    of_rows : True if counts are of these rows; otherwise rows without labels keep the shares of their bag

    Raises `LLPBenchError` if noise was added to counts, or if a bag has more labels of a class than its counts.
    """
    if train.noise:
        raise LLPBenchError(f"{_LABELS} and {argument('noise=')} cannot be combined. Leave one of them out.")
    labelled = label[places] >= 0
    if not labelled.any():
        return train
    of_label, inside = label[places[labelled]], train.bag_of_row[labelled]
    taken: FloatArray = np.zeros(train.counts.shape)
    np.add.at(taken, (inside, of_label), 1.0)
    rest = train.sizes - taken.sum(axis=1).astype(np.int64)
    left = train.counts - taken if of_rows else train.counts * (rest / train.sizes)[:, None]
    slack = np.where(np.rint(train.counts) == train.counts, 0.0, np.maximum(0.5, _ROUNDED * train.sizes)[:, None])
    if (left < -slack - 1e-6 * train.sizes[:, None]).any():
        bag, place = map(int, np.argwhere(left < -slack - 1e-6 * train.sizes[:, None])[0])
        raise LLPBenchError(
            f"bag {names[bag]!r} has {plural(int(taken[bag, place]), 'row')} with the label {classes[place]!r} in "
            f"{_LABELS}, but its count of this class is {train.counts[bag, place]:,.10g}. Correct the labels or counts."
        )
    left = left.clip(min=0)
    whole = left.sum(axis=1)
    off = np.abs(whole - rest) > 1e-9 * train.sizes  # of proportions, which were rounded
    left[off] *= (rest / np.maximum(whole, 1e-12))[off, None]
    kept = np.flatnonzero(rest > 0)
    rows, of_row = np.unique(places[labelled], return_inverse=True)
    bag_of_row = np.empty(len(places), dtype=np.int64)
    bag_of_row[labelled] = len(kept) + of_row
    position = np.full(len(rest), -1, dtype=np.int64)
    position[kept] = np.arange(len(kept))
    bag_of_row[~labelled] = position[train.bag_of_row[~labelled]]
    known = np.eye(train.counts.shape[1])[label[rows]] * np.bincount(of_row)[:, None]
    counts = np.vstack([left[kept], known])
    return replace(train, index=rows_of_bags(bag_of_row, len(counts)), counts=counts)
