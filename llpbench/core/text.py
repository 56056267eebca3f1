"""Phrases used by all: plurals, suggestions for misspelt names, one-line texts, CSV without formulas."""

from __future__ import annotations

import csv
import difflib
import logging
import re
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.core.errors import HookError, LLPBenchError

if TYPE_CHECKING:
    import pandas as pd


LOG = logging.getLogger("llpbench")
"""logger that receives the full traceback of every failure; `--executor debug` shows it"""


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: `1 run`, `2,000 runs`, `2 searches`."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def verb(number: int, one: str = "has", many: str = "have") -> str:
    """Return the verb form for a number: `1 bag has`, `2 bags have`."""
    return one if number == 1 else many


def hint(name: str, known: Iterable[str], most: int = 3) -> str:
    """Return `Did you mean dllp or llp-gan? ` (with a trailing space), or "" if no known name resembles `name`."""
    near = difflib.get_close_matches(name, list(known), n=most, cutoff=0.6)
    return f"Did you mean {' or '.join(near)}? " if near else ""


def one_line(text: object, most: int = 300) -> str:
    """Return a text, or an exception with its type, on one line of at most `most` characters, cleaned."""
    try:
        words = clean(str(text))
    except Exception:  # exceptions of other packages and plugins may fail at this, too
        words = ""
    if isinstance(text, BaseException):
        words = f"{type(text).__name__}: {words}" if words else type(text).__name__
    return words[:most]


def clean(text: str) -> str:
    """Return a foreign name on one line, without control characters, which a terminal would execute."""
    if not text.isprintable():  # few texts need it, and there are many
        text = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(text.split())


def some_of(lines: Sequence[str], most: int = 20) -> list[str]:
    """Return the first lines, and a line with the number of the others."""
    more = len(lines) - most
    return [*lines[:most], *([f"and {more:,} more"] if more > 0 else [])]


def fault(error: BaseException, file: str | None = None) -> str:
    """Return an exception on one line, with the location for a method's author: `ValueError: no luck (mine.py:12)`.

    `file` is the author's file. If the error has passed through it, the location is its innermost frame. The full
    traceback goes to the log.
    """
    LOG.debug("What failed:", exc_info=error)
    if isinstance(error, HookError | LLPBenchError):  # the message says everything
        return str(error)
    frames = traceback.extract_tb((error.__cause__ or error).__traceback__)
    mine = [frame for each in (error.__cause__, error) if each for frame in traceback.extract_tb(each.__traceback__)]
    mine = [frame for frame in mine if file is not None and frame.filename == file]
    there = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    if mine:
        there = f" ({Path(mine[-1].filename).name}:{mine[-1].lineno}, in {mine[-1].name})"
    return one_line(error) + there + (_instead(error) if isinstance(error, AttributeError) else "")


def _instead(error: AttributeError) -> str:
    """Return advice for a missing attribute of an llpbench object; labels are missing on purpose."""
    kind = type(error.obj)
    if not kind.__module__.startswith("llpbench."):
        return ""
    declared = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", ())}
    names = (declared | {*dir(kind)}).difference(dir(tuple))
    why = "; no label of a row reaches a method" if "label" in (error.name or "") else ""
    return f". It has: {', '.join(sorted(name for name in names if not name.startswith('_')))}{why}."


def duration(seconds: float) -> str:
    """Return a duration as text: `8 s`, `3 min`, `2 h 05 min`, `1,200 h`."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 600 else f"{round(seconds / 3600):,} h"


_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
"""Beginning of a text that a spreadsheet takes for a formula (OWASP, CSV injection). Numbers stay numbers."""
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE)


def _without_formula(value: Any) -> Any:
    """Return a value as a CSV field: a formula gets a leading apostrophe, and None becomes an empty field."""
    if value is None:
        return ""
    harmless = not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value) or len(value) == 1
    return value if harmless else f"'{value}"


def frame_as_csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV, without its index."""
    safe = frame.rename(columns=_without_formula)
    returns = any("\r" in str(name) for name in safe.columns)
    for place, kind in enumerate(frame.dtypes):
        if kind.kind in "OSU" or str(kind) in ("category", "string", "str"):
            texts = frame.iloc[:, place].astype(object)
            returns |= any("\r" in value for value in texts if isinstance(value, str))
            safe.isetitem(place, [*map(_without_formula, texts)])
    # a text with \r is quoted only if all texts are; without quotes its rest would begin a new row
    return str(safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL))
