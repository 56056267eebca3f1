"""Draws of deviations of rows' logits from the model, from the posterior of a process on bags.

A draw is a deviation of the logit of one class against all others. Deviations have mean zero. The posterior of the
weights of the process (`bag-gp`, also as a member of `auto`) is normal, by Laplace's approximation at the fitted scales
(docs/direct-methods.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from llpbench.blocks.bag_logits import LogitProcess, ProcessPredictor
from llpbench.blocks.distinct import Distinct
from llpbench.blocks.main_effects import Observed
from llpbench.core.bags import FloatArray, Rows
from llpbench.core.method import Predictor
from llpbench.owndata.doubts import Union
from llpbench.owndata.fitting import MeanPredictor

_FEATURES_AT_ONCE = 65_536
"""Number of rows whose joint features are in memory."""
_OFFSET_VARIANCE = 4.0
"""Prior variance of the offset of a process (`bag_logits`)."""


Deviations = Callable[[Rows, slice], FloatArray]
"""Function that returns some of the draws of rows' deviations [rows, draws], the same for all rows."""


@dataclass(frozen=True, eq=False)
class ProcessDraws:
    """Draws from the posterior of a process, computed once for equal rows."""

    process: LogitProcess
    _last: list[tuple[Rows, Distinct | None]] = field(default_factory=list)
    _factors: dict[int, tuple[FloatArray | None, FloatArray]] = field(default_factory=dict)

    @classmethod
    def of(cls, predictor: Predictor) -> Self | None:
        """Return the draws of a predictor; None if it has no process whose posterior can be drawn."""
        if isinstance(predictor, MeanPredictor):
            return cls.of(predictor.members[0])  # all members have the posterior of the same bags
        return cls(predictor.process) if isinstance(predictor, Union | ProcessPredictor) else None

    def __call__(self, label: int, number: int, rng: np.random.Generator) -> Deviations:
        """Return a number of draws. With two classes those of the first are minus those of the second."""
        binary = len(self.process.offsets) == 1
        weights = self._weights(0 if binary else label, number, rng)
        return partial(self._values, -weights if binary and label == 0 else weights)

    def _values(self, weights: FloatArray, rows: Rows, draws: slice) -> FloatArray:
        if not (self._last and self._last[0][0] is rows):
            self._last[:] = [(rows, Distinct.of_rows(rows))]
        if (same := self._last[0][1]) is not None:
            rows = Rows(*(part[same.first] for part in rows))
        weights, components = weights[:, draws], self.process.components
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
        return found if same is None else found[same.place]

    def _weights(self, output: int, number: int, rng: np.random.Generator) -> FloatArray:
        """Return draws [offset + features, number] of the weights, minus their mean.

        The algebra is in bags or in features, whichever are fewer. In bags it is Matheron's rule, which corrects a draw
        of the prior by its difference to the observed bags.
        """
        widths = [len(part) for part in self.process.coefficients[output]]
        root = np.sqrt(np.append(_OFFSET_VARIANCE, np.repeat(self.process.observed[output].scales, widths)))[:, None]
        white, factor = self._solved(output)
        if white is None or white.shape[1] < len(white):
            drawn = rng.standard_normal((len(factor), number))
            return np.asarray(root * solve_triangular(factor, drawn, lower=True, trans=1))
        prior = rng.standard_normal((white.shape[1], number))
        seen = white @ prior + rng.standard_normal((len(white), number))
        return np.asarray(root * (prior - white.T @ cho_solve((factor, True), seen)))

    def _solved(self, output: int) -> tuple[FloatArray | None, FloatArray]:
        """Return whitened observations [bags, features], if known, and the factor of the precision.

        The precision is that of draws of features, or of bags if these are fewer.
        """
        if output not in self._factors:
            observed = self.process.observed[output]
            if isinstance(observed, Observed):
                white = observed.columns / np.sqrt(observed.noise)[:, None]
                inner = white.T @ white if white.shape[1] < len(white) else white @ white.T
                self._factors[output] = white, cho_factor(inner + np.eye(len(inner)), lower=True)[0]
            else:
                self._factors[output] = None, cho_factor(observed.inner, lower=True)[0]
        return self._factors[output]
