"""Parsing of baggings: convert a text such as `ordered:columns=age+workclass` into a function and its options.

A bagging is a function `(table, rows, size, rng, **options) -> [bags, size]` that returns row numbers. It is registered
by `@register_bagging(name)`; the built-in ones are in `datasets/bagging_*.py`. A bagging that decides the sizes of its
bags takes no `size`: `(table, rows, rng, **options)`. It pads its result with -1 (`grouped`).

Keyword-only parameters are options. Options without a default are required, and their values are names. In a text,
options follow the name as `:option=value`. `+` joins several values of one option. The engine adds the options
`OWN_SIZES` to baggings without a size (`splits.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.ranges import AtLeast, Choice, read_value
from llpbench.core.registry import BAGGINGS
from llpbench.core.tables import Table
from llpbench.core.text import hint

OWN_SIZES: Mapping[str, Any] = {"least": 1, "most": 0, "split": "rows"}
"""Options of every bagging without a size, in addition to its own, and their defaults.

A bagging without a size assigns every row to a bag, which may have one row or half of the table.

- `least`, `most`: limits on the rows of a training bag; `most` 0 is no limit. If rows are split, validation and test
  bags have an eighth of the rows of training bags, and an eighth of these limits. A bag with fewer than `least` rows
  is dissolved. A bag with more than `most` rows is reduced to `most` random rows. The rows left over are in no bag
  (validation and test rows are still evaluated).
- `split`: `rows` splits rows 80/10/10, stratified by class, so the bags of test rows also have training rows. `bags`
  splits bags, so the bags of validation and test rows have no training rows.
"""

_SIZE_HINTS = {
    "least": Annotated[int, AtLeast(1)],
    "most": Annotated[int, AtLeast(0)],
    "split": Annotated[str, Choice("rows", "bags")],
}


def shuffled(rows: IntArray, rng: Generator) -> IntArray:
    """Return `rows` in random order.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbench import shuffled
    >>> sorted(shuffled(np.arange(4), np.random.default_rng(0)).tolist())
    [0, 1, 2, 3]
    """
    # Raw bits are the same in all releases of numpy, unlike Generator.permutation.
    return rows[np.argsort(rng.bit_generator.random_raw(len(rows)), kind="stable")]


def grouped(rows: IntArray, keys: NDArray[Any]) -> IntArray:
    """Return rows with equal keys as bags [bags, longest], padded with -1, in ascending order of their keys.

    `rows` [rows], `keys` [rows] or [rows, parts]; missing keys (NaN) are one key. Rows keep their order within a bag.

    Examples
    --------
    >>> import numpy as np
    >>> from llpbench import grouped
    >>> grouped(np.array([10, 11, 12]), np.array(["b", "a", "b"])).tolist()
    [[11, -1], [10, 12]]
    """
    if keys.ndim > 1:  # as whole numbers, missing values are equal
        keys = np.column_stack([np.unique(part, return_inverse=True)[1] for part in keys.T])
    _, bag_of_row = np.unique(keys, axis=0, return_inverse=True)
    bag_of_row = bag_of_row.ravel()
    sizes = np.bincount(bag_of_row)
    order = np.argsort(bag_of_row, kind="stable")
    position = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    bags = np.full((len(sizes), sizes.max()), -1, dtype=np.int64)
    bags[bag_of_row[order], position] = rows[order]
    return bags


def column_keys(table: Table, rows: IntArray, name: str) -> NDArray[Any]:
    """Return numbers `[rows]` that sort like a column: numbers ascend, categories by their string, missing last.

    The column is a feature or a key (`Table.keys`).

    Raises `DataError` if the table has no such column.
    """
    require_column(table.name, name, (*table.keys, *table.categorical_names, *table.numeric_names))
    if name in table.numeric_names:
        return np.asarray(table.numeric[rows, table.numeric_names.index(name)])  # NaN is sorted last
    if name in table.categorical_names:
        column = table.categorical_names.index(name)
        codes = table.categorical[rows, column]
        return np.asarray(np.where(codes < 0, len(table.categories[column]), codes))
    return np.asarray(table.keys[name][rows])


def require_column(dataset: str, name: str, columns: Sequence[str]) -> None:
    """Raise `DataError` if `columns` of a dataset, its keys and features, do not include `name`."""
    if name not in columns:
        advice = f"{hint(name, columns)}It has: {', '.join(columns)}."
        raise DataError(f"dataset {dataset!r} has no column {name!r}. {advice}")


def is_sized(name: str) -> bool:
    """Return whether a bagging takes a bag size. If not, it decides the sizes of its bags."""
    return not {"size", "_size"}.isdisjoint(inspect.signature(BAGGINGS.get(name)).parameters)


def needed_options(name: str) -> list[str]:
    """Return the required options of a bagging, which have no default."""
    return [option for option, default in options_of(name).items() if default is inspect.Parameter.empty]


def options_of(name: str) -> dict[str, Any]:
    """Return the options of a bagging with their defaults.

    Options are its keyword-only parameters, and `OWN_SIZES` if it has no size. Raises `LLPBenchError` for a wrong
    signature.
    """
    parameters = inspect.signature(BAGGINGS.get(name)).parameters.values()
    options = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
    others = [each.name.lstrip("_") for each in parameters if each.name not in options]
    if others not in (["table", "rows", "size", "rng"], ["table", "rows", "rng"]):
        raise LLPBenchError(
            f"bagging {name!r} must take (table, rows, size, rng), without size if it decides the sizes of its bags, "
            f"and options after a *, got ({', '.join(others)}). Fix {BAGGINGS.entry(name).where}."
        )
    if "size" in others:
        return options
    if taken := options.keys() & OWN_SIZES.keys():
        told = f"bagging {name!r} has an option {min(taken)!r}, which every bagging without a size has"
        raise LLPBenchError(f"{told}. Rename it in {BAGGINGS.entry(name).where}.")
    return {**options, **OWN_SIZES}


def parse_bagging(text: str) -> tuple[str, dict[str, Any]]:
    """Return `"ordered:columns=age+workclass"` as `("ordered", {"columns": ("age", "workclass")})`.

    Raises `LLPBenchError` for an unknown bagging or option, and for a value of another type than the option's.
    """
    name, *parts = text.strip().split(":")
    entry = BAGGINGS.entry(name.strip())
    known = options_of(entry.name)
    options: dict[str, Any] = {}
    for part in parts:
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if option not in known:
            has = f"It has: {', '.join(known)}." if known else "It has none."
            raise LLPBenchError(f"bagging {entry.name!r} has no option {option!r} (in {text!r}). {has}")
        if not equals or not value:
            raise LLPBenchError(f"option {option!r} in {text!r} has no value. Write {entry.name}:{option}=VALUE.")
        if option in options:
            raise LLPBenchError(f"option {option!r} is given twice in {text!r}. Give it once.")
        what = f"option {option!r} in {text!r}"
        options[option] = _read(value, known[option], _hints(entry.name).get(option), what)
    options = {option: value for option, value in options.items() if value != known[option]}  # without defaults
    for option in needed_options(entry.name):
        if option not in options:
            one = f"{entry.name}:{option}=NAME"
            needs = f"bagging {entry.name!r} needs the option {option!r}"
            raise LLPBenchError(f"{needs}. Write {one}, or {one}+NAME for several.")
    least, most = options.get("least", 1), options.get("most", 0)
    if not is_sized(entry.name) and 0 < most < least:
        raise LLPBenchError(f"most={most} is below least={least} in {text!r}. Fix them.")
    return entry.name, options


def format_bagging(name: str, options: Mapping[str, Any]) -> str:
    """Return the canonical text of a bagging for `parse_bagging`, with options in alphabetical order."""
    texts = {key: "+".join(map(str, value)) if isinstance(value, tuple) else value for key, value in options.items()}
    return ":".join([name, *(f"{option}={text}" for option, text in sorted(texts.items()))])


def _read(value: str, default: object, hint: Any, what: str) -> Any:
    """Return the value of an option; names if its default is a tuple or missing. `what` names the option in errors."""
    if isinstance(default, tuple) or default is inspect.Parameter.empty:
        return tuple(part.strip() for part in value.split("+"))
    plain = get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    if not {bool, int, float, str}.intersection(get_args(plain) or (plain,)):
        hint = type(default) if isinstance(default, int | float) else str
    return read_value(what, value, hint)


def _hints(name: str) -> Mapping[str, Any]:
    """Return annotations of the options of a bagging; none if an annotation cannot be evaluated."""
    try:
        return {**_SIZE_HINTS, **get_type_hints(BAGGINGS.get(name), include_extras=True)}
    except Exception:  # of a plugin: such as names that are imported for type checkers alone
        return _SIZE_HINTS


_FREQUENT = 0.01
"""smallest fraction of rows with which a category gets a column; rare ones would outnumber all other features"""
ROUNDING = 1e-12
"""relative rounding error of a mean; numbers with a smaller standard deviation count as equal"""


def standardised(table: Table, rows: IntArray) -> FloatArray:
    """Return standardised features `[rows, columns]` float64: numbers, then frequent categories as 0 or 1.

    Columns have mean 0 and standard deviation 1. Missing numbers have the mean; missing categories have no column.
    Constant columns are 0.
    """
    numeric = table.numeric[rows]
    known = ~np.isnan(numeric)
    mean = np.where(known, numeric, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    parts = [np.where(known, numeric, mean)]
    for column, names in enumerate(table.categories):
        codes = table.categorical[rows, column]
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        parts.append((codes[:, None] == np.flatnonzero(counts >= _FREQUENT * len(rows))).astype(np.float64))
    features = np.column_stack(parts)
    mean = features.mean(axis=0)
    features = features - mean
    std = features.std(axis=0)
    constant = std <= ROUNDING * np.abs(mean)
    return np.where(constant, 0.0, features / np.where(constant, 1.0, std))
