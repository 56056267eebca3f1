"""Bags by columns: rows with equal keys (a district, a day, a carrier and an airport) share a bag of any size."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import IntArray
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys, grouped


@register_bagging("column", version=1, keyed=True)
def _column(table: Table, rows: IntArray, rng: Generator, *, by: tuple[str, ...]) -> IntArray:
    """Make a bag for each value of the key `by`: `column:by=native-country+education`. Key columns remain features."""
    return grouped(rows, np.column_stack([column_keys(table, rows, name) for name in by]))
