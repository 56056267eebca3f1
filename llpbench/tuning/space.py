"""Search spaces as data: the ranges that a method declares, replaced where a configuration gives others.

In a specification a range is `{"low": 1e-5, "high": 1e-3, "log": true}` or `{"choices": [64, 128]}`. If the
hyperparameter matters only for some values of others, `"when": {"objective": ["cosine-embedding"]}` is added.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any

from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Method
from llpbench.core.ranges import Choice, LogUniform, Range, Uniform, conditions, continuous, ranges, read_params
from llpbench.core.registry import METHODS
from llpbench.core.text import hint

_Space = Mapping[str, Mapping[str, Any]]

_DIGITS = 4
"""significant digits of a proposed number; more would not matter and are hard to read"""


def search_space(method: str, overrides: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Return the search space of a method: the declared ranges with `overrides` by hyperparameter.

    An override is a pair of numbers, a list of choices, or one value, which is then not searched. Raises
    `LLPBenchError` for unknown names and invalid values.
    """
    declared = METHODS.get(method).Params
    known, given = ranges(declared), dict(overrides or {})
    for name in given:
        if name not in known:
            raise LLPBenchError(
                f"{method} has no search range for {name!r}. {hint(name, known)}"
                f"Available: {', '.join(known) or 'none'}."
            )
    spaces = {}
    when = conditions(declared)
    for name, search in known.items():
        space = _as_data(search) if name not in given else _override(method, name, search, given[name])
        if space is None:
            continue
        spaces[name] = space | ({"when": {when[name].name: list(when[name].values)}} if name in when else {})
    return spaces


def fixed(method: str, overrides: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the hyperparameters that `overrides` set to one value."""
    values = {name: value for name, value in (overrides or {}).items() if not isinstance(value, list)}
    read = read_params(METHODS.get(method).Params, values, owner=METHODS.entry(method).name)
    return {name: getattr(read, name) for name in values}


def require_start(method: str, space: _Space, params: Mapping[str, Any]) -> None:
    """Raise `LLPBenchError` if a search cannot start from `params`."""
    for name, part in space.items():
        if part.get("log") and params[name] <= 0:
            raise LLPBenchError(
                f"{method}.{name} must be above 0 to be searched on a logarithmic scale, got {params[name]:g}. Use "
                f"--set {method}.{name}={params[name]:g} to keep this value, or leave it out."
            )


class Space:
    """The search space of a tuning, and its initial values. The default is always a trial, so choices include it."""

    def __init__(self, ranges: _Space, start: Mapping[str, Any]) -> None:
        self._start = start
        self.ranges = {name: dict(part) for name, part in ranges.items()}
        for name, part in self.ranges.items():
            if "choices" in part and start[name] not in part["choices"]:
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


def _override(method: str, name: str, search: Range, value: Any) -> dict[str, Any] | None:
    """Return the range that a configuration gives; None if it gives one value."""
    params, owner = METHODS.get(method).Params, METHODS.entry(method).name
    if not isinstance(value, list):
        read_params(params, {name: value}, owner=owner)
        return None
    expected = f"space of {owner}.{name} must be"
    if isinstance(search, Choice):
        if not value:
            raise LLPBenchError(f"{expected} a list of choices, got {value}")
        return {"choices": [getattr(read_params(params, {name: one}, owner=owner), name) for one in value]}
    plain = len(value) == 2 and all(isinstance(one, int | float) and not isinstance(one, bool) for one in value)
    if not plain or max(map(abs, value)) > sys.float_info.max or not value[0] < value[1]:
        raise LLPBenchError(f"{expected} two numbers in ascending order, got {str(value)[:100]}")
    for one in value:
        read_params(params, {name: one}, owner=owner)
    if isinstance(search, LogUniform) and value[0] <= 0:
        raise LLPBenchError(f"{expected} above 0 because its scale is logarithmic, got {value}")
    return {**_as_data(search), "low": float(value[0]), "high": float(value[1])}
