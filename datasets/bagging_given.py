"""Given bags: the bags of a dataset with counts and without labels."""

from __future__ import annotations

from numpy.random import Generator

from llpbench.core.bags import IntArray
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import grouped


@register_bagging("given", version=1)
def _given(table: Table, rows: IntArray, rng: Generator) -> IntArray:
    """Use the bags with published counts. In datasets without labels, validation and test consist of whole bags."""
    assert table.published is not None
    return grouped(rows, table.published.of_row[rows])
