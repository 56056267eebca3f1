"""Reasons why cells cannot run: data that cannot be loaded, missing key columns, bags larger than the split,
more clusters than rows, too many classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from llpbench.core.cell import GIVEN, Cell, is_without_labels
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import METHODS
from llpbench.core.text import hint
from llpbench.data.baggings import is_sized, parse_bagging
from llpbench.data.loading import load_table, locate
from llpbench.data.specs import DatasetSpec, dataset_spec
from llpbench.data.splits import largest_bag_size, too_few_bags, training_bags


class Obstacle(NamedTuple):
    """Why a cell cannot be run."""

    reason: str
    """with what to do about it"""
    lasting: bool
    """whether the cell itself is the obstacle; otherwise data could not be loaded this time"""


FindObstacle = Callable[[Cell], Obstacle | None]


def obstacles(data_dir: str | None, *, load: bool) -> FindObstacle:
    """Function that returns the obstacle of a cell, or None. It looks at each dataset once.

    With `load`, datasets are made local and checked; without, their declarations are believed, and of one that is yet
    to be downloaded and declares no size nothing is said.
    """

    @cache
    def size(dataset: str) -> _Size | Obstacle | None:
        try:
            spec = dataset_spec(dataset)
            if not load and spec.rows is None and can_download(spec) and locate(spec, data_dir) is None:
                return None
            return _size(dataset, data_dir, load=load)
        except LLPBenchError as error:
            return Obstacle(str(error), lasting=False)

    def find(cell: Cell) -> Obstacle | None:
        found = size(cell.dataset)
        if not isinstance(found, _Size):
            return found
        for name in _key_columns(cell.bagging):
            if found.columns and name not in found.columns:
                reason = (
                    f"dataset {cell.dataset!r} has no column {name!r}, but {cell.bagging!r} needs it to make bags. "
                )
                told = f"{hint(name, found.columns)}It has: {', '.join(found.columns)}."
                return Obstacle(reason + told, lasting=True)
        if reason := _too_few_rows(cell, found.rows):
            return Obstacle(reason, lasting=True)
        largest = largest_bag_size(found.rows)
        if cell.bag_size > largest:
            reason = (
                f"bag size {cell.bag_size} is larger than the {largest:,} validation rows of {cell.dataset!r}. "
                f"Choose --bag-sizes up to {largest}, or a larger dataset (llpbench list datasets)."
            )
            return Obstacle(reason, lasting=True)
        if cell.max_bags and cell.bag_size and cell.max_bags > (bags := training_bags(found.rows, cell.bag_size)):
            what = f"{cell.dataset!r} {cell.bagging} {cell.bag_size}"
            return Obstacle(too_few_bags(what, bags, cell.max_bags), lasting=True)
        if reason := _without_labels(cell, found):
            return Obstacle(reason, lasting=True)
        if (found.classes or 2) > 2 and METHODS.entry(cell.method).facts.get("classes") == "binary":
            reason = f"{cell.method!r} is for two classes, but {cell.dataset!r} has {found.classes}. Leave it out."
            return Obstacle(reason, lasting=True)
        return None

    return find


def _without_labels(cell: Cell, found: _Size) -> str:
    """Why a cell needs labels that nobody has, or bags that nobody has counted; "" if it does not."""
    given = is_without_labels(cell.bagging)
    if not found.labelled and not given:
        return (
            f"dataset {cell.dataset!r} has counts of its own bags and no label of any row, so {cell.bagging!r} bags "
            f"cannot be counted. Choose --baggings {GIVEN}."
        )
    if found.labelled and given:
        return (
            f"dataset {cell.dataset!r} has labels of rows and no counts of bags. Choose another bagging than {GIVEN!r}."
        )
    if not found.labelled and METHODS.get(cell.method).supervision == "instances":
        return f"{cell.method!r} is trained on labels of rows, and of {cell.dataset!r} nobody has any. Leave it out."
    return ""


def _too_few_rows(cell: Cell, rows: int) -> str:
    """Why bags of their own sizes cannot be made of so many rows, whatever these are; "" if perhaps they can."""
    name, options = parse_bagging(cell.bagging)
    whole = options.get("split") == "bags"
    smallest, what = (rows, "rows") if whole else (largest_bag_size(rows), "validation rows")
    if options.get("clusters", 0) > smallest:
        return f"{cell.bagging!r} wants more clusters than {cell.dataset!r} has {what}. Choose {smallest:,} at most."
    if not is_sized(name) and options.get("least", 1) > rows:
        return f"{cell.bagging!r} wants more rows a bag than the {rows:,} of {cell.dataset!r}. Choose a smaller least."
    return ""


def _key_columns(bagging: str) -> tuple[str, ...]:
    """The columns that a bagging goes by, which are so named in every bagging that goes by some."""
    options = parse_bagging(bagging)[1]
    return (*options.get("columns", ()), *options.get("by", ()))


class _Size(NamedTuple):
    rows: int
    classes: int | None
    """None if a declaration does not say"""
    columns: tuple[str, ...]
    """names of keys and features; empty if a declaration does not say"""
    labelled: bool
    """whether anybody knows labels of rows"""


def _size(dataset: str, data_dir: str | None, *, load: bool) -> _Size:
    spec = dataset_spec(dataset)
    if spec.rows is not None and not load and (can_download(spec) or locate(spec, data_dir) is not None):
        columns = (*spec.key_only, *spec.columns) if spec.columns else ()
        return _Size(spec.rows, spec.classes, columns, spec.bags is None)
    table = load_table(dataset, data_dir, download=load)
    columns = (*table.keys, *table.categorical_names, *table.numeric_names)
    return _Size(len(table), len(table.classes), columns, table.labels is not None)


def downloads(datasets: Iterable[str], data_dir: str | None) -> Iterator[str]:
    """`adult from OpenML 1590` for each of some datasets that is not on this machine but can be downloaded."""
    for spec in map(dataset_spec, datasets):
        if can_download(spec) and spec.source is not None and locate(spec, data_dir) is None:
            yield f"{spec.name} from {spec.source.describe()}"


def can_download(spec: DatasetSpec) -> bool:
    """Whether a dataset has a source elsewhere."""
    return spec.remote is not None
