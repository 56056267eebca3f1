"""Obstacles: reasons why a cell cannot run, such as data that cannot be loaded or bags larger than the split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from llpbench.core.cell import GIVEN, Cell, is_without_labels
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import ENCODERS, METHODS, Entry
from llpbench.core.text import hint
from llpbench.data.baggings import parse_bagging
from llpbench.data.loading import load_table, locate
from llpbench.data.specs import DatasetSpec, dataset_spec
from llpbench.data.splits import largest_bag_size, too_few_bags, training_bags


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


class Obstacle(NamedTuple):
    """Why a cell cannot run."""

    reason: str
    """The reason and what to do about it."""
    lasting: bool
    """Whether the cell itself is impossible. Otherwise its data could not be loaded this time."""


FindObstacle = Callable[[Resolved], Obstacle | None]


class _Facts(NamedTuple):
    """Facts of a dataset that decide whether a cell can run."""

    rows: int
    classes: int | None
    """None if unknown."""
    columns: tuple[str, ...]
    """Names of keys and features; empty if unknown."""
    labelled: bool
    """Whether there are labels of rows."""


def obstacles(data_dir: str | None, *, load: bool) -> FindObstacle:
    """Return a function that returns the obstacle of a cell, or None. It reads each dataset once.

    With `load`, datasets are downloaded and checked. Otherwise their declarations are used, and cells of datasets with
    unknown size have no obstacle.
    """

    known: dict[str, _Facts | Obstacle | None] = {}

    def find(one: Resolved) -> Obstacle | None:
        if one.cell.dataset not in known:
            try:
                known[one.cell.dataset] = _facts(one.dataset, data_dir, load=load)
            except LLPBenchError as error:
                known[one.cell.dataset] = Obstacle(str(error), lasting=False)
        facts = known[one.cell.dataset]
        if not isinstance(facts, _Facts):
            return facts
        reason = next(_reasons(one, facts), None)
        return None if reason is None else Obstacle(reason, lasting=True)

    return find


def _facts(spec: DatasetSpec, data_dir: str | None, *, load: bool) -> _Facts | None:
    """Return the facts of a dataset; None if they are unknown before its download. Raises `LLPBenchError`."""
    if not load:
        is_local = locate(spec, data_dir) is not None
        if (known := spec.facts) is not None and (is_local or spec.remote is not None):
            columns = (*spec.key_only, *known.categorical, *known.numeric)
            return _Facts(known.rows, len(known.classes) or None, columns, spec.bags is None)
        if not is_local and spec.remote is not None:
            return None
    table = load_table(spec.name, data_dir, download=load)
    columns = (*table.keys, *table.categorical_names, *table.numeric_names)
    return _Facts(len(table), len(table.classes), columns, table.labels is not None)


def _reasons(one: Resolved, facts: _Facts) -> Iterator[str]:
    """Yield the reasons why a cell is impossible."""
    cell = one.cell
    for name in (*one.bagging.get("columns", ()), *one.bagging.get("by", ())):  # options of baggings by columns
        if facts.columns and name not in facts.columns:
            yield (
                f"dataset {cell.dataset!r} has no column {name!r}, but {cell.bagging!r} needs it to make bags. "
                f"{hint(name, facts.columns)}It has: {', '.join(facts.columns)}."
            )
    yield from _too_few_rows(one, facts.rows)
    largest = largest_bag_size(facts.rows)
    if cell.bag_size is not None and cell.bag_size > largest:
        yield (
            f"bag size {cell.bag_size} is larger than the {largest:,} validation rows of {cell.dataset!r}. "
            f"Choose --bag-sizes up to {largest}, or a larger dataset (llpbench list datasets)."
        )
    if cell.max_bags and cell.bag_size and cell.max_bags > (bags := training_bags(facts.rows, cell.bag_size)):
        yield too_few_bags(f"dataset {cell.dataset!r} in {cell.bagging} bags of {cell.bag_size}", bags, cell.max_bags)
    yield from _without_labels(one, facts)
    if (facts.classes or 2) > 2 and one.method.facts.get("classes") == "binary":
        yield f"{cell.method!r} is for two classes, but {cell.dataset!r} has {facts.classes}. Leave it out."


def _without_labels(one: Resolved, facts: _Facts) -> Iterator[str]:
    """Yield why a cell needs labels or counts of bags that do not exist."""
    cell, given = one.cell, is_without_labels(one.cell.bagging)
    if not facts.labelled and not given:
        yield (
            f"dataset {cell.dataset!r} has counts of its own bags and no labels of rows, so {cell.bagging!r} bags "
            f"cannot be counted. Choose --baggings {GIVEN}."
        )
    if facts.labelled and given:
        yield (
            f"dataset {cell.dataset!r} has labels of rows but no counts of bags. Choose a bagging other than {GIVEN!r}."
        )
    if not facts.labelled and one.method.load().supervision != "bags":
        yield f"{cell.method!r} needs labels of rows, but {cell.dataset!r} has none. Leave it out."


def _too_few_rows(one: Resolved, rows: int) -> Iterator[str]:
    """Yield why bags of varying size cannot be made of this number of rows."""
    cell, options = one.cell, one.bagging
    whole = options.get("split") == "bags"
    smallest, rows_of = (rows, "rows") if whole else (largest_bag_size(rows), "validation rows")
    if options.get("clusters", 0) > smallest:
        yield f"{cell.bagging!r} needs more clusters than {cell.dataset!r} has {rows_of}. Choose at most {smallest:,}."
    if cell.bag_size is None and options.get("least", 1) > rows:
        yield f"{cell.bagging!r} needs more rows per bag than the {rows:,} of {cell.dataset!r}. Choose a smaller least."
