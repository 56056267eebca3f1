"""Successive halving inside a population: at a rung, members below the best of all that ever reached it leave."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from llpbench.core.criteria import Criterion


class Halving:
    """Decides who goes on: at each rung one in `eta` of the trials that have reached it, earlier ones included.

    (Li et al. 2020, "A system for massively parallel hyperparameter tuning", algorithm 2, in rounds of a population.)
    """

    def __init__(self, criterion: Criterion, rungs: Iterable[int], eta: int, protected: Iterable[int] = ()) -> None:
        """`rungs`: numbers of epochs; `protected`: members that always go on, and are compared with all the same."""
        self.criterion = criterion
        self.rungs = frozenset(rungs)
        self._eta = eta
        self._protected = frozenset(protected)
        self._earlier: dict[int, list[float]] = defaultdict(list)
        self.reached: dict[int, list[tuple[int, float]]] = defaultdict(list)
        """by member: epochs and best value so far"""

    def remember(self, rungs: Iterable[tuple[int, float | None]]) -> None:
        """Take into account what an earlier trial was worth at its rungs."""
        for epochs, value in rungs:
            if value is not None:
                self._earlier[epochs].append(value)

    def leaving(self, epochs: int, values: Mapping[int, float]) -> set[int]:
        """Who leaves after so many epochs, of members with their best values so far; nobody unless that is a rung."""
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
