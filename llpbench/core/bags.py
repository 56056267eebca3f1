"""The bags contract: what a method may know about the data.

A bag is a set of rows with known class counts and unknown labels. The training set (`BaggedRows`) and the `Bags` drawn
from it for a step contain features, bag membership and class counts. They contain no label that could leak. Labels of
held-out rows are in `Holdout`, which only the evaluator sees. They may be unknown there, too.

**Counts are stored as they were published.** They may be

- exact whole numbers, as in a benchmark;
- proportions of bags of known size, times that size: fractional;
- noisy, for example from differential privacy: fractional, negative, not adding up to the bag's size; `noise` is the
  standard deviation of the noise added to each count;
- suppressed, like small counts in official tables: NaN in every class. Such a bag has only rows. Proportion losses and
  coarse-grained criteria ignore it (`known`).

`proportions` are the counts projected onto the simplex: negative counts become 0, and the rest is divided by its sum.
If the sum is 0, they are the prior.

**Every bag has the same weight**, whatever its size: proportion losses and coarse-grained criteria weight all bags with
known counts equally, as in the papers compared here. A method that weights by rows can use `mask` and `sizes`.

Every row is in at most one bag. Overlapping tables of counts (votes by district and votes by age) are handled
before this level, by copies of rows (`owndata/bag_data.py`).

This module uses only numpy. In training, the same named tuples hold torch tensors.
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

SUPERVISIONS = ("bags", "instances", "validation")
Supervision = str
"""What a method is trained on: the class counts of bags, or labels of rows as bags of one row.

`"bags"`: class counts of bags; `"instances"`: the label of every training row (ceilings only); `"validation"`: the
label of every validation row and no bag (controls only, without a network)
"""


@dataclass(frozen=True)
class Schema:
    """The facts that a network needs before it sees any data."""

    numeric: int
    """number of numeric features"""
    cardinalities: tuple[int, ...]
    """number of codes of each categorical feature, including code 0 (missing or unseen in training)"""
    classes: int
    prior: tuple[float, ...]
    """class proportions over all training bags, computed from their counts"""
    rows_per_step: int
    """usual number of rows in a training step (bags per step x mean size of a bag)"""

    @property
    def features(self) -> int:
        """Number of features of both kinds."""
        return self.numeric + len(self.cardinalities)


class Rows(NamedTuple):
    """Normalised features of rows, with any leading dimensions: `[rows, ...]`, `[bags, size, ...]`."""

    numeric: Array
    """[..., numeric features] float32, z-scores by the statistics of the training rows; 0 if missing"""
    categorical: Array
    """[..., categorical features] int64; 0 if missing or unseen in training"""
    missing: Array
    """[..., numeric features] bool"""


class Bags(NamedTuple):
    """A few whole bags, padded to the longest. A loss gets no other data."""

    rows: Rows
    """leading dimensions [bags, size]"""
    mask: Array
    """[bags, size] bool; False marks padding"""
    counts: Array
    """[bags, classes] float32, as given: fractional or negative if noisy, 0 if suppressed

    If a stage trains on rows (`Stage.unit="rows"`), each bag is one row and its counts are the target of this row.
    """
    proportions: Array
    """[bags, classes] float32, on the simplex: from `counts`, or the target of a single row (`Stage.unit`)"""
    known: Array
    """[bags] bool; False if counts are suppressed, so that `proportions` are the prior"""
    prior: Array
    """[classes] float32, class proportions over all training bags"""


@dataclass(frozen=True, eq=False)
class Ragged:
    """The rows of each bag, one bag after the other: an `index` without padding.

    Use it for bags of very different sizes. `len` is the number of bags, iteration yields the rows of each bag.
    """

    rows: IntArray
    """[rows] positions"""
    sizes: IntArray
    """[bags] number of rows in each bag"""

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[IntArray]:
        return iter(np.split(self.rows, np.cumsum(self.sizes)[:-1]))


@dataclass(frozen=True, eq=False)
class _Counted:
    """Rows in bags, and the counts of each bag."""

    rows: Rows
    """leading dimension [rows]"""
    index: Array
    """[bags, size] positions in `rows`, -1 for padding; `Ragged` is allowed in a training set"""
    counts: FloatArray
    """[bags, classes] float64, as given; NaN in every class of a suppressed bag"""

    @cached_property
    def sizes(self) -> IntArray:
        """Number of rows in each bag [bags]."""
        if isinstance(self.index, Ragged):
            return self.index.sizes
        return np.asarray((self.index >= 0).sum(axis=1), dtype=np.int64)

    @cached_property
    def bag_by_bag(self) -> IntArray:
        """Positions of the rows [rows], grouped by bag, in the order of bags."""
        return np.asarray(self.index.rows if isinstance(self.index, Ragged) else self.index[self.index >= 0])

    @cached_property
    def known(self) -> BoolArray:
        """Whether the counts of each bag are known [bags]."""
        return np.asarray(~np.isnan(self.counts).any(axis=1))

    @cached_property
    def prior(self) -> FloatArray:
        """Proportion of each class in all known counts [classes], float64."""
        total = self.counts[self.known].sum(axis=0).clip(min=0)  # clipped noise of each bag would add to rare classes
        return np.asarray(total / total.sum() if total.sum() > 0 else np.full(len(total), 1 / len(total)))

    @cached_property
    def proportions(self) -> FloatArray:
        """Class proportions of bags [bags, classes], float64, on the simplex."""
        kept = np.where(self.known[:, None], self.counts, 0.0).clip(min=0)
        total = kept.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, kept / np.where(total > 0, total, 1.0), self.prior))


@dataclass(frozen=True, eq=False)
class BaggedRows(_Counted):
    """A training set: rows, bag membership and class counts, without row labels. Every row is in exactly one bag."""

    noise: float = 0.0
    """standard deviation of the noise added to each count; 0 if there is none"""

    @cached_property
    def bag_of_row(self) -> IntArray:
        """Bag of each row [rows]."""
        bag_of_row = np.empty(len(self.rows.numeric), dtype=np.int64)
        bag_of_row[self.bag_by_bag] = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return bag_of_row

    def padded(self, bags: IntArray, width: int) -> IntArray:
        """Return positions of the rows of `bags`, at most `width` per bag: [some bags, width], -1 for padding."""
        if not isinstance(self.index, Ragged):
            return np.asarray(self.index[bags, :width])
        starts = np.cumsum(self.sizes) - self.sizes
        places = np.arange(width)
        inside = places < self.sizes[bags, None]
        return np.where(inside, self.bag_by_bag[np.where(inside, starts[bags, None] + places, 0)], -1)

    @cached_property
    def whole_counts(self) -> IntArray:
        """Whole numbers [bags, classes] nearest to `proportions` that add up to each bag's size.

        Largest remainders come first, ties are broken in the order of classes. Exact counts stay unchanged.
        """
        share = self.proportions * self.sizes[:, None]
        whole = np.floor(share + 1e-9).astype(np.int64)
        lacking = self.sizes - whole.sum(axis=1)
        rank = np.argsort(np.argsort(-(share - whole), axis=1, kind="stable"), axis=1)
        return np.asarray(whole + (rank < lacking[:, None]))

    def where_known(self) -> Self:
        """Return the bags with known counts and their rows, for methods that cannot use the other bags."""
        return self if self.known.all() else self.some(self.known)

    def some(self, bags: BoolArray) -> Self:
        """Return the selected bags and their rows; `bags` is a mask [bags]."""
        kept = np.flatnonzero(bags[self.bag_of_row])
        position = np.full(len(self.bag_of_row) + 1, -1, dtype=np.int64)  # -1 selects the last entry, which is -1
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
    """All validation or test rows of the split, including rows that fill no bag; only the evaluator sees them."""

    labels: IntArray | None
    """[rows]; None if labels are unknown, so that only coarse-grained criteria can be computed"""
    numbers: IntArray | None = None
    """[rows] row numbers in the dataset, for readers of predictions; None if the rows are not from a dataset"""


@dataclass(frozen=True, eq=False)
class Task:
    """One (dataset, bagging, bag size, seed), ready for training and evaluation."""

    schema: Schema
    train: BaggedRows
    validation: Holdout
    test: Holdout
    train_labels: IntArray | None
    """[rows] labels of the training rows, for the evaluator's diagnostics, never for a method; None if unknown"""
    bags: BaggedRows
    """the training bags, even if a method is given single rows"""
    manifest: str
    """hash of the assignment of rows to bags"""
    fingerprint: str
    """hash of the table"""
    dropped: int | None = None
    """number of training rows that are in no bag; None if the sizes of bags have no limit"""
    test_bags: IntArray | None = None
    """[test rows] the training bag of each row, -1 for none; None if bags apply to training rows only"""
    moved: int = 0
    """number of validation bags that are trained on, as the last of the training bags"""
