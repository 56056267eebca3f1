"""Names of bags in columns of files, as texts, because two files may have different types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.tables.column_names import column_of, plain
from llpbench.tables.texts import as_text, without_decimals

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[-+]\d\d:?\d\d)?")
_EXACT = 2.0**53
"""Smallest number from which floats skip whole numbers."""


def bag_keys(frame: pd.DataFrame, names: Sequence[str], path: Path) -> pd.DataFrame:
    """Return the columns that name the bag of a row, as texts, because two files may have different types.

    7.0 is read as 7, because pandas writes whole numbers as 7.0 in columns with gaps. Raises `DataError` if a file has
    both.
    """
    keys = {}
    for name in names:
        codes, distinct = pd.factorize(column_of(frame, name, path))
        values = pd.Series(distinct, name=name)
        _require_exact(values, path)
        written = as_text(values).str.strip()
        texts = _key_texts(written)
        spellings = written.map(plain, na_action="ignore").groupby(texts).unique()
        several = spellings[[len({*map(_without_midnight, each)}) > 1 for each in spellings]]
        if several.size:
            both = " and ".join(map(repr, several.iloc[0]))
            raise DataError(
                f"column {name!r} of file {str(path)!r} must write each number in the same way, got {both}. Correct "
                "the file."
            )
        keys[name] = pd.Series(np.array([*texts, None], dtype=object)[codes], index=frame.index, dtype=object)
    return pd.DataFrame(keys, index=frame.index)


def _require_exact(column: pd.Series, path: Path) -> None:
    example: Any = None
    if column.dtype.kind == "f":
        large = column[column.abs() >= _EXACT]
        example = f"{large.iloc[0]:.0f}" if len(large) else None
    elif column.dtype == object or pd.api.types.is_string_dtype(column):
        rounded = column.dropna().astype(str).str.fullmatch(r"\s*\d[.,]\d+[eE]\+\d\d\s*")
        example = column.dropna()[rounded.to_numpy(dtype=bool)].iloc[0] if rounded.any() else None
    if example is not None:
        raise DataError(
            f"column {str(column.name)!r} of file {str(path)!r} must contain exact identifiers, got {example!r}, which "
            "another program has rounded, so different bags may have the same name. Write identifiers as text or as "
            "whole numbers."
        )


def bags_as_texts(bags: Any, names: Sequence[str]) -> Any:
    """Return the labels of bags [bags] as texts, like `bag_keys`.

    Bags of another grouping may have another number of parts. Raises `LLPBenchError` if no bag has as many parts as
    there are `names`.
    """
    keys = [bag if isinstance(bag, tuple) else (bag,) for bag in bags]
    parts = np.array([len(key) for key in keys])
    if len(names) not in parts:
        raise LLPBenchError(
            f"bags must be named by as many columns as in fit ({len(keys[0])}, as in {bags[0]!r}), got {len(names)} "
            f"({', '.join(names)}). Give the same columns: --bag-column NAME+NAME."
        )
    found = np.empty(len(keys), dtype=object)
    for number in np.unique(parts):
        of_number = np.flatnonzero(parts == number)
        columns = zip(*(keys[bag] for bag in of_number), strict=True)
        texts = [_key_texts(pd.Series(column, dtype=object)) for column in columns]
        found[of_number] = pd.Series(list(zip(*texts, strict=True)) if number > 1 else texts[0].tolist(), dtype=object)
    return found


def _key_texts(keys: pd.Series) -> pd.Series:
    """Return names of bags: whole numbers without decimals, midnight without hour, composed letters."""
    return (
        as_text(keys).str.strip().map(lambda text: plain(without_decimals(_without_midnight(text))), na_action="ignore")
    )


def _without_midnight(text: str) -> str:
    """Return a date for midnight, other times in one form, and other texts unchanged."""
    match = _TIME.fullmatch(text)
    if match is None:
        return text
    day, time, seconds, zone = match.groups()
    seconds = re.sub(r"\.?0+$", "", seconds or "") if "." in (seconds or "") else seconds
    clock = f"{time}{seconds or ':00'}"
    return day if clock == "00:00:00" else f"{day} {clock}{zone or ''}"


def bag_index(keys: pd.DataFrame) -> pd.Index:
    """Return the bag of each line of a file."""
    return pd.Index(keys.iloc[:, 0]) if keys.shape[1] == 1 else pd.MultiIndex.from_frame(keys)
