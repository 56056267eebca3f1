"""Numbers written as text: 41,132; $41,132; 41.1%; (1,234); a Unicode minus; marks of missing values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pandas as pd

from llpbench.core.errors import DataError, LLPBenchWarning
from llpbench.core.text import plural
from llpbench.tables.marks import GAPS, csv_line
from llpbench.tables.texts import as_text

_NEARLY_ALL = 0.9
"""Share of numbers or gaps from which a column counts as numbers."""
_FEWEST = 3
"""Smallest number of different numbers in such a column."""
_MANY = 10
"""A column with at least this many different numbers is numeric even if a few marks fill half of its cells."""
_SAMPLE = 1_000
_MOST_MARKS = 5
"""Largest number of different texts that may all be marks."""
_CURRENCY = r"(?:US\$|R\$|C\$|A\$|[$€£¥₹₽₩]|USD|EUR|GBP|CHF|JPY|kr\.?|zł)"
_MULTIPLIERS = {
    **dict.fromkeys(["K", "k", "thousand", "Tsd.", "Tsd"], 1e3),
    **dict.fromkeys(["M", "mn", "million", "Mio.", "Mio"], 1e6),
    **dict.fromkeys(["B", "bn", "billion", "Mrd.", "Mrd"], 1e9),
}
_FOOTNOTE = r"(?<=\d)\s*(?:[*\u2020\u2021\u00a7\u00b9\u00b2\u00b3]+|\([a-z]\)|\[\w\])$"
"""Mark of a footnote behind a number: 41132*, 41132(r), 41132[1]."""
_DIGITS = {start + digit: str(digit) for start in (0xFF10, 0x0660, 0x06F0) for digit in range(10)}
_WIDE = {**_DIGITS, 0xFF0C: ",", 0xFF0E: ".", 0xFF05: "%", 0x066C: ",", 0x066B: "."}
"""Full-width and Arabic digits and marks."""
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

    values: pd.Series
    """floats; NaN for missing values, gaps and other texts"""
    decimal: str
    """decimal mark, as given or assumed"""
    percent: bool
    """whether the numbers are percentages; 41.1% is 41.1"""
    gaps: dict[str, int]
    """number of cells, by mark of a missing value"""
    broken: pd.Series
    """texts that are neither numbers nor marks"""
    example: tuple[str, float] | None
    """a text that Python does not read as a number, and its value"""
    is_code: bool
    """whether numbers have leading zeros, as codes do"""


def read_number_text(
    series: pd.Series,
    *,
    decimal: str | None = None,
    missing: Collection[str] = (),
    known_gaps: bool = True,
    default: str = ".",
) -> NumberText:
    """Read a column of texts as numbers.

    `decimal` is the decimal mark; None detects it, with this `default`. `missing` are further marks of missing
    values, in addition to `GAPS` (unless `known_gaps` is False).
    """
    texts = as_text(series).str.strip()
    codes, uniques = pd.factorize(texts)
    known = pd.Series(uniques, dtype=object).astype(str)
    gap = known.isin({"", *missing}) | (known.str.lower().isin(GAPS) & known_gaps)
    bare = known.str.translate(_WIDE).str.replace(rf"^[~\u2248]\s*|{_FOOTNOTE}", "", regex=True)
    bare = bare.str.replace(r"^\((.*)\)$", r"-\1", regex=True)
    bare = bare.str.replace("[\u2212\u2010\u2012\u2013\ufe63\uff0d]", "-", regex=True)
    bare = bare.str.replace(rf"^([-+]?)\s*{_CURRENCY}\s*([-+]?)", r"\1\2", regex=True)
    bare = bare.str.replace(rf"\s*{_CURRENCY}$", "", regex=True)
    is_percent = bare.str.contains(r"\d\s*[%٪]$") & ~gap
    bare = bare.str.replace(r"\s*[%٪]$", "", regex=True)
    times = bare.str.extract(rf"\d\s*({'|'.join(map(re.escape, _MULTIPLIERS))})$")[0]
    bare = bare.where(times.isna(), bare.str.replace(r"\s*[^\d\s]+$", "", regex=True))
    bare = bare.str.replace(r"^([\d.,]+)\s*-$", r"-\1", regex=True)
    bare = bare.str.replace("(?<=\\d)[ \u00a0\u2009\u202f'\u2019_](?=\\d{3}(?:\\D|$))", "", regex=True)
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
    numbers *= times.map(_MULTIPLIERS).fillna(1.0).astype(float)
    foreign = valid & (pd.to_numeric(known, errors="coerce") != numbers)
    first = int(foreign.to_numpy().argmax()) if foreign.any() else None
    rows = pd.Series(codes, index=series.index)
    counts = rows.value_counts()
    at = rows.to_numpy()
    bad = (~valid & ~gap).to_numpy()
    return NumberText(
        values=pd.Series([*numbers, float("nan")], dtype=float).iloc[at].set_axis(series.index).rename(series.name),
        decimal=decimal,
        percent=percent,
        gaps={known[place]: int(counts[place]) for place in known.index[gap] if known[place]},
        broken=texts[pd.Series([*bad, False]).iloc[at].to_numpy()],
        example=None if first is None else (str(known[first]), float(numbers[first])),
        is_code=bool((known.str.fullmatch(r"0\d+") & valid).any()),
    )


def as_numbers(series: pd.Series, *, decimal: str | None = None, missing: Iterable[str] = ()) -> pd.Series:
    """Convert numbers written as text (`41,132`, `$41,132`, `(1,234)`, `41.1%`, `-`) to floats, NaN if missing.

    `decimal` is "." or ","; None detects it. `missing` are further marks of missing values. 41.1% is 41.1. Raises
    `DataError` for other texts.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbench import as_numbers
    >>> as_numbers(pd.Series(["$41,132", "(1,234)", "-"])).tolist()
    [41132.0, -1234.0, nan]
    """
    found = read_number_text(series, decimal=decimal, missing=set(missing))
    if len(found.broken):
        marks = list(dict.fromkeys(found.broken))
        raise DataError(
            f"{plural(len(found.broken), 'value')} of column {str(series.name)!r} must be numbers, got "
            f"{marks[0]!r}. Name those that stand for a missing value: missing={marks[:_MOST_MARKS]}."
        )
    return found.values


class NumbersAsText(LLPBenchWarning):
    """A column of numbers written as text is used as a category."""


def numbers_as_text_warning(frame: pd.DataFrame) -> str:
    """Return a message that names columns of numbers written as text; "" if there are none.

    Columns of dtype category are not reported.
    """
    told, names, marks, unclean = [], [], dict[str, None](), []
    for place, name in enumerate(map(str, frame.columns)):
        found = likely_numbers(frame.iloc[:, place])
        if isinstance(found, str):
            unclean.append(f"{name!r} (with a unit, as in {found!r})")
        if not isinstance(found, NumberText):
            continue
        known = frame.iloc[:, place].dropna()
        plain = int(pd.to_numeric(known, errors="coerce").notna().sum())
        said = f"{name!r}: {plain:,} of {len(known):,} values are numbers" if plain else f"{name!r} is text"
        if found.example is not None:
            said += f", with values such as {found.example[0]!r} (the number {found.example[1]:.10g}?)"
        if found.gaps:
            said += f", {_listed(found.gaps)} for missing"
        others = list(dict.fromkeys(found.broken))
        if len(others) > _MOST_MARKS:
            unclean.append(f"{said}, beside {_listed(others[:2])} and {plural(len(others) - 2, 'other text')}")
            continue
        if others:
            marks.update(dict.fromkeys(others))
            said += f", beside {_listed(others)}"
        told.append(said)
        names.append(name)
    first = f"column {'; '.join(told or unclean)}. Such columns are used as categories. "
    clean = "Make them numbers or missing in the file, or leave the column out."
    if not told:
        return first + clean if unclean else ""
    options = " ".join(f"--types {shlex.quote(f'{name}=number')}" for name in names)
    given = f", missing={list(marks)}" if marks else ""
    options += f" --missing {shlex.quote(csv_line(marks))}" if marks else ""
    return (
        f"{first}To read numbers: {options}, in Python X[name] = llpbench.as_numbers(X[name]{given}). To keep a "
        'category: --types NAME=text, in Python astype("category").'
    ) + (f" Also column {'; '.join(unclean)}. {clean}" if unclean else "")


def reading_of(name: str, found: NumberText) -> str:
    """Return how a column was read: "column 'income': '41,132' is 41132, '-' is missing in 10 rows"."""
    told = [f"{found.example[0]!r} is {found.example[1]:.10g}"] if found.example else []
    told += [f"{mark!r} is missing in {plural(number, 'row')}" for mark, number in found.gaps.items()]
    return f"column {name!r}: {', '.join(told) or 'read as numbers'}"


def likely_numbers(series: pd.Series) -> NumberText | str | None:
    """Return the numbers of a column if nearly all values are numbers, or one of its texts if they have a unit.

    Returns None if the type of the column is clear.
    """
    if isinstance(series.dtype, pd.CategoricalDtype) or pd.api.types.infer_dtype(series, skipna=True) not in (
        "string",
        "mixed",
        "mixed-integer",
    ):
        return None
    known = series.dropna()
    some = known.iloc[:_SAMPLE].astype(str)
    if not len(some) or some.str.contains(r"\d").mean() < 0.5:
        return None
    found = read_number_text(known)
    number = found.values.notna()
    different = found.values[number].nunique()
    nearly_all = len(found.broken) <= (1 - _NEARLY_ALL) * len(known)
    few_marks = found.broken.nunique() <= _MOST_MARKS and different >= _MANY
    if not found.is_code and different >= _FEWEST and number.mean() >= 0.5 and (nearly_all or few_marks):
        return found
    units = some.str.strip().str.extract(_UNIT)[0]
    if units.nunique() == 1 and units.notna().mean() >= _NEARLY_ALL and some.nunique() >= _MANY:
        return str(some[units.notna()].iloc[0])
    return None


def _listed(texts: Iterable[str]) -> str:
    return " and ".join(map(repr, texts))
