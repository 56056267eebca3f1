"""Readers of option values: they convert a flag or an entry of a configuration file.

A reader receives the raw value, which is a text from the command line or any TOML type. For invalid values it raises
`ValueError` with the expected value: `a positive whole number`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from llpbench.core.cell import Average
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import at_home

T = TypeVar("T")


@dataclass(frozen=True)
class Reader:
    """A reader, and how its option is written on the command line."""

    read: Callable[[Any], Any]
    metavar: str = ""
    form: Literal["value", "switch", "many", "file"] = "value"
    """Form of the flag.

    - `switch`: --name/--no-name
    - `many`: may be repeated, and adds to the values in the file
    - `file`: no flag, only in the file
    """

    def __call__(self, value: Any) -> Any:
        """Return the value in its final type. Raises `ValueError`."""
        return self.read(value)


def _reader(metavar: str = "", form: Literal["value", "switch", "many", "file"] = "value") -> Callable[[Any], Reader]:
    """Return a decorator that makes a function a reader."""
    return lambda function: Reader(function, metavar, form)


_RANGE = re.compile(r"(\d{1,18})-(\d{1,18})")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_MOST_SEEDS, _LONGEST_RANGE = 100, 10_000
"""Largest number of seeds that a single number means, and of seeds in a range."""


@_reader("NAMES")
def names(value: Any) -> str:
    """Read a comma list, or a list of names, as a comma list."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return str(text(value))


@_reader("ADDRESS")
def text(value: Any) -> str:
    """Read a text."""
    return str(_require(value, isinstance(value, str), "a text"))


@_reader("N")
def count(value: Any) -> int:
    """Read a positive whole number."""
    whole = _whole(value)
    return _require(whole, whole > 0, "a positive whole number")


@_reader("N")
def number(value: Any) -> int:
    """Read a whole number of 0 or more."""
    whole = _whole(value)
    return _require(whole, whole >= 0, "a whole number, 0 or more")


@_reader("SIZES")
def bag_sizes(value: Any) -> tuple[int, ...]:
    """Read numbers of rows per bag, without duplicates. Rejects 1: the bag of a row reveals its label."""
    sizes = [*map(_whole, _parts(value))]
    _require(sizes, sizes and min(sizes) > 1, "whole numbers of 2 or more (a bag of one row reveals its label)")
    return tuple(dict.fromkeys(sizes))


@_reader("SEEDS")
def seeds(value: Any) -> tuple[int, ...]:
    """Read a number of seeds (10 is 0 to 9), or a list of seeds and ranges: `0,3,7` or `4-6`."""
    if (whole := _whole(value)) >= 0:  # a larger number is probably a mistyped list
        chosen = [*range(whole)] if whole <= _MOST_SEEDS else []
    else:
        parts = [_seeds_of(part) for part in _parts(value)]
        chosen = [seed for part in parts for seed in part] if all(parts) else []
    example = f"0-{whole - 1}" if whole > _MOST_SEEDS else "4-6"
    _require(chosen, chosen, f"a number of seeds (1 to {_MOST_SEEDS}) or a list such as 0,3,7 or {example}")
    return tuple(dict.fromkeys(chosen))


def _seeds_of(part: Any) -> list[int]:
    """Return a seed or a range of seeds; an empty list for anything else."""
    if (seed := _whole(part)) >= 0:
        return [seed]
    ends = _RANGE.fullmatch(str(part))
    first, last = map(int, ends.groups()) if ends else (1, 0)
    return [*range(first, last + 1)] if last - first < _LONGEST_RANGE else []


@_reader(form="switch")
def switch(value: Any) -> bool:
    """Read true or false."""
    return bool(_require(value, isinstance(value, bool), "true or false"))


def one_of(*choices: str) -> Reader:
    """Return a reader of one of the choices."""
    return Reader(lambda value: _require(value, value in choices, " or ".join(choices)), "NAME")


@_reader("KIND")
def average(value: Any) -> str:
    """Read an average in place of a chosen epoch, in its canonical form: `half:30`."""
    try:
        return str(Average.of(str(value)))
    except LLPBenchError:
        raise ValueError(
            f"{' or '.join(Average.KINDS)}, with a number of epochs if not {Average.epochs}, such as half:50"
        ) from None


def some_of(*choices: str) -> Reader:
    """Return a reader of a list of choices, without duplicates. `all` means all of them."""

    def read(value: Any) -> tuple[str, ...]:
        parts = [*choices] if value == "all" else _parts(value)
        valid = parts and all(part in choices for part in parts)
        return tuple(dict.fromkeys(_require(parts, valid, f"all, or one or more of {', '.join(choices)}")))

    return Reader(read, "NAMES")


@_reader("DEVICE")
def device(value: Any) -> str:
    """Read the name of a device."""
    valid = isinstance(value, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", value)
    return str(_require(value, valid, "auto, cpu, cuda or cuda:N"))


@_reader("TIME")
def duration(value: Any) -> float:
    """Read a time such as `540s`, `9m`, `1.5h` or a number of seconds, and return seconds."""
    match = re.fullmatch(r"(\d*\.?\d+|\d+\.)\s*([smh]?)", str(value).strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    return _require(seconds, 0 < seconds < math.inf, "a time such as 540s, 9m or 1.5h")


@_reader("DIR")
def path(value: Any) -> Path:
    """Read a path. `~` is the home folder."""
    return at_home(_require(value, isinstance(value, str) and value and "\0" not in value, "a path"))


@_reader("DIR")
def folder(value: Any) -> str:
    """Read the path of an existing folder, and return it as an absolute path."""
    absolute = path(value).absolute()
    return str(_require(absolute, absolute.is_dir(), "a folder that exists"))


@_reader("FILE", "many")
def files(value: Any) -> tuple[str, ...]:
    """Read one or several paths, and return them as absolute paths."""
    return tuple(str(path(item).absolute()) for item in ([value] if isinstance(value, str) else _parts(value)))


@_reader("METHOD.NAME=VALUES", "many")
def params(value: Any) -> dict[str, dict[str, Any]]:
    """Read values of hyperparameters, by method and name.

    They are texts `METHOD.PARAM=VALUE`, or `set.METHOD.PARAM = VALUE` in TOML. A hyperparameter may have several
    values: `1e-4,1e-3` or a list.
    """
    form = "METHOD.PARAM=VALUE, such as dllp.learning_rate=1e-3, or several: dllp.learning_rate=1e-4,1e-3"
    if isinstance(value, dict):
        return _by_method(value, form)
    chosen: dict[str, dict[str, Any]] = {}
    for item in value if isinstance(value, list | tuple) else [value]:
        match = re.fullmatch(r"([^=]+)\.([^.=]+)=(.+)", str(item))
        values = _parts(match[3]) if match else []
        if not match or not values:
            raise ValueError(form)
        method, name = match[1].strip(), match[2].strip()
        if name in chosen.setdefault(method, {}):
            raise ValueError(f"given once for {method}.{name}, with all its values: {method}.{name}=A,B")
        chosen[method][name] = values if len(values) > 1 else values[0]
    return chosen


@_reader(form="file")
def space(value: Any) -> dict[str, dict[str, Any]]:
    """Read search ranges that replace declared ones, by method and name: `[LOW, HIGH]` or a list of choices."""
    return _by_method(
        value, "METHOD.PARAM = [LOW, HIGH] or a list of choices, such as dllp.learning_rate = [1e-5, 1e-2]"
    )


def _by_method(value: Any, form: str) -> dict[str, dict[str, Any]]:
    """Check that values by method and name are scalars or lists of scalars."""

    def is_valid(item: Any) -> bool:
        items = item if isinstance(item, list) and item else [item]
        return all(isinstance(one, str | int | float) for one in items)  # also bool, which is an int

    valid = isinstance(value, dict) and all(
        isinstance(values, dict) and all(map(is_valid, values.values())) for values in value.values()
    )
    return _require(value, valid, form)


def _parts(value: Any) -> list[Any]:
    """Return the items of a comma list or a list; a single value as a list of one."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list | tuple) else [value]


def _whole(value: Any) -> int:
    """Return a whole number; -1 for any other value, such as True or 256.0."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip()):
        return int(value)
    return -1


def _require(value: T, valid: object, expected: str) -> T:
    """Return a value. Raises `ValueError` with the text `expected` if it is not valid."""
    if not valid:
        raise ValueError(expected)
    return value
