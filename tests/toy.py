"""Small tables and tasks for tests: two Gaussians with numbers, categories and missing values."""

from __future__ import annotations

import numpy as np

from llpbench.bags import Assignment, Split, Table, Task, build_task


def toy_table(rows: int = 400, classes: int = 2, missing: float = 0.05, seed: int = 0) -> Table:
    """Classes that three numbers and a category tell apart."""
    rng = np.random.default_rng(seed)
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
    """Random bags of `size`; `unequal`: every second bag lacks half of its rows."""
    order = np.random.default_rng(seed).permutation(rows)
    parts = np.split(order, [int(0.6 * rows), int(0.8 * rows)])
    bags = [part[: len(part) // size * size].reshape(-1, size) for part in parts]
    if unequal:
        bags[0] = bags[0].copy()
        bags[0][::2, size // 2 :] = -1
    return Assignment(Split(parts[0], parts[1], parts[2]), *bags)


def toy_task(
    seed: int = 0, classes: int = 2, supervision: str = "bags", size: int = 16, unequal: bool = False, rows: int = 400
) -> Task:
    """A task on the toy table, its bags drawn with `seed`."""
    table = toy_table(rows=rows, classes=classes)
    return build_task(table, toy_assignment(rows, size, seed, unequal), supervision=supervision)
