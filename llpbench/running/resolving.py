"""Cells with the registry entries that their names stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from llpbench.core.cell import Cell
from llpbench.core.entries import Entry
from llpbench.core.registry import ENCODERS, METHODS
from llpbench.data.baggings import parse_bagging
from llpbench.data.specs import DatasetSpec, dataset_spec


class Resolved(NamedTuple):
    """A cell and what its names stand for. Only in the driver: processes of jobs look up names themselves."""

    cell: Cell
    method: Entry
    encoder: Entry | None
    dataset: DatasetSpec
    bagging: Mapping[str, Any]
    """Options of the bagging."""


def resolver() -> Callable[[Cell], Resolved]:
    """Return a function that looks up the names of cells, each name once."""
    dataset, options = cache(dataset_spec), cache(lambda text: parse_bagging(text)[1])

    def resolve(cell: Cell) -> Resolved:
        encoder = None if cell.encoder is None else ENCODERS.entry(cell.encoder)
        return Resolved(cell, METHODS.entry(cell.method), encoder, dataset(cell.dataset), options(cell.bagging))

    return resolve
