"""A process on more rows than can be looked at often: one pass of normal equations, a few bags at a time.

With u the weights of all components divided by the roots of their scales, bags k observe y_k = x_k . u plus noise of
variance d_k, x_k the bag's mean features times these roots. The posterior mean of u is (I + X'D^-1 X)^-1 X'D^-1 y.
Only these sums are kept: memory does not grow with the number of bags, and each row is looked at once a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from llpbench.blocks.components import Components
from llpbench.core.bags import BaggedRows, FloatArray, IntArray

_ROWS = 8192
"""that are looked at together: their features stay near the processor"""
_BAGS = 512
"""that are added to the normal equations together"""

Found = TypeVar("Found")


class BagGroup:
    """The features of all rows of some bags."""

    def __init__(self, components: Components, rows: IntArray, bags: slice, sizes: IntArray) -> None:
        """`rows` of the training rows, in the order of their `bags`, which have these `sizes`."""
        binned = components.binned.rows(rows)
        self.bags, self.sizes = bags, sizes
        self.bag_of_row = np.repeat(np.arange(len(sizes)), sizes)
        self._effects = [(effect, components.codes(effect, binned)) for effect in components.effects]
        self._joint = components.joint_values(binned)

    def values(self, coefficients: list[FloatArray]) -> FloatArray:
        """[rows] the sum of all components, given each one's coefficients [features]."""
        value = np.zeros(len(self.bag_of_row))
        for (effect, codes), w in zip(self._effects, coefficients, strict=False):
            value += (effect.factor @ w)[codes]
        for features, w in zip(self._joint, coefficients[len(self._effects) :], strict=True):
            value += features @ w.astype(np.float32)
        return value

    def mean(self, values: FloatArray) -> FloatArray:
        """[bags] of something of rows."""
        return np.asarray(np.bincount(self.bag_of_row, values) / self.sizes)

    def features(self, weights: FloatArray | None = None) -> FloatArray:
        """[bags, features of all components] means over each bag, times `weights` [rows] where given."""
        share = np.asarray((1.0 if weights is None else weights) / self.sizes[self.bag_of_row])
        bags, parts = len(self.sizes), []
        for effect, codes in self._effects:
            bins = len(effect.factor)
            histogram = np.bincount(self.bag_of_row * bins + codes, weights=share, minlength=bags * bins)
            parts.append(histogram.reshape(bags, bins) @ effect.factor)
        place = (self.bag_of_row, np.arange(len(share)))
        average = sparse.csr_array((share.astype(np.float32), place), shape=(bags, len(share)))
        return np.hstack([*parts, *(average @ features for features in self._joint)])


class BagGroups:
    """All bags, in groups that are looked at in as many threads as torch has."""

    def __init__(self, components: Components, train: BaggedRows) -> None:
        """`components` of the rows of `train`."""
        self._components, self._sizes = components, train.sizes
        self._order = np.argsort(train.bag_of_row, kind="stable")
        self._starts = np.append(0, np.cumsum(train.sizes))

    def __call__(self, look: Callable[[BagGroup], Found]) -> Iterator[Found]:
        """What `look` makes of each group, in the order of bags."""
        threads = torch.get_num_threads()
        with ThreadPoolExecutor(threads) as pool:
            waiting = []
            for bags in self._slices():  # no further ahead than threads can be, as each group's features are megabytes
                waiting.append(pool.submit(lambda part: look(self._group(part)), bags))
                if len(waiting) > 2 * threads:
                    yield waiting.pop(0).result()
            for each in waiting:
                yield each.result()

    def _slices(self) -> Iterator[slice]:
        first, bags = 0, len(self._sizes)
        while first < bags:
            fitting = int(np.searchsorted(self._starts, self._starts[first] + _ROWS, side="right")) - 1
            last = min(max(fitting, first + 1), bags)
            yield slice(first, last)
            first = last

    def _group(self, bags: slice) -> BagGroup:
        rows = self._order[self._starts[bags.start] : self._starts[bags.stop]]
        return BagGroup(self._components, rows, bags, self._sizes[bags])


@dataclass(frozen=True, eq=False)
class Seen:
    """What a group of bags tells of the weights."""

    columns: FloatArray
    """[bags, weights] x"""
    noise: FloatArray
    """[bags] d"""
    targets: FloatArray
    """[bags, outputs] y"""


class NormalEquations:
    """X'D^-1 X and X'D^-1 y, summed over groups of bags."""

    def __init__(self) -> None:
        self._waiting: list[tuple[FloatArray, FloatArray]] = []
        self._inner: FloatArray | None = None
        self._right: FloatArray | None = None

    def add(self, seen: Seen) -> None:
        """One more group."""
        deviation = np.sqrt(seen.noise)[:, None]
        self._waiting.append((seen.columns / deviation, seen.targets / deviation))
        if sum(len(each) for each, _ in self._waiting) >= _BAGS:
            self._flush()

    def _flush(self) -> None:
        columns, targets = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        inner, right = columns.T @ columns, columns.T @ targets
        if self._inner is None or self._right is None:
            self._inner, self._right = inner, right
        else:
            self._inner += inner
            self._right += right
        self._waiting = []

    def solved(self) -> tuple[FloatArray, FloatArray]:
        """[weights, weights] I + X'D^-1 X, and [weights, outputs] the posterior mean of u."""
        if self._waiting:
            self._flush()
        assert self._inner is not None
        assert self._right is not None
        precision = self._inner
        precision[np.diag_indices(len(precision))] += 1.0
        self._inner = None
        return precision, cho_solve(cho_factor(precision, lower=True), self._right)
