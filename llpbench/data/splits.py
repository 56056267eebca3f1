"""Splits and bags: the part and the bag of each row, for one (dataset, bagging, bag size, seed).

Nothing here depends on a method, a criterion or the version of a library. So results from different machines and years
can be compared by the hash of their assignment (`Assignment.manifest`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from llpbench.core.bags import IntArray
from llpbench.core.cell import GIVEN
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import BAGGINGS
from llpbench.core.seeding import generator
from llpbench.core.tables import Assignment, Split, Table
from llpbench.core.text import plural
from llpbench.data.baggings import (
    OWN_SIZES,
    format_bagging,
    is_sized,
    options_of,
    parse_bagging,
    require_column,
    shuffled,
)

PARTS = ("train", "validation", "test")

_TIMES = 8
"""number of training rows per validation or test row"""


def _split_rows(labels: IntArray, seed: int, name: str) -> Split:
    """Split the rows of dataset `name` 80/10/10 into train, test and validation, stratified by class.

    `labels` is `[rows]`. Rows are in random order inside each part. The sizes of each part, and of each class in it,
    are the same for every seed. Validation and test hold `rows // 10` rows each.
    """
    # Not taken from a library: the manifest of a published result must stay the same if scikit-learn changes its draws.
    rng = generator(seed, "split", name)
    part_size = len(labels) // 10
    counts = np.bincount(labels).astype(np.int64)
    test_counts = _apportion(counts, part_size)
    validation_counts = _apportion(counts - test_counts, part_size)
    borders = np.column_stack([test_counts, test_counts + validation_counts])
    by_class = [np.split(shuffled(np.flatnonzero(labels == label), rng), ends) for label, ends in enumerate(borders)]
    test, validation, train = zip(*by_class, strict=True)
    return Split(*(shuffled(np.concatenate(part), rng) for part in (train, validation, test)))


def assign_bags(table: Table, bagging: str, bag_size: int | None, seed: int, max_bags: int | None = None) -> Assignment:
    """Split `table` and put the rows of each part into bags of `bag_size`, separately for each part.

    `bagging` is a registered name with options, as in `"ordered:columns=age+workclass"`. The rows left over in a part
    (rows mod size) are dropped. They are chosen at random before sorting; otherwise the same extreme of the sort order
    would always be lost. A bagging that decides its own sizes (`baggings.is_sized`) gets all rows, and `bag_size` must
    be None. Options limit the sizes of its bags, or keep each bag in one part (`baggings.OWN_SIZES`).

    If `max_bags` is given, that many training bags are drawn at random. With the same seed, the bags for a smaller
    number are a subset of those for a larger one. Validation and test are unchanged.

    Raises `LLPBenchError` if the bags are impossible (`require_possible`), or if there are fewer than `max_bags`.
    """
    require_possible(TableFacts.of(table), bagging, bag_size, max_bags)
    name, options = parse_bagging(bagging)
    if bag_size is not None:
        size = int(bag_size)
        split = _split_rows(table.row_labels, seed, table.name)
        bags = {}
        for part in PARTS:
            rows = getattr(split, part)
            rng = _stream(table, name, options, size, seed, part)
            used = shuffled(rows, rng)[: len(rows) - len(rows) % size]
            bags[part] = _checked(BAGGINGS.get(name)(table, used, size, rng, **options), used, name, size)
        dropped = None
    else:
        split, bags, dropped = _own_sizes(table, name, options, seed)
    if max_bags is not None:
        rng = _stream(table, name, options, bag_size, seed, "some of the training bags")
        _require_bags(table.name, bagging, bag_size, len(bags["train"]), max_bags)
        bags["train"] = _trimmed(bags["train"][np.sort(shuffled(np.arange(len(bags["train"])), rng)[:max_bags])])
    test_bags = _bags_of(table, name, options, bags["train"], split.test)
    return Assignment(split, bags["train"], bags["validation"], bags["test"], dropped=dropped, test_bags=test_bags)


def _bags_of(table: Table, name: str, options: Mapping[str, Any], bags: IntArray, rows: IntArray) -> IntArray | None:
    """Return the training bag of each of `rows`, -1 for none.

    Returns None if the bagging is not keyed, or if the split is by whole bags, so that every row is in a new bag.
    """
    if not BAGGINGS.entry(name).facts["keyed"] or {**OWN_SIZES, **options}["split"] == "bags":
        return None
    of_bagging = {option: value for option, value in options.items() if option not in OWN_SIZES}
    whole = BAGGINGS.get(name)(table, np.arange(len(table)), generator(0, "keys"), **of_bagging)
    key_of = np.full(len(table) + 1, -1, dtype=np.int64)  # the last entry is for padding
    key_of[whole] = np.arange(len(whole))[:, None]
    bag_of = np.full(len(whole), -1, dtype=np.int64)
    bag_of[key_of[bags[:, 0]]] = np.arange(len(bags))
    return np.asarray(bag_of[key_of[rows]])


def _own_sizes(
    table: Table, name: str, options: Mapping[str, Any], seed: int
) -> tuple[Split, dict[str, IntArray], int | None]:
    """Return split, bags and number of dropped training rows for a bagging that decides its own sizes.

    The number is None if bag sizes are not limited.
    """
    of_bagging = {option: value for option, value in options.items() if option not in OWN_SIZES}
    least, most, by = ({**OWN_SIZES, **options}[option] for option in ("least", "most", "split"))
    streams = {part: _stream(table, name, options, None, seed, part) for part in PARTS}

    def bagged(rows: IntArray, rng: Generator) -> IntArray:
        order = shuffled(rows, rng)
        return _checked(BAGGINGS.get(name)(table, order, rng, **of_bagging), order, name, None)

    if table.labels is None:
        by = "bags"  # counts are known only for whole bags
    if by == "bags":  # the split does not depend on limits to sizes
        rng = generator(seed, "split by bags", table.name, format_bagging(name, of_bagging))
        split, bags = _split_bags(bagged(np.arange(len(table)), rng), rng, f"bagging {name!r} of {table.name!r}")
    else:
        split = _split_rows(table.row_labels, seed, table.name)
        bags = {part: bagged(getattr(split, part), streams[part]) for part in PARTS}
    if (least, most) == (OWN_SIZES["least"], OWN_SIZES["most"]):
        return split, bags, None
    limited: dict[str, IntArray] = {}
    for part in PARTS:
        share = 1 if by == "bags" or part == "train" else _TIMES  # validation and test bags are eight times smaller
        limits = (math.ceil(least / share), math.ceil(most / share))
        limited[part] = _limited(bags[part], streams[part], least=limits[0], most=limits[1])
        if not len(limited[part]):
            raise LLPBenchError(
                f"bagging {format_bagging(name, options)!r} leaves no bag with at least {limits[0]} rows in the "
                f"{part} part of {table.name!r}. Choose a smaller least."
            )
    return split, limited, int((bags["train"] >= 0).sum() - (limited["train"] >= 0).sum())


def _stream(
    table: Table, name: str, options: Mapping[str, Any], bag_size: int | None, seed: int, what: str
) -> Generator:
    return generator(seed, "bags", table.name, format_bagging(name, options), bag_size or 0, what)


def _require_bags(dataset: str, bagging: str, bag_size: int | None, number: int, max_bags: int) -> None:
    """Raise `LLPBenchError` if `number` training bags are fewer than `max_bags`."""
    if max_bags > number:
        what = f"dataset {dataset!r} in {bagging} bags" + (f" of {bag_size}" if bag_size else "")
        told = f"{what} has only {plural(number, 'training bag')}, fewer than --max-bags {max_bags:,}"
        raise LLPBenchError(f"{told}. Choose at most {number}, or leave the option out.")


class TableFacts(NamedTuple):
    """Facts of a dataset that decide whether a cell can run."""

    name: str
    rows: int
    classes: int | None  # None if unknown
    columns: tuple[str, ...]  # names of keys and features; empty if unknown
    is_labelled: bool  # whether there are labels of rows

    @classmethod
    def of(cls, table: Table) -> TableFacts:
        columns = (*table.keys, *table.categorical_names, *table.numeric_names)
        return cls(table.name, len(table), len(table.classes), columns, table.labels is not None)


def require_possible(facts: TableFacts, bagging: str, bag_size: int | None, max_bags: int | None) -> None:
    """Raise `LLPBenchError` if a dataset cannot have such bags, as far as its facts show. It reads no data."""
    dataset, rows = facts.name, facts.rows
    name, options = parse_bagging(bagging)
    for column in (*options.get("columns", ()), *options.get("by", ())) if facts.columns else ():
        require_column(dataset, column, facts.columns)
    if facts.is_labelled and name == GIVEN:
        told = f"dataset {dataset!r} has labels of rows but no counts of bags"
        raise LLPBenchError(f"{told}. Choose a bagging other than {GIVEN!r}.")
    if not facts.is_labelled and (name != GIVEN or "most" in options):
        told = f"dataset {dataset!r} has counts of its own bags and no labels of rows, so {bagging!r} bags cannot be"
        raise LLPBenchError(f"{told} counted. Choose --baggings {GIVEN}, with no option but least=.")
    # As many as validation and test have. Training has eight times as many rows and always fills two bags.
    most_size = rows // 10
    if most_size == 0 and facts.is_labelled and options.get("split") != "bags":
        told = f"dataset {dataset!r} has {rows} rows, too few to split 80/10/10 into bags"
        raise LLPBenchError(f"{told}. Give 10 rows or more.")
    if not is_sized(name):
        if bag_size is not None:
            must = f"must be None for bagging {name!r}, which decides the sizes of its bags"
            raise LLPBenchError(f"bag size {must}, got {bag_size!r}")
        smallest, rows_of = (rows, "rows") if options.get("split") == "bags" else (most_size, "validation rows")
        if name == "kmeans" and {**options_of(name), **options}["clusters"] > smallest:
            told = f"{bagging!r} needs more clusters than {dataset!r} has {rows_of}"
            raise LLPBenchError(f"{told}. Choose at most {smallest:,}.")
        if options.get("least", 1) > rows:
            told = f"{bagging!r} needs more rows per bag than the {rows:,} of {dataset!r}"
            raise LLPBenchError(f"{told}. Choose a smaller least.")
    elif isinstance(bag_size, bool) or not isinstance(bag_size, int | np.integer) or bag_size < 1:
        raise LLPBenchError(f"bag size must be a positive integer, got {bag_size!r}. Choose one, such as 256.")
    elif bag_size > most_size:
        told = f"bag size {bag_size} is larger than the {most_size:,} validation rows of {dataset!r}"
        advice = f"Choose --bag-sizes up to {most_size}, or a larger dataset (llpbench list datasets)."
        raise LLPBenchError(f"{told}. {advice}")
    elif max_bags is not None:
        _require_bags(dataset, bagging, bag_size, (rows - 2 * most_size) // bag_size, max_bags)


def _apportion(counts: IntArray, total: int) -> IntArray:
    """Divide `total` items in proportion to `counts`, by largest remainders, ties in order."""
    whole = counts * total
    share: IntArray = whole // counts.sum()
    by_remainder = np.argsort(-(whole % counts.sum()), kind="stable")
    share[by_remainder[: total - share.sum()]] += 1
    return share


def _checked(bags: NDArray[Any], rows: IntArray, bagging: str, size: int | None) -> IntArray:
    """Return the output of a bagging. It must be distinct row numbers `[bags, size]` from `rows`, padded with -1."""
    place = f"bagging {bagging!r} ({inspect.getsourcefile(BAGGINGS.get(bagging))})"
    if not isinstance(bags, np.ndarray) or bags.ndim != 2 or bags.dtype.kind != "i":
        kind = f"{bags.dtype} {bags.shape}" if isinstance(bags, np.ndarray) else type(bags).__name__
        raise LLPBenchError(f"{place} must return integers [bags, size], got {kind}. Fix it.")
    inside = bags[bags >= 0]
    unique = np.unique(inside)
    if len(unique) < len(inside):
        raise LLPBenchError(f"{place} put {len(inside) - len(unique)} rows into more than one bag. Fix it.")
    if not np.isin(unique, rows).all():
        raise LLPBenchError(f"{place} returned rows that were not passed to it. Fix it.")
    sizes = (bags >= 0).sum(axis=1)
    if not sizes.all() or len(bags) == 0:
        raise LLPBenchError(f"{place} returned an empty bag, or none at all. Fix it.")
    if size is not None and (bags.shape[1] != size or len(inside) < bags.size):
        told = f"{place} must make bags of {size} rows, got {sizes.min()} to {sizes.max()}"
        raise LLPBenchError(f"{told}. Remove the parameter `size` to make bags of varying sizes.")
    return bags.astype(np.int64)


def _limited(bags: IntArray, rng: Generator, *, least: int, most: int) -> IntArray:
    """Return the bags of at least `least` rows, cut to `most` random rows (0: no limit); [0, 0] without any bags."""
    inside = [padded[padded >= 0] for padded in bags]
    inside = [shuffled(bag, rng)[:most] if most and len(bag) > most else bag for bag in inside]
    inside = [bag for bag in inside if len(bag) >= least]
    limited = np.full((len(inside), max(map(len, inside), default=0)), -1, dtype=np.int64)
    for place, bag in zip(limited, inside, strict=True):
        place[: len(bag)] = bag
    return limited


def _split_bags(bags: IntArray, rng: Generator, what: str) -> tuple[Split, dict[str, IntArray]]:
    """Split whole bags `[bags, longest]` into test, validation and training; return the rows and bags of each part.

    Bags in random order are added to test until it has about a tenth of the rows, then to validation. The others are
    for training. A part ends when the next bag would move it further from a tenth, so it has between 0.5 and 1.5 tenths
    of the rows. A bag with more than a tenth of all rows is always for training. The split is not stratified by class.
    `what` names the bagging in an error. Raises `LLPBenchError` if there are too few bags to fill the parts.
    """
    sizes = (bags >= 0).sum(axis=1)
    tenth = sizes.sum() / 10
    order = shuffled(np.arange(len(bags)), rng)
    waiting = order[sizes[order] <= tenth].tolist()
    chosen: dict[str, list[int]] = {"test": [], "validation": [], "train": order[sizes[order] > tenth].tolist()}
    for part in ("test", "validation"):
        rows = 0
        while waiting and abs(rows + sizes[waiting[0]] - tenth) <= abs(rows - tenth):
            rows += sizes[waiting[0]]
            chosen[part].append(waiting.pop(0))
        if rows <= tenth / 2:
            raise LLPBenchError(
                f"{what} makes too few bags of at most a tenth of the rows for separate test and validation bags: "
                f"{len(bags):,} bags, {int((sizes <= tenth).sum()):,} of them small enough. Choose split=rows "
                "or a finer key."
            )
    chosen["train"] += waiting
    parts = {part: bags[np.sort(np.array(numbers, dtype=np.int64))] for part, numbers in chosen.items()}
    rows_of = {part: shuffled(found[found >= 0], rng) for part, found in parts.items()}
    return Split(**rows_of), {part: _trimmed(found) for part, found in parts.items()}


def _trimmed(bags: IntArray) -> IntArray:
    """Return bags without columns that contain only padding."""
    return bags[:, : int((bags >= 0).sum(axis=1).max(initial=0))]
