"""Times of bags, as dates or numbers. Later bags are held out."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural
from llpbench.data.reading_bags import as_pandas, require_clear_order
from llpbench.owndata.fitting import is_number

_DATE = re.compile(r"(19|20)\d\d-?(0[1-9]|1[0-2])(-?(0[1-9]|[12]\d|3[01]))?([T ].*)?")
_EXAMPLE = "2024-03-31"


def read_times(time: Any, bags: Sequence[Hashable], bag_of_row: IntArray) -> FloatArray:
    """Return the time of each bag as a number [bags].

    `time`: a mapping or series by bag, or an array in ascending order of the bags. `bag_of_row` [rows]: index into
    `bags`, which shows whether this order is clear. Raises `LLPBenchError` for missing
    times, for those that are neither all numbers nor all dates, and for another number of them.
    """
    time = as_pandas(time)
    if isinstance(time, pd.Series):
        twice = time.index.duplicated()
        if twice.any():
            raise LLPBenchError(f"time has two entries for bag {time.index[twice][0]!r}. Remove one of them.")
        time = dict(zip(time.index, time, strict=True))
    if isinstance(time, Mapping):
        lacking = [bag for bag in bags if bag not in time]
        if lacking:
            raise LLPBenchError(
                f"time must be known for every bag, got none for bag {lacking[0]!r} "
                f"({plural(len(lacking), 'such bag')} in all). Fill in these times."
            )
        return as_times([time[bag] for bag in bags])
    if isinstance(time, str) or not hasattr(time, "__len__"):
        raise LLPBenchError(f"time must be a mapping, series or array with the time of each bag, got {time!r}.")
    if len(time) != len(bags):
        raise LLPBenchError(
            f"time must have an entry for each of {len(bags):,} bags, got {len(time):,}. Give the times in ascending "
            "order of bags, or a mapping from bag to time."
        )
    require_clear_order("time", bags, bag_of_row)
    return as_times(list(time))


def as_times(values: Sequence[Any]) -> FloatArray:
    """Return numbers or dates as numbers; dates as days."""
    column = pd.Series(list(values), dtype=object)
    texts = column.map(lambda value: value.strip() if isinstance(value, str) else value)
    gaps = texts.isna() | (texts == "")
    if gaps.any():
        raise LLPBenchError(f"time must be known for every bag, got none for {plural(int(gaps.sum()), 'bag')}.")
    numbers, dates = texts.map(_number), texts.map(_date)
    if numbers.notna().all():
        return np.asarray(numbers.to_numpy(dtype=np.float64))
    if dates.notna().all():
        return np.asarray((pd.to_datetime(dates) - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1), dtype=np.float64)
    odd = np.flatnonzero(numbers.isna() & dates.isna())
    if len(odd):
        raise LLPBenchError(f"time must be numbers, or dates such as {_EXAMPLE}, got {values[odd[0]]!r}.")
    other = texts[numbers.notna()].iloc[0]
    raise LLPBenchError(f"time must be all numbers or all dates, got {other!r} and {texts[dates.notna()].iloc[0]!r}.")


def _number(value: Any) -> float | None:
    with suppress(ValueError):
        if is_number(value) or (isinstance(value, str) and np.isfinite(float(value))):
            return float(value)
    return None


def _date(value: Any) -> pd.Timestamp | None:
    """Return a date, or an ISO text of one, in UTC."""
    if not isinstance(value, str | date | np.datetime64):
        return None
    try:
        found = pd.to_datetime(value, format="ISO8601" if isinstance(value, str) else None, utc=True)
    except (ValueError, TypeError):
        return None
    return None if found is pd.NaT else found


def looks_dated(value: Any) -> bool:
    """Return whether a value is a date, or looks like 2024-03-31, 2024-03 or 20240331."""
    if isinstance(value, date | np.datetime64):
        return True
    text = str(int(value)) if is_number(value) and np.isfinite(value) and value == int(value) else value
    return isinstance(text, str) and len(text.strip()) >= len("2024-03") and bool(_DATE.fullmatch(text.strip()))


def time_by_bag(values: pd.Series, bags: pd.Index, source: str) -> pd.Series:
    """Return the time of each bag from lines of a file with their bags; those of no bag are left out.

    Raises `LLPBenchError` if a bag has several times.
    """
    lines = pd.DataFrame({"bag": bags.to_flat_index(), "time": values.to_numpy(dtype=object)})
    lines = lines[lines["bag"].notna()].drop_duplicates()
    twice = lines["bag"].duplicated(keep=False)
    if twice.any():
        bag = lines["bag"][twice].iloc[0]
        one, other = lines["time"][lines["bag"] == bag].iloc[:2]
        raise LLPBenchError(
            f"a bag must have one time, got {one!r} and {other!r} for bag {bag!r} in column {values.name!r} of "
            f"{source}. Use smaller bags, each of one time, or name another column."
        )
    return pd.Series(lines["time"].to_numpy(), index=pd.Index(lines["bag"], tupleize_cols=False))
