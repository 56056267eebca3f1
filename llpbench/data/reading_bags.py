"""Bags of rows, and proportions or counts of bags, read from any form in which users have them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import LLPBenchError, argument
from llpbench.core.text import plural, verb
from llpbench.data.bag_tables import BagLabels, BagTable, shown
from llpbench.tables.number_text import Range
from llpbench.tables.texts import EXACT


def as_pandas(given: Any) -> Any:
    """Return a frame or column of another library (Polars, Arrow and others) in pandas, with its names.

    It is recognised by Arrow's interface for streams. Anything else is returned as it is. Raises `LLPBenchError` for
    sparse matrices and lazy frames.
    """
    if isinstance(given, pd.DataFrame | pd.Series):
        return given
    if not hasattr(given, "__arrow_c_stream__"):
        for method, kind in (("toarray", "sparse"), ("collect", "lazy")):
            if hasattr(given, method):
                raise LLPBenchError(f"data must not be {kind}, got {type(given).__name__}. Give its .{method}().")
        return given
    import pyarrow as pa

    if hasattr(given, "columns"):
        return pa.table(given).to_pandas()
    column = given if isinstance(given, pa.ChunkedArray) else pa.chunked_array(given)
    return column.to_pandas().rename(getattr(given, "name", None) or None)


def read_bag_labels(bags: Any, features: Any, weights: FloatArray | None = None) -> BagLabels:
    """Return the bag of each row from an array, series or list of bag names, or from a frame of natural keys.

    Names of natural keys are tuples. Names are matched to rows by position. Raises `LLPBenchError` if their number
    differs from the number of rows, or if both have an index with the same entries in different orders.
    """
    bags, features = as_pandas(bags), as_pandas(features)
    if not _has_entries(bags):
        column = isinstance(features, pd.DataFrame) and isinstance(bags, str) and bags in features.columns
        advice = f". Use bags=X[{bags!r}]." if column else ""
        must = "must contain the label of each row's bag, in an array, series or frame"
        raise LLPBenchError(f"bags {must}, got {bags!r}{advice}")
    bags = bags.to_frame(index=False) if isinstance(bags, pd.MultiIndex) else bags
    is_matrix = isinstance(bags, np.ndarray) and bags.ndim == 2
    frame = pd.DataFrame(bags) if is_matrix else bags if isinstance(bags, pd.DataFrame) else None
    if len(bags) != (rows := len(features)):
        advice = "Give the bag of each row."
        if isinstance(bags, pd.Series | pd.DataFrame) and isinstance(features, pd.DataFrame) and bags.index.is_unique:
            advice = "Give bags.loc[X.index]." if features.index.isin(bags.index).all() else advice
        raise LLPBenchError(f"bags has {len(bags):,} entries, {argument('X')} has {rows:,} rows. {advice}")
    if isinstance(bags, pd.Series | pd.DataFrame) and isinstance(features, pd.DataFrame):
        _require_same_order("bags", bags.index, features.index)
    if frame is None:
        labels = pd.Series(bags.to_numpy() if isinstance(bags, pd.Series) else bags)
    elif frame.shape[1] == 1:
        labels = frame.iloc[:, 0]
    else:
        labels = pd.Series(list(frame.itertuples(index=False, name=None)), dtype=object)
        labels[frame.isna().any(axis=1).to_numpy()] = None
    try:
        codes, uniques = pd.factorize(labels)
    except TypeError as error:
        raise LLPBenchError(f"bags must be labels such as numbers or texts, got {error}") from error
    names = uniques.tolist()
    try:
        order = sorted(range(len(names)), key=names.__getitem__)
    except TypeError:
        order = list(range(len(names)))
    place = np.append(np.argsort(order), -1)
    _require_exact(labels if frame is None or frame.shape[1] == 1 else frame)
    columns = None if frame is None else list(frame.columns)
    return BagLabels(place[codes], [names[number] for number in order], columns, weights)


def _require_exact(labels: pd.Series | pd.DataFrame | pd.Index) -> None:
    """Raise `LLPBenchError` for floats that are so large that different identifiers may be equal."""
    for _, column in labels.items() if isinstance(labels, pd.DataFrame) else [(None, labels)]:
        if column.dtype.kind == "f" and (large := np.asarray(column)[np.abs(np.asarray(column)) >= EXACT]).size:
            raise LLPBenchError(
                f"bags must be exact identifiers, got floats such as {large[0]:.0f}, which are too large to "
                "be exact, so different identifiers may have become equal. Read them as whole numbers (dtype Int64) or "
                "texts."
            )


def _require_same_order(what: str, given: pd.Index, rows: pd.Index) -> None:
    """Raise `LLPBenchError` if an argument and X share entries of their indexes, but not all in the same order.

    Both are matched by position, which would be wrong then. Indexes without a common entry say nothing about rows.
    """
    if given.equals(rows) or len(given) != len(rows) or not len(given.intersection(rows)):
        return
    differ = (place for place, (entry, row) in enumerate(zip(given, rows, strict=True)) if entry != row)
    if (first := next(differ, None)) is None:
        return
    same = given.is_unique and rows.is_unique and not len(given.difference(rows))
    reordered = f"{what}.loc[X.index], or " if given.is_unique and not len(rows.difference(given)) else ""
    entry, row = given.tolist()[first], rows.tolist()[first]
    raise LLPBenchError(
        f"{what} and X have {'the same index in different orders' if same else 'different indexes'}: entry {first} is "
        f"{entry!r} in {what} and {row!r} in X. Give {reordered}{what}.to_numpy() to match by position."
    )


def column_of_rows(given: Any, X: Any, what: str, advice: str) -> pd.Series:  # noqa: N803
    """Return an argument with an entry for each row of X as a column [rows].

    Raises `LLPBenchError` for another number of entries, and as `_require_same_order` does.
    """
    given = as_pandas(given)
    if isinstance(given, pd.Series) and isinstance(X, pd.DataFrame):
        _require_same_order(what, given.index, X.index)
    values = given if isinstance(given, list | tuple | pd.Series) else np.ravel(given)
    if len(values) != len(X):
        must = f"must have an entry for each of the {len(X):,} rows, got {len(values):,}"
        raise LLPBenchError(f"{argument(what)} {must}. {advice}")
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    return pd.Series(values, dtype=object if isinstance(values, list | tuple) else None)


def read_bag_table(proportions: Any, counts: Any, labels: BagLabels, sizes: Any = None) -> BagTable:
    """Return the proportions or counts of bags, and the `sizes` of whole bags (a mapping, series or array).

    Proportions or counts are a mapping, a series by bag or by bag and class, a frame with one column per class, or an
    array in the order of the bags. Raises `LLPBenchError` unless exactly one of the two is given and has numbers.
    """
    if (proportions is None) == (counts is None):
        both = f"{argument('proportions=')} and {argument('counts=')} cannot be combined. Give one of them."
        none = f"proportions or counts of bags are missing. Give {argument('counts=')}."
        raise LLPBenchError(both if counts is not None else none)
    is_counts = counts is not None
    given, what = (counts, "counts") if is_counts else (proportions, "proportions")
    columns: list[Hashable] | None = None
    given = _in_pandas(given, what, labels)
    by_class = isinstance(given, pd.Series) and given.index.nlevels == labels.keys + 1
    if by_class:
        given = _wide(given, what)
    named = isinstance(given, list | tuple) and all(isinstance(each, Mapping | pd.Series) for each in given)
    if named and len(given) == len(labels.names):
        given = dict(zip(labels.names, given, strict=True))
    if isinstance(given, Mapping) and given and all(isinstance(each, Mapping | pd.Series) for each in given.values()):
        columns = list(dict.fromkeys(key for value in given.values() for key in value.keys()))  # noqa: SIM118 (series)
        # a class that is missing in a bag's mapping has count 0, as in a long table; an empty mapping is unknown
        usual = {name: 0.0 if len(value) else np.nan for name, value in given.items()}
        given = {name: [value.get(column, usual[name]) for column in columns] for name, value in given.items()}
    elif isinstance(given, pd.DataFrame):
        if given.columns.nlevels > 1:
            got = f"{given.columns.nlevels} levels such as {given.columns[0]!r}"
            raise LLPBenchError(f"the columns of {what} must have one level (the classes), got {got}.")
        columns = list(given.columns) if given.shape[1] > 1 or not isinstance(given.columns, pd.RangeIndex) else None
    names, parts = _by_bag(given, what, labels, partial(_parts, ranged=is_counts))
    if columns and {*columns} & {*labels.names} and not {*names} & {*labels.names}:
        swapped = f"pandas.DataFrame({what})" if isinstance(given, Mapping) else f"{what}.T"
        must = "must have a row for each bag and a column for each class"
        advice = f"Give {f'{what}.swaplevel()' if by_class else swapped}."
        raise LLPBenchError(f"{what} {must}, got the column {columns[0]!r}. {advice}")
    ends, series = parts[1:] if len(parts) > 1 else None, (given.name,) if isinstance(given, pd.Series) else ()
    table = BagTable(names, parts[0], columns, is_counts, ends=ends, by_class=by_class, series=series)
    if sizes is None:
        return table
    numbers = values_of_bags(sizes, "sizes", names, labels, lambda *given: _parts(*given, ranged=False)[0])
    impossible = numbers[~((numbers >= 1) & (numbers % 1 == 0))]
    if numbers.shape[1] != 1 or len(impossible):
        some = f", got {impossible[0]:,.10g}" if len(impossible) else ""
        raise LLPBenchError(f"sizes must be whole numbers of rows, at least 1{some}. Give one number for each bag.")
    return replace(table, sizes=numbers[:, 0])


def values_of_bags(
    given: Any, what: str, names: Sequence[Hashable], labels: BagLabels, read: Callable[[Any, str], FloatArray]
) -> FloatArray:
    """Return values of bags by name [bags, ...] from a mapping, series or array in ascending order of `labels`.

    `read` converts all values. Raises `LLPBenchError` for bags without a value.
    """
    known, values = _by_bag(_in_pandas(given, what, labels), what, labels, read)
    place = {name: number for number, name in enumerate(known)}
    if lacking := [name for name in names if name not in place]:
        got = f"none for {plural(len(lacking), 'bag')} ({shown(lacking)})"
        advice = f"Give {argument(f'{what}=')} of all bags."
        raise LLPBenchError(f"{argument(what)} must be known for all bags, got {got}. {advice}")
    return np.asarray(values[[place[name] for name in names]])


def _in_pandas(given: Any, what: str, labels: BagLabels) -> Any:
    """Return values of bags in pandas, with index levels in the order of the rows' natural keys, matched by name.

    A column of another library becomes an array, because it has no index. Raises `LLPBenchError` for a frame of another
    library without an index.
    """
    found = as_pandas(given)
    if found is not given and isinstance(found.index, pd.RangeIndex):
        if isinstance(found, pd.Series):
            return found.to_numpy()
        first = repr(found.columns[0])
        advice = f"If {first} names the bags, give {what}.to_pandas().set_index({first})."
        raise LLPBenchError(f"{what} need an index that names the bags, got a frame without an index. {advice}")
    if not isinstance(found, pd.DataFrame | pd.Series) or labels.columns is None:
        return found
    levels, keys = list(found.index.names), labels.columns
    if len(set(levels)) < len(levels) or len(set(keys)) < len(keys) or not set(keys) <= set(levels):
        return found
    others = [level for level in levels if level not in keys]
    return found.reorder_levels([*keys, *others]) if len(levels) > 1 else found


def _by_bag(
    given: Any, what: str, labels: BagLabels, read: Callable[[Any, str], FloatArray]
) -> tuple[list[Hashable], FloatArray]:
    """Return the names of the bags and their values, which `read` converts [bags, ...]."""
    names: list[Hashable]
    if isinstance(given, pd.DataFrame | pd.Series):
        names, values = list(given.index), given
    elif isinstance(given, Mapping):
        names, values = list(given), list(given.values())
    else:
        if not _has_entries(given):
            must = "must be a mapping, series, frame or array with an entry for each bag"
            raise LLPBenchError(f"{what} {must}, got {given!r}.")
        names, values = list(labels.names), given
        if len(given) != len(names):
            raise LLPBenchError(
                f"{what} must have an entry for each of {len(names):,} bags, got {len(given):,}. Give the entries in "
                "ascending order of bags, or a mapping from bag to entry."
            )
        _require_clear_order(what, names, labels.of_row)
    if (repeated := pd.Index(names, tupleize_cols=False).duplicated()).any():
        again = names[int(repeated.argmax())]
        raise LLPBenchError(f"{what} must have one entry for each bag, got two for {again!r}. Remove one of them.")
    return names, read(values, what)


def _require_clear_order(what: str, names: Sequence[Hashable], of_row: IntArray) -> None:
    """Raise `LLPBenchError` for entries by position if texts or tuples do not appear in ascending order.

    `names`: bags in ascending order. `of_row` [rows]: index into `names`. Texts such as P0, P1, P10, P2 are ascending
    as texts only, and entries may as well be in the order of first appearance.
    """
    seen = pd.unique(of_row[of_row >= 0])
    wrong = np.flatnonzero(np.diff(seen, prepend=-1) != 1)
    if not len(wrong) or not any(isinstance(name, str | tuple) for name in names):
        return
    some = slice(wrong[0], wrong[0] + 3)
    appearing, ascending_ = (", ".join(map(repr, each[some])) for each in ([names[bag] for bag in seen], names))
    raise LLPBenchError(
        f"{what} without names of bags are ambiguous, because bags appear in the order {appearing}, ..., but their "
        f"ascending order is {ascending_}, ... Give a series, frame or mapping by bag."
    )


def _has_entries(given: Any) -> bool:
    try:
        len(given)
    except TypeError:  # also raised by an array without axes
        return False
    return not isinstance(given, str | bytes)


def _wide(series: pd.Series, what: str) -> pd.DataFrame:
    """Return one column per class from a series by bag and class. A class that a bag does not list has count 0."""
    index = series.index
    if nameless := int(np.any([np.asarray(codes) < 0 for codes in index.codes], axis=0).sum()):
        lack = f"{nameless:,} of {len(series):,} {what} {verb(nameless)}"
        raise LLPBenchError(f"{lack} no bag or no class. Fill in both.")
    if (repeated := index.duplicated()).any():
        *bag, label = index[int(repeated.argmax())]
        name = bag[0] if len(bag) == 1 else tuple(bag)
        raise LLPBenchError(f"{what} have two entries for class {label!r} of bag {name!r}. Remove one of them.")
    frame: pd.DataFrame = series.unstack(fill_value=0)
    classes: dict[str, Hashable] = {}
    for label in frame.columns:
        key = " ".join(str(label).casefold().split())
        if (other := classes.setdefault(key, label)) != label:
            told = f"classes must differ by more than capitals and spaces, got {other!r} and {label!r}"
            raise LLPBenchError(f"{told}. Give each class one name in {what}.")
    return frame


def _parts(values: Any, what: str, *, ranged: bool = True) -> FloatArray:
    """Return values as an array [1, bags, columns]; [3, bags, columns] if some are ranges and `ranged`.

    The three parts have NaN, the lower and the upper end in place of a range.
    """
    try:
        frame = values if isinstance(values, pd.DataFrame | pd.Series) else pd.DataFrame(list(values))
        ranges, cells = None, pd.DataFrame(frame)
        if ranged and not all(map(pd.api.types.is_numeric_dtype, cells.dtypes)):
            ranges = (cells := cells.astype(object)).map(Range.read)
            frame = cells.mask(ranges.notna() | cells.isna()) if ranges.notna().any(axis=None) else frame
        array: FloatArray = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        texts = [name for name in getattr(values, "columns", ()) if not pd.api.types.is_numeric_dtype(values[name])]
        hint = f" If {texts[0]!r} names the bags, give {what}=frame.set_index({texts[0]!r})." if texts else ""
        raise LLPBenchError(f"{what} must be numbers, or NaN if suppressed: {error}.{hint}") from error
    if not array.size:
        raise LLPBenchError(f"{what} are empty. Give the {what} of each bag.")
    array = np.asarray(array.reshape(len(array), -1))
    if np.isinf(array).any():
        raise LLPBenchError(f"{what} contain an infinite number. Give NaN for suppressed values.")
    if ranges is None or not (is_range := ranges.notna().to_numpy()).any():
        return array[None]
    parts = np.stack([array] * 3)
    parts[1:, is_range] = np.array([*ranges.to_numpy()[is_range]]).T
    return parts
