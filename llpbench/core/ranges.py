"""Search ranges of hyperparameters, and hyperparameters read from text.

A hyperparameter is a field of a frozen dataclass whose annotation carries its range, so that default, range and
meaning stand in one place::

    weight: Annotated[float, LogUniform(0.01, 5.0)] = 0.05
    \"\"\"largest weight of the smoothness term\"\"\"
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from llpbench.core.errors import LLPBenchError

T = TypeVar("T")


@dataclass(frozen=True)
class Uniform:
    """Any number between two."""

    low: float
    high: float


@dataclass(frozen=True)
class LogUniform(Uniform):
    """Any number between two, on a logarithmic scale."""


@dataclass(frozen=True, init=False)
class Choice:
    """One of some values."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)


Range = Uniform | Choice


def ranges(params: type) -> dict[str, Range]:
    """The search range of every hyperparameter that declares one."""
    hints = get_type_hints(params, include_extras=True)
    found = {name: [extra for extra in get_args(hint)[1:] if isinstance(extra, Range)] for name, hint in hints.items()}
    return {name: extras[0] for name, extras in found.items() if extras}


def continuous(params: type) -> list[str]:
    """Names of the hyperparameters in which members of one population may differ."""
    return [name for name, search in ranges(params).items() if isinstance(search, Uniform)]


def read_params(params: type[T], values: Mapping[str, Any], owner: str) -> T:
    """A `params` dataclass from values or texts; unknown names and impossible values are errors that say what is.

    A choice must be one of its values; a number may lie outside its search range, but must be finite.
    """
    known = {field.name: field for field in fields(params)}  # type: ignore[arg-type]
    hints = get_type_hints(params, include_extras=True)
    read = {}
    for name, value in values.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise LLPBenchError(
                f"{owner} has no hyperparameter {name!r}. {hint}There are: {', '.join(known) or 'none'}."
            )
        read[name] = _read_value(f"{owner}.{name}", value, hints[name])
    return params(**read)


def _is_meant(choice: Any, value: Any) -> bool:
    """Whether a value, which may be a text, names a choice: `true`, `none` and `0.10` do as well."""
    if str(choice).lower() == str(value).lower():
        return True
    number = isinstance(choice, int | float) and not isinstance(choice, bool)
    try:
        return number and float(str(value)) == choice
    except ValueError:
        return False


def _read_value(name: str, value: Any, hint: Any) -> Any:
    plain, *extras = get_args(hint) if get_origin(hint) is not None and hasattr(hint, "__metadata__") else (hint,)
    types = get_args(plain) or (plain,)
    if type(None) in types and str(value).lower() == "none":
        return None
    for extra in extras:
        if isinstance(extra, Choice):
            matching = [v for v in extra.values if _is_meant(v, value)]
            if not matching:
                raise LLPBenchError(f"{name} must be one of {', '.join(map(str, extra.values))}, however: {value}")
            return matching[0]
    if bool in types:
        texts = {"true": True, "false": False}
        if str(value).lower() in texts:
            return texts[str(value).lower()]
        raise LLPBenchError(f"{name} must be true or false, however: {value}")
    for kind in (int, float):
        if kind in types:
            try:
                number = kind(str(value))
            except ValueError:
                continue
            if math.isfinite(number):
                return number
    if str in types:
        return str(value)
    expected = " or ".join("a number" if t is float else "a whole number" if t is int else "none" for t in types)
    raise LLPBenchError(f"{name} must be {expected}, however: {value}")
