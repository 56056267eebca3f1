"""Conversion of your frame or array to rows. Types and categories are learned from the training rows.

Numbers may be far from all others of their column, such as 1e20, or -9999 for a missing value. One such value would
dominate mean and standard deviation of its column, so that all others become nearly equal. Therefore a value counts as
missing if its distance from nearly all others is more than ten times their range. Such values must be rare, or a single
value that occurs in up to half of the rows. If only new rows have such a value, it is moved to just beyond the values
of training. In both cases a warning names the column.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray, IntArray, Rows
from llpbench.core.effects import FeatureEffect
from llpbench.core.errors import DataError, LLPBenchError, LLPBenchWarning, argument, either
from llpbench.core.text import plural
from llpbench.data.frames import codes_of, is_numeric, read_features, read_numbers
from llpbench.data.reading_bags import as_pandas
from llpbench.data.tasks import Scaler
from llpbench.tables.column_names import csv_line
from llpbench.tables.number_text import NumberText, likely_numbers

_ROWS = argument("X")
_FEWEST_ROWS = 20
"""Number of rows from which only different, or only unknown, values are not a coincidence."""
_MANY_ROWS = 200
"""Number of rows from which texts that are rarely repeated are identifiers."""
_FEWEST_STRANGE = 5
"""Number of values from which a column with unknown values only causes a warning."""
_STRANGE = 0.5
"""Share of unknown or missing values from which a column causes a warning."""
_FEW_CLASSES, _ROWS_OF_A_CLASS = 20, 5
_MANY_COLUMNS, _MANY_CATEGORIES = 1_000, 20_000


class LikelyIdentifier(LLPBenchWarning):
    """A feature looks like an identifier."""


def identifier_warning(frame: pd.DataFrame) -> str:
    """Return a message that names columns which look like identifiers; "" if there are none.

    These are texts that occur in at most two rows on average (unless they are numbers written as text), and whole
    numbers that are all different and are sorted or without gaps.
    """
    found = [str(name) for place, name in enumerate(frame.columns) if _is_identifier(frame.iloc[:, place])]
    if not found:
        return ""
    return (
        f"some features look like identifiers (almost all values differ): {', '.join(map(repr, found))}. To leave them "
        f"out: {leaving_out(found)}."
    )


def leaving_out(names: list[str]) -> str:
    """Return for a message how to leave columns out."""
    return either(f"X.drop(columns={names})", f"--leave-out {shlex.quote(csv_line(names))}")


def _is_identifier(series: pd.Series) -> bool:
    known = series.dropna()
    if len(known) < _FEWEST_ROWS:
        return False
    if not is_numeric(known, _ROWS):
        rare = known.is_unique or (len(known) >= _MANY_ROWS and known.nunique() >= len(known) / 2)
        return rare and not isinstance(likely_numbers(series), NumberText)
    if not known.is_unique:
        return False
    numbers = known.to_numpy(dtype=np.float64)
    steps = np.diff(numbers)
    running = bool((steps > 0).all() or (steps < 0).all()) or np.ptp(numbers) == len(numbers) - 1
    return running and bool((numbers == np.floor(numbers)).all())


class LargeFit(LLPBenchWarning):
    """A fit may take hours or many gigabytes."""


def require_classes(classes: int, rows: int) -> None:
    """Raise `LLPBenchError` for nearly as many classes as rows, because this column probably identifies rows."""
    if classes > _FEW_CLASSES and classes * _ROWS_OF_A_CLASS > rows:
        raise LLPBenchError(
            f"classes must have at least {_ROWS_OF_A_CLASS} rows on average, got {classes:,} classes for {rows:,} "
            "rows. Name the column with classes, not a column that identifies rows, or merge rare classes."
        )


def size_warning(rows: int, columns: int, cardinalities: Sequence[int]) -> str:
    """Return a warning about a very wide table; "" for other tables."""
    categories = sum(cardinalities)
    if columns <= _MANY_COLUMNS and categories <= _MANY_CATEGORIES:
        return ""
    return (
        f"{rows:,} rows have {columns:,} columns with {categories:,} categories: this may take hours and many GB of "
        f"memory (2,000 rows of 10,000 columns: 8 GB). To leave columns out: {either('X.drop', '--leave-out')}."
    )


class UnlikeFit(LLPBenchWarning):
    """At least half of the values of a column of new rows are missing, more than in `fit`."""


class UnknownCategories(UnlikeFit):
    """At least half of the values of a column are categories that were not in `fit`."""


class FeatureColumns:
    """Features of the training rows. Converts rows with the same columns to `Rows`."""

    def __init__(self, frame: pd.DataFrame, numbers: str = "z") -> None:
        """Learn from the training rows. `numbers` is the scaling of numbers (`cell.NUMBERS`).

        Raises `DataError` with the name of the column if its values cannot be used.
        """
        self.names = [str(name) for name in frame.columns]
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise DataError(f"{_ROWS} has two columns called {repeated[0]!r}. Rename one of them.")
        numeric, categorical = read_features(frame, _ROWS)
        self.numeric, self.categorical = list(numeric), list(categorical)
        self.categories = [list(names) for _, names in categorical.values()]
        self.ranges = {name: number_range(values) for name, values in numeric.items()}
        # share of missing values by column
        self.gaps = {str(name): float(share) for name, share in frame.isna().mean().items()}
        varying = [name for name, values in numeric.items() if len(np.unique(values)) > 1]
        varying += [name for name, (codes, _) in categorical.items() if len(np.unique(codes)) > 1]
        # sorted, so that results do not depend on the order of columns in X
        self.used = sorted(varying or [*self.numeric, *self.categorical])
        codes = {name: codes for name, (codes, _) in categorical.items()}
        names_of = dict(zip(self.categorical, self.categories, strict=True))
        self.scaler = Scaler(
            self._numbers(numeric, len(frame)),
            self._codes(codes, len(frame)),
            [names_of[name] for name in self.used if name in names_of],
            numbers,
        )

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Return the number of codes of each categorical feature that is used, including the code of missing values."""
        return tuple(len(names) + 1 for names in self.scaler.categories)

    def _numbers(self, numeric: Mapping[str, FloatArray], rows: int) -> FloatArray:
        """Return the numbers that are used [rows, numbers]; values far from all others are moved (`NumberRange`)."""
        found = [self.ranges[name](numeric[name]) for name in self.used if name in numeric]
        columns: FloatArray = _stacked(found, rows, np.float64)
        return columns

    def _codes(self, codes: Mapping[str, IntArray], rows: int) -> IntArray:
        """Return the categories that are used [rows, categories]."""
        columns: IntArray = _stacked([codes[name] for name in self.used if name in codes], rows, np.int64)
        return columns

    @property
    def texts(self) -> list[str]:
        """Categorical columns, except those of true and false, which files write in several ways."""
        pairs = zip(self.categorical, self.categories, strict=True)
        return [name for name, categories in pairs if not set(categories) <= {"True", "False"}]

    def named(self, effects: Iterable[FeatureEffect]) -> list[FeatureEffect]:
        """Return effects of features with names of columns, units and categories."""
        numeric = [name for name in self.used if name in self.ranges]
        categorical = [name for name in self.used if name not in self.ranges]
        order = [*self.numeric, *self.categorical]
        found = [
            replace(
                effect,
                feature=order.index(effect.name),
                edges=None if effect.edges is None else effect.edges * self.ranges[effect.name].unit,
            )
            for effect in self.scaler.named(effects, numeric, categorical)
        ]
        return sorted(found, key=lambda effect: effect.feature)

    def training_rows(self, frame: pd.DataFrame) -> Rows:
        """Return the training rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtremeValues)  # `numbers_far_away` warns of them
            return self(frame)

    def __call__(self, frame: pd.DataFrame) -> Rows:
        """Convert rows with columns in any order. Raises `DataError` if the columns are not those of training.

        Warns if at least half of the values are unknown categories (`UnknownCategories`) or missing (`UnlikeFit`), and
        of numbers far from those of training (`ExtremeValues`).
        """
        numbers, codes = self.values(frame)
        return self.scaler(self._numbers(numbers, len(frame)), self._codes(codes, len(frame)))

    def values(self, frame: pd.DataFrame) -> tuple[dict[str, FloatArray], dict[str, IntArray]]:
        """Return numbers, NaN where missing, and positions of categories, -1 where missing, by column [rows].

        Raises and warns as a call does.
        """
        names = [str(name) for name in frame.columns]
        absent, foreign = sorted(set(self.names) - set(names)), sorted(set(names) - set(self.names))
        if absent or foreign or len(names) > len(self.names):
            told = [f"lacks {plural(len(absent), 'column')} ({', '.join(absent[:5])})"] if absent else []
            told += [f"has {plural(len(foreign), 'column')} that were not in fit ({', '.join(foreign[:5])})"] * bool(
                foreign
            )
            raise DataError(f"{_ROWS} {' and '.join(told) or 'has a column twice'}. Give the columns of fit.")
        numbers, missing = {}, {}
        for name in self.numeric:
            series = frame.iloc[:, names.index(name)]
            plain = series.dtype.kind in "fiu"
            if not (plain or series.isna().all() or is_numeric(series, _ROWS) or series.dtype == bool):
                example = series[pd.to_numeric(series, errors="coerce").isna() & series.notna()]
                example = (example if len(example) else series.dropna()).iloc[0]
                raise DataError(
                    f"{_ROWS}: column {name!r} must contain numbers, as in fit, got {example!r}. Convert it."
                )
            numbers[name] = read_numbers(series, _ROWS)
            if name in self.used and (far := self.ranges[name].warning_of_new(name, numbers[name])):
                warnings.warn(far, ExtremeValues, stacklevel=2)
            missing[name] = int(np.isnan(numbers[name]).sum())
        codes = {}
        for name, known in zip(self.categorical, self.categories, strict=True):
            series = frame.iloc[:, names.index(name)]
            if set(known) <= {"True", "False"} and not series.isna().all() and is_numeric(series, _ROWS):
                example = series.dropna().iloc[0]
                raise DataError(
                    f"{_ROWS}: column {name!r} must contain true and false, as in fit, got {example}. Convert it."
                )
            codes[name] = codes_of(series, known, _ROWS)
            known_values = series.notna().to_numpy()
            strange, present = (codes[name] < 0) & known_values, int(known_values.sum())
            missing[name] = len(frame) - present
            most = present >= _FEWEST_ROWS and strange.sum() >= _STRANGE * present
            if name in self.used and (most or strange.sum() == present >= _FEWEST_STRANGE):
                example = series[strange].iloc[0]
                warnings.warn(
                    f"{_ROWS}: {strange.sum() / present:.0%} of the values of column {name!r}, such as {example!r}, "
                    f"were not in fit (which had values such as {known[0]!r}). They count as missing.",
                    UnknownCategories,
                    stacklevel=2,
                )
        if len(frame) >= _FEWEST_ROWS:
            self._tell_gaps({name: number / len(frame) for name, number in missing.items()})
        return numbers, codes

    def _tell_gaps(self, missing: Mapping[str, float]) -> None:
        """Warn of columns that are missing in at least half of the rows, and at least twice as often as in training.

        `missing` is the share of rows by column.
        """
        for name, now in missing.items():
            before = self.gaps[name]
            if name in self.used and now >= max(_STRANGE, 2 * before):
                warnings.warn(
                    f"{_ROWS}: {now:.0%} of the values of column {name!r} are missing, but only {before:.0%} in fit. "
                    "Check that the column was read as in fit.",
                    UnlikeFit,
                    stacklevel=3,
                )


def as_frame(features: Any, *, fewest: int = 1) -> pd.DataFrame:
    """Return features as a frame; columns of an array are called x0, x1, ...

    Raises `DataError` for other types, no columns, or fewer than `fewest` rows.
    """
    features = as_pandas(features)
    if not isinstance(features, pd.DataFrame):
        if hasattr(features, "toarray"):
            raise DataError("X is a sparse matrix, which is not supported. Give X.toarray(), or a data frame.")
        array = np.asarray(features)
        if array.ndim != 2:
            raise DataError(f"{_ROWS} must have rows and columns, got an array of shape {array.shape}.")
        features = pd.DataFrame(array, columns=[f"x{number}" for number in range(array.shape[1])])
    features = features.infer_objects()  # numbers may be of dtype object: a transposed frame, a row, some databases
    if features.shape[0] < fewest or not features.shape[1]:
        found = f"{plural(features.shape[0], 'row')} and {plural(features.shape[1], 'column')}"
        raise DataError(f"{_ROWS} must have at least one row and one column of features, got {found}.")
    return features


def _stacked(columns: list[Any], rows: int, dtype: type) -> Any:
    return np.column_stack(columns) if columns else np.empty((rows, 0), dtype)


_FAR = 10.0
"""Distance, in ranges of the other values, from which a value is far away."""
_BEYOND = 0.1
"""Distance, in ranges, to which values of new rows are moved."""
_FEW = 0.04
"""Largest share of rows that may be far away. More rows are a group of values."""
_MARKED = 0.5
"""Largest share of rows with a single value that is far away."""
_MANY_VALUES = 20
"""Number of different values from which a single value far from them is a mark of missing values."""
_MOST_MARKS = 3
"""Largest number of values that may be marks of missing values, besides rare ones."""
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
