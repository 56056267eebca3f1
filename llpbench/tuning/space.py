"""Search spaces as data: what a method declares of its hyperparameters, with the ranges that a configuration overrides.

In a specification a range is `{"low": 1e-5, "high": 1e-3, "log": true}` or `{"choices": [64, 128]}`; where the
hyperparameter means something only beside some values of others, `"when": {"objective": ["cosine-embedding"]}`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Method
from llpbench.core.ranges import Choice, LogUniform, Range, Uniform, conditions, continuous, ranges, read_params
from llpbench.core.registry import METHODS
from llpbench.core.text import hint

Space = Mapping[str, Mapping[str, Any]]

_DIGITS = 4
"""significant digits of a proposed number: more mean nothing and are hard to read"""


def search_space(method: str, overrides: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Search space of a method: the declared ranges with `overrides` by hyperparameter.

    An override is a pair of numbers, a list of choices for what is chosen, or one value, which is then not searched.
    Raises `LLPBenchError` for names and values that there are not.
    """
    declared = METHODS.get(method).Params
    known, given = ranges(declared), dict(overrides or {})
    for name in given:
        if name not in known:
            raise LLPBenchError(
                f"{method} has no search range for {name!r}. {hint(name, known)}"
                f"There are: {', '.join(known) or 'none'}."
            )
    found = {}
    when = conditions(declared)
    for name, search in known.items():
        space = _as_data(search) if name not in given else _override(method, name, search, given[name])
        if space is None:
            continue
        found[name] = space | ({"when": {when[name].name: list(when[name].values)}} if name in when else {})
    return found


def fixed(method: str, overrides: Mapping[str, Any] | None) -> dict[str, Any]:
    """The hyperparameters that `overrides` give one value to."""
    values = {name: value for name, value in (overrides or {}).items() if not isinstance(value, list)}
    read = read_params(METHODS.get(method).Params, values, owner=METHODS.entry(method).name)
    return {name: getattr(read, name) for name in values}


def require_start(method: str, space: Space, params: Mapping[str, Any]) -> None:
    """Raise where a search cannot start from `params`."""
    for name, each in space.items():
        if each.get("log") and params[name] <= 0:
            raise LLPBenchError(
                f"{method}.{name} must be above 0 to be searched on a logarithmic scale, got {params[name]:g}. Use "
                f"--set {method}.{name}={params[name]:g} to keep this value, or leave it out."
            )


def with_default(space: Space, params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The space with the values that a search starts from: the default is always a trial."""
    found = {name: dict(each) for name, each in space.items()}
    for name, each in found.items():
        if "choices" in each and params[name] not in each["choices"]:
            each["choices"] = [*each["choices"], params[name]]
    return found


def suggest(trial: Any, space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """Hyperparameters that an Optuna `trial` proposes; `params` has those that are not searched."""
    chosen: dict[str, Any] = {}
    for name in sorted(space, key=lambda name: "when" in space[name]):  # conditions are on what has none
        each = space[name]
        if not applies(each, {**params, **chosen}):
            continue
        if "choices" in each:
            # by number: Optuna takes no other values than plain ones, and knows 1 and 1.0 for the same
            chosen[name] = each["choices"][trial.suggest_categorical(name, list(range(len(each["choices"]))))]
        else:
            value = trial.suggest_float(name, each["low"], each["high"], log=each.get("log", False))
            chosen[name] = float(f"{value:.{_DIGITS}g}")
    return chosen


def proposal(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """`params` as Optuna has them: choices by number; what does not apply is left out."""
    return {
        name: each["choices"].index(params[name]) if "choices" in each else params[name]
        for name, each in space.items()
        if name in params and applies(each, params)
    }


def applies(space: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Whether a hyperparameter with this range means something beside `params`."""
    return all(params.get(name) in values for name, values in space.get("when", {}).items())


def architecture(method: str, space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """The searched hyperparameters in which members of one population may not differ."""
    declared = METHODS.get(method)
    free = set(continuous(declared.Params)) if issubclass(declared, Method) else set()
    return {name: value for name, value in params.items() if name in space and name not in free}


def _as_data(search: Range) -> dict[str, Any]:
    if isinstance(search, Choice):
        return {"choices": list(search.values)}
    assert isinstance(search, Uniform)
    return {"low": search.low, "high": search.high} | ({"log": True} if isinstance(search, LogUniform) else {})


def _override(method: str, name: str, search: Range, value: Any) -> dict[str, Any] | None:
    """The range that a configuration gives; None where it gives a value."""
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
