"""Types of columns that were read as text: numbers or categories."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas._libs.parsers import STR_NA_VALUES

MISSING = frozenset(STR_NA_VALUES)
"""Texts that are missing values in columns other than names of bags."""
_FIRST = 100
_TRUE, _BOOLEAN = pa.array(["True", "TRUE", "true"]), pa.array(["True", "TRUE", "true", "False", "FALSE", "false"])


def number_or_category(texts: pa.ChunkedArray, decimal: str, missing: Collection[str] = ()) -> pd.Series:
    """Return a column as numbers if all its values are numbers, as bool if all are true or false, else as text.

    Nulls, the texts of `MISSING` and `missing` are missing values.
    """
    numbers = None if missing else _numbers(texts, decimal)
    if numbers is None:
        texts = without(texts, {*MISSING, *missing})
        numbers = _numbers(texts, decimal, pc.utf8_trim_whitespace)
    if numbers is not None:
        return numbers.to_pandas()
    values = texts.drop_null()
    if not all(pc.all(pc.is_in(some, _BOOLEAN)).as_py() for some in (values.slice(0, _FIRST), values)):
        return texts.to_pandas()
    return pc.if_else(pc.is_valid(texts), pc.is_in(texts, _TRUE), None).to_pandas()


def without(texts: pa.ChunkedArray, marks: Collection[str]) -> pa.ChunkedArray:
    """Return a column with nulls in place of marks of missing values."""
    marked = pc.is_in(texts, pa.array(sorted(marks), texts.type))
    return pc.if_else(marked, None, texts) if pc.any(marked).as_py() else texts


def _numbers(
    texts: pa.ChunkedArray, decimal: str, change: Callable[[pa.ChunkedArray], pa.ChunkedArray] = lambda texts: texts
) -> pa.ChunkedArray | None:
    """Return changed texts as whole numbers or floats; None if one is none.

    Each failure takes time, so a few texts are tried first.
    """
    for kind in (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            for some in (texts.drop_null().slice(0, _FIRST), texts):
                found = _cast(change(some), kind, decimal)
            return found
    return None


def _cast(texts: pa.ChunkedArray, kind: pa.DataType, decimal: str) -> pa.ChunkedArray:
    """Return texts as numbers. Raises `pa.ArrowInvalid`."""
    if decimal == ",":
        if pc.any(pc.match_substring(texts, ".")).as_py():
            raise pa.ArrowInvalid("a point among decimal commas")
        texts = pc.replace_substring(texts, ",", ".")
    if kind == pa.int64() and len(texts) <= _FIRST and pc.any(pc.match_substring(texts, "x")).as_py():
        raise pa.ArrowInvalid("a hexadecimal number")
    return pc.cast(texts, kind)
