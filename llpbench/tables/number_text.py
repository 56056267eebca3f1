"""Columns of text that are numbers: 41,132; $41,132; 41.1%; (1,234); Unicode minus; marks of missing values; ranges."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pandas._libs.parsers import STR_NA_VALUES

from llpbench.core.errors import DataError, either
from llpbench.core.text import plural, verb
from llpbench.tables.column_names import csv_line, place_of
from llpbench.tables.csv_dialect import GAPS
from llpbench.tables.texts import as_text

MISSING = frozenset(STR_NA_VALUES)
"""Texts that are missing values in columns other than names of bags."""
_CATEGORY = 'astype("category")'
_ALMOST_ALL, _FEWEST_VALUES, _MANY_NUMBERS = 0.99, 200, 20
"""Share of numbers, number of values and of different numbers, above which other values of a column are errors."""
_NEARLY_ALL, _FEWEST = 0.9, 3
"""Share of numbers or gaps, and number of different numbers, from which a column counts as numbers."""
_MANY = 10
"""A column with at least this many different numbers is numeric even if a few marks fill half of its cells."""
_SAMPLE = 1_000
MOST_MARKS = 5
"""Largest number of different texts that may all be marks."""
_NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?)"
MOST = 1e15
"""Upper end of an open range, such as 5+."""
_CURRENCY = r"(?:US\$|R\$|C\$|A\$|[$€£¥₹₽₩]|USD|EUR|GBP|CHF|JPY|kr\.?|zł)"
_CLEANED = (
    (r"^[~\u2248]\s*", ""),
    (r"^\((.*)\)$", r"-\1"),
    ("[\u2212\u2010\u2012\u2013\ufe63\uff0d]", "-"),
    (rf"^([-+]?)\s*{_CURRENCY}\s*([-+]?)", r"\1\2"),
    (rf"\s*{_CURRENCY}$", ""),
    (r"\s*%$", ""),
    (r"^([\d.,]+)\s*-$", r"-\1"),
    ("(?<=\\d)[ \u00a0\u2009\u202f'\u2019_](?=\\d{3}(?:\\D|$))", ""),
)
"""Patterns of signs that a number may have, with their replacements."""
_UNIT = r"^[-+]?[\d.,\s]*\d\s*([^\d\s.,;:+*()\[\]/-][^\d]{0,9})$"
_POINT = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COMMA_GROUPS = r"[-+]?[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}(?:\.\d*)?"
_COMMA = r"[-+]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)?(?:,\d+)?(?:[eE][-+]?\d+)?"
_CERTAIN_POINT = (
    r"[-+]?(?:\d+\.(?!\d{3}$)\d*|0\.\d+|\d{4,}\.\d+|\.\d+|[1-9]\d{0,2}(?:,\d{2,3})+,\d{3}|[\d,]+,\d{3}\.\d*)"
)
_CERTAIN_COMMA = r"[-+]?(?:\d+,(?!\d{3}$)\d+|0+,\d+|\d{4,},\d+|,\d+|\d{1,3}(?:\.\d{3}){2,}|[\d.]+\.\d{3},\d+)"


@dataclass(frozen=True, eq=False)
class NumberText:
    """Result of reading a column of texts as numbers."""

    values: pd.Series  # floats; NaN for missing values, gaps and other texts
    decimal: str  # decimal mark, as given or assumed
    percent: bool  # whether the numbers are percentages; 41.1% is 41.1
    gaps: dict[str, int]  # number of cells, by mark of a missing value
    broken: pd.Series  # texts that are neither numbers nor marks
    example: tuple[str, float] | None  # a text that Python does not read as a number, and its value
    is_code: bool  # whether numbers have leading zeros, as codes do

    @classmethod
    def read(
        cls,
        series: pd.Series,
        *,
        decimal: str | None = None,
        missing: Collection[str] = (),
        known_gaps: bool = True,
        default: str = ".",
    ) -> Self:
        """Read a column of texts as numbers.

        `decimal` is the decimal mark; None detects it, with this `default`. `missing` are further marks of missing
        values, in addition to `GAPS` (unless `known_gaps` is False).
        """
        texts = as_text(series).str.strip()
        known = pd.Series(texts.dropna().unique(), dtype=object).astype(str)
        known.index = pd.Index(known)
        gap = known.isin({"", *missing}) | (known.str.lower().isin(GAPS) & known_gaps)
        is_percent, bare = known.str.contains("%"), known
        for pattern, plain in _CLEANED:
            bare = bare.str.replace(pattern, plain, regex=True)
        if decimal is None:
            point, comma = (bare[~gap].str.fullmatch(each) for each in (_CERTAIN_POINT, _CERTAIN_COMMA))
            decimal = default if comma.any() == point.any() else "," if comma.any() else "."
        if decimal == ",":
            valid = bare.str.fullmatch(_COMMA) & bare.str.contains(r"\d")
            plain = bare.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        else:
            valid = bare.str.fullmatch(_POINT) | bare.str.fullmatch(_COMMA_GROUPS)
            plain = bare.str.replace(",", "", regex=False)
        valid &= ~gap
        percent = bool((valid & is_percent).sum() > (valid & ~is_percent).sum())
        valid &= is_percent == percent
        numbers = pd.to_numeric(plain.where(valid), errors="coerce").astype(float)
        valid &= numbers.notna()  # digits of other scripts match \d
        foreign = valid & (pd.to_numeric(known, errors="coerce") != numbers)
        counts = texts.value_counts()
        gaps, broken = {mark: int(counts[mark]) for mark in known[gap] if mark}, texts[texts.isin(known[~valid & ~gap])]
        example = next(zip(known[foreign], numbers[foreign], strict=True), None)
        is_code = bool((known.str.fullmatch(r"0\d+") & valid).any())
        return cls(texts.map(numbers).astype(float), decimal, percent, gaps, broken, example, is_code)

    @property
    def marks(self) -> list[str]:
        """Different texts that are neither numbers nor marks."""
        return [*self.broken.unique()]

    def told(self, name: str) -> str:
        """Return how a column was read: "column 'income': '41,132' is 41132, '-' is missing in 10 rows"."""
        told = [f"{self.example[0]!r} is {self.example[1]:.10g}"] if self.example else []
        told += [f"{mark!r} is missing in {plural(number, 'row')}" for mark, number in self.gaps.items()]
        return f"column {name!r}: {', '.join(told) or 'read as numbers'}"


def as_numbers(series: pd.Series, *, decimal: str | None = None, missing: Iterable[str] = ()) -> pd.Series:
    """Convert numbers written as text (`41,132`, `$41,132`, `(1,234)`, `41.1%`, `-`) to floats, NaN if missing.

    `decimal` is "." or ","; None detects it. `missing` are further marks of missing values. 41.1% is 41.1. Numbers
    are returned as floats. Raises `DataError` for other texts.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbench import as_numbers
    >>> as_numbers(pd.Series(["$41,132", "(1,234)", "-"])).tolist()
    [41132.0, -1234.0, nan]
    """
    if series.dtype.kind in "iuf":
        return series.astype(float)
    found = NumberText.read(series, decimal=decimal, missing=set(missing))
    if len(found.broken):
        wrong = f"{plural(len(found.broken), 'value')} of column {str(series.name)!r} must be numbers"
        some = found.marks[:MOST_MARKS]
        marks = either(f"missing={some}", f"--missing {shlex.quote(csv_line(some))}")
        advice = f"Name those that stand for a missing value: {marks}."
        raise DataError(f"{wrong}, got {found.marks[0]!r}. {advice}")
    return found.values


def numbers_as_text_warning(frame: pd.DataFrame) -> str:
    """Return a message that names columns of numbers written as text; "" if there are none.

    Columns of dtype category may have any values. Raises `DataError` if a few values of a column are texts and all
    others are numbers; the message has the line of a text if the frame is that of a file.
    """
    told, names, marks, unclean = [], [], dict[str, None](), []
    for place, name in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, place]
        if not isinstance(found := likely_numbers(column), NumberText):
            unclean += [f"{name!r} (with a unit, as in {found!r})"] if found else []
            continue
        _require_no_text_among_numbers(column.dropna(), name, found)
        plain = int(pd.to_numeric(column, errors="coerce").notna().sum())
        said = f"{name!r}: {plain:,} of {column.count():,} values are numbers" if plain else f"{name!r} is text"
        if found.example is not None:
            said += f", with values such as {found.example[0]!r} (the number {found.example[1]:.10g}?)"
        if found.gaps:
            said += f", {_listed(found.gaps)} for missing"
        if len(others := found.marks) > MOST_MARKS:
            unclean.append(f"{said}, beside {_listed(others[:2])} and {plural(len(others) - 2, 'other text')}")
            continue
        marks |= dict.fromkeys(others)
        told.append(said + (f", beside {_listed(others)}" if others else ""))
        names.append(name)
    numbers, text = _reading("X[name]", names, [*marks]), either(_CATEGORY, "--types NAME=text")
    read = f"To read numbers: {numbers}. To keep a category: {text}."
    clean = "Make them numbers or missing in the file, or leave the column out."
    kinds = [("; ".join(some), advice) for some, advice in ((told, read), (unclean, clean)) if some]
    return " Also ".join(f"column {some}. Such columns are used as categories. {advice}" for some, advice in kinds)


def _reading(column: str, names: Sequence[str], marks: Sequence[str]) -> str:
    """Return how to read columns as numbers: a `column` in Python, `names` of columns for `--types` in the shell."""
    flags = [f"--types {shlex.quote(f'{name}=number')}" for name in names]
    flags += [f"--missing {shlex.quote(csv_line(marks))}"] if marks else []
    given = f", missing={[*marks]}" if marks else ""
    return either(f"{column} = llpbench.as_numbers({column}{given})", " ".join(flags))


def likely_numbers(series: pd.Series) -> NumberText | str | None:
    """Return the numbers of a column if nearly all values are numbers, or one of its texts if they have a unit.

    Returns None if the type of the column is clear.
    """
    if pd.api.types.infer_dtype(series) not in ("string", "mixed", "mixed-integer"):
        return None
    known = series.dropna()
    some = known.iloc[:_SAMPLE].astype(str)
    if not len(some) or some.str.contains(r"\d").mean() < 0.5:
        return None
    found = NumberText.read(known)
    number = found.values.notna()
    different = found.values[number].nunique()
    nearly_all = len(found.broken) <= (1 - _NEARLY_ALL) * len(known)
    few_marks = found.broken.nunique() <= MOST_MARKS and different >= _MANY
    if not found.is_code and different >= _FEWEST and number.mean() >= 0.5 and (nearly_all or few_marks):
        return found
    units = some.str.strip().str.extract(_UNIT)[0]
    if units.nunique() == 1 and units.notna().mean() >= _NEARLY_ALL and some.nunique() >= _MANY:
        return str(some[units.notna()].iloc[0])
    return None


def _listed(texts: Iterable[str]) -> str:
    return " and ".join(map(repr, texts))


def _require_no_text_among_numbers(known: pd.Series, name: str, found: NumberText) -> None:
    texts = known[found.values.isna()]
    few = len(known) < _FEWEST_VALUES or found.values.nunique() <= _MANY_NUMBERS
    if few or not _ALMOST_ALL < 1 - len(texts) / len(known) < 1:
        return
    where = f" in {place_of(known, texts.index[0])}" if "decimals" in known.attrs else ""
    wrong = f"{len(texts):,} of {len(known):,} values {verb(len(texts), 'is not a number', 'are not numbers')}"
    column, marks = f"X[{name!r}]", found.marks
    missing = [*marks, *found.gaps] or [texts.iloc[0]]
    meaning = f"{_listed(missing)} {verb(len(missing), 'means', 'mean')} missing"
    number = _reading(column, [name] if found.gaps or found.example or not marks else [], marks)
    text = either(f"{column} = {column}.{_CATEGORY}", f"--types {shlex.quote(f'{name}=text')}")
    first = f"If {meaning}, use {number}." if len(marks) <= MOST_MARKS else "Correct them."
    advice = f"{first} To keep the column as text, use {text}."
    raise DataError(f"column {name!r} must be numeric, got {texts.iloc[0]!r}{where} ({wrong}). {advice}")


class Range(NamedTuple):
    """A range of numbers, both ends included."""

    low: float
    high: float

    @classmethod
    def read(cls, value: Any) -> Self | None:
        """Return the range that a text states, None for anything else."""
        text = value.strip().lower() if isinstance(value, str) else ""
        for form, ends in _FORMS.items():
            if match := re.fullmatch(form, text):
                found = cls(*ends(*(float(part.replace(",", "")) for part in match.groups() if part is not None)))
                return found if found.low <= found.high else None
        return None


_FORMS: dict[str, Callable[..., tuple[float, float]]] = {
    rf"{_NUMBER}\s*(?:-|\u2013|\u2014|\u2212|\.\.|to)\s*{_NUMBER}": lambda low, high: (low, high),
    rf"(?:<|under|below|less than|fewer than)\s*{_NUMBER}": lambda end: (0.0, np.ceil(end) - 1),
    rf"(?:<=|\u2264|up to)\s*{_NUMBER}": lambda most: (0.0, most),
    rf"(?:>=|\u2265)\s*{_NUMBER}|{_NUMBER}\s*(?:\+|or more)": lambda least: (least, MOST),
    rf"(?:>|over|more than)\s*{_NUMBER}": lambda end: (np.floor(end) + 1, MOST),
}
"""texts that state ranges, and the ends of the range from the numbers in them"""
