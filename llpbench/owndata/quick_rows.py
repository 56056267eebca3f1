"""Values and bag means of a process on very many rows, with the results of `BagGroup` and `Components.value`.

The joint components have hundreds of features for each row, which take most of the time. They are computed for a few
rows at a time, in memory that is used again, so that they stay in the CPU's cache until they are summed up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_expit, softmax

from llpbench.blocks.bag_logits import ProcessPredictor
from llpbench.blocks.bag_process import FittedProcess
from llpbench.blocks.components import Binned, Components
from llpbench.blocks.design import as_proba
from llpbench.blocks.many_rows import BagGroup
from llpbench.core.bags import FloatArray, IntArray, Rows
from llpbench.owndata.grid_bins import GridBins

_ROWS = 512
"""rows whose joint features are computed at once in a fit"""
_PREDICTED_ROWS = 1024
"""the same in predictions, where several threads share the work"""
_EFFECT_ROWS = 8192
"""rows whose effects are looked up at once"""


class JointFeatures:
    """The joint features of rows, as `Components.joint_values`, in memory that each thread uses again."""

    def __init__(self, components: Components) -> None:
        """Take tables and components; `components` may have any training rows."""
        self._tables, self._joint = components._tables, components.joint
        self._columns = sum(table.shape[1] for table in self._tables)
        self._memory = threading.local()

    def __call__(self, binned: Binned) -> list[FloatArray]:
        """Return the features of each component, [rows, features] float32; valid until the next call of the thread."""
        rows = len(binned)
        columns, *outputs = self._arrays(rows)
        first = 0
        for table, codes in zip(self._tables, binned.fine, strict=True):
            if table.shape[1] == 1:
                np.take(table[:, 0], codes, out=columns[first], mode="clip")
            else:
                for level in range(len(table)):  # half the one-hot bin
                    np.multiply(codes == level, np.float32(0.5), out=columns[first + level])
            first += table.shape[1]
        for joint, values in zip(self._joint, outputs, strict=True):
            if joint.frequencies is None:
                np.subtract(columns.T, joint.mean, out=values)
            else:
                np.matmul(columns.T, joint.frequencies, out=values)
                values += joint.phases
                np.cos(values, out=values)
                values -= joint.mean
            values *= joint.scale
        return outputs

    def _arrays(self, rows: int) -> list[Any]:
        """Return arrays for columns [columns, rows] and features [rows, features]."""
        widths = [self._columns, *(len(joint.mean) for joint in self._joint)]
        room = getattr(self._memory, "room", [])
        if not room or len(room[0]) < rows * widths[0]:
            room = [np.empty(rows * width, np.float32) for width in widths]
            self._memory.room = room
        arrays = [part[: rows * width] for part, width in zip(room, widths, strict=True)]
        return [arrays[0].reshape(widths[0], rows), *(part.reshape(rows, -1) for part in arrays[1:])]


class QuickGroup(BagGroup):
    """The features of all rows of some bags, as `BagGroup`."""

    def __init__(
        self, components: Components, binned: Binned, joint: JointFeatures, bags: slice, sizes: IntArray
    ) -> None:
        """`binned` are the rows of these `bags`, in their order; the bags have these `sizes`."""
        self.bags, self.sizes, self._binned, self._features = bags, sizes, binned, joint
        self.bag_of_row = np.repeat(np.arange(len(sizes)), sizes)
        self._effects = [(effect, components.codes(effect, binned)) for effect in components.effects]
        self._ends = np.append(0, np.cumsum(sizes))

    def values(self, coefficients: list[FloatArray]) -> FloatArray:
        """Return the sum of all components [rows], given each one's coefficients [features]."""
        return self.values_and_features(coefficients, None)[0]

    def features(self, weights: FloatArray | None = None) -> FloatArray:
        """Return bag means [bags, features of all components] of phi; `weights` [rows] multiply phi if given."""
        given: FloatArray = np.ones(len(self.bag_of_row)) if weights is None else weights
        means = [
            self._average(rows, bags, given[rows]) @ part
            for bags, rows in self._pieces()
            for part in [np.hstack(self._features(self._binned[rows]))]
        ]
        return np.hstack([self._effect_means(given), *([np.concatenate(means)] if means else [])])

    def values_and_features(
        self, coefficients: list[FloatArray], weigh: Callable[[FloatArray], FloatArray] | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return `values(coefficients)` and `features(weigh(values))`, which read each row once.

        Without `weigh` the features are empty.
        """
        value, weights = np.zeros(len(self.bag_of_row)), np.zeros(len(self.bag_of_row))
        number = len(self._effects)
        for (effect, codes), w in zip(self._effects, coefficients, strict=False):
            value += (effect.factor @ w)[codes]
        last = [w.astype(np.float32) for w in coefficients[number:]]
        means = []
        for bags, rows in self._pieces():
            joint = self._features(self._binned[rows])
            for features, w in zip(joint, last, strict=True):
                value[rows] += features @ w
            if weigh is not None:
                weights[rows] = weigh(value[rows])
                average = self._average(rows, bags, weights[rows])
                means.append(np.hstack([average @ features for features in joint]))
        if weigh is None:
            return value, np.empty((len(self.sizes), 0))
        return value, np.hstack([self._effect_means(weights), np.concatenate(means)])

    def _pieces(self) -> Iterator[tuple[slice, slice]]:
        """Yield consecutive bags and their rows: about `_ROWS` rows, or one larger bag."""
        first = 0
        while first < len(self.sizes):
            fitting = int(np.searchsorted(self._ends, self._ends[first] + _ROWS, side="right")) - 1
            last = max(fitting, first + 1)
            yield slice(first, last), slice(int(self._ends[first]), int(self._ends[last]))
            first = last

    def _average(self, rows: slice, bags: slice, weights: FloatArray) -> Any:
        """Return the matrix [bags, rows] that averages rows with `weights`."""
        bag = self.bag_of_row[rows] - bags.start
        share = (weights / self.sizes[self.bag_of_row[rows]]).astype(np.float32)
        places = (bag, np.arange(len(share)))
        return sparse.csr_array((share, places), shape=(bags.stop - bags.start, len(share)))

    def _effect_means(self, weights: FloatArray) -> FloatArray:
        share, bags, parts = weights / self.sizes[self.bag_of_row], len(self.sizes), []
        for effect, codes in self._effects:
            bins = len(effect.factor)
            histogram = np.bincount(self.bag_of_row * bins + codes, weights=share, minlength=bags * bins)
            parts.append(histogram.reshape(bags, bins) @ effect.factor)
        return np.hstack(parts)


class QuickPredictor:
    """Probabilities of rows, as `ProcessPredictor`."""

    def __init__(self, predictor: ProcessPredictor) -> None:
        """Prepare tables of the process."""
        process = predictor.process
        self._process, components = process, process.components
        self._bins, self._features, self._components = GridBins(components), JointFeatures(components), components
        if isinstance(process, FittedProcess):
            coefficients: Sequence[FloatArray] = process.coefficients
        else:
            coefficients = [np.hstack(parts) for parts in zip(*process.coefficients, strict=True)]
        number = len(components.effects)
        pairs = zip(components.effects, coefficients, strict=False)
        self._tables = [(effect, np.ascontiguousarray((effect.factor @ w).T)) for effect, w in pairs]
        self._last = [w.astype(np.float32) for w in coefficients[number:]]

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        values, process = self._values(self._bins(rows)), self._process
        if isinstance(process, FittedProcess):
            return as_proba(process.prior + np.sqrt(process.prior * (1 - process.prior)) * values)
        values += np.array(process.offsets)
        logits = np.hstack([np.zeros_like(values), values]) if values.shape[1] == 1 else log_expit(values)
        return np.asarray(softmax(logits, axis=1))

    def _values(self, binned: Binned) -> FloatArray:
        """Return the sum of all components [rows, outputs]."""
        value = np.zeros((self._last[0].shape[1], len(binned)))
        for start in range(0, len(binned), _EFFECT_ROWS):
            part = slice(start, start + _EFFECT_ROWS)
            chunk, here = binned[part], value[:, part]
            for effect, table in self._tables:
                codes = self._components.codes(effect, chunk)
                for output, of_bin in zip(here, table, strict=True):
                    output += np.take(of_bin, codes, mode="clip")
            for first in range(0, len(chunk), _PREDICTED_ROWS):
                few = slice(first, first + _PREDICTED_ROWS)
                for features, w in zip(self._features(chunk[few]), self._last, strict=True):
                    here[:, few] += (features @ w).T
        return value.T
