"""Whole datasets before any method gets them: a table with its labels, a split of its rows, rows assigned to bags."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import LLPBenchError

TEXT_TYPES = (str, bool, int, float, np.bool_, np.integer, np.floating)
"""Types in an object column that is read as text."""


@dataclass(frozen=True, eq=False)
class PublishedBags:
    """Facts known about rows without labels: the bag of each row, and the counts of each bag."""

    of_row: IntArray
    """[rows] index into `counts`"""
    counts: FloatArray
    """[bags, classes] as given, NaN if suppressed; every bag has rows"""
    noise: float
    """standard deviation of the noise added to each count"""


@dataclass(frozen=True, eq=False)
class Table:
    """A whole dataset before any split: rows, features, and either labels or counts of bags."""

    name: str
    numeric: FloatArray
    """[rows, numeric features] float64, NaN if missing"""
    categorical: IntArray
    """[rows, categorical features] int64, index into `categories`, -1 if missing"""
    labels: IntArray | None
    """[rows] int64, index into `classes`; with two classes, 1 is the positive one. None if labels are unknown"""
    numeric_names: tuple[str, ...]
    categorical_names: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    """categories of each categorical column, in ascending order of their strings"""
    classes: tuple[str, ...]
    published: PublishedBags | None = None
    """bags and counts, if there are no labels"""
    keys: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """columns that only make bags, by name: [rows] numbers in the order of the values, missing last"""

    def __len__(self) -> int:
        return len(self.numeric)

    @property
    def row_labels(self) -> IntArray:
        """Labels [rows]. Raises `LLPBenchError` if they are unknown."""
        if self.labels is None:
            raise LLPBenchError(
                f"dataset {self.name!r} has counts of bags and no labels of rows. Choose --baggings given, and "
                "methods that learn from bags."
            )
        return self.labels

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the table, the `sha256` of a dataset's declaration. Equal tables have equal fingerprints.

        The digest of, in this order: `numeric`, `categorical`, `labels`, the values of `keys`; the names of numeric and
        categorical features, the categories and the classes, as a tuple in ASCII; the names of `keys`, if there are
        any. Counts of bags take the place of `labels` and `keys` in tables that have them. The order of rows counts.
        File format and types of columns in the file do not.
        """
        names = ascii((self.numeric_names, self.categorical_names, self.categories, self.classes))
        if self.published is None:
            keys = [ascii(tuple(self.keys))] if self.keys else []
            return _digest([self.numeric, self.categorical, self.row_labels, *self.keys.values()], names, *keys)
        known = self.published
        return _digest([self.numeric, self.categorical, known.of_row, known.counts], names, repr(known.noise))


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of a table in three disjoint parts that cover it."""

    train: IntArray
    validation: IntArray
    test: IntArray


@dataclass(frozen=True, eq=False)
class Assignment:
    """Assignment of rows to bags: the bag manifest of one (dataset, bagging, bag size, number, seed).

    It depends on nothing else, so all methods and criteria use the same bags. Bags are row numbers of the table
    `[bags, size]`, padded with -1 if bags differ in size.
    """

    split: Split
    train: IntArray
    validation: IntArray
    test: IntArray
    dropped: int | None = field(default=None, kw_only=True)
    """number of training rows that are in no bag; None if the sizes of bags have no limit"""
    test_bags: IntArray | None = field(default=None, kw_only=True)
    """[test rows] the training bag of each row, -1 for none; None if bags apply to training rows only"""

    def with_validation_in_training(self) -> Assignment:
        """Return the assignment with its validation bags among the training bags, after the others."""
        width = max(self.train.shape[1], self.validation.shape[1])
        parts = [
            np.pad(bags, ((0, 0), (0, width - bags.shape[1])), constant_values=-1)
            for bags in (self.train, self.validation)
        ]
        return replace(self, train=np.concatenate(parts))

    @cached_property
    def manifest(self) -> str:
        """SHA-256 of every split and bag."""
        split = self.split
        return _digest([split.train, split.validation, split.test, self.train, self.validation, self.test])


def _digest(arrays: Iterable[NDArray[Any]], *texts: str) -> str:
    """Return the SHA-256 of arrays and texts.

    Of each array, type and shape are hashed as text, such as `<f8(48842, 6)`, then its values in C order as
    little-endian bytes. Missing numbers are the quiet NaN 0x7ff8000000000000.
    """
    sha = hashlib.sha256()
    for array in arrays:
        if array.dtype.kind == "f" and (missing := np.isnan(array)).any():
            array = np.where(missing, np.nan, array)
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(array.data)
    for text in texts:
        sha.update(text.encode())
    return sha.hexdigest()
