"""Random bags: every bag has nearly the overall class proportions, which is the hardest case."""

from __future__ import annotations

from numpy.random import Generator

from llpbench.core.bags import IntArray
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import shuffled


@register_bagging("random", version=1)
def _random(table: Table, rows: IntArray, size: int, rng: Generator) -> IntArray:
    """Cut rows in random order into bags."""
    return shuffled(rows, rng).reshape(-1, size)
