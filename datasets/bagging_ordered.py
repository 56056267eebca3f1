"""Ordered bags: neighbours in the raw features share a bag, so that bags differ in their class proportions."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import IntArray
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table


@register_bagging("ordered")
def ordered(table: Table, rows: IntArray, size: int, rng: Generator, *, columns: tuple[str, ...] = ()) -> IntArray:
    """Sort rows by their raw features, column by column, and cut into bags.

    Categorical columns come first and then numeric ones, each in dataset order, or `columns` alone in the order given.
    Numbers ascend, categories ascend by their string, missing values come last, ties fall at random.
    """
    names = columns or (*table.categorical_names, *table.numeric_names)
    keys = [_sort_key(table, rows, name) for name in names]
    tie = rng.bit_generator.random_raw(len(rows))
    return rows[np.lexsort([tie, *reversed(keys)])].reshape(-1, size)  # lexsort: the last key weighs most


def _sort_key(table: Table, rows: IntArray, name: str) -> Any:
    """`[rows]` numbers that sort as the column does, missing last."""
    if name in table.numeric_names:
        return table.numeric[rows, table.numeric_names.index(name)]  # lexsort puts NaN last
    if name in table.categorical_names:
        column = table.categorical_names.index(name)
        codes = table.categorical[rows, column]
        return np.where(codes < 0, len(table.categories[column]), codes)
    names = (*table.categorical_names, *table.numeric_names)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise LLPBenchError(f"dataset {table.name!r} has no column {name!r}. {hint}It has: {', '.join(names)}.")
