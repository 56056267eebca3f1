"""Checked input of `fit`: rows, their bags, and counts of bags.

Each row with a known label becomes a bag of one row. It is removed from its old bag and from that bag's counts.
"""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import BaggedRows, FloatArray, IntArray
from llpbench.core.errors import LLPBenchError, argument
from llpbench.core.text import plural
from llpbench.data.bag_tables import BagLabels, ascending, matched, rows_of_bags
from llpbench.data.reading_bags import as_pandas, read_bag_table, require_same_order
from llpbench.owndata.bag_columns import BagColumn, LikelyLabel, bag_column_warning, label_column_warning
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.columns import (
    ExtremeValues,
    FeatureColumns,
    LargeFit,
    LikelyIdentifier,
    as_frame,
    identifier_warning,
    numbers_far_away,
    require_classes,
    size_warning,
)
from llpbench.owndata.count_ranges import CountRanges, RangedCounts, first_guess, read_ranges
from llpbench.owndata.counted import (
    LargeNoise,
    MissingCounts,
    OneRowPerBag,
    large_noise_warning,
    missing_counts_warning,
    one_row_per_bag,
    repeat_hint,
    require_no_shares,
)
from llpbench.owndata.weights import RoundedWeights, repeats, require_people
from llpbench.tables.number_text import NumbersAsText, numbers_as_text_warning, require_no_texts_among_numbers
from llpbench.tables.texts import as_text, without_decimals


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Rows in bags, with names of bags and classes."""

    columns: FeatureColumns
    train: BaggedRows
    """rows, repeated by weight; labelled rows are bags of one row"""
    known: BaggedRows
    """bags with known counts; labelled rows are still in them"""
    bags: Sequence[Hashable]
    """names of bags"""
    counts: FloatArray
    """[bags, classes] counts of people"""
    sizes: IntArray | FloatArray
    """[bags] numbers of rows, or sums of weights"""
    deviation: float
    """standard deviation of the noise of counts of people"""
    named: Sequence[Hashable]
    """classes in the given order"""
    order: Sequence[int]
    """positions in `named` of the classes in ascending order"""
    nameless: bool
    """whether counts were given without the names of two classes"""
    left_out: dict[str, int]
    ranges: CountRanges | None = None
    """bags whose counts are ranges, in rows of `train`; their `counts` are a first guess"""

    def with_expected(self, expected: FloatArray) -> TrainingSet:
        """Return the same with expected counts [ranges] of the last class in rows of `train`."""
        assert self.ranges is not None
        bags, counts, people = self.ranges.bags, self.train.counts.copy(), self.counts.copy()
        size = self.train.sizes[bags]
        counts[bags] = np.column_stack([size - expected, expected])
        people[bags] = counts[bags] * (self.sizes[bags] / size)[:, None]
        train = replace(self.train, counts=counts)
        return replace(self, train=train, known=train.where_known(), counts=people)

    def ranges_of_known(self) -> CountRanges:
        """Return the ranges with bags numbered as in `known`."""
        assert self.ranges is not None
        return replace(self.ranges, bags=(np.cumsum(self.train.known) - 1)[self.ranges.bags])

    @property
    def classes(self) -> list[Hashable]:
        """Classes in ascending order."""
        return [self.named[place] for place in self.order]


def read_training_set(X: Any, data: BagData, numbers: str) -> TrainingSet:
    """Match rows with the data of their bags, with the errors and warnings of `LLPClassifier.fit`.

    `numbers` is the scaling of numbers.
    """
    frame, of_bags, table, deviation = as_frame(X), data.labels, data.table, data.noise
    sampled, as_shares, ranged = data.counted == "whole bags", data.counted == "others", data.ranges
    suppress = data.suppress_impossible
    if table is None:
        raise LLPBenchError(f"proportions or counts of bags are missing. Give {argument('counts=')}.")
    if not (deviation or as_shares):
        require_no_shares(table)
    named = table.classes(data.classes)
    require_classes(len(named), len(frame) if of_bags.weights is None else int(of_bags.sizes.sum()))
    order = ascending(named)
    of_bags = matched(of_bags, table, drop_unmatched=data.drop_unmatched)
    require_people(of_bags)
    if deviation and (told := large_noise_warning(deviation, of_bags.sizes)):
        warnings.warn(told, LargeNoise, stacklevel=3)
    if told := one_row_per_bag(frame, of_bags, table):
        if not (sampled or as_shares):
            raise LLPBenchError(told)
        warnings.warn(told, OneRowPerBag, stacklevel=3)
    inside = np.flatnonzero(of_bags.of_row >= 0)
    hint = repeat_hint(frame, of_bags, table, sampled)
    found = table.counts(of_bags, deviation, sampled=sampled, as_shares=as_shares, suppress=suppress, hint=hint)
    found = found[:, order]
    suppressed, ranges = table.suppressed(of_bags), None
    if ranged is not None:
        ranges, impossible_ranges = read_ranges(ranged, of_bags, table, order, suppress)
        size = np.asarray(of_bags.sizes, dtype=np.float64)
        guess = first_guess(found, size, ranges)
        found[ranges.bags] = np.column_stack([size[ranges.bags] - guess, guess])
        suppressed -= len(ranges.bags) + impossible_ranges
    besides = set[Hashable]() if ranged is None else _bags_of_ranges(ranged, of_bags)
    exact = table.is_counts and not (sampled or as_shares or deviation) and of_bags.weights is None
    if told := missing_counts_warning(table, of_bags, named, besides, of_rows=exact):
        warnings.warn(told, MissingCounts, stacklevel=3)
    left_out = {
        "rows": len(frame) - len(inside),
        "bags": len(table.names) - len(of_bags.names),
        "suppressed": suppressed,
        "impossible": int(np.isnan(found).any(axis=1).sum()) - suppressed,
    }
    keys = [*data.left_out]
    copies = None if of_bags.weights is None else repeats(frame.drop(columns=keys), of_bags)
    places = inside if copies is None else copies.places
    frame = frame.iloc[places].drop(columns=keys)
    if not frame.shape[1]:
        raise LLPBenchError(
            f"{argument('X')} must have features, got only {keys}, which name the bags. Add features, or use "
            f"{argument('keep_key=True')}."
        )
    columns = FeatureColumns(frame, numbers)  # refuses lists and other cells that are no values
    require_no_texts_among_numbers(frame)
    for told, category in (
        (identifier_warning(frame), LikelyIdentifier),
        (size_warning(len(frame), frame.shape[1], columns.cardinalities), LargeFit),
        (numbers_as_text_warning(frame), NumbersAsText),
        (numbers_far_away(frame, columns.ranges), ExtremeValues),
        (copies.warning(len(inside)) if copies is not None else "", RoundedWeights),
    ):
        if told:
            warnings.warn(told, category, stacklevel=3)
    index = rows_of_bags(of_bags.of_row[places], len(of_bags.names))
    train = BaggedRows(columns.training_rows(frame), index, found, deviation)
    if told := bag_column_warning(frame, train, data.bag_columns):
        warnings.warn(told, BagColumn, stacklevel=3)
    if told := label_column_warning(frame, train, [named[place] for place in order]):
        warnings.warn(told, LikelyLabel, stacklevel=3)
    if copies is not None:
        noise = deviation * copies.ratio
        train = replace(train, counts=copies.counts(found, noisy=deviation > 0), noise=noise)
        ranges = None if ranges is None else ranges.scaled(train.sizes / np.asarray(of_bags.sizes, dtype=np.float64))
    known = train.where_known()
    if len(known.sizes) < 2:
        raise LLPBenchError(
            f"at least 2 bags must have known counts, got {len(known.sizes)} of {len(train.sizes):,}. Give more or "
            "smaller bags."
        )
    if known.prior.max() == 1.0:
        only = named[order[int(known.prior.argmax())]]
        raise LLPBenchError(
            f"known bags must have two classes, got only {only!r} in all {len(known.sizes):,}. Add bags with another "
            "class."
        )
    if data.row_labels is not None:
        ascending_names = [named[place] for place in order]
        label = _read_labels(data.row_labels, X, ascending_names)
        of_rows = not (sampled or as_shares)
        train = _with_labels(train, label, places, of_bags.names, ascending_names, of_rows=of_rows)
    nameless = table.columns is None or table.values.shape[1] == 1
    return TrainingSet(
        columns=columns,
        train=train,
        known=known,
        bags=of_bags.names,
        counts=found,
        sizes=of_bags.sizes,
        deviation=deviation,
        named=named,
        order=order,
        nameless=nameless,
        left_out=left_out,
        ranges=ranges,
    )


def _bags_of_ranges(given: RangedCounts, labels: BagLabels) -> set[Hashable]:
    """Return the bags whose counts are all numbers or ranges."""
    table = read_bag_table(None, given.low, labels)
    return {name for name, low in zip(table.names, table.values, strict=True) if not np.isnan(low).any()}


_LABELS = argument("labels=")
_ROUNDED = 0.005
"""Largest rounding error of a count that was computed from a proportion, as a share of the bag's rows."""


def _read_labels(labels: Any, X: Any, classes: Sequence[Hashable]) -> IntArray:
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


def _with_labels(
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
