"""How much each hyperparameter of a search matters, from its trials alone.

A random forest learns, from the hyperparameters of the trials, how they rank. What it predicts over the whole search
space is then taken apart: the share of its variance that one hyperparameter explains by itself, the others averaged out
(Hutter, Hoos & Leyton-Brown 2014, "An efficient approach for assessing hyperparameter importance", main effects; on
ranks, as one diverged trial would otherwise be all that counts). So it does not matter that a sampler crowds its trials
where they are good. What is left to 100 % is of several hyperparameters together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench.core.record import TuningRecord
from llpbench.core.text import plural
from llpbench.core.tunings import Tuning

LEAST_TRIALS = 10
"""of fewer nothing is said"""

_TREES = 100
_POINTS = 128
"""of the search space, over which the other hyperparameters are averaged"""
_STEPS = 8
"""values of a number whose effect is looked at"""

Points = NDArray[np.float64]
"""`[points, hyperparameters]`, each as `_Space` writes it down"""


@dataclass(frozen=True)
class Importance:
    """Of the hyperparameters of one search."""

    shares: Mapping[str, float]
    """percent of the variance, by hyperparameter"""
    trials: int
    """that were compared"""
    epochs: int | None
    """after which they were; None: at their end, as none was stopped"""


def importance(record: TuningRecord) -> Importance | str:
    """How much the hyperparameters of a search matter to what guided it, or why that cannot be told."""
    from scipy.stats import rankdata
    from sklearn.ensemble import RandomForestRegressor

    tuning = Tuning.of(record["spec"])
    space = _Space(tuning)
    trials, values, epochs = compared(record)
    if len(trials) < LEAST_TRIALS:
        return f"only {plural(len(trials), 'trial')} of at least {LEAST_TRIALS}"
    if min(values) == max(values):
        return "all trials equal"
    points = np.array([space.written(trial["params"]) for trial in trials])
    forest = RandomForestRegressor(n_estimators=_TREES, oob_score=True, random_state=0)
    forest.fit(points, rankdata(values))
    if forest.oob_score_ <= 0:  # of trials that it has not seen it says no more than their mean does
        return "no pattern in its trials"
    drawn = space.drawn(np.random.default_rng(0), _POINTS)
    varied = [
        [space.only_active(_with(drawn, place, step)) for step in space.steps(name)]
        for place, name in enumerate(space.names)
    ]
    foretold = forest.predict(np.concatenate([each for steps in varied for each in steps])).reshape(-1, len(drawn))
    own = np.split(foretold, np.cumsum([len(steps) for steps in varied])[:-1])  # at once: each call takes its time
    shares = {
        name: 100 * float(np.var(each.mean(axis=1)) / (np.var(each) or 1.0))
        for name, each in zip(space.names, own, strict=True)
    }
    return Importance(shares, len(trials), epochs)


def compared(record: TuningRecord) -> tuple[list[dict[str, Any]], list[float], int | None]:
    """Trials, what guided the search in each, and after how many epochs.

    Where trials were stopped, it is the highest rung that all of those have reached: what only the better ones were
    allowed to reach would say nothing of what makes them better. Otherwise it is the end (None).
    """
    guide = Tuning.of(record["spec"]).guide.name
    done = [trial for trial in record["trials"] if trial["status"] in ("ok", "stopped")]
    stopped = [trial for trial in done if trial["status"] == "stopped" and trial["rungs"]]
    epochs = min((trial["rungs"][-1][0] for trial in stopped), default=None)
    known = {
        place: value
        for place, trial in enumerate(done)
        if (value := trial["values"].get(guide) if epochs is None else dict(trial["rungs"]).get(epochs)) is not None
    }
    return [done[place] for place in known], [*known.values()], epochs


def _with(points: Points, place: int, value: float) -> Points:
    found = points.copy()
    found[:, place] = value
    return found


class _Space:
    """Configurations as numbers: choices by their place, logarithms where they are searched; what does not apply as it
    was where the search started."""

    def __init__(self, tuning: Tuning) -> None:
        start = tuning.cell.params
        self._space = {name: dict(each) for name, each in tuning.space.items()}
        for name, each in self._space.items():
            if "choices" in each and start[name] not in each["choices"]:  # the default is always a trial
                each["choices"] = [*each["choices"], start[name]]
        self._start = start
        self.names = [*self._space]

    def written(self, params: Mapping[str, Any]) -> list[float]:
        """A configuration."""
        return [self._number(name, params.get(name, self._start[name])) for name in self.names]

    def steps(self, name: str) -> Sequence[float]:
        """Values of a hyperparameter, evenly over what is searched."""
        each = self._space[name]
        if "choices" in each:
            return [float(place) for place in range(len(each["choices"]))]
        low, high = (self._number(name, each[end]) for end in ("low", "high"))
        return [low + (high - low) * (step + 0.5) / _STEPS for step in range(_STEPS)]

    def drawn(self, rng: np.random.Generator, number: int) -> Points:
        """Configurations, evenly over the search space."""
        return self.only_active(np.stack([rng.choice(self.steps(name), number) for name in self.names], axis=1))

    def only_active(self, points: Points) -> Points:
        """The same, but for what does not apply."""
        found = points.copy()
        for place, name in enumerate(self.names):
            for parent, values in self._space[name].get("when", {}).items():
                if parent in self._space:
                    applies = np.isin(points[:, self.names.index(parent)], [self._number(parent, v) for v in values])
                else:
                    applies = np.full(len(points), self._start[parent] in values)
                found[~applies, place] = self._number(name, self._start[name])
        return found

    def _number(self, name: str, value: Any) -> float:
        each = self._space[name]
        if "choices" in each:
            return float(each["choices"].index(value)) if value in each["choices"] else -1.0
        return math.log(value) if each.get("log") else float(value)
