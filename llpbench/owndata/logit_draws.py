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
from scipy.linalg import cho_solve, solve_triangular

from llpbench.blocks.bag_logits import LogitProcess, ProcessPredictor
from llpbench.blocks.distinct import Distinct
from llpbench.core.bags import FloatArray, Rows
from llpbench.core.method import Predictor
from llpbench.owndata.doubts import Union
from llpbench.owndata.fitting import MeanPredictor

_OFFSET_VARIANCE = 4.0
"""Prior variance of the offset of a process (`bag_logits`)."""


Deviations = Callable[[Rows, slice], FloatArray]
"""Function that returns some of the draws of rows' deviations [rows, draws], the same for all rows."""


@dataclass(frozen=True, eq=False)
class ProcessDraws:
    """Draws from the posterior of a process, computed once for equal rows."""

    process: LogitProcess
    _last: list[tuple[Rows, Distinct | None]] = field(default_factory=list)
    _factors: dict[int, tuple[FloatArray, FloatArray]] = field(default_factory=dict)

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
        parts = np.split(weights[1:], np.cumsum(widths)[:-1])
        found = components.value(parts, components.bin(rows))
        found += weights[0]
        return found if same is None else found[same.place]

    def _weights(self, output: int, number: int, rng: np.random.Generator) -> FloatArray:
        """Return draws [offset + features, number] of the weights, minus their mean.

        The algebra is in bags or in features, whichever are fewer. In bags it is Matheron's rule, which corrects a draw
        of the prior by its difference to the observed bags.
        """
        widths = [len(part) for part in self.process.coefficients[output]]
        root = np.sqrt(np.append(_OFFSET_VARIANCE, np.repeat(self.process.observed[output].scales, widths)))[:, None]
        if output not in self._factors:
            self._factors[output] = self.process.observed[output].whitened()
        white, factor = self._factors[output]
        if white.shape[1] < len(white):
            drawn = rng.standard_normal((len(factor), number))
            return np.asarray(root * solve_triangular(factor, drawn, lower=True, trans=1))
        prior = rng.standard_normal((white.shape[1], number))
        seen = white @ prior + rng.standard_normal((len(white), number))
        return np.asarray(root * (prior - white.T @ cho_solve((factor, True), seen)))
