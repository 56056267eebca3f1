"""Readers: what a flag or a configuration file says becomes a value, or one clear line.

Each takes the raw value (a text from the command line, or any TOML type) and what to call it in an error.
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
    """A comma list of names, or a list of them, as one comma list."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return text(value, where)


def text(value: Any, where: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise _error(where, "a text", value)
    return value


def count(value: Any, where: str) -> int:
    """A positive whole number."""
    number = _whole(value)
    if number is None or number < 1:
        raise _error(where, "a positive whole number", value)
    return number


def number(value: Any, where: str) -> int:
    """A whole number that is not negative."""
    found = _whole(value)
    if found is None or found < 0:
        raise _error(where, "a whole number, 0 or more", value)
    return found


def counts(value: Any, where: str) -> tuple[int, ...]:
    """Positive whole numbers, each once, in the order given."""
    found = [_whole(part) for part in _parts(value)]
    if not found or any(number is None or number < 1 for number in found):
        raise _error(where, "positive whole numbers such as 64,256,1024", value)
    return tuple(dict.fromkeys(number for number in found if number is not None))


def bag_sizes(value: Any, where: str) -> tuple[int, ...]:
    """Rows of bags. Refuses 1: the proportions of such a bag are the label of its row."""
    found = counts(value, where)
    if 1 in found:
        raise LLPBenchError(f"{where} must be 2 or more, got 1: a bag of one row gives its label away")
    return found


def seeds(value: Any, where: str) -> tuple[int, ...]:
    """`10` is seeds 0 to 9; `0,3,7` and `4-6` name them; a list names them."""
    if (number := _whole(value)) is not None and 1 <= number <= MOST_SEEDS:
        return tuple(range(number))
    chosen: list[int] = []
    for part in _parts(value) if number is None else ():
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
    """True or false."""
    if not isinstance(value, bool):
        raise _error(where, "true or false", value)
    return value


def one_of(*choices: str) -> Reader:
    """A reader of one of some texts."""

    def read(value: Any, where: str) -> str:
        if value not in choices:
            raise _error(where, " or ".join(choices), value)
        return str(value)

    return read


def some_of(*choices: str) -> Reader:
    """A reader of a comma list (or list) of some texts, each once, in the order given; `all` is all of them."""

    def read(value: Any, where: str) -> tuple[str, ...]:
        parts = [*choices] if value == "all" else _parts(value)
        if not parts or any(part not in choices for part in parts):
            raise _error(where, f"all, or one or more of {', '.join(choices)}", value)
        return tuple(dict.fromkeys(parts))

    return read


def shard(value: Any, where: str) -> tuple[int, int]:
    """`3/16`: the third of sixteen."""
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(value).strip())
    part, parts = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= part <= parts:
        raise _error(where, "a part and a number of parts, such as 3/16", value)
    return part, parts


def device(value: Any, where: str) -> str:
    """`auto`, `cpu`, `cuda` or `cuda:N`."""
    if not isinstance(value, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        raise _error(where, "auto, cpu, cuda or cuda:N", value)
    return value


def duration(value: Any, where: str) -> float:
    """Seconds, from `540s`, `9m`, `1.5h` or a plain number of seconds."""
    found = re.fullmatch(r"([\d.]+)\s*([smh]?)", str(value).strip())
    try:
        seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise _error(where, "a time such as 540s, 9m or 1.5h", value)
    return seconds


def path(value: Any, where: str) -> Path:
    """A path; `~` is the home folder."""
    found = text(value, where)
    if not found or "\0" in found:
        raise _error(where, "a path", value)
    return at_home(found)


def folder(value: Any, where: str) -> str:
    """The absolute path of a folder that exists."""
    found = path(value, where).absolute()
    if not found.is_dir():
        raise _error(where, "a folder that exists", value)
    return str(found)


def files(value: Any, where: str) -> tuple[str, ...]:
    """Absolute paths, from one path or several."""
    return tuple(str(path(item, where).absolute()) for item in ([value] if isinstance(value, str) else _parts(value)))


def params(value: Any, where: str) -> dict[str, dict[str, Any]]:
    """Values of hyperparameters by method, from texts `METHOD.PARAM=VALUE`, or in TOML `set.METHOD.PARAM = VALUE`.

    Several values, `1e-4,1e-3` or a list, are all meant, one after the other.
    """
    form = "METHOD.PARAM=VALUE, such as dllp.learning_rate=1e-3, or several: dllp.learning_rate=1e-4,1e-3"
    if isinstance(value, dict):
        return _by_method(value, where, form)
    chosen: dict[str, dict[str, Any]] = {}
    for item in value if isinstance(value, list | tuple) else [value]:
        found = re.fullmatch(r"([^=]+)\.([^.=]+)=(.+)", str(item))
        values = _parts(found[3]) if found else []
        if not found or not values:
            raise _error(where, form, item)
        method, name = found[1].strip(), found[2].strip()
        if name in chosen.setdefault(method, {}):
            raise LLPBenchError(
                f"{where} gives {method}.{name} twice. Give all its values at once: {method}.{name}=A,B."
            )
        chosen[method][name] = values if len(values) > 1 else values[0]
    return chosen


def space(value: Any, where: str) -> dict[str, dict[str, Any]]:
    """Search ranges that replace the declared ones, in TOML `space.METHOD.PARAM = [LOW, HIGH]`, or choices."""
    form = "METHOD.PARAM = [LOW, HIGH] or a list of choices, such as dllp.learning_rate = [1e-5, 1e-2]"
    if not isinstance(value, dict):
        raise _error(where, form, value)
    return _by_method(value, where, form)


def _by_method(value: dict[str, Any], where: str, form: str) -> dict[str, dict[str, Any]]:
    plain = (str, int, float)  # and bool, which is an int

    def is_given(given: Any) -> bool:
        return isinstance(given, plain) or (bool(_listed(given)) and all(isinstance(one, plain) for one in given))

    if not all(isinstance(own, dict) and all(map(is_given, own.values())) for own in value.values()):
        raise _error(where, form, value)
    return value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parts(value: Any) -> list[Any]:
    """The items of a comma list or a list; a single item is a list of one."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, list | tuple) else [value]


def _whole(value: Any) -> int | None:
    """A whole number, or None if it is none. True is not 1 here, and 256.0 not 256."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip()):
        return int(value)
    return None


def _error(where: str, expected: str, value: Any) -> LLPBenchError:
    shown = str(value) if str(value).strip() else repr(value)
    return LLPBenchError(f"{where} must be {expected}, got {shown}")
