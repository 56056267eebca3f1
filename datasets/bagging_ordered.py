"""Ordered bags: neighbours in the raw features share a bag, so bags differ in their class proportions."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import IntArray
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys


@register_bagging("ordered", version=1)
def ordered(table: Table, rows: IntArray, size: int, rng: Generator, *, columns: tuple[str, ...] = ()) -> IntArray:
    """Sort rows by their raw features, column by column, and cut into bags.

    Categorical columns come first, then numeric ones, each in dataset order. `columns` uses only the given columns in
    their order. Numbers ascend, categories ascend by their string, and missing values come last. Ties are in random
    order.
    """
    names = columns or (*table.categorical_names, *table.numeric_names)
    keys = [column_keys(table, rows, name) for name in names]
    tie = rng.bit_generator.random_raw(len(rows))
    return rows[np.lexsort([tie, *reversed(keys)])].reshape(-1, size)  # lexsort: the last key is the primary one
