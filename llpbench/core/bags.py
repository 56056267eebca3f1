"""What flows from the data into training: tables, splits, bags and tasks.

`Table` (rows with labels) -> `Split` and `Assignment` (which row is in which bag) -> `Task`. Only the task's holdouts
carry labels, for the evaluator. What a method receives, `BaggedRows` and the `Bags` drawn from it, holds features, bag
membership and class counts: there is no label to leak.

This module is numpy only. Inside a population the same named tuples hold torch tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

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
    bags: BaggedRows
    """the training bags, also where a method is given single rows"""
    manifest: str
    """hash of the assignment of rows to bags"""
    fingerprint: str
    """hash of the table"""
