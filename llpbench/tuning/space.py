"""Search spaces as data: the ranges that a method declares.

In a specification a range is `{"low": 1e-5, "high": 1e-3, "log": true}` or `{"choices": [64, 128]}`. If the
hyperparameter matters only for some values of others, `"when": {"objective": ["cosine-embedding"]}` is added.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Method
from llpbench.core.ranges import Choice, LogUniform, Range, Uniform, conditions, continuous, ranges
from llpbench.core.registry import METHODS

_Space = Mapping[str, Mapping[str, Any]]

_DIGITS = 4
"""significant digits of a proposed number; more would not matter and are hard to read"""


def search_space(method: str) -> dict[str, dict[str, Any]]:
    """Return the search space of a method: the ranges that it declares."""
    declared = METHODS.get(method).Params
    when = conditions(declared)
    return {
        name: _as_data(search) | ({"when": {when[name].name: list(when[name].values)}} if name in when else {})
        for name, search in ranges(declared).items()
    }


def require_start(method: str, space: _Space, params: Mapping[str, Any]) -> None:
    """Raise `LLPBenchError` if a search cannot start from `params`."""
    for name, part in space.items():
        if "low" in part and params[name] is None:
            raise LLPBenchError(
                f"{method}.{name} is none by default, where no search can start. Set it: --set {method}.{name}=..."
            )
        if part.get("log") and params[name] <= 0:
            raise LLPBenchError(
                f"{method}.{name} must be above 0 to be searched on a logarithmic scale, got {params[name]:g}. Use "
                f"--set {method}.{name}={params[name]:g} to keep this value, or leave it out."
            )


class Space:
    """The search space of a tuning, and its initial values. The default is always a trial, so all ranges include it."""

    def __init__(self, ranges: _Space, start: Mapping[str, Any]) -> None:
        self._start = start
        self.ranges = {name: dict(part) for name, part in ranges.items()}
        for name, part in self.ranges.items():
            if "choices" not in part:
                part |= {"low": min(part["low"], start[name]), "high": max(part["high"], start[name])}
            elif start[name] not in part["choices"]:
                part["choices"] = [*part["choices"], start[name]]

    def suggest(self, trial: Any) -> dict[str, Any]:
        """Return the searched hyperparameters that an Optuna `trial` proposes."""
        chosen: dict[str, Any] = {}
        for name in sorted(self.ranges, key=lambda name: "when" in self.ranges[name]):  # conditions need the others
            part = self.ranges[name]
            if not _applies(part, {**self._start, **chosen}):
                continue
            if "choices" in part:
                # by number: Optuna accepts only plain values, and treats 1 and 1.0 as equal
                chosen[name] = part["choices"][trial.suggest_categorical(name, list(range(len(part["choices"]))))]
            else:
                value = trial.suggest_float(name, part["low"], part["high"], log=part.get("log", False))
                chosen[name] = float(f"{value:.{_DIGITS}g}")
        return chosen

    def proposal(self, names: Collection[str], params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of hyperparameters in Optuna's form: choices by number, without those that do not apply.

        `params` has the values that differ from the initial ones.
        """
        values = {**self._start, **params}
        parts = {name: part for name, part in self.ranges.items() if name in names and _applies(part, values)}
        return {
            name: part["choices"].index(values[name]) if "choices" in part else values[name]
            for name, part in parts.items()
        }


def _applies(part: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Return whether a hyperparameter with this range matters, given `params`."""
    return all(params.get(name) in values for name, values in part.get("when", {}).items())


def architecture(method: str, space: _Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the searched hyperparameters in which members of one population may not differ."""
    declared = METHODS.get(method)
    free = set(continuous(declared.Params)) if issubclass(declared, Method) else set()
    return {name: value for name, value in params.items() if name in space and name not in free}


def _as_data(search: Range) -> dict[str, Any]:
    if isinstance(search, Choice):
        return {"choices": list(search.values)}
    assert isinstance(search, Uniform)
    return {"low": search.low, "high": search.high} | ({"log": True} if isinstance(search, LogUniform) else {})
