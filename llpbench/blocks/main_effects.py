"""Main effects of features in an additive process, with their posterior variance.

All components are linear: phi(x)' w, with features phi of a row and normal weights w. So a main effect is A w. The
matrix A [bins, features of all components] has the phi of all components, averaged over all other features of a row,
minus their mean. Features of a row are assumed independent, with their distributions in training. Averages are then
exact and cheap for every component:

- the effect of the feature itself is unchanged;
- a pair is averaged over the bins of its other feature;
- the linear component is a sum of terms of single features;
- for waves, E cos(z . omega + b) = Re(e^(ib) prod_k E e^(i z_k . omega_k)), a product over features.

Functional analysis of variance: Hooker 2007; purification of pairs: Lengerich et al. 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from llpbench.blocks.components import Components
from llpbench.blocks.design import FeatureBins
from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.effects import FeatureEffect, Scale

Variance = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Observed:
    """Observations of bags (G w plus noise) that determine the posterior of the weights."""

    scales: FloatArray
    """[components] prior variance of each component's weights"""
    columns: FloatArray
    """[bags, others + features] G times the root of the scales"""
    noise: FloatArray
    """[bags] variance of the noise"""

    def whitened(self) -> tuple[FloatArray, FloatArray]:
        """Return the observations divided by their noise, W [bags, features], and a lower Cholesky factor.

        It is that of I + W'W [features, features], or of I + WW' [bags, bags] unless features are fewer than bags.
        """
        white = self.columns / np.sqrt(self.noise)[:, None]
        inner = white @ white.T if len(white) <= white.shape[1] else white.T @ white
        inner[np.diag_indices(len(inner))] += 1.0
        return white, np.tril(cho_factor(inner, lower=True, overwrite_a=True)[0])

    def variance(self) -> Variance:
        """Return a function from [values, features] (phi times the root of the scales) to posterior variances."""
        white, factor = self.whitened()
        bags, width = white.shape

        def variance(design: FloatArray) -> FloatArray:
            if bags > width:
                others = np.zeros((len(design), width - design.shape[1]))
                whole = np.hstack([others, design]).T
                return np.asarray((solve_triangular(factor, whole, lower=True) ** 2).sum(axis=0))
            of_feature = np.flatnonzero(design.any(axis=0))  # a feature is part of few components
            crossed = white[:, width - design.shape[1] + of_feature] @ design[:, of_feature].T
            half = solve_triangular(factor, crossed, lower=True)
            return np.asarray(np.maximum((design**2).sum(axis=1) - (half**2).sum(axis=0), 0.0))

        return variance


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells: intervals in which a feature's fine and coarse bins are constant, only those with training rows.

    If a cell of a numeric feature has no rows, the cell to its left is widened to include it.
    """

    edges: FloatArray | None
    codes: tuple[tuple[int, ...], ...] | None
    fine: IntArray
    """[cells]"""
    coarse: IntArray
    """[cells]"""
    weights: FloatArray
    """[cells] fraction of the training rows"""


def main_effects(
    components: Components, coefficients: FloatArray, observed: Observed, scale: Scale, factor: float
) -> list[FeatureEffect]:
    """Return the main effect of every feature, in their order.

    - `coefficients`: [features of all components] posterior mean of w
    - `observed`: observations for the posterior variance
    - `scale`: scale of the effects; `factor`: size of one unit of the process on that scale
    """
    variance = observed.variance()
    waves = [_expected_waves(components, joint.frequencies) for joint in components.joint]
    widths = [effect.factor.shape[1] for effect in components.effects] + [len(each.mean) for each in components.joint]
    root = np.sqrt(np.repeat(observed.scales, widths))

    def of_feature(feature: int) -> FeatureEffect:
        cells = _cells(components, feature)
        design = _design(components, feature, cells, waves)
        before = ((design * root) ** 2).sum(axis=1)
        after = variance(design * root)
        return FeatureEffect(
            feature=feature,
            name=f"feature {feature + 1}",
            scale=scale,
            edges=cells.edges,
            codes=cells.codes,
            categories=None if cells.codes is None else tuple("/".join(map(str, each)) for each in cells.codes),
            values=factor * (design @ coefficients),
            std=abs(factor) * np.sqrt(after),
            weights=cells.weights,
            undetermined=float(cells.weights @ after / max(cells.weights @ before, 1e-300)),
        )

    return [*side_by_side(range(len(components.fine.features)), of_feature)]


def _cells(components: Components, feature: int) -> _Cells:
    fine, coarse = components.fine.features[feature], components.coarse.features[feature]
    shares = components.overlaps[feature]
    if fine.positions is None:
        members = [np.flatnonzero(fine.table == place) for place in range(fine.size)]
        outer = np.array([place for place in range(fine.size) if shares[place].any()], dtype=np.int64)
        codes = tuple(tuple(int(code) for code in members[place]) for place in outer)
        inner = coarse.table[[each[0] for each in codes]].astype(np.int64)
        return _Cells(None, codes, outer, inner, shares[outer, inner])
    edges = np.union1d(fine.table, coarse.table)
    outer, inner = (
        np.append(0, np.searchsorted(bins.table, edges, side="right")).astype(np.int64) for bins in (fine, coarse)
    )
    kept = np.flatnonzero(shares[outer, inner] > 0).astype(np.int64)
    if not len(kept):
        kept = np.zeros(1, dtype=np.int64)
    edges, outer, inner = edges[kept[1:] - 1], outer[kept], inner[kept]
    if shares[-1, -1] > 0:
        outer, inner = np.append(outer, fine.size - 1), np.append(inner, coarse.size - 1)
    return _Cells(edges.astype(np.float64), None, outer, inner, shares[outer, inner])


def _design(components: Components, feature: int, cells: _Cells, waves: list[list[FloatArray] | None]) -> FloatArray:
    """Return A [cells, features of all components]."""
    fine, coarse = components.fine.features[feature], components.coarse.features
    parts: list[FloatArray] = []
    for effect in components.effects:
        part: FloatArray = np.zeros((len(cells.weights), effect.factor.shape[1]))
        if effect.features == (feature,):
            part = effect.factor[cells.fine]
        elif feature in effect.features:
            first, second = effect.features
            both = effect.factor.reshape(-1, effect.width, effect.factor.shape[1])
            alone = coarse[second].weights @ both if first == feature else np.tensordot(coarse[first].weights, both, 1)
            part = _less_mean(alone, coarse[feature])[cells.coarse]
        parts.append(part)
    start = sum(bins.coordinates.shape[1] for bins in components.fine.features[:feature])
    table = fine.coordinates
    for joint, expected in zip(components.joint, waves, strict=True):
        if joint.frequencies is None or expected is None:
            part = np.zeros((fine.size, len(joint.mean)))
            part[:, start : start + table.shape[1]] = table
        else:
            others = np.prod([each for k, each in enumerate(expected) if k != feature], axis=0)
            part = (_turned(joint.frequencies, table, start) * others * np.exp(1j * joint.phases)).real
        parts.append(float(joint.scale) * _less_mean(part, fine)[cells.fine])
    return np.hstack(parts)


def _less_mean(table: FloatArray, bins: FeatureBins) -> FloatArray:
    """Return a table [bins, ...] minus its mean over training rows."""
    return np.asarray(table - bins.weights @ table)


def _expected_waves(components: Components, frequencies: FloatArray | None) -> list[FloatArray] | None:
    """Return the mean of e^(i z . omega) [waves] for each feature; None for a linear component.

    z: the columns of the feature.
    """
    if frequencies is None:
        return None
    means: list[FloatArray] = []
    start = 0
    for bins in components.fine.features:
        table = bins.coordinates
        means.append(bins.weights @ _turned(frequencies, table, start))
        start += table.shape[1]
    return means


def _turned(frequencies: FloatArray, table: FloatArray, start: int) -> FloatArray:
    """Return e^(i z . omega) [bins, waves] of a feature's bins, whose columns begin at `start`."""
    return np.asarray(np.exp(1j * (table @ frequencies[start : start + table.shape[1]].astype(np.float64))))
