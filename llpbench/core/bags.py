"""The bags contract: what a method may know of the data.

A bag is a set of rows whose class counts are known and whose labels are not. `BaggedRows`, the training
set, and the `Bags` drawn from it for a step hold features, bag membership and class counts: there is no label to leak.
Labels of held-out rows stand in `Holdout`, for the evaluator alone, and may be absent there too.

**Counts are what somebody published**, and are kept as they were given. They may be

- exact whole numbers, as a benchmark makes them;
- proportions of bags of known size, times that size (`counts_of`): fractional;
- noisy, as differential privacy makes them: fractional, negative, not adding up to the bag's size; `noise` states the
  standard deviation of what was added to each count;
- suppressed, as small cells of official tables are: NaN in every class. Such a bag is one without any
  known but its rows: it has no share in a proportion loss or a coarse-grained criterion (`known`).

`proportions` is what counts say on the simplex: negative counts are 0, and what is left is divided by its sum; where
nothing is left, it is the prior.

**A bag counts once**, whatever its size: in proportion losses and in coarse-grained criteria every known bag has the
same weight, as in the papers compared here. A method that wants rows to count has `mask` and `sizes` to weigh by.

Every row is in one bag at most. Tables of aggregates that overlap (votes by district beside votes by age) are out of
scope: they would need a row to be in several bags.

This module is numpy only. Inside a population the same named tuples hold torch tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Array = Any
"""a numpy array on the data side, a torch tensor inside a population"""

Supervision = str
"""`"bags"`: class counts of bags; `"instances"`: the label of every training row (the ceiling only)"""


@dataclass(frozen=True)
class Schema:
    """What a network needs to know of the data before it sees any."""

    numeric: int
    """number of numeric features"""
    cardinalities: tuple[int, ...]
    """codes of each categorical feature, code 0 (missing or unseen in training) included"""
    classes: int
    prior: tuple[float, ...]
    """class proportions over all training bags: a function of what a learner is given"""
    rows_per_step: int
    """rows that a training step usually sees (bags a step x mean size of a bag)"""

    @property
    def features(self) -> int:
        """number of features of both kinds"""
        return self.numeric + len(self.cardinalities)


class Rows(NamedTuple):
    """Normalised features of rows. Leading dimensions are free: `[rows, ...]`, `[bags, size, ...]`."""

    numeric: Array
    """[..., numeric features] float32, z-scored with the training rows' statistics; 0 where missing"""
    categorical: Array
    """[..., categorical features] int64; 0 where missing or unseen in training"""
    missing: Array
    """[..., numeric features] bool"""


class Bags(NamedTuple):
    """A few whole bags, padded to the longest: all that a loss ever sees of the data."""

    rows: Rows
    """leading dimensions [bags, size]"""
    mask: Array
    """[bags, size] bool; False marks padding"""
    counts: Array
    """[bags, classes] float32; as they were given: fractional or negative where they are noisy; 0 where suppressed. In
    a stage of rows each bag is one row, and its counts are its target"""
    proportions: Array
    """[bags, classes] float32, on the simplex: what `counts` say, or the target of a single row (see `Stage.unit`)"""
    known: Array
    """[bags] bool; False where counts are suppressed, and `proportions` is but the prior"""
    prior: Array
    """[classes] float32, class proportions over all training bags"""


@dataclass(frozen=True, eq=False)
class Ragged:
    """Which rows each bag has, one bag behind the other: an `index` without padding, for bags of one row beside bags of
    a hundred thousand. It can be counted and gone through bag by bag."""

    rows: IntArray
    """[rows] positions"""
    sizes: IntArray
    """[bags] of each"""

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[IntArray]:
        return iter(np.split(self.rows, np.cumsum(self.sizes)[:-1]))


@dataclass(frozen=True, eq=False)
class _Counted:
    """Rows in bags, with the counts of each bag."""

    rows: Rows
    """leading dimension [rows]"""
    index: Array
    """[bags, size] positions in `rows`, -1 for padding; of a training set also `Ragged`"""
    counts: FloatArray
    """[bags, classes] float64, as given; NaN in every class of a suppressed bag"""

    @cached_property
    def sizes(self) -> IntArray:
        """[bags] number of rows in each bag"""
        if isinstance(self.index, Ragged):
            return self.index.sizes
        return np.asarray((self.index >= 0).sum(axis=1), dtype=np.int64)

    @cached_property
    def bag_by_bag(self) -> IntArray:
        """[rows] positions of the rows, those of each bag together, in the order of bags"""
        return np.asarray(self.index.rows if isinstance(self.index, Ragged) else self.index[self.index >= 0])

    @cached_property
    def known(self) -> BoolArray:
        """[bags] whether counts were given"""
        return np.asarray(~np.isnan(self.counts).any(axis=1))

    @cached_property
    def prior(self) -> FloatArray:
        """[classes] float64, the share of each class in all known counts"""
        total = self.counts[self.known].clip(min=0).sum(axis=0)
        return np.asarray(total / total.sum() if total.sum() > 0 else np.full(len(total), 1 / len(total)))

    @cached_property
    def proportions(self) -> FloatArray:
        """[bags, classes] float64, on the simplex"""
        kept = np.where(self.known[:, None], self.counts, 0.0).clip(min=0)
        total = kept.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, kept / np.where(total > 0, total, 1.0), self.prior))


@dataclass(frozen=True, eq=False)
class BaggedRows(_Counted):
    """A training set: rows, bag membership and class counts. It has no row labels. Every row is in exactly one bag."""

    noise: float = 0.0
    """standard deviation of what was added to each count; 0: nothing was"""

    @cached_property
    def bag_of_row(self) -> IntArray:
        """[rows] the bag each row is in"""
        bag_of_row = np.empty(len(self.rows.numeric), dtype=np.int64)
        bag_of_row[self.bag_by_bag] = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return bag_of_row

    def padded(self, bags: IntArray, width: int) -> IntArray:
        """[some bags, width] positions of the rows of `bags`, none larger than `width`, -1 for padding."""
        if not isinstance(self.index, Ragged):
            return np.asarray(self.index[bags, :width])
        starts = np.cumsum(self.sizes) - self.sizes
        places = np.arange(width)
        inside = places < self.sizes[bags, None]
        return np.where(inside, self.bag_by_bag[np.where(inside, starts[bags, None] + places, 0)], -1)

    @cached_property
    def whole_counts(self) -> IntArray:
        """[bags, classes] whole numbers that add up to each bag's size and are nearest to `proportions`: largest
        remainders first, ties in the order of classes. Exact counts are themselves."""
        share = self.proportions * self.sizes[:, None]
        whole = np.floor(share + 1e-9).astype(np.int64)
        lacking = self.sizes - whole.sum(axis=1)
        rank = np.argsort(np.argsort(-(share - whole), axis=1, kind="stable"), axis=1)
        return np.asarray(whole + (rank < lacking[:, None]))

    def where_known(self) -> Self:
        """The bags whose counts are known, with their rows: for methods to which the others say nothing."""
        if self.known.all():
            return self
        return self.some(self.known)

    def some(self, bags: BoolArray) -> Self:
        """The bags [bags] that are chosen, with their rows."""
        kept = np.flatnonzero(bags[self.bag_of_row])
        position = np.full(len(self.bag_of_row) + 1, -1, dtype=np.int64)  # the last entry, reached by -1, stays -1
        position[kept] = np.arange(len(kept))
        rows = Rows(*(part[kept] for part in self.rows))
        if isinstance(self.index, Ragged):
            inside = np.repeat(bags, self.sizes)
            index: Array = Ragged(position[self.bag_by_bag[inside]], self.sizes[bags])
        else:
            index = position[self.index[bags]]
        return replace(self, rows=rows, index=index, counts=self.counts[bags])


@dataclass(frozen=True, eq=False)
class Holdout(_Counted):
    """Validation or test rows, all of the split, those that fill no bag included; for the evaluator alone."""

    labels: IntArray | None
    """[rows]; None where nobody knows them: then there are coarse-grained criteria alone"""
    numbers: IntArray | None = None
    """[rows] the place of each in its dataset, for those who read predictions; None where it is of none"""


class Rest(NamedTuple):
    """What became of rows in bags that are too small or too large, where a bagging limits their sizes."""

    dropped: int
    """rows that are in no bag"""
    pooled: int
    """rows in bags made of such rows"""


@dataclass(frozen=True, eq=False)
class Task:
    """One (dataset, bagging, bag size, seed), ready to train on and to be judged by."""

    schema: Schema
    train: BaggedRows
    validation: Holdout
    test: Holdout
    train_labels: IntArray | None
    """[rows] of the training rows: for the evaluator's diagnostics alone, never for a method; None if nobody knows"""
    bags: BaggedRows
    """the training bags, also where a method is given single rows"""
    manifest: str
    """hash of the assignment of rows to bags"""
    fingerprint: str
    """hash of the table"""
    rest: Rest | None = None
    """of the training rows; None where the sizes of bags have no limit"""
    test_bags: IntArray | None = None
    """[test rows] the training bag that each belongs to, -1 for none; None where bags say nothing of other rows"""


def counts_of(proportions: FloatArray, sizes: IntArray) -> FloatArray:
    """Counts of bags from proportions and sizes: [bags, classes] times [bags], NaN stays NaN."""
    return np.asarray(proportions, dtype=np.float64) * np.asarray(sizes)[:, None]
