"""Normal equations from one pass over groups of bags, for processes with too many rows for repeated passes.

Let u be the weights of all components divided by the roots of their scales. Bag k observes y_k = x_k . u plus noise of
variance d_k, with x_k its mean features times these roots. The posterior mean of u is (I + X'D^-1 X)^-1 X'D^-1 y. Only
these sums are stored, so memory does not grow with the number of bags. A step reads each row once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from scipy.linalg import blas, cho_factor, cho_solve

from llpbench.blocks.components import Components
from llpbench.core.bags import BaggedRows, FloatArray, IntArray

_ROWS = 8192
"""rows processed at once, so that their features fit into the CPU's cache"""
_BAGS = 512
"""bags added to the normal equations at once"""

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class BagGroup:
    """Some bags with their rows."""

    components: Components
    """with the rows of these bags"""
    bags: slice
    sizes: IntArray
    bag_of_row: IntArray

    def mean(self, values: FloatArray) -> FloatArray:
        """Return bag means [bags] of values of rows."""
        return np.asarray(np.bincount(self.bag_of_row, values) / self.sizes)

    def features(self, weights: FloatArray | None = None) -> FloatArray:
        """Return bag means [bags, features of all components] of phi; `weights` [rows] multiply phi if given."""
        return np.hstack(self.components.bag_means(self.bag_of_row, self.sizes, weights))


class BagGroups:
    """All bags in groups, processed in as many threads as torch uses."""

    def __init__(self, components: Components, train: BaggedRows) -> None:
        """The training rows of `components` must be the rows of `train`."""
        self._components, self._sizes = components, train.sizes
        self._order = np.argsort(train.bag_of_row, kind="stable")
        self._starts = np.append(0, np.cumsum(train.sizes))

    def __call__(self, look: Callable[[BagGroup], Found]) -> Iterator[Found]:
        """Yield the result of `look` for each group, in the order of bags."""
        threads = torch.get_num_threads()
        with ThreadPoolExecutor(threads) as pool:
            waiting = []
            for bags in self._slices():  # few groups are ahead, since the features of a group need megabytes
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
        rows, sizes = self._order[self._starts[bags.start] : self._starts[bags.stop]], self._sizes[bags]
        return BagGroup(self._components.some(rows), bags, sizes, np.repeat(np.arange(len(sizes)), sizes))


class NormalEquations:
    """The sums X'D^-1 X and X'D^-1 y over groups of bags."""

    def __init__(self) -> None:
        self._waiting: list[tuple[FloatArray, FloatArray]] = []
        self._inner: FloatArray | None = None
        """lower triangle of X'D^-1 X, stored column by column"""
        self._right: FloatArray | None = None

    def add(self, columns: FloatArray, noise: FloatArray, targets: FloatArray) -> None:
        """Add a group: `columns` [bags, weights] x, `noise` [bags] d, `targets` [bags, outputs] y."""
        deviation = np.sqrt(noise)[:, None]
        self._waiting.append((columns / deviation, targets / deviation))
        if sum(len(each) for each, _ in self._waiting) >= _BAGS:
            self._flush()

    def _flush(self) -> None:
        columns, targets = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        if self._inner is None or self._right is None:
            self._inner = np.zeros((columns.shape[1],) * 2, order="F")
            self._right = np.zeros((columns.shape[1], targets.shape[1]))
        self._inner = blas.dsyrk(1.0, columns.T, beta=1.0, c=self._inner, lower=1, overwrite_c=1)
        self._right += columns.T @ targets
        self._waiting = []

    def solved(self) -> tuple[FloatArray, FloatArray]:
        """Return I + X'D^-1 X [weights, weights], and the posterior mean of u [weights, outputs]."""
        if self._waiting:
            self._flush()
        assert self._inner is not None
        assert self._right is not None
        precision = np.tril(self._inner) + np.tril(self._inner, -1).T
        precision[np.diag_indices(len(precision))] += 1.0
        self._inner = None
        return precision, cho_solve(cho_factor(precision, lower=True), self._right)
