"""Bins of very many rows: the bins of `Components.bin`, found with a grid instead of a binary search.

A number is rounded down to a cell of a regular grid. Rounding keeps the order of numbers, so all numbers in a cell
without an edge have the same bins, which a table holds. Only numbers in the cells of edges are searched for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench.blocks.binning import FeatureBins
from llpbench.blocks.components import Binned, Components
from llpbench.core.bags import Rows

_CELLS = 4096
_EDGE = 255
"""Entry of a table for a cell with an edge. Bins are smaller."""


class GridBins:
    """The bins of all features. Fast for rows whose arrays are stored column by column."""

    def __init__(self, components: Components) -> None:
        """Build the tables."""
        pairs = zip(components.fine_bins, components.coarse_bins, strict=True)
        self._pairs = [*pairs]
        self._grids = [_Grid(fine, coarse) for fine, coarse in self._pairs if fine.positions is not None]

    def __call__(self, rows: Rows) -> Binned:
        """Return rows as bins."""
        numbers = rows.numeric.shape[1]
        both = np.empty((2, len(self._pairs), len(rows.numeric)), dtype=np.uint8)
        for i, (fine, coarse) in enumerate(self._pairs):
            if i < numbers:
                self._grids[i](np.ascontiguousarray(rows.numeric[:, i]), both[0, i], both[1, i])
                if (missing := rows.missing[:, i]).any():
                    both[0, i][missing], both[1, i][missing] = fine.size - 1, coarse.size - 1
            else:
                codes = rows.categorical[:, i - numbers]
                for bins, place in ((fine, both[0, i]), (coarse, both[1, i])):
                    place[:] = bins.table.astype(np.uint8)[np.where(codes < len(bins.table), codes, 0)]
        return Binned(both[0], both[1])  # type: ignore[arg-type]


class _Grid:
    """Fine and coarse bins of a number that is not missing."""

    def __init__(self, fine: FeatureBins, coarse: FeatureBins) -> None:
        self._edges = [fine.table, coarse.table]
        every = np.concatenate(self._edges)
        self._low = np.float32(every.min() if len(every) else 0.0)
        with np.errstate(over="ignore", divide="ignore"):
            scale = np.float32(_CELLS - 2) / (np.float32(every.max() if len(every) else 0.0) - self._low)
        self._scale = scale if np.isfinite(scale) else np.float32(1.0)
        # the first cell also has all numbers below the edges, the last one all numbers above
        cells = np.arange(_CELLS)
        edges_in = [self._cells(edges.astype(np.float32)) for edges in self._edges]
        mixed = np.isin(cells, np.concatenate(edges_in))
        self._tables: list[Any] = [
            np.where(mixed, _EDGE, np.searchsorted(np.sort(inside), cells)).astype(np.uint8) for inside in edges_in
        ]

    def _cells(self, values: Any) -> Any:
        """Return the cells of numbers, as a function that never decreases."""
        with np.errstate(over="ignore", invalid="ignore"):
            place = values - self._low
            place *= self._scale
        return np.clip(place, 0, _CELLS - 1, out=place).astype(np.intp)

    def __call__(self, values: Any, *places: Any) -> None:
        """Write the fine and the coarse bins of `values` [rows] to `places` [rows]."""
        cells = self._cells(values)
        for table, place in zip(self._tables, places, strict=True):
            np.take(table, cells, out=place, mode="clip")
        if len(near := np.flatnonzero(places[0] == _EDGE)):
            for edges, place in zip(self._edges, places, strict=True):
                place[near] = np.searchsorted(edges, values[near], side="right")
