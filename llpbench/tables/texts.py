"""Columns as text."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import Series

    from llpbench.core.bags import IntArray

EXACT = 2.0**53
"""Smallest number from which floats skip whole numbers."""
_WHOLE = re.compile(r"^(-?\d+)\.0+$")


def as_text(series: Series) -> Series:
    """Return a column as text, which is categorical. Whole numbers lose their decimals; missing values stay missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbench import as_text
    >>> as_text(pd.Series([3.0, 7.5, None])).tolist()
    ['3', '7.5', None]
    """
    import pandas as pd

    codes, names = factorized(series)
    texts = np.array([*names, None], dtype=object)
    return pd.Series(texts[codes], index=series.index, name=series.name, dtype=object)


def without_decimals(text: str) -> str:
    """Return a whole number such as "7.0" without decimals, and any other text unchanged."""
    return _WHOLE.sub(r"\1", text)


def factorized(series: Series) -> tuple[IntArray, list[str]]:
    """Return positions in the list of distinct values `[rows]`, -1 if missing, and the distinct values as strings."""
    codes, values = series.factorize()
    return codes.astype(np.int64), [_text(value) for value in values]


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating | Decimal) and float(value).is_integer():
        return str(int(value))
    return str(value)
