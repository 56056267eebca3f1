"""Numbers written as text: 41,132; $41,132; 41.1%; (1,234); a Unicode minus; marks of missing values."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pandas as pd

from llpbench.core.errors import DataError
from llpbench.core.text import plural
from llpbench.data.frames import as_text
from llpbench.owndata.marks import GAPS, csv_line

_NEARLY_ALL = 0.9
"""share of cells that are numbers or gaps, from which a column is taken for numbers"""
_FEWEST = 3
"""different numbers in such a column"""
_SAMPLE = 1_000
_MOST_MARKS = 5
"""different texts beside numbers that may all be marks"""
_CURRENCY = r"(?:US\$|R\$|C\$|A\$|[$€£¥₹₽₩]|USD|EUR|GBP|CHF|JPY|kr\.?|zł)"
_POINT = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COMMA_GROUPS = r"[-+]?[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}(?:\.\d*)?"
_COMMA = r"[-+]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)?(?:,\d+)?(?:[eE][-+]?\d+)?"
_CERTAIN_POINT = (
    r"[-+]?(?:\d+\.(?!\d{3}$)\d*|0\.\d+|\d{4,}\.\d+|\.\d+|[1-9]\d{0,2}(?:,\d{2,3})+,\d{3}|[\d,]+,\d{3}\.\d*)"
)
_CERTAIN_COMMA = r"[-+]?(?:\d+,(?!\d{3}$)\d+|0+,\d+|\d{4,},\d+|,\d+|\d{1,3}(?:\.\d{3}){2,}|[\d.]+\.\d{3},\d+)"


@dataclass(frozen=True, eq=False)
class NumberText:
    """A column of texts, read as numbers."""

    values: pd.Series
    """float, NaN where missing, a gap or no number"""
    decimal: str
    """the mark before decimals, as given or assumed"""
    percent: bool
    """whether the numbers are percents; 41.1% is 41.1"""
    gaps: dict[str, int]
    """cells by the mark that stands for a missing value"""
    broken: pd.Series
    """the texts that are neither numbers nor marks"""
    example: tuple[str, float] | None
    """a spelling that Python does not read, and its number"""
    is_code: bool
    """whether numbers have leading zeros, as codes do"""


def read_number_text(
    series: pd.Series,
    *,
    decimal: str | None = None,
    missing: Collection[str] = (),
    known_gaps: bool = True,
    usual: str = ".",
) -> NumberText:
    """Read a column of texts as numbers.

    `decimal`: the mark before decimals; None: as the column shows, `usual` where it does not. `missing`: texts that
    stand for a missing value, beside those everybody uses (`GAPS`, unless `known_gaps` is False).
    """
    texts = as_text(series).str.strip()
    codes, uniques = pd.factorize(texts)
    known = pd.Series(uniques, dtype=object).astype(str)
    gap = known.isin({"", *missing}) | (known.str.lower().isin(GAPS) & known_gaps)
    bare = known.str.replace(r"^\((.*)\)$", r"-\1", regex=True)
    bare = bare.str.replace("[\u2212\u2010\u2012\u2013\ufe63\uff0d]", "-", regex=True)
    bare = bare.str.replace(rf"^([-+]?)\s*{_CURRENCY}\s*([-+]?)", r"\1\2", regex=True)
    bare = bare.str.replace(rf"\s*{_CURRENCY}$", "", regex=True)
    is_percent = bare.str.contains(r"\d\s*[%٪]$") & ~gap
    bare = bare.str.replace(r"\s*[%٪]$", "", regex=True)
    bare = bare.str.replace(r"^([\d.,]+)\s*-$", r"-\1", regex=True)
    bare = bare.str.replace("(?<=\\d)[ \u00a0\u2009\u202f'\u2019](?=\\d{3}(?:\\D|$))", "", regex=True)
    if decimal is None:
        point, comma = (bare[~gap].str.fullmatch(each) for each in (_CERTAIN_POINT, _CERTAIN_COMMA))
        decimal = usual if comma.any() == point.any() else "," if comma.any() else "."
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
    """A column of numbers written as text (`41,132`, `$41,132`, `(1,234)`, `41.1%`, `-`) as floats, NaN where missing.

    `decimal`: "." or ","; None: as the column shows. `missing`: further texts that stand for a missing value.
    41.1% is 41.1. Raises `DataError` for what is no number.

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


class NumbersAsText(UserWarning):
    """A column of numbers is taken as a category, since they are written as text."""


def numbers_as_text_warning(frame: pd.DataFrame) -> str:
    """One line that names columns of numbers written as text, and how to read them; "" if there are none.

    Columns of dtype category are what somebody has made categories.
    """
    told, names, marks = [], [], dict[str, None]()
    for place, name in enumerate(map(str, frame.columns)):
        found = _likely_numbers(frame.iloc[:, place])
        if found is None:
            continue
        said = f"{name!r}"
        said += "" if found.example is None else f" ({found.example[0]!r} for {found.example[1]:.10g})"
        if found.gaps:
            said += f", {_listed(found.gaps)} for missing"
        if len(found.broken):
            others = dict.fromkeys(found.broken)
            marks.update(others)
            said += f", beside {_listed(list(others)[:_MOST_MARKS])}"
        told.append(said)
        names.append(name)
    if not told:
        return ""
    options = " ".join(f"--types {shlex.quote(f'{name}=number')}" for name in names)
    given = f", missing={list(marks)}" if marks else ""
    options += f" --missing {shlex.quote(csv_line(marks))}" if marks else ""
    return (
        f"numbers written as text are taken as categories: column {'; '.join(told)}. To read numbers: {options}, in "
        f"Python X[name] = llpbench.as_numbers(X[name]{given}). To keep a category: --types NAME=text, in Python "
        'astype("category").'
    )


def reading_of(name: str, found: NumberText) -> str:
    """How a column was read, in words: "column 'income': '41,132' is 41132, '-' is missing in 10 rows"."""
    told = [f"{found.example[0]!r} is {found.example[1]:.10g}"] if found.example else []
    told += [f"{mark!r} is missing in {plural(number, 'row')}" for mark, number in found.gaps.items()]
    return f"column {name!r}: {', '.join(told) or 'read as numbers'}"


def _likely_numbers(series: pd.Series) -> NumberText | None:
    """A column read as numbers, if nearly all of it is; None where it has a type that says what it is."""
    if isinstance(series.dtype, pd.CategoricalDtype) or pd.api.types.infer_dtype(series, skipna=True) not in (
        "string",
        "mixed",
        "mixed-integer",
    ):
        return None
    known = series.dropna()
    some = known.iloc[:_SAMPLE]
    if not len(some) or some.astype(str).str.contains(r"\d").mean() < 0.5:
        return None
    found = read_number_text(known)
    number = found.values.notna()
    others = found.broken.nunique()
    if found.is_code or others > _MOST_MARKS or len(found.broken) > (1 - _NEARLY_ALL) * len(known):
        return None
    if number.mean() < 0.5 or found.values[number].nunique() < _FEWEST:
        return None
    return found


def _listed(texts: Iterable[str]) -> str:
    return " and ".join(map(repr, texts))
