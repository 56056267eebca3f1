"""Checks of every bagging, on toy tables or on a dataset with the columns it needs."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from llpbench.conformance.checks import checks_of
from llpbench.conformance.subject import InapplicableError, require, with_awkward
from llpbench.core.bags import IntArray
from llpbench.core.cell import is_without_labels
from llpbench.core.errors import DataError
from llpbench.core.registry import Entry
from llpbench.core.tables import Assignment, PublishedBags, Table
from llpbench.data.baggings import (
    OWN_SIZES,
    format_bagging,
    grouped,
    is_sized,
    needed_options,
    options_of,
    parse_bagging,
)
from llpbench.data.loading import load_table
from llpbench.data.specs import dataset_spec
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import count_labels
from llpbench.data.toy import toy_table

_ROWS = 3000
_SIZES = (7, 64)


def _published(table: Table) -> Table:
    """Return the same rows without labels, in bags with published counts."""
    rows = len(table)
    bags = np.random.default_rng(0).permutation(np.arange(rows) // _SIZES[1])
    counts = count_labels(table.row_labels, grouped(np.arange(rows), bags), len(table.classes))
    return replace(table, labels=None, published=PublishedBags(bags, counts, 0.0))


class BaggingSubject:
    """A bagging with its default options; required options name a feature of the table."""

    def __init__(self, entry: Entry, dataset: str | None = None) -> None:
        """`dataset`: source of rows instead of toys; nothing is downloaded."""
        self.entry = entry
        self.name = entry.name
        self.dataset = dataset

    @cached_property
    def text(self) -> str:
        """The bagging in the syntax of `--baggings`."""
        named: tuple[str, ...] = ("d",)
        if self.dataset is not None:
            keys, table = dataset_spec(self.dataset).natural_keys, self._whole
            named = tuple(keys[0].split("+")) if keys else (*table.categorical_names, *table.numeric_names)[:1]
        return format_bagging(self.name, dict.fromkeys(needed_options(self.name), named))

    @cached_property
    def table(self) -> Table:
        return self.fresh()

    @cached_property
    def labelled(self) -> bool:
        """Whether it takes tables with labels; others have counts of bags."""
        return not is_without_labels(self.name)

    @cached_property
    def _whole(self) -> Table:
        assert self.dataset is not None
        return load_table(self.dataset, download=False)

    def fresh(self) -> Table:
        """Return a new table of data that the bagging takes: a toy, or random rows of the dataset."""
        if self.dataset is None:
            table = toy_table(_ROWS)
            return table if self.labelled else _published(table)
        if self._whole.published is not None:  # its counts are of whole bags
            return replace(self._whole, numeric=self._whole.numeric.copy(), categorical=self._whole.categorical.copy())
        order = np.random.default_rng(0).permutation(len(self._whole))
        return _taken(self._whole, np.resize(order, _ROWS))

    @property
    def sizes(self) -> tuple[int | None, ...]:
        return _SIZES if is_sized(self.name) else (None,)

    def bags(self, table: Table, size: int | None, seed: int = 0) -> Assignment:
        """Return split and bags, checked by the engine: rows from the input, each once, in bags of the given size."""
        try:
            return assign_bags(table, self.text, size, seed)
        except DataError as error:
            raise InapplicableError(f"{error} Name a dataset that has it: --dataset NAME.") from error


def _declaration(subject: BaggingSubject) -> str:
    """Its declaration is complete and consistent."""
    require(bool(subject.entry.summary), f"{subject.name} needs a docstring; its first line is shown in lists")
    options = options_of(subject.name)
    own = [name for name in options if name not in OWN_SIZES]
    known = {name: value for name, value in options.items() if name in own and name not in needed_options(subject.name)}
    for name, value in known.items():
        kinds = (bool, int, float, str, tuple)
        require(isinstance(value, kinds), f"option {name!r}: default {value!r} cannot be written as a text")
    again = parse_bagging(subject.text)
    require(format_bagging(*again) == subject.text, f"{subject.text!r} is not read back as written")
    sized = "of a given size" if is_sized(subject.name) else "of varying sizes"
    return f"bags {sized}; " + (f"options {', '.join(own)}" if own else "no options")


def _bags_rows(subject: BaggingSubject) -> str:
    """It puts rows into bags of the given size, each row at most once."""
    numbers = []
    for size in subject.sizes:
        found = subject.bags(subject.table, size)
        sizes = (found.train >= 0).sum(axis=1)
        numbers.append(f"{len(sizes):,} of {sizes.min()}" + (f" to {sizes.max()}" if sizes.max() > sizes.min() else ""))
    return f"{', '.join(numbers)} training rows"


def _seeded(subject: BaggingSubject) -> str:
    """Its generator determines the bags."""
    for size in subject.sizes:
        np.random.seed(0)  # noqa: NPY002  (finds a bagging that draws from it)
        first = subject.bags(subject.table, size)
        np.random.seed(1)  # noqa: NPY002
        same = first.manifest == subject.bags(subject.table, size).manifest
        require(same, "one seed gives different bags: draw random numbers only from the given generator")
    return "one seed gives the same bags"


def _harmless(subject: BaggingSubject) -> str:
    """It leaves the table unchanged."""
    table = subject.fresh()
    before = table.fingerprint
    subject.bags(table, subject.sizes[0])
    require(replace(table).fingerprint == before, "it modifies the table: sort or standardise a copy")
    return "the table is unchanged"


def _awkward(subject: BaggingSubject) -> str:
    """Missing values, constant columns and a single kind of feature do no harm."""
    if subject.dataset is not None:
        raise InapplicableError(f"tried only on {subject.dataset}")
    if needed_options(subject.name):
        raise InapplicableError("it uses only the features in its options")
    if not subject.labelled:
        raise InapplicableError("it uses the published bags")

    def bags(table: Table, _: Assignment) -> Assignment:
        return subject.bags(_taken(table, np.resize(np.arange(len(table)), _ROWS)), subject.sizes[0])

    return with_awkward(subject, bags)


def _keyed(subject: BaggingSubject) -> str:
    """If it is declared keyed, the bag of a row depends on that row alone."""
    if not subject.entry.facts["keyed"]:
        raise InapplicableError("not declared: new rows have no bag")
    found = subject.bags(subject.table, None)
    assert found.test_bags is not None
    pairs = [_of_row(found.train), dict(zip(found.split.test.tolist(), found.test_bags.tolist(), strict=True))]
    bags = _of_row(subject.bags(subject.table, None, 1).train)
    for part in pairs:
        both: dict[int, set[int]] = {}
        for row, bag in part.items():
            if row in bags and bag >= 0:
                both.setdefault(bag, set()).add(bags[row])
        require(all(len(each) == 1 for each in both.values()), "rows of one bag are in several bags of another seed")
    return "two seeds put rows into the same bags"


BAGGING_CHECKS = checks_of(_declaration, _bags_rows, _seeded, _harmless, _awkward, _keyed)


def _taken(table: Table, rows: IntArray) -> Table:
    parts: dict[str, Any] = {name: getattr(table, name)[rows] for name in ("numeric", "categorical", "labels")}
    return replace(table, **parts)


def _of_row(bags: IntArray) -> dict[int, int]:
    """Return the bag of each row."""
    return {int(row): number for number, bag in enumerate(bags) for row in bag[bag >= 0]}
