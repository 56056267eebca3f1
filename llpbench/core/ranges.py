"""Search ranges of hyperparameters, and hyperparameters read from text.

A hyperparameter is a field of a frozen dataclass. Its annotation includes its range, so that default, range and meaning
are in one place::

    weight: Annotated[float, LogUniform(0.01, 5.0)] = 0.05
    \"\"\"largest weight of the smoothness term\"\"\"
    margin: Annotated[float, Choice(0.0, 0.1, 0.3), When("objective", "cosine-embedding")] = 0.0
    \"\"\"margin of the cosine embedding loss; searched only with that objective\"\"\"

Values on a logarithmic scale must be above 0, unless `AtLeast(0.0)` also allows 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import hint as near_names

T = TypeVar("T")


@dataclass(frozen=True)
class Uniform:
    """Any number between two bounds.

    Examples
    --------
    >>> from llpbench import Uniform
    >>> str(Uniform(0.1, 0.9))
    '0.1 to 0.9'
    """

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class LogUniform(Uniform):
    """Any number between two bounds, on a logarithmic scale.

    Examples
    --------
    >>> from llpbench import LogUniform
    >>> str(LogUniform(0.01, 5.0))
    '0.01 to 5, logarithmic'
    """

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}, logarithmic"


@dataclass(frozen=True, init=False)
class Choice:
    """One of several values.

    Examples
    --------
    >>> from llpbench import Choice
    >>> str(Choice(64, 128, 256))
    '64, 128, 256'
    """

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


Range = Uniform | Choice


@dataclass(frozen=True, init=False)
class When:
    """Condition of a hyperparameter that matters only if another one has certain values.

    Examples
    --------
    >>> from llpbench import When
    >>> When("objective", "cosine", "rbf").values
    ('cosine', 'rbf')
    """

    name: str
    values: tuple[Any, ...]

    def __init__(self, name: str, *values: Any) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "values", values)


@dataclass(frozen=True)
class AtLeast:
    """Smallest allowed value of a number, whatever its search range.

    Examples
    --------
    >>> from typing import Annotated
    >>> from llpbench import AtLeast, LogUniform
    >>> weight = Annotated[float, LogUniform(0.01, 5.0), AtLeast(0.0)]
    """

    least: float


def ranges(params: type) -> dict[str, Range]:
    """Return the search range of every hyperparameter that declares one."""
    return _declared(params, Range)


def conditions(params: type) -> dict[str, When]:
    """Return the condition of every hyperparameter that declares one."""
    return _declared(params, When)


def _declared(params: type, kind: Any) -> dict[str, Any]:
    hints = get_type_hints(params, include_extras=True)
    found = {name: [extra for extra in get_args(hint)[1:] if isinstance(extra, kind)] for name, hint in hints.items()}
    return {name: extras[0] for name, extras in found.items() if extras}


def continuous(params: type) -> list[str]:
    """Return names of the hyperparameters in which members of one population may differ."""
    return [name for name, search in ranges(params).items() if isinstance(search, Uniform)]


def read_params(params: type[T], values: Mapping[str, Any], owner: str) -> T:
    """Return a `params` dataclass from values or texts. Raises `LLPBenchError` for unknown names and invalid values.

    A choice must be one of its values. A number may be outside its search range, but must be finite. If the range is
    logarithmic, the number must be above 0, unless `AtLeast` allows 0.
    """
    known = {field.name: field for field in fields(params)}  # type: ignore[arg-type]
    hints = get_type_hints(params, include_extras=True)
    read = {}
    for name, value in values.items():
        if name not in known:
            near = near_names(name, known, 1)
            raise LLPBenchError(
                f"{owner} has no hyperparameter {name!r}. {near}Available: {', '.join(known) or 'none'}."
            )
        read[name] = read_value(f"{owner}.{name}", value, hints[name])
    return params(**read)


def _is_meant(choice: Any, value: Any) -> bool:
    """Return whether a value or text means a choice: `true`, `none` and `0.10` are accepted, and a tuple as a list."""
    if str(choice).lower() == str(value).lower() or json.dumps(choice, default=str) == json.dumps(value, default=str):
        return True
    number = isinstance(choice, int | float) and not isinstance(choice, bool)
    try:
        return number and float(str(value)) == choice
    except ValueError:
        return False


def read_value(name: str, value: Any, hint: Any) -> Any:
    """Return a value or text as the annotation `hint` wants it. Raises `LLPBenchError`, which begins with `name`."""
    plain, *extras = get_args(hint) if get_origin(hint) is not None and hasattr(hint, "__metadata__") else (hint,)
    types = get_args(plain) or (plain,)
    if type(None) in types and str(value).lower() == "none":
        return None
    for extra in extras:
        if isinstance(extra, Choice):
            matching = [v for v in extra.values if _is_meant(v, value)]
            if not matching:
                raise LLPBenchError(f"{name} must be one of {', '.join(map(str, extra.values))}, got {value}")
            return matching[0]
    if bool in types:
        texts = {"true": True, "false": False}
        if str(value).lower() in texts:
            return texts[str(value).lower()]
        raise LLPBenchError(f"{name} must be true or false, got {value}")
    for kind in (int, float):
        if kind in types:
            try:
                number = kind(str(value))
            except ValueError:
                continue
            if math.isfinite(number):
                _require_possible(name, number, extras)
                return number
    if str in types:
        return str(value)
    expected = " or ".join("a finite number" if t is float else "a whole number" if t is int else "none" for t in types)
    raise LLPBenchError(f"{name} must be {expected}, got {value}")


def _require_possible(name: str, number: float, extras: Sequence[Any]) -> None:
    """Raise `LLPBenchError` if a number is below the bound in its annotation, whose parts are `extras`."""
    search = next((extra for extra in extras if isinstance(extra, Uniform)), None)
    searched = "" if search is None else f" (--tune searches {search.low:g} to {search.high:g})"
    bound = next((extra for extra in extras if isinstance(extra, AtLeast)), None)
    if bound is not None and number < bound.least:
        raise LLPBenchError(f"{name} must be at least {bound.least:g}{searched}, got {number:g}")
    if bound is None and isinstance(search, LogUniform) and number <= 0:
        raise LLPBenchError(f"{name} must be above 0{searched}, got {number:g}")
