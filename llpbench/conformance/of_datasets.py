"""Checks of every dataset, on this machine's copy."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from llpbench.conformance.checks import checks_of
from llpbench.conformance.subject import InapplicableError, require
from llpbench.core.registry import Entry
from llpbench.core.tables import Table
from llpbench.data.loading import load_table, locate
from llpbench.data.specs import DatasetSpec, dataset_spec
from llpbench.data.splits import assign_bags, largest_bag_size

if TYPE_CHECKING:
    from pandas import DataFrame

_SIZE = 256
"""largest number of rows per bag"""


class DatasetSubject:
    """A dataset; nothing is downloaded for it."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.name = entry.name

    @cached_property
    def spec(self) -> DatasetSpec:
        return dataset_spec(self.name)

    @cached_property
    def table(self) -> Table:
        """Table of the dataset, checked against its declaration."""
        if locate(self.spec) is None:
            fetch = f"llpbench data fetch {self.name}"
            raise InapplicableError(f"not on this machine: {fetch}" if self.spec.remote else self.spec.absence)
        return load_table(self.name, download=False)

    @property
    def labelled(self) -> Table:
        """The table, if its labels are known. Raises `InapplicableError` otherwise."""
        if self.table.labels is None:
            raise InapplicableError("the labels of its rows are unknown")
        return self.table


def _declaration(subject: DatasetSubject) -> str:
    """Its declaration is complete and consistent."""
    spec = subject.spec
    require(bool(spec.summary), f"{subject.name} needs a docstring; its first line is shown in lists")
    shared = spec.remote is not None
    require(not shared or spec.licence != "not stated", "a dataset for download must state its licence")
    stated = bool(spec.sha256 or spec.facts)
    command = f"llpbench data verify {subject.name}"
    require(not shared or stated, f"a dataset for download must state the sha256 of its table ({command})")
    return f"licence: {spec.licence}"


def _loads(subject: DatasetSubject) -> str:
    """Its data match the declaration."""
    table = subject.table
    return f"{len(table):,} rows, {len(table.numeric_names)} + {len(table.categorical_names)} features"


def _unchanged(subject: DatasetSubject) -> str:
    """Prepared data stay unchanged when prepared again."""
    from llpbench.data.frames import read_parquet

    assert subject.table is not None
    place = locate(subject.spec)
    assert place is not None
    if place.path.suffix != ".parquet":
        raise InapplicableError("its source is not a parquet file")
    first = subject.spec.frame(read_parquet(place.path), "a first time")
    again: DataFrame = subject.spec.prepare(first.copy())
    require(first.equals(again[first.columns]), "its function changes its own output: check for the target")
    return "prepared twice, the same"


def _classes(subject: DatasetSubject) -> str:
    """Every class is in every part of a split."""
    table = subject.labelled
    counts = np.bincount(table.row_labels, minlength=len(table.classes))
    require(len(table.classes) >= 2, f"there is only one class: {table.classes}")
    rarest = int(counts.argmin())
    require(
        counts[rarest] >= 10, f"class {table.classes[rarest]!r} has {counts[rarest]} rows: a split needs at least 10"
    )
    return ", ".join(
        f"{name} {count / len(table):.1%}" for name, count in list(zip(table.classes, counts, strict=True))[:6]
    )


def _features(subject: DatasetSubject) -> str:
    """No feature is constant or reveals the label by itself."""
    table = subject.labelled
    for place, name in enumerate(table.categorical_names):
        codes = table.categorical[:, place]
        values = np.unique(codes)
        require(len(values) > 1, f"feature {name!r} is constant: leave it out")
        if len(values) <= len(table) / 10:  # names and identifiers differ in each row
            most = sum(np.bincount(table.row_labels[codes == value]).max() for value in values) / len(table)
            require(most < 1.0, f"feature {name!r} reveals the label by itself: is it made from the target?")
    for place, name in enumerate(table.numeric_names):
        numbers = table.numeric[:, place]
        known = ~np.isnan(numbers)
        require(len(np.unique(numbers[known])) > 1, f"feature {name!r} is constant: leave it out")
        order = np.argsort(numbers[known], kind="stable")
        labels = table.row_labels[known][order]
        runs = 1 + int((np.diff(labels) != 0).sum())
        require(runs > len(table.classes), f"feature {name!r} reveals the label by itself: is it made from the target?")
    return f"{len(table.numeric_names) + len(table.categorical_names)} checked"


def _bags(subject: DatasetSubject) -> str:
    """Its rows fill bags, also by its natural keys."""
    table = subject.table
    if table.labels is None:
        return f"{len(assign_bags(table, 'given', None, 0).train):,} published bags"
    size = min(_SIZE, largest_bag_size(len(table)))
    found = [f"{len(assign_bags(table, 'ordered', size, 0).train):,} of {size}"]
    for key in subject.spec.natural_keys:
        made = assign_bags(table, f"column:by={key}", None, 0)
        sizes = (made.train >= 0).sum(axis=1)
        require(len(sizes) > 1, f"natural key {key!r} makes one bag of all rows")
        found.append(f"{len(sizes):,} by {key}")
    return "; ".join(found)


DATASET_CHECKS = checks_of(_declaration, _loads, _unchanged, _classes, _features, _bags)
