"""Draws of deviations of rows' logits from the model: from a posterior, or from refits on resampled bags.

A draw is a deviation of the logit of one class against all others. Deviations have mean zero.

- A process on bags (`bag-gp`, also as a member of `auto`) has a normal posterior of the weights of its components, by
  Laplace's approximation at the fitted scales (docs/direct-methods.md). Weights are drawn from this posterior.
- Any other method is fitted again to bags that are drawn with replacement. A draw is a random combination of the
  deviations of these refits from their mean, with the covariance of the refits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit, logit

from llpbench.blocks.bag_logits import LogitProcess, ProcessPredictor
from llpbench.blocks.distinct import Distinct, distinct_rows
from llpbench.blocks.main_effects import Observed
from llpbench.core.bags import BaggedRows, FloatArray, Ragged, Rows
from llpbench.core.errors import LLPBenchError, argument
from llpbench.core.method import Predictor
from llpbench.core.seeding import generator
from llpbench.owndata.doubts import Union
from llpbench.owndata.fitting import MeanPredictor

_LEAST = 1e-6
"""Smallest probability of a refit; smaller ones are clipped."""
_MOST_SAMPLES = 5
"""Largest number of samples for each refit."""
_FEATURES_AT_ONCE = 65_536
"""Number of rows whose joint features are in memory."""
_NORMAL = 1.959964
"""Half the width of a 95 % interval, in standard errors."""
_ROW_DRAWS = 400
"""Number of draws for the standard error of a row, which then has an error of 4 %."""
_DRAWS_AT_ONCE = 50
_OFFSET_VARIANCE = 4.0
"""Prior variance of the offset of a process (`bag_logits`)."""


Deviations = Callable[[Rows, slice], FloatArray]
"""Function that returns some of the draws of rows' deviations [rows, draws], the same for all rows."""


class LogitDraws(Protocol):
    """A source of deviations of rows' logits."""

    def __call__(self, label: int, number: int, rng: np.random.Generator) -> Deviations:
        """Return a `number` of draws of the logit of class `label` against the others."""
        ...


@dataclass(frozen=True, eq=False)
class ProcessDraws:
    """Draws from the posterior of a process."""

    process: LogitProcess

    def __call__(self, label: int, number: int, rng: np.random.Generator) -> Deviations:
        """Return a number of draws. With two classes those of the first are minus those of the second."""
        binary = len(self.process.offsets) == 1
        weights = self._weights(0 if binary else label, number, rng)
        return partial(self._values, -weights if binary and label == 0 else weights)

    def _values(self, weights: FloatArray, rows: Rows, draws: slice) -> FloatArray:
        weights = weights[:, draws]
        components = self.process.components
        widths = [len(part) for part in self.process.coefficients[0]]
        offset, parts = weights[0], np.split(weights[1:], np.cumsum(widths)[:-1])
        found = np.empty((len(rows.numeric), weights.shape[1]))
        for start in range(0, len(found), _FEATURES_AT_ONCE):
            part = slice(start, start + _FEATURES_AT_ONCE)
            binned = components.bin(Rows(*(each[part] for each in rows)))
            values = np.tile(offset, (len(binned), 1))
            for effect, weight in zip(components.effects, parts, strict=False):
                values += (effect.factor @ weight)[components.codes(effect, binned)]
            joint = zip(components.joint_values(binned), parts[len(components.effects) :], strict=True)
            for features, weight in joint:
                values += features @ weight.astype(np.float32)
            found[part] = values
        return found

    def _weights(self, output: int, number: int, rng: np.random.Generator) -> FloatArray:
        """Return draws [offset + features, number] of the weights, minus their mean.

        The algebra is in bags or in features, whichever are fewer. In bags it is Matheron's rule, which corrects a draw
        of the prior by its difference to the observed bags.
        """
        observed = self.process.observed[output]
        widths = [len(part) for part in self.process.coefficients[output]]
        root = np.sqrt(np.append(_OFFSET_VARIANCE, np.repeat(observed.scales, widths)))
        if not isinstance(observed, Observed):
            return np.asarray(root[:, None] * _of_precision(cho_factor(observed.inner, lower=True)[0], number, rng))
        white, factor = self._solved(output)
        bags, width = white.shape
        if width < bags:
            return np.asarray(root[:, None] * _of_precision(factor, number, rng))
        prior = rng.standard_normal((width, number))
        seen = white @ prior + rng.standard_normal((bags, number))
        return np.asarray(root[:, None] * (prior - white.T @ cho_solve((factor, True), seen)))

    def _solved(self, output: int) -> tuple[FloatArray, FloatArray]:
        """Return whitened observations [bags, features], and the factor of their precision in the smaller space."""
        if output not in self._factors:
            observed = self.process.observed[output]
            assert isinstance(observed, Observed)
            white = observed.columns / np.sqrt(observed.noise)[:, None]
            bags, width = white.shape
            inner = white.T @ white if width < bags else white @ white.T
            self._factors[output] = white, cho_factor(inner + np.eye(len(inner)), lower=True)[0]
        return self._factors[output]

    @cached_property
    def _factors(self) -> dict[int, tuple[FloatArray, FloatArray]]:
        return {}


def _of_precision(factor: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
    """Return normal draws [features, number], given the lower Cholesky factor of their precision."""
    drawn = rng.standard_normal((len(factor), number))
    return np.asarray(solve_triangular(factor, drawn, lower=True, trans=1))


@dataclass(frozen=True, eq=False)
class RefitDraws:
    """Random combinations of the deviations of refits."""

    members: Sequence[Predictor]
    """fitted refits"""

    def __call__(self, label: int, number: int, rng: np.random.Generator) -> Deviations:
        """Return a number of draws."""
        mixed = rng.standard_normal((len(self.members), number)) / np.sqrt(len(self.members) - 1)
        return lambda rows, draws: np.asarray(self._deviations(rows)[:, :, label].T @ mixed[:, draws])

    def _deviations(self, rows: Rows) -> FloatArray:
        """Return predictions [refits, rows, classes]; those of the last rows are cached."""
        if self._last and self._last[0][0] is rows:
            return self._last[0][1]
        logits = np.stack(
            [logit(np.clip(proba, _LEAST, 1 - _LEAST)) for proba in (member(rows) for member in self.members)]
        )
        self._last[:] = [(rows, logits - logits.mean(axis=0))]
        return self._last[0][1]

    @cached_property
    def _last(self) -> list[tuple[Rows, FloatArray]]:
        return []


@dataclass(frozen=True, eq=False)
class DistinctDraws:
    """Draws of another source, computed once for equal rows."""

    draws: LogitDraws

    def __call__(self, label: int, number: int, rng: np.random.Generator) -> Deviations:
        """Return a number of draws."""
        return partial(self._values, self.draws(label, number, rng))

    def _values(self, deviations: Deviations, rows: Rows, draws: slice) -> FloatArray:
        if not (self._last and self._last[0][0] is rows):
            same = distinct_rows(rows)
            some = rows if same is None else Rows(*(part[same.first] for part in rows))
            self._last[:] = [(rows, same, some)]
        _, same, some = self._last[0]
        found = deviations(some, draws)
        return found if same is None else found[same.place]

    @cached_property
    def _last(self) -> list[tuple[Rows, Distinct | None, Rows]]:
        return []


def process_of(predictor: Predictor) -> LogitProcess | None:
    """Return the process of a predictor whose posterior can be drawn; None if it has none."""
    if isinstance(predictor, Union):
        return predictor.process
    if isinstance(predictor, MeanPredictor):
        return process_of(predictor.members[0])  # all members have the posterior of the same bags
    return predictor.process if isinstance(predictor, ProcessPredictor) else None


def refit_draws(train: BaggedRows, learn: Callable[[BaggedRows], Predictor], number: int, seed: int) -> RefitDraws:
    """Return draws from a method fitted `number` times to as many bags as in `train`, drawn with replacement.

    Samples with a single class are drawn again. Raises `LLPBenchError` if there are too many of them.
    """
    members: list[Predictor] = []
    for copy in range(_MOST_SAMPLES * number):
        sample = _resampled(train, generator(seed, "resampled bags", copy))
        if sample.prior.max() < 1.0:
            members.append(learn(sample))
        if len(members) == number:
            return RefitDraws(members)
    raise LLPBenchError(
        "intervals need bags of at least two classes: most samples of bags, drawn with replacement, have only one. Use "
        f"{argument('method=' + repr('bag-gp'))}, which draws no such samples."
    )


def _resampled(train: BaggedRows, rng: np.random.Generator) -> BaggedRows:
    """Return bags drawn with replacement. A bag drawn twice is two bags."""
    chosen = rng.integers(0, len(train.sizes), len(train.sizes))
    of_bag = np.split(train.bag_by_bag, np.cumsum(train.sizes)[:-1])
    rows = np.concatenate([of_bag[bag] for bag in chosen])
    index = Ragged(np.arange(len(rows)), train.sizes[chosen])
    return replace(train, rows=Rows(*(part[rows] for part in train.rows)), index=index, counts=train.counts[chosen])


@dataclass(frozen=True, eq=False)
class RowIntervals:
    """Intervals of the probabilities of rows, the result of `LLPClassifier.predict_interval`."""

    probability: FloatArray
    """[rows, classes]"""
    lower: FloatArray
    """[rows, classes] lower end of the 95 % interval"""
    upper: FloatArray
    """[rows, classes] upper end of the 95 % interval"""
    standard_error: FloatArray
    """[rows, classes] standard error of the logit of a class against the others"""


def row_intervals(process: LogitProcess, rows: Rows, proba: FloatArray, spread: float, seed: int) -> RowIntervals:
    """Return intervals of the probabilities [rows, classes] of a process; `spread` multiplies its logits."""
    error, draws = np.zeros_like(proba), ProcessDraws(process)
    binary = proba.shape[1] == 2
    for label in range(1, 2) if binary else range(proba.shape[1]):
        rng = generator(seed, "rows' intervals", label)
        squares: FloatArray = np.zeros(len(proba))
        for _ in range(_ROW_DRAWS // _DRAWS_AT_ONCE):
            squares += (draws(label, _DRAWS_AT_ONCE, rng)(rows, slice(None)) ** 2).sum(axis=1)
        error[:, label] = spread * np.sqrt(squares / _ROW_DRAWS)
    if binary:
        error[:, 0] = error[:, 1]
    logits = logit(proba.clip(1e-12, 1 - 1e-12))
    return RowIntervals(proba, expit(logits - _NORMAL * error), expit(logits + _NORMAL * error), error)
