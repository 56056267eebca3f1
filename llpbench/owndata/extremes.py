"""Numbers far from all others of their column: a sentinel such as 1e20 or -9999, or a column in absurd units.

One such value decides mean and standard deviation of its column, and all others become the same number. So values more
than ten times the range of nearly all others away are taken as missing, and a line names the column. They are rare, or
a single value that stands in up to half of the rows. Columns without such values are left as they are. Where only new
rows have one, it is moved to just beyond the values of training, and a line names the column, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray
from llpbench.core.text import plural

_FAR = 10.0
"""ranges of other values, from where a value is far from them"""
_BEYOND = 0.1
"""of that range: where values of new rows are put"""
_FEW = 0.04
"""share of rows that may be far away; more are a group of their own"""
_MARKED = 0.5
"""share of rows in which a single value may be far away"""
_FEWEST_ROWS = 20
_MANY_VALUES = 20
"""different values of a column in which a single value that is far from them is a mark"""
_OUTSIDE = 0.5
"""share of new values outside of those of training from which it is told"""
_LARGE = 2.0**333
"""1e100: squares of larger numbers, or of the inverse of smaller ones, are no floats"""


class ExtremeValues(UserWarning):
    """Values of a column are far from all others, or those of new rows are far from those of training."""


@dataclass(frozen=True)
class NumberRange:
    """Range of nearly all values of a column, in its units."""

    unit: float
    """a power of two, 1 but for absurd magnitudes"""
    low: float
    high: float
    """in that unit"""
    far: int
    """values of the training rows that are far away"""
    example: float
    """one of them"""

    def __call__(self, values: FloatArray) -> FloatArray:
        """Values in the unit, those far away missing, or just beyond the others if training had none; NaN stays NaN."""
        with np.errstate(over="ignore"):
            values = values / self.unit
        width = self.high - self.low
        if width <= 0:
            return np.clip(values, -_LARGE, _LARGE)
        beyond = np.nan if self.far else _BEYOND * width
        values = np.where(values > self.high + _FAR * width, self.high + beyond, values)
        return np.asarray(np.where(values < self.low - _FAR * width, self.low - beyond, values))

    def warning(self, name: str, rows: int) -> str:
        """One line that names the column, if values of the training rows are far away; else ""."""
        if not self.far:
            return ""
        low, high = self.low * self.unit, self.high * self.unit
        return (
            f"column {name!r} holds {self.example:.15g} or the like in {self.far:,} of {plural(rows, 'row')}, far from "
            f"all others ({low:g} to {high:g}): taken as missing. Replace what is no mark of a missing value."
        )

    def warning_of_new(self, name: str, values: FloatArray) -> str:
        """One line that names the column, if half of the values of new rows or more are outside of those of training,
        or some are far away; else ""."""
        width = self.high - self.low
        if width <= 0:
            return ""
        given = values[np.isfinite(values)]
        with np.errstate(over="ignore"):
            known = given / self.unit
        away = np.maximum(self.low - known, known - self.high)
        low, high = self.low * self.unit, self.high * self.unit
        outside = int((away > 0).sum())
        if len(known) >= _FEWEST_ROWS and outside >= _OUTSIDE * len(known):
            share, example = outside / len(known), given[away > 0][0]
            return (
                f"X: {share:.0%} of the values of column {name!r}, such as {example:.15g}, are outside those of fit "
                f"({low:g} to {high:g}). Check the unit of the column."
            )
        far = away > _FAR * width
        if self.far or not far.any():  # what is far away is missing, as in fit
            return ""
        rows = plural(int(far.sum()), "row")
        return (
            f"X: column {name!r} holds {given[far][0]:.15g} or the like in {rows}, far from all values of fit "
            f"({low:g} to {high:g}): moved to just beyond these. Replace marks of missing values."
        )


def number_range(values: FloatArray) -> NumberRange:
    """Limits of a column of training rows (NaN where missing)."""
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
    first = _start_of_others(known)
    end = len(known) - _start_of_others(-known[::-1])
    example = np.nanmin(values) if first else np.nanmax(values)
    return NumberRange(unit, float(known[first]), float(known[end - 1]), first + len(known) - end, float(example))


def _power_of_two(size: float) -> float:
    return float(2.0 ** np.floor(np.log2(size)))


def _start_of_others(ascending: FloatArray) -> int:
    """How many of the lowest values are far from all that follow."""
    few = int(_FEW * len(ascending))
    upper = ascending[-1 - few]  # whatever is far away at the other end
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
    """One line for all such columns; "" if there are none."""
    return " ".join(told for name, each in ranges.items() if (told := each.warning(name, len(frame))))
