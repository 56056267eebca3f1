"""Checked input of `fit`: rows, their bags, and counts of bags."""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, IntArray
from llpbench.core.errors import LLPBenchError, argument
from llpbench.data.bag_tables import BagLabels, ascending, matched, rows_of_bags
from llpbench.data.reading_bags import read_bag_table
from llpbench.owndata.bag_columns import BagColumn, LikelyLabel, bag_column_warning, label_column_warning
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.columns import (
    FeatureColumns,
    LargeFit,
    LikelyIdentifier,
    as_frame,
    identifier_warning,
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
from llpbench.owndata.extremes import ExtremeValues, numbers_far_away
from llpbench.owndata.known_labels import read_labels, with_labels
from llpbench.owndata.weights import RoundedWeights, repeats, require_people
from llpbench.tables.number_text import NumbersAsText, numbers_as_text_warning, require_no_texts_among_numbers


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
    unmatched, suppress = "drop" if data.drop_unmatched else "raise", data.suppress_impossible
    if table is None:
        raise LLPBenchError(f"proportions or counts of bags are missing. Give {argument('counts=')}.")
    if not (deviation or as_shares):
        require_no_shares(table)
    named = table.classes(data.classes)
    require_classes(len(named), len(frame) if of_bags.weights is None else int(of_bags.sizes.sum()))
    order = ascending(named)
    of_bags = matched(of_bags, table, unmatched)
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
        label = read_labels(data.row_labels, X, ascending_names)
        of_rows = not (sampled or as_shares)
        train = with_labels(train, label, places, of_bags.names, ascending_names, of_rows=of_rows)
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
