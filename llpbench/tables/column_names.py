"""Names of columns that users write: with commas or plus signs, outer spaces, or letters in two forms of Unicode.

Imports no library, because `--help` uses it.
"""

from __future__ import annotations

import csv
import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llpbench.core.errors import DataError, LLPBenchError

if TYPE_CHECKING:
    import pandas as pd

_ALIKE = 0.75
"""Similarity (`difflib`) from which a name may be a misspelling: 'distrikt' has 0.88, 'branch' and 'balance' 0.62."""


def plain(name: str) -> str:
    """Return a name without outer spaces, with composed letters (NFC)."""
    return unicodedata.normalize("NFC", name).strip().strip("\u200b\ufeff").strip()


def matching_column(name: str, known: Sequence[str]) -> str | None:
    """Return the column with a name; None if there is none.

    Outer spaces and the form of Unicode are ignored, unless columns differ only by them. Raises `LLPBenchError` if
    several columns match.
    """
    if name in known:
        return name
    alike = [each for each in known if plain(each) == plain(name)]
    if len(alike) > 1:
        raise LLPBenchError(f"{name!a} must name one column, got {', '.join(map(ascii, alike))}. Rename one of them.")
    return alike[0] if alike else None


def _advice(name: str, known: Sequence[str]) -> str:
    """Return advice for an absent column: the separator of an only column such as `name;no;yes`, or similar names."""
    joined = re.search(rf"\b{re.escape(name)}(\W)|(\W){re.escape(name)}\b", known[0]) if len(known) == 1 else None
    if joined is not None:
        mark = "tab" if "\t" in joined.groups() else repr(joined[1] or joined[2])
        return f"If {mark} separates its columns, use --separator {mark}. "
    if comma := next((each for each in known if each.startswith(f"{name},")), None):
        return f"Quote a name that contains a comma: '\"{comma}\"'. "
    lower = {each.casefold(): each for each in known}
    near = [lower[each] for each in difflib.get_close_matches(name.casefold(), list(lower), n=3, cutoff=_ALIKE)]
    return f"Did you mean {' or '.join(near)}? " if near else ""


def split_names(given: Sequence[str], known: Sequence[str], between: str = ",") -> list[str]:
    """Return the columns that an option names. The option may be repeated, or have several names.

    A text that is the name of a column means that column. Other texts are split as CSV. Unknown names are returned
    unchanged.
    """
    whole = [(text, matching_column(text, known)) for text in given]
    parts = [[column] if column else csv_parts(text, between) for text, column in whole]
    return [matching_column(name, known) or name for names in parts for name in names]


def column_of(frame: pd.DataFrame, name: str, path: Path, role: str = "") -> pd.Series:
    """Return a column of a file. Raises `DataError` with its `role` and the nearest names if there is none."""
    known = [str(column) for column in frame.columns]
    column = matching_column(name, known)
    if column is None:
        listed = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
        raise DataError.of(path, f"has no column {name!r}{role}. {_advice(name, known)}Its columns are: {listed}.")
    return frame.iloc[:, known.index(column)]


def require_distinct(names: Sequence[str], owner: str) -> None:
    """Raise `DataError` if a name is repeated. `owner` of the columns is part of the message: `dataset 'credit'`."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"{owner} has two columns called {repeated[0]!r}. Rename one of them.")


def place_of(table: pd.DataFrame | pd.Series, row: int) -> str:
    """Return the line of a row in its text, in which the first line is 1; in other files its number.

    Blank lines and line ends inside quotes are not counted below the header.
    """
    return f"line {table.attrs['line'] + row}" if "line" in table.attrs else f"data row {row + 1}"


def csv_line(texts: Iterable[str]) -> str:
    """Return texts as one line of CSV, quoted if they contain a comma."""
    return ",".join(f'"{text.replace(chr(34), chr(34) * 2)}"' if {*text} & {",", '"'} else text for text in texts)


def csv_parts(text: str, between: str = ",") -> list[str]:
    """Return the parts of one line of CSV, without outer spaces. Raises `LLPBenchError` if it is not one line."""
    try:
        rows = list(csv.reader([text], delimiter=between, skipinitialspace=True))
    except csv.Error as error:
        raise LLPBenchError(f"names must be one line, got {text[:40]!r}. Quote line ends.") from error
    return [part.strip() for row in rows for part in row if part.strip()]
