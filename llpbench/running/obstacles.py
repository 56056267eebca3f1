"""Obstacles: reasons why a cell cannot run, such as data that cannot be loaded or bags larger than the split."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from llpbench.core.cell import Cell
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import ENCODERS, METHODS, Entry
from llpbench.data.loading import load_table, locate
from llpbench.data.specs import DatasetSpec, dataset_spec
from llpbench.data.splits import TableFacts, require_possible


class Resolved(NamedTuple):
    """A cell and what its names stand for. Only in the driver: processes of jobs look up names themselves."""

    cell: Cell
    method: Entry
    encoder: Entry | None
    dataset: DatasetSpec


def resolver() -> Callable[[Cell], Resolved]:
    """Return a function that looks up the names of cells, each name once."""
    dataset = cache(dataset_spec)

    def resolve(cell: Cell) -> Resolved:
        encoder = None if cell.encoder is None else ENCODERS.entry(cell.encoder)
        return Resolved(cell, METHODS.entry(cell.method), encoder, dataset(cell.dataset))

    return resolve


class Obstacle(NamedTuple):
    """Why a cell cannot run."""

    reason: str
    """The reason and what to do about it."""
    lasting: bool
    """Whether the cell itself is impossible. Otherwise its data could not be loaded this time."""


FindObstacle = Callable[[Resolved], Obstacle | None]


def obstacles(data_dir: str | None, *, load: bool) -> FindObstacle:
    """Return a function that returns the obstacle of a cell, or None. It reads each dataset once.

    With `load`, datasets are downloaded and checked. Otherwise their declarations are used, and cells of datasets with
    unknown size have no obstacle.
    """

    known: dict[str, TableFacts | Obstacle | None] = {}

    def find(one: Resolved) -> Obstacle | None:
        if one.cell.dataset not in known:
            try:
                known[one.cell.dataset] = _facts(one.dataset, data_dir, load=load)
            except LLPBenchError as error:
                known[one.cell.dataset] = Obstacle(str(error), lasting=False)
        facts = known[one.cell.dataset]
        if not isinstance(facts, TableFacts):
            return facts
        cell, method = one.cell, one.method
        try:
            require_possible(facts, cell.bagging, cell.bag_size, cell.max_bags)
        except LLPBenchError as error:
            return Obstacle(str(error), lasting=True)
        if not facts.is_labelled and method.load().supervision != "bags":
            reason = f"{cell.method!r} needs labels of rows, but {cell.dataset!r} has none. Leave it out."
            return Obstacle(reason, lasting=True)
        if (facts.classes or 2) > 2 and method.facts.get("classes") == "binary":
            reason = f"{cell.method!r} is for two classes, but {cell.dataset!r} has {facts.classes}. Leave it out."
            return Obstacle(reason, lasting=True)
        return None

    return find


def _facts(spec: DatasetSpec, data_dir: str | None, *, load: bool) -> TableFacts | None:
    """Return the facts of a dataset; None if they are unknown before its download. Raises `LLPBenchError`."""
    if not load:
        is_local = locate(spec, data_dir) is not None
        if (known := spec.facts) is not None and (is_local or spec.remote is not None):
            columns = (*spec.key_only, *known.categorical, *known.numeric)
            return TableFacts(spec.name, known.rows, len(known.classes) or None, columns, spec.bags is None)
        if not is_local and spec.remote is not None:
            return None
    return TableFacts.of(load_table(spec.name, data_dir, download=load))
