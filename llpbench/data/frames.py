"""Conversion of a data frame into a `Table`: text is categorical, numbers are numeric, labels are classes.

Unsuitable data raise an error of one line with the name of the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import DataError, LLPBenchError, either
from llpbench.core.tables import TEXT_TYPES, PublishedBags, Table
from llpbench.core.text import one_line
from llpbench.tables.column_names import require_distinct
from llpbench.tables.texts import EXACT, as_text, factorized

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def table_from_frame(
    frame: DataFrame, *, name: str, target: str, positive: str | None = None, key_only: Sequence[str] = ()
) -> Table:
    """Return the table of a frame. Column `target` has the labels; all others are features, in the frame's order.

    Columns `key_only` make bags (`Table.keys`) and are not features.

    String, object, category and bool columns are categorical, numbers (including decimals) are numeric, nulls are
    missing. Whole numbers that become categories or classes lose their decimals: 3.0 is "3". Of two classes, `positive`
    (default: the later in string order) gets label 1. More classes are in string order.

    Raises `DataError` for: a repeated column name, no rows, no features, an absent target, nulls or fewer than two
    classes in the target, numbers that cannot be classes, an infinite or wholly missing column, an unsupported type.
    """
    columns, owner = [str(column) for column in frame.columns], f"dataset {name!r}"
    require_distinct(columns, owner)
    if target not in columns:
        raise DataError(f"{owner} has no target column {target!r}. Its columns are: {', '.join(columns)}.")
    if len(frame) == 0:
        raise DataError(f"{owner} has no rows. Give a file with data.")
    if absent := [column for column in key_only if column not in columns]:
        raise DataError(f"{owner} has no key column {absent[0]!r}. Its columns are: {', '.join(columns)}.")
    features = [position for position, column in enumerate(columns) if column not in (target, *key_only)]
    if not features:
        raise DataError(f"{owner} has no features, only its target {target!r}. Add feature columns.")
    labels, classes = _labels(frame.iloc[:, columns.index(target)], owner, target, positive)
    keys = {column: _frozen(_key(frame.iloc[:, columns.index(column)], owner)) for column in key_only}
    read = _features(frame.iloc[:, features], owner)
    return Table(**read, name=name, labels=_frozen(labels), classes=classes, keys=keys)


def table_from_bags(frame: DataFrame, bags: DataFrame, *, name: str, by: Sequence[str], noise: float) -> Table:
    """Return the table of a frame without labels. Columns `by` identify a row's bag; all others are features.

    `bags` has one row per bag: the columns `by`, and one column per class with counts (null if suppressed). Keys are
    compared as texts. Classes are in string order.

    Raises `DataError` for an absent column, rows without a bag, bags without rows, counts that do not match their rows,
    and as `read_features` does.
    """
    import pandas as pd

    from llpbench.data.reading_bags import read_bag_labels, read_bag_table  # imports pandas

    frame, bags = frame.rename(columns=str), bags.rename(columns=str)
    for what, table in (("", frame), ("the bags of ", bags)):
        if absent := [column for column in by if column not in table.columns]:
            raise DataError(f"{what}dataset {name!r} has no column {absent[0]!r}. It has: {', '.join(table.columns)}.")
    keys = [pd.DataFrame({column: as_text(table[column]) for column in by}) for table in (frame, bags)]
    counts = bags.drop(columns=[*by])
    if counts.shape[1] < 2:
        raise DataError(f"the bags of dataset {name!r} have counts of one class. Give one column per class.")
    counts = counts[sorted(counts.columns, key=str)]
    counts.index = pd.Index(keys[1].iloc[:, 0]) if len(by) == 1 else pd.MultiIndex.from_frame(keys[1])
    try:
        labels = read_bag_labels(keys[0], frame)
        known = read_bag_table(None, counts, labels)
        if known.ends is not None:
            raise LLPBenchError("counts as ranges work only in fit. Give NaN for unknown values.")
        labels = labels.matched(replace(known, at_fit=False))  # datasets have no option `unmatched`
        found = known.counts(labels, noise)
        classes = known.classes(None)
    except LLPBenchError as error:
        raise DataError(f"dataset {name!r}: {error}") from error
    return Table(
        **_features(frame.drop(columns=[*by]), f"dataset {name!r}"),
        name=name,
        labels=None,
        classes=tuple(map(str, classes)),
        published=PublishedBags(_frozen(labels.of_row), _frozen(found), noise),
    )


def _features(frame: DataFrame, owner: str) -> dict[str, Any]:
    numeric, categorical = read_features(frame, owner)
    return {
        "numeric": _stack(list(numeric.values()), len(frame), np.float64),
        "categorical": _stack([codes for codes, _ in categorical.values()], len(frame), np.int64),
        "numeric_names": tuple(numeric),
        "categorical_names": tuple(categorical),
        "categories": tuple(names for _, names in categorical.values()),
    }


def read_features(
    frame: DataFrame, owner: str
) -> tuple[dict[str, FloatArray], dict[str, tuple[IntArray, tuple[str, ...]]]]:
    """Return numbers `[rows]` (NaN if missing) and codes `[rows]` (-1 if missing) with their categories, by column.

    Raises `DataError` for columns with infinite values, without any value, or of an unsupported type. `owner` of the
    columns is part of the message, such as "dataset 'credit'".
    """
    numeric: dict[str, FloatArray] = {}
    categorical: dict[str, tuple[IntArray, tuple[str, ...]]] = {}
    for position, column in enumerate(map(str, frame.columns)):
        series = frame.iloc[:, position]
        if series.isna().all():
            advice = either("Leave it out", "Use --leave-out")
            raise DataError(f"{owner}: column {column!r} contains only missing values. {advice}.")
        if is_numeric(series, owner):
            numeric[column] = read_numbers(series, owner)
        else:
            categorical[column] = _encode(series)
    return numeric, categorical


def read_parquet(path: Path) -> DataFrame:
    """Return the frame in a parquet file. Raises `DataError` if it is missing or damaged, or if it repeats a column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            require_distinct(file.schema_arrow.names, f"file {str(path)!r}")
            return file.read().to_pandas()
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        # for a truncated file pyarrow raises many types of errors, such as ArrowInvalid or OSError
        raise DataError.of(path, f"cannot be read as parquet ({one_line(error)}). Replace it.") from error


def _key(series: Series, owner: str) -> NDArray[Any]:
    """Return numbers `[rows]` that sort like the values, missing last: the numbers themselves, or their ranks.

    Texts have ranks, and whole numbers that are too large for floats, such as identifiers.
    """
    if is_numeric(series, owner):
        numbers = read_numbers(series, owner)
        rounded = series.dtype.kind in "iu" and (np.abs(numbers) >= EXACT).any()
        return read_numbers(series.rank(method="dense"), owner) if rounded else numbers
    codes, texts = _encode(series)
    return np.where(codes < 0, len(texts), codes)


def _labels(series: Series, owner: str, target: str, positive: str | None) -> tuple[IntArray, tuple[str, ...]]:
    if missing := int(series.isna().sum()):
        raise DataError(f"{owner}: {missing:,} of {len(series):,} targets ({target!r}) are null. Drop them.")
    if is_numeric(series, owner):
        values = series.to_numpy(dtype=np.float64)
        if broken := [*values[values != np.floor(values)], *values[np.isinf(values)]]:
            told = f"target {target!r} must contain classes, got {broken[0]:g}"
            raise DataError(f"{owner}: {told}. Convert it to classes.")
    labels, classes = _encode(series)
    if len(classes) < 2:
        raise DataError(f"{owner}: every target ({target!r}) is {classes[0]!r}. There must be two classes.")
    if positive is None:
        return labels, classes
    if len(classes) > 2 or positive not in classes:
        few = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
        raise DataError(f"{owner}: {positive!r} is not one of two classes of {target!r}, which are: {few}.")
    return (labels, classes) if classes[1] == positive else (1 - labels, classes[::-1])


def is_numeric(series: Series, owner: str) -> bool:
    """Return whether a column holds numbers instead of categories. Raises `DataError` if it holds neither."""
    import pandas as pd
    from pandas.api import types

    dtype = series.dtype
    if types.is_bool_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return False
    if types.is_float_dtype(dtype) or types.is_integer_dtype(dtype):
        return True
    kind_of_values = str(dtype)
    if isinstance(dtype, pd.ArrowDtype) and dtype.type is Decimal:
        return True
    if types.is_object_dtype(dtype) or types.is_string_dtype(dtype):
        if types.infer_dtype(series, skipna=True) == "string":  # much faster than the types of all values
            return False
        kinds = {type(value) for value in series.dropna()}
        if kinds == {Decimal}:  # money in databases
            return True
        foreign = sorted(kind.__name__ for kind in kinds if not issubclass(kind, TEXT_TYPES))
        if not foreign:
            return False
        kind_of_values = " or ".join(foreign)
    told = f"column {str(series.name)!r} is of type {kind_of_values}, which is not supported"
    raise DataError(f"{owner}: {told}. Convert it to numbers or text, or leave it out.")


def read_numbers(series: Series, owner: str) -> FloatArray:
    """Return a numeric column as float64 `[rows]`, NaN if missing."""
    values: FloatArray = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if len(infinite := np.flatnonzero(np.isinf(values))):
        told = f"column {str(series.name)!r} contains an infinite value, first in data row {infinite[0] + 1}"
        raise DataError(f"{owner}: {told}. Replace it with a number or a null.")
    return values


def _encode(series: Series) -> tuple[IntArray, tuple[str, ...]]:
    """Return codes `[rows]`, -1 if missing, and the categories in ascending order of their strings."""
    codes, names = factorized(series)
    # several values may have the same string (1 and "1"); code -1 selects the last entry
    order, ranks = np.unique(np.array(names, dtype=object), return_inverse=True)
    return np.append(ranks, -1)[codes], tuple(order)


def _stack(columns: list[Any], rows: int, dtype: type) -> Any:
    return _frozen(np.column_stack(columns) if columns else np.empty((rows, 0), dtype))


def _frozen(array: Any) -> Any:
    """Make an array read-only and return it, since all cells of a process share a table."""
    array.setflags(write=False)
    return array
