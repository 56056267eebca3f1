"""Conversion of your frame or array to rows. Types and categories are learned from the training rows.

Numbers may be far from all others of their column, such as 1e20, or -9999 for a missing value. One such value would
dominate mean and standard deviation of its column, so that all others become nearly equal. Therefore a value counts as
missing if its distance from nearly all others is more than ten times their range. Such values must be rare, or a single
value that occurs in up to half of the rows. If only new rows have such a value, it is moved to just beyond the values
of training. In both cases a warning names the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype

from llpbench.core.bags import FloatArray, IntArray, Rows
from llpbench.core.effects import FeatureEffect
from llpbench.core.errors import DataError, argument, warn
from llpbench.core.text import plural
from llpbench.data.frames import is_numeric, read_features, read_numbers
from llpbench.data.reading_bags import as_pandas
from llpbench.data.tasks import Scaler
from llpbench.tables.column_names import require_distinct
from llpbench.tables.texts import factorized, without_decimals

_ROWS = argument("X")
_BOOLEAN = {"True", "False"}
_FEWEST_ROWS = 20
"""Number of rows from which only unknown values are not a coincidence."""
_FEWEST_STRANGE = 5
"""Number of values from which a column with unknown values only causes a warning."""
_STRANGE = 0.5
"""Share of unknown or missing values from which a column causes a warning."""


class FeatureColumns:
    """Features of the training rows. Converts rows with the same columns to `Rows`."""

    def __init__(self, frame: pd.DataFrame, numbers: str = "z") -> None:
        """Learn from training rows; `numbers` is their scaling. Raises `DataError` for unusable values."""
        self.names = [str(name) for name in frame.columns]
        require_distinct(self.names, _ROWS)
        numeric, categorical = read_features(frame, _ROWS)
        self.numeric, self.categorical = list(numeric), list(categorical)
        self.categories = [list(names) for _, names in categorical.values()]
        self.ranges = {name: _number_range(values) for name, values in numeric.items()}
        self.gaps = {str(name): float(share) for name, share in frame.isna().mean().items()}  # shares missing
        codes = {name: codes for name, (codes, _) in categorical.items()}
        varying = [name for name, values in {**numeric, **codes}.items() if len(np.unique(values)) > 1]
        # sorted, so that results do not depend on the order of columns in X
        self.used = sorted(varying or [*self.numeric, *self.categorical])
        used = [list(categorical[name][1]) for name in self.used if name in categorical]
        self.scaler = Scaler(*self._stacked(numeric, codes, len(frame)), used, numbers)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Return the number of codes of each categorical feature that is used, including the code of missing values."""
        return tuple(len(names) + 1 for names in self.scaler.categories)

    def _stacked(
        self, numbers: Mapping[str, FloatArray], codes: Mapping[str, IntArray], rows: int
    ) -> tuple[FloatArray, IntArray]:
        """Return the columns that are used: numbers and codes [rows, columns]. Values far from all others are moved."""
        moved = [self.ranges[name](numbers[name]) for name in self.used if name in numbers]
        chosen = [codes[name] for name in self.used if name in codes]
        nothing = np.empty((rows, 0), np.int64)  # there may be no column of a kind
        return np.column_stack([nothing.astype(float), *moved]), np.column_stack([nothing, *chosen])

    @property
    def texts(self) -> list[str]:
        """Categorical columns, except those of true and false, which files write in several ways."""
        pairs = zip(self.categorical, self.categories, strict=True)
        return [name for name, categories in pairs if not {*categories} <= _BOOLEAN]

    def named(self, effects: Iterable[FeatureEffect]) -> list[FeatureEffect]:
        """Return effects of features with names of columns and categories."""
        numeric = [name for name in self.used if name in self.ranges]
        categorical = [name for name in self.used if name not in self.ranges]
        named, order = self.scaler.named(effects, numeric, categorical), [*self.numeric, *self.categorical]
        found = [replace(effect, feature=order.index(effect.name)) for effect in named]
        return sorted(found, key=lambda effect: effect.feature)

    def warning(self, rows: int) -> str:
        return " ".join(
            f"column {name!r} has values such as {each.example:.15g} in {each.far:,} of {plural(rows, 'row')}, far "
            f"from all others ({each.low:g} to {each.high:g}). They count as missing. Correct them if they are errors."
            for name, each in self.ranges.items()
            if each.far
        )

    def __call__(self, frame: pd.DataFrame, *, new: bool = True) -> Rows:
        """Convert rows with columns in any order. Raises `DataError` if the columns are not those of training.

        Warns of `new` rows with many unknown or missing values, and of numbers far from those of training.
        """
        names = [str(name) for name in frame.columns]
        if sorted(names) != sorted(self.names):
            absent, foreign = sorted({*self.names} - {*names}), sorted({*names} - {*self.names})
            told = [f"lacks {plural(len(absent), 'column')} ({', '.join(absent[:5])})"] * bool(absent)
            told += [f"has {plural(len(foreign), 'other column')} ({', '.join(foreign[:5])})"] * bool(foreign)
            raise DataError(f"{_ROWS} {' and '.join(told) or 'has a column twice'}. Give the columns of fit.")
        columns = {name: frame.iloc[:, names.index(name)] for name in self.names}
        numbers, codes = {}, {}
        for name in self.numeric:
            series = columns[name]
            if not (series.isna().all() or is_numeric(series, _ROWS) or series.dtype == bool):
                texts = series[pd.to_numeric(series, errors="coerce").isna() & series.notna()]
                raise _other_kind(name, "numbers", repr((texts if len(texts) else series.dropna()).iloc[0]))
            numbers[name] = read_numbers(series, _ROWS)
            if new and name in self.used:
                warn("extreme values", self.ranges[name].warning_of_new(name, numbers[name]))
        for name, known in zip(self.categorical, self.categories, strict=True):
            series = columns[name]
            if {*known} <= _BOOLEAN and not series.isna().all() and is_numeric(series, _ROWS):
                raise _other_kind(name, "true and false", series.dropna().iloc[0])
            codes[name] = _codes_of(series, known)
            strange, present = (codes[name] < 0) & series.notna().to_numpy(), int(series.notna().sum())
            most = present >= _FEWEST_ROWS and strange.sum() >= _STRANGE * present
            if name in self.used and (most or strange.sum() == present >= _FEWEST_STRANGE):
                share, example = strange.sum() / present, series[strange].iloc[0]
                unlike = f"{share:.0%} of the values of column {name!r}, such as {example!r}, were not in fit"
                warn("unknown categories", f"{_ROWS}: {unlike} ({known[0]!r} was). They count as missing.")
        for name in [*numbers, *codes] if len(frame) >= _FEWEST_ROWS else []:
            now, before = columns[name].isna().mean(), self.gaps[name]
            if name in self.used and now >= max(_STRANGE, 2 * before):
                unlike = f"{now:.0%} of the values of column {name!r} are missing, but only {before:.0%} in fit"
                warn("missing values", f"{_ROWS}: {unlike}. Check that the column was read as in fit.")
        return self.scaler(*self._stacked(numbers, codes, len(frame)))


def _other_kind(name: str, kind: str, example: object) -> DataError:
    return DataError(f"{_ROWS}: column {name!r} must contain {kind}, as in fit, got {example}. Convert it.")


def _codes_of(series: pd.Series, categories: Sequence[str]) -> IntArray:
    """Return the position in `categories` of each text [rows], -1 if unknown; "7.0" is 7, "true" is True."""
    is_numeric(series, _ROWS)
    codes, names = factorized(series)
    place = {text: index for index, text in enumerate(categories)}
    form = str.capitalize if {*categories} <= _BOOLEAN else without_decimals
    loosely = {form(text): index for text, index in place.items()}
    positions = (place.get(text, loosely.get(form(text), -1)) for text in names)
    return np.array([*positions, -1], dtype=np.int64)[codes]


def as_frame(features: Any, *, fewest: int = 1) -> pd.DataFrame:
    """Return features as a frame; columns of an array are called x0, x1, ...

    Raises `DataError` for other types, no columns, or fewer than `fewest` rows.
    """
    features = as_pandas(features)
    if not isinstance(features, pd.DataFrame):
        array = np.asarray(features)
        if array.ndim != 2:
            row = "X.iloc[[NUMBER]]" if isinstance(features, pd.Series) else "[X]"
            advice = f"{f'For one row give {row}, else ' if array.ndim == 1 else 'Give '}pandas.DataFrame(X)."
            kind = "an array" if features is array else type(features).__name__
            raise DataError(f"{_ROWS} must have rows and columns, got {kind} of shape {array.shape}. {advice}")
        features = pd.DataFrame(array, columns=[f"x{number}" for number in range(array.shape[1])])
    objects = features.dtypes.map(is_object_dtype).to_numpy(bool)  # numbers of a transposed frame, some databases
    if objects.any():
        features = features.where(features.notna() | ~objects, np.nan).infer_objects()  # pd.NA is no number
    if features.shape[0] < fewest or not features.shape[1]:
        raise DataError(f"{_ROWS} must have at least one row and one column of features, got shape {features.shape}.")
    return features


_FAR, _BEYOND = 10.0, 0.1
"""Distances, in ranges of the other values: from which a value is far away, and to which it is moved in new rows."""
_FEW, _MARKED = 0.04, 0.5
"""Largest shares of rows that may be far away (more are a group of values), all together and with a single value."""
_MANY_VALUES, _MOST_MARKS = 20, 3
"""Number of different values from which one far from them is a mark of missing values, and most such marks."""
_OUTSIDE = 0.5
"""Share of new values outside the range of training that causes a warning."""
_LARGE = 2.0**333
"""Largest magnitude of a number, whose square does not overflow; below its inverse it is 0."""


@dataclass(frozen=True)
class _NumberRange:
    """Range of nearly all values of a column."""

    low: float
    high: float
    far: int  # number of values of training rows that are far away
    example: float  # one of them

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return values. Those far away are missing, or just beyond the others if training had none."""
        values = np.where(np.abs(values) < 1 / _LARGE, 0.0, values)
        width = self.high - self.low
        if width <= 0:
            return np.clip(values, -_LARGE, _LARGE)
        beyond = np.nan if self.far else _BEYOND * width
        values = np.where(values > self.high + _FAR * width, self.high + beyond, values)
        return np.asarray(np.where(values < self.low - _FAR * width, self.low - beyond, values))

    def warning_of_new(self, name: str, values: FloatArray) -> str:
        """Return a message if half of the values of new rows are outside the range, or some are far away; else ""."""
        width = self.high - self.low
        if width <= 0:
            return ""
        away = np.where(np.isfinite(values), np.maximum(self.low - values, values - self.high), 0.0)
        number, far = int(np.isfinite(values).sum()), away > _FAR * width
        many = number >= _FEWEST_ROWS and (away > 0).sum() >= _OUTSIDE * number
        if not many and (self.far or not far.any()):  # values far away are missing, as in fit
            return ""
        shown, fit = away > 0 if many else far, f"those of fit ({self.low:g} to {self.high:g})"
        some = f"{shown.sum():,} of {plural(number, 'value')} of column {name!r}, such as {values[shown][0]:.15g}"
        told = f"{_ROWS}: {some}, are {'outside' if many else 'far from'} {fit}"
        return f"{told}. Check the unit of the column, and remove marks of missing values."


def _number_range(values: FloatArray) -> _NumberRange:
    known = np.sort(values[np.isfinite(values)].clip(-_LARGE, _LARGE))
    if len(known) < _FEWEST_ROWS:
        return _NumberRange(0.0, 0.0, 0, 0.0)
    low, high = _usual(known)
    below, above = int((known < low).sum()), int((known > high).sum())
    example = np.nanmin(values) if below else np.nanmax(values)
    return _NumberRange(low, high, below + above, float(example))


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
