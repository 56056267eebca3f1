"""Which bag each row is of, and what is known of each bag, in whatever form its owner has it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray, IntArray, counts_of
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural

_ROUNDED = 0.02
"""by which the proportions of a bag may miss 1: they are often rounded"""


@dataclass(frozen=True, eq=False)
class BagLabels:
    """The bag of each row."""

    of_row: IntArray
    """[rows] index into `names`; -1: no bag"""
    names: list[Hashable]
    """in ascending order, or in order of appearance where they cannot be compared"""

    @property
    def sizes(self) -> IntArray:
        """[bags] rows in each"""
        return np.bincount(self.of_row[self.of_row >= 0], minlength=len(self.names)).astype(np.int64)

    def among(self, known: Sequence[Hashable]) -> IntArray:
        """[rows] index into the bags `known`; -1: none of them"""
        place = {name: index for index, name in enumerate(known)}
        return np.array([*(place.get(name, -1) for name in self.names), -1], dtype=np.int64)[self.of_row]


def read_bag_labels(bags: Any, rows: int) -> BagLabels:
    """The bag of each row from an array, series or list of labels, or from a frame of natural keys, whose labels are
    tuples. Raises `LLPBenchError` if there are not as many as rows."""
    frame = bags if isinstance(bags, pd.DataFrame) else None
    if frame is None and np.ndim(bags) == 2 and isinstance(bags, np.ndarray):
        frame = pd.DataFrame(bags)
    if len(bags) != rows:
        raise LLPBenchError(f"bags has {len(bags):,} entries, X has {rows:,} rows. Give the bag of each row.")
    if frame is None:
        labels = pd.Series(bags.to_numpy() if isinstance(bags, pd.Series) else bags)
    elif frame.shape[1] == 1:
        labels = frame.iloc[:, 0]
    else:
        labels = pd.Series(list(frame.itertuples(index=False, name=None)), dtype=object)
        labels[frame.isna().any(axis=1).to_numpy()] = None
    try:
        codes, uniques = pd.factorize(labels)
    except TypeError as error:
        raise LLPBenchError(f"bags must be labels such as numbers or texts, however: {error}") from error
    names = list(uniques.tolist())
    try:
        order = sorted(range(len(names)), key=names.__getitem__)
    except TypeError:
        order = list(range(len(names)))
    place = np.empty(len(names) + 1, dtype=np.int64)
    place[order] = np.arange(len(names))
    place[-1] = -1
    return BagLabels(place[codes], [names[number] for number in order])


@dataclass(frozen=True, eq=False)
class BagTable:
    """What is known of some bags."""

    names: list[Hashable]
    values: FloatArray
    """[bags, columns] NaN where suppressed; a single column is that of the positive class"""
    columns: list[Hashable] | None
    """the classes, where they are named"""
    is_counts: bool

    @property
    def what(self) -> str:
        """What the values are called."""
        return "counts" if self.is_counts else "proportions"

    def classes(self, named: Sequence[Hashable] | None) -> list[Hashable]:
        """All classes, in the order of the columns; of a single column the positive one is the last.

        Raises `LLPBenchError` if `named`, where given, are others.
        """
        width = self.values.shape[1]
        if self.columns is not None and width > 1:
            if named is not None and set(named) != set(self.columns):
                raise LLPBenchError(
                    f"{self.what} are of the classes {_some(self.columns)}, classes says {_some(named)}. "
                    "Give the same classes."
                )
            return list(self.columns)
        number = 2 if width == 1 else width
        found: list[Hashable] = [*range(number)] if named is None else [*named]
        if len(found) != number:
            raise LLPBenchError(
                f"{self.what} with {plural(width, 'column')} are of {number} classes, classes has {len(found)} "
                f"({_some(found)}). Give a column a class."
            )
        return found

    def counts(self, labels: BagLabels, noise: float) -> FloatArray:
        """[bags, classes] the counts of each bag of `labels` that the table has, NaN where suppressed or absent.

        Raises `LLPBenchError` for what cannot be, unless noise may have made it so.
        """
        place = {name: index for index, name in enumerate(self.names)}
        at = np.array([place.get(name, -1) for name in labels.names], dtype=np.int64)
        values = np.where((at >= 0)[:, None], self.values[at], np.nan)
        values[np.isnan(values).any(axis=1)] = np.nan
        sizes = labels.sizes
        whole: FloatArray = sizes.astype(np.float64) if self.is_counts else np.ones(len(sizes))
        if values.shape[1] == 1:
            values = np.column_stack([whole - values[:, 0], values[:, 0]])
        if noise == 0:
            self._require_possible(labels, values, whole)
        if self.is_counts:
            return values
        if noise == 0:
            values = values / values.sum(axis=1, keepdims=True)
        return counts_of(values, sizes)

    def _require_possible(self, labels: BagLabels, values: FloatArray, whole: FloatArray) -> None:
        total = values.sum(axis=1)
        beyond = (values < 0).any(axis=1) | (values > whole[:, None] * (1 + 1e-9)).any(axis=1)
        slack = 1e-6 * whole if self.is_counts else np.full(len(whole), _ROUNDED)
        off = beyond | (np.abs(total - whole) > slack)
        if not off.any():
            return
        first = int(np.flatnonzero(off)[0])
        given = ", ".join(f"{value:g}" for value in values[first])
        meant = f"it has {plural(int(labels.sizes[first]), 'row')}" if self.is_counts else "they must add up to 1"
        mend = (
            "Give proportions= where X holds but some of a bag's rows, or noise= where noise was added."
            if self.is_counts
            else "Give shares between 0 and 1, or noise= where noise was added."
        )
        raise LLPBenchError(
            f"the {self.what} of bag {labels.names[first]!r} are {given} (in all {total[first]:g}), but {meant}; "
            f"so {plural(int(off.sum()), 'bag')} of {len(off):,}. {mend}"
        )


def read_bag_table(proportions: Any, counts: Any, labels: BagLabels) -> BagTable:
    """What `fit` was given: a mapping, a series, a frame (a column a class), or an array in the order of the bags.

    Raises `LLPBenchError` unless one of both was given, and for what is no number.
    """
    if (proportions is None) == (counts is None):
        raise LLPBenchError(f"give {'either' if counts is not None else 'one of'} proportions= or counts= of the bags.")
    is_counts = counts is not None
    given, what = (counts, "counts") if is_counts else (proportions, "proportions")
    columns: list[Hashable] | None = None
    names: list[Hashable]
    values: Any
    if isinstance(given, pd.DataFrame):
        names, values, columns = list(given.index), given, list(given.columns)
    elif isinstance(given, pd.Series):
        names, values = list(given.index), given
    elif isinstance(given, Mapping):
        names, values = list(given), list(given.values())
        if values and all(isinstance(value, Mapping) for value in values):
            columns = list(dict.fromkeys(key for value in values for key in value))
            values = [[value.get(column, np.nan) for column in columns] for value in values]
    else:
        names, values = list(labels.names), given
        if len(given) != len(names):
            raise LLPBenchError(
                f"{what} has {len(given):,} entries, there are {len(names):,} bags. Give an entry for each bag in "
                "ascending order, or a mapping from bag to entry."
            )
    repeated = pd.Index(names, tupleize_cols=False).duplicated()
    if repeated.any():
        raise LLPBenchError(f"{what} has two entries for bag {names[int(repeated.argmax())]!r}. Give one for each bag.")
    return BagTable(names, _numbers(values, what), columns, is_counts)


def ascending(classes: Sequence[Hashable]) -> list[int]:
    """The places of the classes in ascending order. Raises `LLPBenchError` for one, repeated or mixed ones."""
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise LLPBenchError(f"there must be two classes at least, each once, however: {list(classes)}")
    try:
        return sorted(range(len(classes)), key=lambda place: classes[place])  # type: ignore[arg-type,return-value]
    except TypeError as error:
        raise LLPBenchError(f"classes must be all texts or all numbers, however: {list(classes)}") from error


def _numbers(values: Any, what: str) -> FloatArray:
    """[bags, columns]"""
    array: FloatArray
    try:
        if isinstance(values, pd.DataFrame | pd.Series):
            array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            array = np.asarray(pd.DataFrame(list(values)).to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise LLPBenchError(f"{what} must be numbers, NaN where suppressed, however: {error}") from error
    array = np.asarray(array.reshape(len(array), -1))
    if np.isinf(array).any():
        raise LLPBenchError(f"{what} hold an infinite number. Give NaN for what is suppressed.")
    return array


def _some(names: Sequence[Hashable], most: int = 5) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def matched(labels: BagLabels, table: BagTable, unmatched: str) -> BagLabels:
    """The labels without the rows that have no bag, or one that the table has not, if `unmatched` is "drop".

    Raises `LLPBenchError` if it is "raise" and there are such rows, or bags of the table without rows.
    """
    if unmatched not in ("raise", "drop"):
        raise LLPBenchError(f"unmatched must be 'raise' or 'drop', however: {unmatched!r}")
    known = set(table.names)
    listed = np.array([name in known for name in labels.names], dtype=bool)
    if unmatched == "raise":
        alone = int((labels.of_row < 0).sum())
        if alone:
            raise LLPBenchError(
                f"{alone:,} of {len(labels.of_row):,} rows have no bag (a missing label). "
                "Fill it in, or give unmatched='drop'."
            )
        if not listed.all():
            lacking = [name for name, there in zip(labels.names, listed, strict=True) if not there]
            raise LLPBenchError(
                f"{plural(len(lacking), 'bag')} of {len(listed):,} ({_some(lacking)}) have no {table.what}, which are "
                f"of bags such as {_some(table.names, 3)}. Give NaN where they are suppressed, or unmatched='drop'."
            )
        empty = [name for name in table.names if name not in set(labels.names)]
        if empty:
            raise LLPBenchError(
                f"{plural(len(empty), 'bag')} of the {len(table.names):,} with {table.what} have no rows "
                f"({_some(empty)}). Take them out, or give unmatched='drop'."
            )
        return labels
    place = np.append(np.where(listed, np.cumsum(listed) - 1, -1), -1)
    return BagLabels(place[labels.of_row], [name for name, there in zip(labels.names, listed, strict=True) if there])


def positions(of_row: IntArray, bags: int) -> IntArray:
    """[bags, longest] the rows of each bag, -1 behind the shorter ones. Each bag has rows."""
    sizes = np.bincount(of_row, minlength=bags)
    order = np.argsort(of_row, kind="stable")
    index = np.full((bags, sizes.max(initial=0)), -1, dtype=np.int64)
    index[of_row[order], np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)] = order
    return index
