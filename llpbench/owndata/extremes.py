"""Numbers far from all others of their column, such as 1e20 or -9999 for a missing value.

One such value would dominate mean and standard deviation of its column, so that all others become nearly equal.
Therefore a value counts as missing if its distance from nearly all others is more than ten times their range. Such
values must be rare, or a single value that occurs in up to half of the rows. If only new rows have such a value, it is
moved to just beyond the values of training. In both cases a warning names the column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray
from llpbench.core.errors import LLPBenchWarning, argument
from llpbench.core.text import plural

_FAR = 10.0
"""Distance, in ranges of the other values, from which a value is far away."""
_BEYOND = 0.1
"""Distance, in ranges, to which values of new rows are moved."""
_FEW = 0.04
"""Largest share of rows that may be far away. More rows are a group of values."""
_MARKED = 0.5
"""Largest share of rows with a single value that is far away."""
_FEWEST_ROWS = 20
_MANY_VALUES = 20
_MOST_MARKS = 3
"""Largest number of values that may be marks of missing values, besides rare ones."""
"""Number of different values from which a single value far from them is a mark of missing values."""
_OUTSIDE = 0.5
"""Share of new values outside the range of training that causes a warning."""
_LARGE = 2.0**333
"""Largest magnitude: squares of larger numbers, or of inverses of smaller numbers, overflow."""


class ExtremeValues(LLPBenchWarning):
    """Values of a column are far from all others, or values of new rows are far from those of training."""


@dataclass(frozen=True)
class NumberRange:
    """Range of nearly all values of a column."""

    unit: float
    """power of two that values are divided by; 1 except for extreme magnitudes"""
    low: float
    high: float
    """in that unit"""
    far: int
    """number of values of training rows that are far away"""
    example: float
    """one of them"""

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return values in the unit. Values far away are missing, or just beyond the others if training had none."""
        with np.errstate(over="ignore"):
            values = values / self.unit
        width = self.high - self.low
        if width <= 0:
            return np.clip(values, -_LARGE, _LARGE)
        beyond = np.nan if self.far else _BEYOND * width
        values = np.where(values > self.high + _FAR * width, self.high + beyond, values)
        return np.asarray(np.where(values < self.low - _FAR * width, self.low - beyond, values))

    def warning(self, name: str, rows: int) -> str:
        """Return a message if values of training rows are far away; else ""."""
        if not self.far:
            return ""
        low, high = self.low * self.unit, self.high * self.unit
        return (
            f"column {name!r} has values such as {self.example:.15g} in {self.far:,} of {plural(rows, 'row')}, far "
            f"from all others ({low:g} to {high:g}). They count as missing. If they are errors, correct them in the "
            "file."
        )

    def warning_of_new(self, name: str, values: FloatArray) -> str:
        """Return a message if at least half of the values of new rows are outside the range of training, or some are
        far away; else "".
        """
        width = self.high - self.low
        if width <= 0:
            return ""
        with np.errstate(over="ignore"):
            known = values if self.unit == 1 else values / self.unit
        outside = ((known > self.high) | (known < self.low)) & np.isfinite(values)
        given, known = values[outside], known[outside]
        if not len(given):
            return ""
        away = np.maximum(self.low - known, known - self.high)
        low, high = self.low * self.unit, self.high * self.unit
        number = int(np.isfinite(values).sum())
        if number >= _FEWEST_ROWS and len(given) >= _OUTSIDE * number:
            return (
                f"{argument('X')}: {len(given) / number:.0%} of the values of column {name!r}, such as "
                f"{given[0]:.15g}, are outside those of fit ({low:g} to {high:g}). Check the unit of the column."
            )
        far = away > _FAR * width
        if self.far or not far.any():  # values far away are missing, as in fit
            return ""
        rows = plural(int(far.sum()), "row")
        return (
            f"{argument('X')}: column {name!r} has values such as {given[far][0]:.15g} in {rows}, far from all "
            f"values of fit ({low:g} to {high:g}). They are clipped to just beyond that range. "
            "Remove marks of missing values."
        )


def number_range(values: FloatArray) -> NumberRange:
    """Return the range of a column of training rows (NaN where missing)."""
    known = np.sort(values[np.isfinite(values)])
    sizes = np.abs(known[known != 0])
    usual = float(np.median(sizes)) if len(sizes) else 1.0
    unit = 1.0 if 1 / _LARGE < usual < _LARGE else _power_of_two(usual)
    with np.errstate(over="ignore"):
        scaled = known / unit
    if (np.abs(scaled) > _LARGE).sum() > (_FEW * len(known) if len(known) >= _FEWEST_ROWS else 0):
        unit = _power_of_two(float(sizes.max()))  # no unit suits all values: the largest count
        scaled = known / unit
    known = np.clip(scaled, -(_LARGE**2), _LARGE**2)
    if len(known) < _FEWEST_ROWS:
        return NumberRange(unit, 0.0, 0.0, 0, 0.0)
    low, high = _usual(known)
    below, above = int((known < low).sum()), int((known > high).sum())
    example = np.nanmin(values) if below else np.nanmax(values)
    return NumberRange(unit, low, high, below + above, float(example))


def _usual(ascending: FloatArray, marks: int = _MOST_MARKS) -> tuple[float, float]:
    """Return the lowest and the highest value that is not far from all others.

    Two marks of missing values, such as 998 and 999, hide each other. So it looks again without values that are far
    away, and without the commonest value. At most `marks` values are taken out.
    """
    first = _start_of_others(ascending)
    inner = ascending[first : len(ascending) - _start_of_others(-ascending[::-1])]
    low, high = float(inner[0]), float(inner[-1])
    values, numbers = np.unique(inner, return_counts=True)
    common = values[numbers.argmax()]
    if not marks or len(values) <= _MANY_VALUES or not _FEW * len(inner) < numbers.max() <= _MARKED * len(inner):
        return low, high
    least, most = _usual(inner[inner != common], marks - 1)
    far = max(least - common, common - most) > _FAR * (most - least) > 0
    return (least, most) if far else (low, high)


def _power_of_two(size: float) -> float:
    return float(2.0 ** np.floor(np.log2(size)))


def _start_of_others(ascending: FloatArray) -> int:
    """Return how many of the lowest values are far from all higher ones."""
    few = int(_FEW * len(ascending))
    upper = ascending[-1 - few]  # ignore values far away at the other end
    head = ascending[: max(few, 1) + 1]
    gaps, widths = np.diff(head), upper - head[1:]
    far = np.flatnonzero((widths > 0) & (gaps > _FAR * widths))
    start = int(far[-1]) + 1 if len(far) else 0
    same = int(np.searchsorted(ascending, ascending[0], side="right"))
    if start < same <= _MARKED * len(ascending) and len(np.unique(ascending[same:])) >= _MANY_VALUES:
        width = upper - ascending[same]
        if 0 < width < (ascending[same] - ascending[0]) / _FAR:
            return same
    return start


def numbers_far_away(frame: pd.DataFrame, ranges: dict[str, NumberRange]) -> str:
    """Return a message about all such columns; "" if there are none."""
    return " ".join(told for name, each in ranges.items() if (told := each.warning(name, len(frame))))
