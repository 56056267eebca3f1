"""Components of an additive Gaussian process: effects of features, of pairs, and of all features together.

Each component is a linear map of features of a row, ``g(x) = phi(x) . w``, with independent normal ``w`` of equal
variance. Its features have mean zero and a total variance of one over the training rows. A process that is observed
through bags needs only the bag means of ``phi`` (`bag_means`). After one pass over the rows all algebra is on bags.

Additive kernels: Duvenaud et al. 2011. Random Fourier features: Rahimi & Recht 2007.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from llpbench.blocks.design import FeatureBins, RowBins
from llpbench.blocks.distinct import Distinct
from llpbench.core.bags import FloatArray, IntArray, Rows

_CHUNK = 65_536
"""rows processed at once"""
_MOST_KEPT = 2.5e8
"""largest number of joint features that are stored; if there are more, each pass computes them again"""
_NEGLIGIBLE = 1e-4
"""fraction of a kernel's largest eigenvalue; directions with smaller eigenvalues are dropped"""


@dataclass(frozen=True)
class ProcessSettings:
    """Settings of a process that are not estimated from the data."""

    lengthscale: float = 0.3
    """lengthscale of numeric features, in quantiles; in pairs it is one and a half times as large"""
    joint_lengthscale: float = 0.7
    """lengthscale of the joint component, divided by the root of the number of features"""
    waves: int = 500
    """random Fourier features of the joint component"""
    most_pairs: int = 200
    """largest number of feature pairs; those that raise the evidence most are used"""
    averaged_up_to: int = 256
    """largest number of bags for which predictions are averaged over hyperparameters; with more, the mode is used"""
    draws: int = 80
    """draws of hyperparameters; 0: always use the mode"""
    confounding_aware: bool = False
    """whether to expect small effects of features that hardly differ between bags"""


@dataclass(frozen=True, eq=False)
class _Effect:
    """The effect of one feature or a pair: a value for each bin or pair of bins."""

    features: tuple[int, ...]
    """one feature in fine bins, or two features in coarse bins"""
    factor: FloatArray
    """[bins, rank] phi of each bin; for a pair, sorted by the first feature's bin, then the second's"""
    width: int = 1
    """number of bins of the second feature of a pair"""


@dataclass(frozen=True, eq=False)
class _Joint:
    """A function of all features: phi(x) = scale * (f(Z) - mean), with Z from `Components.columns`."""

    frequencies: FloatArray | None
    """[columns, features] of f(Z) = cos(Z frequencies + phases); None: f(Z) = Z, a linear function"""
    phases: FloatArray
    """[features]"""
    mean: FloatArray
    """[features]"""
    scale: np.float32

    def __call__(self, columns: FloatArray) -> FloatArray:
        """Return phi [rows, features]."""
        if self.frequencies is None:
            return np.asarray((columns - self.mean) * self.scale)
        values = columns @ self.frequencies
        values += self.phases
        np.cos(values, out=values)
        values -= self.mean
        values *= self.scale
        return values


class _Binned:
    """Rows reduced to the bins of their features, the only input of components."""

    def __init__(self, fine: IntArray, coarse: IntArray) -> None:
        """`fine` and `coarse`: [features, rows] uint8"""
        self.fine = fine
        self.coarse = coarse

    def __len__(self) -> int:
        return int(self.fine.shape[1])

    def rows(self, chosen: IntArray) -> _Binned:
        """Return some of the rows, in the given order."""
        return _Binned(np.take(self.fine, chosen, axis=1), np.take(self.coarse, chosen, axis=1))

    def __getitem__(self, part: slice) -> _Binned:
        return _Binned(self.fine[:, part], self.coarse[:, part])

    def chunks(self) -> Iterator[tuple[slice, _Binned]]:
        """Yield all rows, in chunks."""
        for start in range(0, len(self), _CHUNK):
            part = slice(start, start + _CHUNK)
            yield part, self[part]


class Components:
    """The components of an additive process on some training rows."""

    effects: list[_Effect]
    """effects of single features in their order, then effects of pairs"""
    joint: list[_Joint]

    def __init__(self, rows: Rows, rng: np.random.Generator, settings: ProcessSettings) -> None:
        """Build the effects of single features and the joint components of training rows; callers add pairs."""
        self.fine, self.coarse = RowBins(rows, 32, 40), RowBins(rows, 10, 9)
        """bins of each feature for its own effect and the joint components, and bins for its pairs"""
        fine, lengthscale, waves = self.fine.features, settings.lengthscale, settings.waves
        self._tables = [feature.coordinates.astype(np.float32) for feature in fine]
        self._wide = [_root(feature, 1.5 * lengthscale) for feature in self.coarse.features]
        self.binned = self.bin(rows)
        self._same = Distinct.of((*self.binned.fine, *self.binned.coarse))
        self._training = self.binned if self._same is None else self.binned.rows(self._same.first)
        self.effects = [_Effect((i,), _centred(_root(each, lengthscale), each.weights)) for i, each in enumerate(fine)]
        size = sum(1 if feature.positions is not None else feature.size for feature in fine)
        joint_lengthscale = np.float32(settings.joint_lengthscale * len(fine) ** 0.5)
        frequencies = rng.standard_normal((size, waves), np.float32) / joint_lengthscale
        phases = rng.uniform(0, 2 * np.pi, waves).astype(np.float32)
        self.joint = [self._standardised(frequencies, phases), self._standardised(None, np.zeros(size, np.float32))]
        self._kept: list[list[FloatArray]] | None = None
        if len(self._training) * (waves + size) <= _MOST_KEPT:
            self._kept = [self.joint_values(chunk) for _, chunk in self._training.chunks()]

    def __getstate__(self) -> dict[str, Any]:
        """Drop the training rows, which may be gigabytes. Saved components only predict other rows."""
        rows = {"binned": self.binned[:0], "_training": self.binned[:0], "_same": None}
        return {**self.__dict__, "overlaps": self.overlaps, **rows, "_kept": None}

    @cached_property
    def overlaps(self) -> list[FloatArray]:
        """Fraction of training rows in each fine and coarse bin [fine bins, coarse bins], for each feature."""
        found: list[FloatArray] = []
        for fine, coarse, place, wide in zip(
            self.fine.features, self.coarse.features, self.binned.fine, self.binned.coarse, strict=True
        ):
            counts = np.bincount(place * np.int64(coarse.size) + wide, minlength=fine.size * coarse.size)
            found.append(counts.reshape(fine.size, coarse.size) / len(self.binned))
        return found

    def pair(self, i: int, j: int) -> _Effect:
        """Return the joint effect of two features, including their single effects."""
        width = self.coarse.features[j].size
        bins = self.coarse.features[i].size * width
        weights = np.bincount(_pair(self.binned, i, j, width), minlength=bins) / len(self.binned)
        return _Effect((i, j), _centred(np.kron(self._wide[i], self._wide[j]), weights), width)

    def bin(self, rows: Rows) -> _Binned:
        """Return rows as bins."""
        return _Binned(self.fine(rows), self.coarse(rows))

    def columns(self, binned: _Binned) -> FloatArray:
        """Return all features as numbers [rows, columns]: quantiles in [-1, 1], and half the one-hot categories."""
        parts = [table[codes] for table, codes in zip(self._tables, binned.fine, strict=True)]
        return np.hstack(parts)

    def _standardised(self, frequencies: FloatArray | None, phases: FloatArray) -> _Joint:
        plain = _Joint(frequencies, phases, np.zeros_like(phases), np.float32(1))
        total: FloatArray = np.zeros(len(phases))
        squares = 0.0
        for place, part in self._training.chunks():
            values = plain(self.columns(part))
            if self._same is None:
                total += values.sum(axis=0, dtype=np.float64)
                squares += float(np.vdot(values, values))
            else:
                rows = self._same.counts[place]
                total += rows @ values
                squares += float(rows @ (values.astype(np.float64) ** 2).sum(axis=1))
        mean = total / len(self.binned)
        variance = squares / len(self.binned) - float(mean @ mean)
        return _Joint(frequencies, phases, mean.astype(np.float32), np.float32(1 / np.sqrt(max(variance, 1e-9))))

    def bag_means(self, bag_of_row: IntArray, sizes: IntArray, weights: FloatArray | None = None) -> list[FloatArray]:
        """Return bag means of phi for each component, [bags, features]; `weights` [rows] multiply phi if given."""
        bags = len(sizes)
        share: FloatArray = np.asarray((1.0 if weights is None else weights) / sizes[bag_of_row])
        bag_of_row, place_of_row, share = self._cells(bag_of_row, share, bags)
        means = [self._effect_means(effect, bag_of_row, place_of_row, share, bags) for effect in self.effects]
        joint = [np.zeros((bags, len(part.mean))) for part in self.joint]
        for part, chunk, values in self._training_chunks():
            if place_of_row is None:
                cells, rows, some = bag_of_row[part], np.arange(len(chunk)), share[part]
            else:
                inside = (place_of_row >= part.start) & (place_of_row < part.stop)
                cells, rows, some = bag_of_row[inside], place_of_row[inside] - part.start, share[inside]
            average = sparse.csr_array((some.astype(np.float32), (cells, rows)), shape=(bags, len(chunk)))
            for mean, value in zip(joint, values, strict=True):
                mean += average @ value
        return means + joint

    def _cells(
        self, bag_of_row: IntArray, share: FloatArray, bags: int
    ) -> tuple[IntArray, IntArray | None, FloatArray]:
        """Return the bag, the distinct row and the sum of `share` of each group of equal rows in a bag (a cell).

        Without distinct rows (None), each row is a cell.
        """
        if self._same is None:
            return bag_of_row, None, share
        rows = (bag_of_row, self._same.place)
        sums = sparse.coo_array(sparse.csr_array((share, rows), shape=(bags, len(self._same.first))))
        return sums.row.astype(np.int64), sums.col.astype(np.int64), sums.data

    def _effect_means(
        self, effect: _Effect, bag_of_row: IntArray, place_of_row: IntArray | None, share: FloatArray, bags: int
    ) -> FloatArray:
        bins = len(effect.factor)
        codes = self.codes(effect, self._training)
        place = bag_of_row * bins + (codes if place_of_row is None else codes[place_of_row])
        histogram = np.bincount(place, weights=share, minlength=bags * bins)
        return np.asarray(histogram.reshape(bags, bins) @ effect.factor)

    def effect_means(self, effect: _Effect, bag_of_row: IntArray, sizes: IntArray) -> FloatArray:
        """Return the bag means of one effect, [bags, features]."""
        cells = self._cells(bag_of_row, 1.0 / sizes[bag_of_row], len(sizes))
        return self._effect_means(effect, *cells, len(sizes))

    def joint_values(self, binned: _Binned) -> list[FloatArray]:
        """Return the features of each joint component, [rows, features] float32."""
        columns = self.columns(binned)
        return [component(columns) for component in self.joint]

    def _training_chunks(self) -> Iterator[tuple[slice, _Binned, list[FloatArray]]]:
        for i, (part, chunk) in enumerate(self._training.chunks()):
            yield part, chunk, self.joint_values(chunk) if self._kept is None else self._kept[i]

    @staticmethod
    def codes(effect: _Effect, binned: _Binned) -> IntArray:
        """Return the index into `_Effect.factor` for each row [rows]."""
        first, *second = effect.features
        return _pair(binned, first, second[0], effect.width) if second else np.asarray(binned.fine[first])

    def value(self, coefficients: Sequence[FloatArray], binned: _Binned | None = None) -> FloatArray:
        """Return the sum of all components [rows, outputs], given the coefficients [features, outputs] of each.

        `binned` are the rows. None: the training rows.
        """
        tables = [effect.factor @ w for effect, w in zip(self.effects, coefficients, strict=False)]
        if binned is None:
            chunks = self._training_chunks()
        else:
            chunks = ((part, chunk, self.joint_values(chunk)) for part, chunk in binned.chunks())
        value = np.zeros((len(self._training if binned is None else binned), coefficients[0].shape[1]))
        for part, chunk, joint in chunks:
            for effect, table in zip(self.effects, tables, strict=True):
                value[part] += np.take(table, self.codes(effect, chunk), axis=0)
            for features, w in zip(joint, coefficients[len(tables) :], strict=True):
                value[part] += features @ w.astype(np.float32)
        return value if binned is not None or self._same is None else value[self._same.place]


def _pair(binned: _Binned, i: int, j: int, width: int) -> IntArray:
    return np.asarray(binned.coarse[i] * np.int16(width) + binned.coarse[j])  # int16


def _root(feature: FeatureBins, lengthscale: float) -> FloatArray:
    """Return R [bins, rank], with R R' the covariance of a feature's bins before centring.

    Numbers have the covariance exp(-(u - u')^2 / (2 lengthscale^2)) of quantiles u. Missing values and categories are
    independent of all others.
    """
    if feature.positions is None:
        return np.eye(feature.size)
    inner = feature.positions[:-1]
    covariance = np.exp(-0.5 * ((inner[:, None] - inner) / lengthscale) ** 2)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _NEGLIGIBLE * values[-1]
    root = np.zeros((feature.size, kept.sum() + 1))
    root[:-1, :-1] = vectors[:, kept] * np.sqrt(values[kept])
    root[-1, -1] = 1.0
    return root


def _centred(root: FloatArray, weights: FloatArray) -> FloatArray:
    """Return `root` with mean zero and variance one over rows; `weights` [bins] are shares of rows."""
    centred = root - weights @ root
    variance = weights @ (centred**2).sum(axis=1)
    return np.asarray(centred / np.sqrt(variance) if variance > 1e-9 else 0 * centred)
