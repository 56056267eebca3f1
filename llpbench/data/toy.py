"""Small tables for tests and `llpbench check`: Gaussians with numbers, categories and missing values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from llpbench.core.bags import IntArray
from llpbench.core.tables import Assignment, Split, Table


def toy_table(rows: int = 400, classes: int = 2, missing: float = 0.05) -> Table:
    """Return a table whose classes are separated by three numbers and a category."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(rows) % classes)
    numeric = rng.normal(size=(rows, 3)) + 2.0 * np.eye(classes, 3)[labels]
    numeric[rng.random(numeric.shape) < missing] = np.nan
    categorical = np.stack([(labels + (rng.random(rows) < 0.3)) % 4, rng.integers(0, 3, rows)], axis=1)
    categorical[rng.random(categorical.shape) < missing] = -1
    return Table(
        name="toy",
        numeric=numeric,
        categorical=categorical.astype(np.int64),
        labels=labels.astype(np.int64),
        numeric_names=("a", "b", "c"),
        categorical_names=("d", "e"),
        categories=(("0", "1", "2", "3"), ("0", "1", "2")),
        classes=tuple(map(str, range(classes))),
    )


def toy_assignment(rows: int = 400, size: int = 16, seed: int = 0, unequal: bool = False) -> Assignment:
    """Return random bags of `size` rows. With `unequal`, every second bag has half as many rows."""
    order = np.random.default_rng(seed).permutation(rows)
    parts = np.split(order, [int(0.6 * rows), int(0.8 * rows)])
    bags = [part[: len(part) // size * size].reshape(-1, size) for part in parts]
    if unequal:
        bags[0] = bags[0].copy()
        bags[0][::2, size // 2 :] = -1
    return Assignment(Split(*parts), *bags)


def permuted_within(table: Table, bags: IntArray) -> Table:
    """Return the table with labels shuffled within each bag. For methods that use only bags, nothing changes."""
    labels, rng = table.row_labels.copy(), np.random.default_rng(1)
    for bag in bags:
        rows = bag[bag >= 0]
        labels[rows] = rng.permutation(labels[rows])
    assert (labels != table.row_labels).any()
    return replace(table, labels=labels)


def pure_bags(classes: int) -> tuple[Table, Assignment]:
    """Return well-separated Gaussians in bags of one class each, from which everything can be learned."""
    rng, rows, size = np.random.default_rng(0), 480, 8
    labels = np.sort(np.arange(rows) % classes)
    table = replace(
        _without_categories(toy_table(rows, classes)),
        name="pure",
        numeric=rng.normal(size=(rows, 3)) + 4.0 * np.eye(classes, 3)[labels],
        labels=labels,
    )
    bags = rng.permutation(np.arange(rows).reshape(-1, size))
    return table, _cut(bags, [40, 50])


def constant_proportions() -> tuple[Table, Assignment]:
    """Return bags that are half of one class and half of the other, so that proportions carry no information."""
    table, rng, size = toy_table(missing=0.0), np.random.default_rng(0), 16
    by_class = [rng.permutation(np.flatnonzero(table.row_labels == c)) for c in (0, 1)]
    bags = np.column_stack([rows[: len(rows) // size * size].reshape(-1, size // 2) for rows in by_class])
    return table, _cut(bags, [12, 18])


def awkward_tables(rows: int = 400) -> dict[str, tuple[Table, Assignment]]:
    """Return tables with the irregularities of real tables, by description."""
    table, assignment = toy_table(rows, missing=0.2), toy_assignment(rows)
    rng = np.random.default_rng(0)
    numeric = table.numeric.copy()
    numeric[assignment.train.ravel(), 1] = np.nan
    numeric[:, 2] = 3.0
    categorical = np.column_stack([table.categorical, np.full(rows, -1), rng.integers(0, 10_000, rows)])
    categorical[assignment.train.ravel(), 1] = 0  # no other category occurs in training
    full = replace(
        table,
        numeric=numeric,
        categorical=categorical.astype(np.int64),
        categorical_names=("d", "e", "f", "g"),
        categories=(*table.categories, ("0",), tuple(map(str, range(10_000)))),
    )
    return {
        "missing, constant and unseen values": (full, assignment),
        "numbers alone": (_without_categories(table), assignment),
        "categories alone": (replace(table, numeric=table.numeric[:, :0], numeric_names=()), assignment),
    }


def _without_categories(table: Table) -> Table:
    return replace(table, categorical=table.categorical[:, :0], categorical_names=(), categories=())


def _cut(bags: IntArray, borders: list[int]) -> Assignment:
    """Return an assignment with training, validation and test bags before, between and after the borders."""
    parts = np.split(bags, borders)
    return Assignment(Split(*(part.ravel() for part in parts)), *parts)
