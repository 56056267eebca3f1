"""What flows from the data into training: tables, splits, bags and tasks.

`Table` (rows with labels) -> `Split` and `Assignment` (which row is in which bag) -> `Task`. Only the task's holdouts
carry labels, for the evaluator. What a method receives, `BaggedRows` and the `Bags` drawn from it, holds features, bag
membership and class counts: there is no label to leak.

This module is numpy only. Inside a population the same named tuples hold torch tensors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llpbench.errors import LLPBenchError

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Array = Any
"""a numpy array on the data side, a torch tensor inside a population"""

Supervision = str
"""`"bags"`: class counts of bags; `"instances"`: the label of every training row (the ceiling only)"""


@dataclass(frozen=True, eq=False)
class Table:
    """A whole dataset: rows, features and labels, before any split."""

    name: str
    numeric: FloatArray
    """[rows, numeric features] float64, NaN where missing"""
    categorical: IntArray
    """[rows, categorical features] int64, index into `categories`, -1 where missing"""
    labels: IntArray
    """[rows] int64, index into `classes`; in binary data 1 is the positive class"""
    numeric_names: tuple[str, ...]
    categorical_names: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    """the categories of each categorical column, in ascending order of their strings"""
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of names, categories and all values: two tables that agree on it are the same data."""
        names = repr((self.numeric_names, self.categorical_names, self.categories, self.classes))
        return digest([self.numeric, self.categorical, self.labels], names)


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of one table, in three disjoint parts that cover it."""

    train: IntArray
    validation: IntArray
    test: IntArray


@dataclass(frozen=True, eq=False)
class Assignment:
    """Which row is in which bag: the bag manifest of one (dataset, bagging, bag size, seed).

    It depends on nothing else, so every method and every criterion sees the same bags. Bags are row numbers of the
    table, `[bags, size]`, padded with -1 where bags differ in size.
    """

    split: Split
    train: IntArray
    validation: IntArray
    test: IntArray

    @cached_property
    def manifest(self) -> str:
        """SHA-256 of every split and bag."""
        split = self.split
        return digest([split.train, split.validation, split.test, self.train, self.validation, self.test])


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
    """rows that a training step usually sees (bags a step x bag size)"""

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
    """[bags, classes] int64; how many rows of each class the bag holds"""
    proportions: Array
    """[bags, classes] float32; `counts` over the bag's size, or the target of a single row (see `Stage.unit`)"""


@dataclass(frozen=True, eq=False)
class BaggedRows:
    """A training set: rows, bag membership and class counts. It has no row labels."""

    rows: Rows
    """leading dimension [rows]"""
    index: IntArray
    """[bags, size] positions in `rows`, -1 for padding; every row is in exactly one bag"""
    counts: IntArray
    """[bags, classes]"""

    @cached_property
    def sizes(self) -> IntArray:
        """[bags] number of rows in each bag"""
        return np.asarray((self.index >= 0).sum(axis=1), dtype=np.int64)

    @cached_property
    def proportions(self) -> FloatArray:
        """[bags, classes] float64"""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    @cached_property
    def bag_of_row(self) -> IntArray:
        """[rows] the bag each row is in"""
        bag_of_row = np.empty(len(self.rows.numeric), dtype=np.int64)
        bags, positions = np.nonzero(self.index >= 0)
        bag_of_row[self.index[bags, positions]] = bags
        return bag_of_row


@dataclass(frozen=True, eq=False)
class Holdout:
    """Validation or test rows with their labels, for the evaluator alone."""

    rows: Rows
    """leading dimension [rows]: all rows of the split, those that fill no bag included"""
    labels: IntArray
    """[rows]"""
    index: IntArray
    """[bags, size] positions in `rows`, -1 for padding"""
    counts: IntArray
    """[bags, classes]"""


@dataclass(frozen=True, eq=False)
class Task:
    """One (dataset, bagging, bag size, seed), ready to train on and to be judged by."""

    schema: Schema
    train: BaggedRows
    validation: Holdout
    test: Holdout
    train_labels: IntArray
    """[rows] of the training rows: for the evaluator's diagnostics alone, never for a method"""
    bag_proportions: FloatArray
    """[bags, classes] of the training bags, also where a method is given single rows"""
    manifest: str
    """hash of the assignment of rows to bags"""
    fingerprint: str
    """hash of the table"""


def build_task(
    table: Table, assignment: Assignment, *, supervision: Supervision = "bags", bags_per_step: int = 2
) -> Task:
    """Normalise with the training rows' statistics, count labels in bags, and leave the labels behind.

    With `supervision="instances"` the training set is bags of one row, so that a supervised method runs the same code
    as every other. This function is the only place where labels meet training rows.
    """
    train_rows = assignment.train[assignment.train >= 0]
    scaler = _Scaler(table, train_rows)
    classes = len(table.classes)
    counts = count_labels(table.labels, assignment.train, classes)
    prior = counts.sum(axis=0) / counts.sum()
    proportions = counts / counts.sum(axis=1, keepdims=True)
    train_bags = assignment.train if supervision == "bags" else train_rows[:, None]
    if supervision == "instances":
        counts = count_labels(table.labels, train_bags, classes)
    elif supervision != "bags":
        raise LLPBenchError(f"supervision must be 'bags' or 'instances', however: {supervision!r}")
    return Task(
        schema=Schema(
            numeric=len(table.numeric_names),
            cardinalities=tuple(len(names) + 1 for names in table.categories),
            classes=classes,
            prior=tuple(float(p) for p in prior),
            rows_per_step=bags_per_step * assignment.train.shape[1],
        ),
        train=BaggedRows(scaler(train_rows), _positions(train_bags, train_rows, len(table)), counts),
        validation=_holdout(table, scaler, assignment.split.validation, assignment.validation),
        test=_holdout(table, scaler, assignment.split.test, assignment.test),
        train_labels=table.labels[train_rows],
        bag_proportions=proportions,
        manifest=assignment.manifest,
        fingerprint=table.fingerprint,
    )


def count_labels(labels: IntArray, bags: IntArray, classes: int) -> IntArray:
    """Class counts of bags of row numbers `[bags, size]` (-1: padding) as `[bags, classes]`."""
    inside = bags >= 0
    counts = np.zeros((len(bags), classes), dtype=np.int64)
    np.add.at(counts, (np.nonzero(inside)[0], labels[bags[inside]]), 1)
    return counts


def digest(arrays: Iterable[NDArray[Any]], *texts: str) -> str:
    """SHA-256 of arrays (shape, type and values) and texts."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).tobytes())
    for text in texts:
        sha.update(text.encode())
    return sha.hexdigest()


class _Scaler:
    """z-scores and category vocabularies, from the training rows alone."""

    def __init__(self, table: Table, train_rows: IntArray) -> None:
        self.table = table
        numeric = table.numeric[train_rows]
        present = ~np.isnan(numeric)
        number = np.maximum(present.sum(axis=0), 1)
        self.mean = np.where(present, numeric, 0.0).sum(axis=0) / number
        self.std = np.sqrt(np.where(present, (numeric - self.mean) ** 2, 0.0).sum(axis=0) / number)
        self.std[self.std == 0.0] = 1.0  # a constant column carries nothing: it becomes 0
        self.seen = [
            np.isin(np.arange(len(names)), table.categorical[train_rows, column])
            for column, names in enumerate(table.categories)
        ]

    def __call__(self, rows: IntArray) -> Rows:
        numeric = (self.table.numeric[rows] - self.mean) / self.std
        missing = np.isnan(numeric)
        codes = self.table.categorical[rows]
        categorical = np.zeros(codes.shape, dtype=np.int64)
        for column, seen in enumerate(self.seen):
            code = codes[:, column]
            known = (code >= 0) & np.append(seen, False)[code]  # code -1 meets the appended False
            categorical[known, column] = code[known] + 1
        return Rows(np.where(missing, 0.0, numeric).astype(np.float32), categorical, missing)


def _holdout(table: Table, scaler: _Scaler, rows: IntArray, bags: IntArray) -> Holdout:
    return Holdout(
        rows=scaler(rows),
        labels=table.labels[rows],
        index=_positions(bags, rows, len(table)),
        counts=count_labels(table.labels, bags, len(table.classes)),
    )


def _positions(bags: IntArray, rows: IntArray, total: int) -> IntArray:
    """Rewrite row numbers of the table as positions in `rows`."""
    position = np.full(total + 1, -1, dtype=np.int64)  # the last entry, reached by -1, keeps padding at -1
    position[rows] = np.arange(len(rows))
    return position[bags]
