"""Numbers far from all others of their column: a sentinel such as 1e20 or -9999, or a column in absurd units.

One such value decides mean and standard deviation of its column, and all others become the same number. So values more
than ten times the range of nearly all others away are taken as missing, and a line names the column. Columns without
such values are left as they are; where only new rows have one, it is moved to just beyond the values of training.
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
_FEWEST_ROWS = 20
_LARGE = 2.0**333
"""1e100: squares of larger numbers, or of the inverse of smaller ones, are no floats"""


class ExtremeValues(UserWarning):
    """Values of a column are far from all others."""


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
            return values
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


def number_range(values: FloatArray) -> NumberRange:
    """Limits of a column of training rows (NaN where missing)."""
    known = np.sort(values[np.isfinite(values)])
    sizes = np.abs(known[known != 0])
    usual = float(np.median(sizes)) if len(sizes) else 1.0
    unit = 1.0 if 1 / _LARGE < usual < _LARGE else float(2.0 ** np.floor(np.log2(usual)))
    with np.errstate(over="ignore"):
        known = known / unit
    if len(known) < _FEWEST_ROWS:
        return NumberRange(unit, 0.0, 0.0, 0, 0.0)
    first = _start_of_others(known)
    end = len(known) - _start_of_others(-known[::-1])
    example = np.nanmin(values) if first else np.nanmax(values)
    return NumberRange(unit, float(known[first]), float(known[end - 1]), first + len(known) - end, float(example))


def _start_of_others(ascending: FloatArray) -> int:
    """How many of the lowest values are far from all that follow."""
    few = int(_FEW * len(ascending))
    upper = ascending[-1 - few]  # whatever is far away at the other end
    head = ascending[: max(few, 1) + 1]
    gaps, widths = np.diff(head), upper - head[1:]
    far = np.flatnonzero((widths > 0) & (gaps > _FAR * widths))
    return int(far[-1]) + 1 if len(far) else 0


def numbers_far_away(frame: pd.DataFrame, ranges: dict[str, NumberRange]) -> str:
    """One line for all such columns; "" if there are none."""
    return " ".join(told for name, each in ranges.items() if (told := each.warning(name, len(frame))))
