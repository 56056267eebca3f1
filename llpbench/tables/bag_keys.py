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
from llpbench.tables.texts import EXACT, as_text, without_decimals

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[-+]\d\d:?\d\d)?")
_ROUNDED = re.compile(r"\s*\d[.,]\d+[eE]\+\d\d\s*")


def bag_keys(frame: pd.DataFrame, names: Sequence[str], path: Path) -> pd.DataFrame:
    """Return the columns that name the bag of a row, as texts, because two files may have different types.

    7.0 is read as 7, because pandas writes whole numbers as 7.0 in columns with gaps. Raises `DataError` if a file has
    both.
    """
    keys = {}
    for name in names:
        column = column_of(frame, name, path)
        try:
            codes, distinct = pd.factorize(column)
        except TypeError as error:
            raise DataError.of(path, f"must name bags in column {name!r} by texts or numbers, got {error}.") from error
        values = pd.Series(distinct, name=name)
        _require_exact(values, path)
        exact = as_text(values).map(lambda text: _without_midnight(plain(text)), na_action="ignore")
        texts = exact.map(without_decimals, na_action="ignore")
        spellings = exact.groupby(texts).unique()
        if (several := spellings[spellings.map(len) > 1]).size:
            both = " and ".join(map(repr, several.iloc[0]))
            raise DataError.of(path, f"must write numbers in column {name!r} in the same way, got {both}. Correct it.")
        keys[name] = pd.Series(np.array([*texts, None], dtype=object)[codes], index=frame.index, dtype=object)
    return pd.DataFrame(keys, index=frame.index)


def _require_exact(column: pd.Series, path: Path) -> None:
    if column.dtype.kind == "f":
        rounded = [f"{value:.0f}" for value in column[column.abs() >= EXACT]]
    else:
        rounded = [text for text in column if isinstance(text, str) and _ROUNDED.fullmatch(text)]
    if rounded:
        wrong = f"must have exact identifiers in column {str(column.name)!r}, got {rounded[0]!r}, which is rounded"
        raise DataError.of(path, f"{wrong}: different bags may have one name. Write them as text or whole numbers.")


def bags_as_texts(bags: Any, names: Sequence[str]) -> Any:
    """Return the labels of bags [bags] as texts, like `bag_keys`.

    Bags of another grouping may have another number of parts. Raises `LLPBenchError` if no bag has as many parts as
    there are `names`.
    """
    keys = [bag if isinstance(bag, tuple) else (bag,) for bag in bags]
    if len(names) not in map(len, keys):
        wrong = f"bags need as many columns as in fit ({len(keys[0])}, as in {bags[0]!r}), got {', '.join(names)}"
        raise LLPBenchError(f"{wrong}. Give the same columns: --bag-column NAME+NAME.")
    labels = [tuple(without_decimals(_without_midnight(plain(str(part)))) for part in key) for key in keys]
    return pd.Series([label if len(label) > 1 else label[0] for label in labels], dtype=object).to_numpy()


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
