"""Readers of option values: they convert a flag or an entry of a configuration file, or raise a one-line error.

A reader receives the raw value (a text from the command line, or any TOML type) and the name of the option for errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import at_home

Reader = Callable[[Any, str], Any]

_RANGE = re.compile(r"(\d{1,18})-(\d{1,18})")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
MOST_SEEDS = 10_000


def names(value: Any, where: str) -> str:
    """Read a comma list, or a list of names, as a comma list."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return text(value, where)


def text(value: Any, where: str) -> str:
    """Read a text."""
    if not isinstance(value, str):
        raise _error(where, "a text", value)
    return value


def count(value: Any, where: str) -> int:
    """Read a positive whole number."""
    whole = _whole(value)
    if whole is None or whole < 1:
        raise _error(where, "a positive whole number", value)
    return whole


def number(value: Any, where: str) -> int:
    """Read a whole number of 0 or more."""
    whole = _whole(value)
    if whole is None or whole < 0:
        raise _error(where, "a whole number, 0 or more", value)
    return whole


def bag_sizes(value: Any, where: str) -> tuple[int, ...]:
    """Read numbers of rows per bag, without duplicates. Rejects 1: the bag of a row reveals its label."""
    sizes = [size for part in _parts(value) if (size := _whole(part)) is not None and size > 0]
    if not sizes or len(sizes) != len(_parts(value)):
        raise _error(where, "positive whole numbers such as 64,256,1024", value)
    if 1 in sizes:
        raise LLPBenchError(f"{where} must be 2 or more, got 1: a bag of one row reveals its label")
    return tuple(dict.fromkeys(sizes))


def seeds(value: Any, where: str) -> tuple[int, ...]:
    """Read a number of seeds (10 is 0 to 9), or a list of seeds and ranges: `0,3,7` or `4-6`."""
    if (whole := _whole(value)) is not None and 1 <= whole <= MOST_SEEDS:
        return tuple(range(whole))
    chosen: list[int] = []
    for part in _parts(value) if whole is None else ():
        if (seed := _whole(part)) is not None and seed >= 0:
            chosen.append(seed)
        elif (ends := _RANGE.fullmatch(str(part))) and 0 <= int(ends[2]) - int(ends[1]) < MOST_SEEDS:
            chosen.extend(range(int(ends[1]), int(ends[2]) + 1))
        else:
            chosen.clear()
            break
    if not chosen:
        raise _error(where, f"a number of seeds (1 to {MOST_SEEDS:,}) or a list such as 0,3,7 or 4-6", value)
    return tuple(dict.fromkeys(chosen))


def switch(value: Any, where: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise _error(where, "true or false", value)
    return value


def one_of(*choices: str) -> Reader:
    """Return a reader of one of the choices."""

    def read(value: Any, where: str) -> str:
        if value not in choices:
            raise _error(where, " or ".join(choices), value)
        return str(value)

    return read


def some_of(*choices: str) -> Reader:
    """Return a reader of a list of choices, without duplicates. `all` means all of them."""

    def read(value: Any, where: str) -> tuple[str, ...]:
        parts = [*choices] if value == "all" else _parts(value)
        if not parts or any(part not in choices for part in parts):
            raise _error(where, f"all, or one or more of {', '.join(choices)}", value)
        return tuple(dict.fromkeys(parts))

    return read


def shard(value: Any, where: str) -> tuple[int, int]:
    """Read a part and the number of parts: `3/16`."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(value).strip())
    part, parts = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part <= parts:
        raise _error(where, "a part and a number of parts, such as 3/16", value)
    return part, parts


def device(value: Any, where: str) -> str:
    """Read the name of a device."""
    if not isinstance(value, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        raise _error(where, "auto, cpu, cuda or cuda:N", value)
    return value


def duration(value: Any, where: str) -> float:
    """Read a time such as `540s`, `9m`, `1.5h` or a number of seconds, and return seconds."""
    match = re.fullmatch(r"([\d.]+)\s*([smh]?)", str(value).strip())
    try:
        seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise _error(where, "a time such as 540s, 9m or 1.5h", value)
    return seconds


def path(value: Any, where: str) -> Path:
    """Read a path. `~` is the home folder."""
    name = text(value, where)
    if not name or "\0" in name:
        raise _error(where, "a path", value)
    return at_home(name)


def folder(value: Any, where: str) -> str:
    """Read the path of an existing folder, and return it as an absolute path."""
    absolute = path(value, where).absolute()
    if not absolute.is_dir():
        raise _error(where, "a folder that exists", value)
    return str(absolute)


def files(value: Any, where: str) -> tuple[str, ...]:
    """Read one or several paths, and return them as absolute paths."""
    return tuple(str(path(item, where).absolute()) for item in ([value] if isinstance(value, str) else _parts(value)))


def params(value: Any, where: str) -> dict[str, dict[str, Any]]:
    """Read values of hyperparameters, by method and name.

    They are texts `METHOD.PARAM=VALUE`, or `set.METHOD.PARAM = VALUE` in TOML. A hyperparameter may have several
    values: `1e-4,1e-3` or a list.
    """
    form = "METHOD.PARAM=VALUE, such as dllp.learning_rate=1e-3, or several: dllp.learning_rate=1e-4,1e-3"
    if isinstance(value, dict):
        return _by_method(value, where, form)
    chosen: dict[str, dict[str, Any]] = {}
    for item in value if isinstance(value, list | tuple) else [value]:
        match = re.fullmatch(r"([^=]+)\.([^.=]+)=(.+)", str(item))
        values = _parts(match[3]) if match else []
        if not match or not values:
            raise _error(where, form, item)
        method, name = match[1].strip(), match[2].strip()
        if name in chosen.setdefault(method, {}):
            raise LLPBenchError(
                f"{where} gives {method}.{name} twice. Give all its values at once: {method}.{name}=A,B."
            )
        chosen[method][name] = values if len(values) > 1 else values[0]
    return chosen


def space(value: Any, where: str) -> dict[str, dict[str, Any]]:
    """Read search ranges that replace declared ones, by method and name: `[LOW, HIGH]` or a list of choices."""
    form = "METHOD.PARAM = [LOW, HIGH] or a list of choices, such as dllp.learning_rate = [1e-5, 1e-2]"
    if not isinstance(value, dict):
        raise _error(where, form, value)
    return _by_method(value, where, form)


def _by_method(value: dict[str, Any], where: str, form: str) -> dict[str, dict[str, Any]]:
    """Check that values by method and name are scalars or lists of scalars."""

    def is_valid(item: Any) -> bool:
        items = item if isinstance(item, list) and item else [item]
        return all(isinstance(one, str | int | float) for one in items)  # also bool, which is an int

    if not all(isinstance(values, dict) and all(map(is_valid, values.values())) for values in value.values()):
        raise _error(where, form, value)
    return value


def _parts(value: Any) -> list[Any]:
    """Return the items of a comma list or a list; a single value as a list of one."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list | tuple) else [value]


def _whole(value: Any) -> int | None:
    """Return a whole number; None for any other value, such as True or 256.0."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip()):
        return int(value)
    return None


def _error(where: str, expected: str, value: Any) -> LLPBenchError:
    text = str(value) if str(value).strip() else repr(value)
    return LLPBenchError(f"{where} must be {expected}, got {text}")
