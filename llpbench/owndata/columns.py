"""From a frame or array of one's own to rows: what is a number or a category is learned from the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import Rows
from llpbench.core.effects import FeatureEffect
from llpbench.core.errors import DataError
from llpbench.core.text import plural
from llpbench.data.frames import codes_of, is_numeric, read_features, read_numbers
from llpbench.data.tasks import Scaler

_FEWEST_ROWS = 20
"""of a table in which different, or unknown, values everywhere are no chance"""


class LikelyIdentifier(UserWarning):
    """A column that looks like an identifier is taken as a feature."""


def identifier_warning(frame: pd.DataFrame) -> str:
    """One line that names the columns which look like identifiers, and says how to leave them out; "" if none does.

    Every value is another one, and these are texts, or whole numbers that run up or down, or without a gap.
    """
    found = [str(name) for place, name in enumerate(frame.columns) if _is_identifier(frame.iloc[:, place])]
    if not found:
        return ""
    return (
        f"taken as features, though no value stands twice, as in identifiers: {', '.join(map(repr, found))}. To leave "
        f"out: --leave-out {','.join(found)}, in Python X.drop(columns={found})."
    )


def _is_identifier(series: pd.Series) -> bool:
    known = series.dropna()
    if len(known) < _FEWEST_ROWS or not known.is_unique:
        return False
    if not is_numeric(known, "X"):
        return True
    numbers = known.to_numpy(dtype=np.float64)
    steps = np.diff(numbers)
    running = bool((steps > 0).all() or (steps < 0).all()) or np.ptp(numbers) == len(numbers) - 1
    return running and bool((numbers == np.floor(numbers)).all())


class UnknownCategories(UserWarning):
    """No value of a column is a category that `fit` saw."""


class FeatureColumns:
    """The features of the training rows, and any rows with the same columns as `Rows`."""

    def __init__(self, frame: pd.DataFrame, numbers: str = "z") -> None:
        """`numbers`: how they are scaled (`cell.NUMBERS`).

        Raises `DataError` for what cannot be read, with the name of the column.
        """
        self.names = [str(name) for name in frame.columns]
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise DataError(f"X has two columns called {repeated[0]!r}. Rename one of them.")
        numeric, categorical = read_features(frame, "X")
        self.numeric, self.categorical = list(numeric), list(categorical)
        for name, values in numeric.items():
            known = values[np.isfinite(values)]
            if len(known) and np.ptp(known) > 0 and known.std() == 0:
                raise DataError(
                    f"X: numbers of column {name!r}, such as {known[0]:g}, are too small to compute with. Give it in "
                    "smaller units, or leave it out."
                )
        self.categories = [list(names) for _, names in categorical.values()]
        self.scaler = Scaler(
            _stacked(list(numeric.values()), len(frame), np.float64),
            _stacked([codes for codes, _ in categorical.values()], len(frame), np.int64),
            self.categories,
            numbers,
        )

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Codes of each categorical feature, that of what is missing included."""
        return tuple(len(names) + 1 for names in self.categories)

    @property
    def texts(self) -> list[str]:
        """The categorical columns but those of true and false, which files write in several ways."""
        pairs = zip(self.categorical, self.categories, strict=True)
        return [name for name, categories in pairs if not set(categories) <= {"True", "False"}]

    def named(self, effects: Iterable[FeatureEffect]) -> list[FeatureEffect]:
        """Effects of features by the names of the columns, in their units and categories."""
        return self.scaler.named(effects, self.numeric, self.categorical)

    def __call__(self, frame: pd.DataFrame) -> Rows:
        """Rows, columns by their names in any order. Raises `DataError` if the columns are others than in training;
        warns where none of many values is a category of theirs (`UnknownCategories`)."""
        names = [str(name) for name in frame.columns]
        absent, foreign = sorted(set(self.names) - set(names)), sorted(set(names) - set(self.names))
        if absent or foreign or len(names) > len(self.names):
            told = [f"lacks {plural(len(absent), 'column')} ({', '.join(absent[:5])})"] if absent else []
            told += [f"has {plural(len(foreign), 'column')} that fit did not see ({', '.join(foreign[:5])})"] * bool(
                foreign
            )
            raise DataError(f"X {' and '.join(told) or 'has a column twice'}. Give the columns of fit.")
        numbers = []
        for name in self.numeric:
            series = frame.iloc[:, names.index(name)]
            if not (series.isna().all() or is_numeric(series, "X") or series.dtype == bool):
                example = series[pd.to_numeric(series, errors="coerce").isna() & series.notna()]
                example = (example if len(example) else series.dropna()).iloc[0]
                raise DataError(f"X: column {name!r} held numbers in fit, and now holds {example!r}. Turn it back.")
            numbers.append(read_numbers(series, "X"))
        codes = []
        for name, known in zip(self.categorical, self.categories, strict=True):
            series = frame.iloc[:, names.index(name)]
            if set(known) <= {"True", "False"} and not series.isna().all() and is_numeric(series, "X"):
                example = series.dropna().iloc[0]
                raise DataError(
                    f"X: column {name!r} held true and false in fit, and now holds {example}. Turn it back."
                )
            codes.append(codes_of(series, known, "X"))
            present = series.dropna()
            if len(present) >= _FEWEST_ROWS and (codes[-1] < 0).all():
                warnings.warn(
                    f"X: no value of column {name!r}, such as {present.iloc[0]!r}, was in fit, where it held values "
                    f"such as {known[0]!r}: all rows are predicted as if it were unknown.",
                    UnknownCategories,
                    stacklevel=2,
                )
        return self.scaler(_stacked(numbers, len(frame), np.float64), _stacked(codes, len(frame), np.int64))


def as_frame(features: Any, *, fewest: int = 1) -> pd.DataFrame:
    """Features as a frame; the columns of an array are x0, x1, ... Raises `DataError` if they are neither, have no
    column or not so many rows."""
    if not isinstance(features, pd.DataFrame):
        if hasattr(features, "toarray"):
            raise DataError("X is a sparse matrix, which is not supported. Give X.toarray(), or a data frame.")
        array = np.asarray(features)
        if array.ndim != 2:
            raise DataError(f"X must have rows and columns, got it is of shape {array.shape}.")
        features = pd.DataFrame(array, columns=[f"x{number}" for number in range(array.shape[1])])
    features = features.infer_objects()  # numbers may be of dtype object: a transposed frame, a row, some databases
    if features.shape[0] < fewest or not features.shape[1]:
        raise DataError(f"X has {plural(features.shape[0], 'row')} and {plural(features.shape[1], 'column')}.")
    return features


def _stacked(columns: list[Any], rows: int, dtype: type) -> Any:
    return np.column_stack(columns) if columns else np.empty((rows, 0), dtype)
