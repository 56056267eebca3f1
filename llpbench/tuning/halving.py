"""Successive halving inside a population: at a rung, members stop if they are worse than the best trials so far."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from llpbench.core.criteria import Criterion


class Halving:
    """Rule that stops trials: at each rung, one in `eta` of all trials that have ever reached it continues.

    Li et al. 2020, "A system for massively parallel hyperparameter tuning", algorithm 2, in rounds of a population.
    """

    def __init__(self, criterion: Criterion, rungs: Iterable[int], eta: int, protected: Iterable[int] = ()) -> None:
        """`rungs` are numbers of epochs. `protected` members always continue, but others are compared with them."""
        self.criterion = criterion
        self.rungs = frozenset(rungs)
        self._eta = eta
        self._protected = frozenset(protected)
        self._earlier: dict[int, list[float]] = defaultdict(list)
        self.reached: dict[int, list[tuple[int, float]]] = defaultdict(list)
        """epochs and best value so far at each rung, by member"""

    def remember(self, rungs: Iterable[tuple[int, float | None]]) -> None:
        """Add the values of an earlier trial at its rungs, for comparison."""
        for epochs, value in rungs:
            if value is not None:
                self._earlier[epochs].append(value)

    def leaving(self, epochs: int, values: Mapping[int, float]) -> set[int]:
        """Return the members to stop after `epochs`, given their best values so far; empty if it is not a rung."""
        if epochs not in self.rungs:
            return set()
        for member, value in values.items():
            self.reached[member].append((epochs, value))
        finite = [value for value in values.values() if math.isfinite(value)]
        everyone = sorted([*self._earlier[epochs], *finite], reverse=self.criterion.maximise)
        self._earlier[epochs] += finite
        if not everyone:
            return set(values) - self._protected
        last = everyone[math.ceil(len(everyone) / self._eta) - 1]
        worse = {member for member, value in values.items() if math.isnan(value) or self.criterion.better(last, value)}
        return worse - self._protected
