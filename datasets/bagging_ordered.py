"""Ordered bags: neighbours in the raw features share a bag, so that bags differ in their class proportions."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import IntArray
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys


@register_bagging("ordered")
def ordered(table: Table, rows: IntArray, size: int, rng: Generator, *, columns: tuple[str, ...] = ()) -> IntArray:
    """Sort rows by their raw features, column by column, and cut into bags.

    Categorical columns come first and then numeric ones, each in dataset order, or `columns` alone in the order given.
    Numbers ascend, categories ascend by their string, missing values come last, ties fall at random.
    """
    names = columns or (*table.categorical_names, *table.numeric_names)
    keys = [column_keys(table, rows, name) for name in names]
    tie = rng.bit_generator.random_raw(len(rows))
    return rows[np.lexsort([tie, *reversed(keys)])].reshape(-1, size)  # lexsort: the last key weighs most
