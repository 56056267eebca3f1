"""The check for a few texts in a column of numbers, which would make a category of every number."""

from __future__ import annotations

import shlex

import pandas as pd

from llpbench.core.errors import DataError
from llpbench.core.text import verb
from llpbench.tables.column_names import place_of
from llpbench.tables.marks import csv_line
from llpbench.tables.number_text import NumberText, likely_numbers

_ALMOST_ALL = 0.99
"""Share of numbers above which the other values of a column are errors."""
_FEWEST_VALUES = 200
_MANY_NUMBERS = 20
"""Number of different numbers that such a column exceeds."""
_MOST_MARKS = 5
"""Largest number of different texts that may all be marks of missing values."""


class TextsAmongNumbersError(DataError):
    """A few values of a column of numbers are texts."""

    def __init__(self, problem: str, in_python: str, in_flags: str) -> None:
        """Set the problem, and how to solve it in Python and on the command line."""
        super().__init__(f"{problem} {in_python}")
        self.in_flags = f"{problem} {in_flags}"


def require_no_texts_among_numbers(frame: pd.DataFrame) -> None:
    """Raise `TextsAmongNumbersError` if a few values of a column are texts and all others are numbers.

    The message has the line of a text if the frame is that of a file. Columns of dtype category may have any values.
    """
    for place, name in enumerate(map(str, frame.columns)):
        known = frame.iloc[:, place].dropna()
        found = likely_numbers(known) if len(known) >= _FEWEST_VALUES else None
        if not isinstance(found, NumberText):
            continue
        number = found.values.notna().to_numpy()
        if not (_ALMOST_ALL < number.mean() < 1 and found.values.nunique() > _MANY_NUMBERS):
            continue
        texts = known[~number]
        where = f" in {place_of(frame, texts.index[0])}" if "decimals" in frame.attrs else ""
        raise TextsAmongNumbersError(
            f"column {name!r} must be numeric, got {texts.iloc[0]!r}{where} ({len(texts):,} of "
            f"{len(known):,} values {verb(len(texts), 'is not a number', 'are not numbers')}).",
            *_advice(name, found),
        )


def _advice(name: str, found: NumberText) -> tuple[str, str]:
    """Return what to do in Python, and on the command line."""
    column, marks = f"X[{name!r}]", list(dict.fromkeys(found.broken))
    texts = [repr(text) for text in (*marks, *found.gaps)]
    meaning = f"{' and '.join(texts)} {verb(len(texts), 'means', 'mean')} missing"
    flags = [f"--types {shlex.quote(f'{name}=number')}"] if found.gaps or found.example else []
    flags += [f"--missing {shlex.quote(csv_line(marks))}"] if marks else []
    given = f", missing={marks}" if marks else ""
    as_missing = f"{column} = llpbench.as_numbers({column}{given})", " ".join(flags)
    as_text = f'{column} = {column}.astype("category")', f"--types {shlex.quote(f'{name}=text')}"
    python, shell = (
        (f"If {meaning}, use {number}." if len(marks) <= _MOST_MARKS else "Correct them.")
        + f" To keep the column as text, use {text}."
        for number, text in zip(as_missing, as_text, strict=True)
    )
    return python, shell
