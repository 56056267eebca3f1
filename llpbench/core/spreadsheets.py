"""CSV files that are safe to open in a spreadsheet: no text in them is a formula.

Formulas begin with `=`, `+`, `-`, `@` (or the wide forms of these), a tab or the end of a line (OWASP, CSV injection).
Such texts get a leading apostrophe. Numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def _without_formula(value: Any) -> Any:
    """Return a value as a CSV field; None becomes an empty field."""
    if value is None:
        return ""
    harmless = not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value) or len(value) == 1
    return value if harmless else f"'{value}"


def csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV."""
    lines = []
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(map(_without_formula, row))  # fields with \r are quoted
        lines.append(line.getvalue().removesuffix("\r\n"))
    return "".join(f"{line}\n" for line in lines)


def frame_as_csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV, without its index."""
    safe = frame.rename(columns=_without_formula)
    returns = any("\r" in str(name) for name in safe.columns)
    for place, kind in enumerate(frame.dtypes):
        if kind.kind in "OSU" or str(kind) in ("category", "string", "str"):
            texts = frame.iloc[:, place].astype(object)
            returns |= any("\r" in value for value in texts if isinstance(value, str))
            safe.isetitem(place, texts.map(_without_formula, na_action="ignore"))
    # a text with \r is quoted only if all texts are; without quotes its rest would begin a new row
    return str(safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL))
