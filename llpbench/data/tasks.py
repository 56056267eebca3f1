"""From a table and an assignment of its rows to bags to a task: the only place where labels meet training rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, Holdout, IntArray, Rows, Schema, Supervision, Task
from llpbench.core.cell import Protocol
from llpbench.core.effects import FeatureEffect, categorical_as, numeric_as
from llpbench.core.errors import LLPBenchError
from llpbench.core.tables import Assignment, Table


def build_task(
    table: Table,
    assignment: Assignment,
    *,
    supervision: Supervision = "bags",
    bags_per_step: int = Protocol.bags_per_step,
) -> Task:
    """Normalise with the training rows' statistics, count labels in bags, and leave the labels behind.

    With `supervision="instances"` the training set is bags of one row, so that a supervised method runs the same code
    as every other. This function is the only place where labels meet training rows.
    """
    if supervision not in ("bags", "instances"):
        raise LLPBenchError(f"supervision must be 'bags' or 'instances', however: {supervision!r}")
    train_rows = assignment.train[assignment.train >= 0]
    scaler = _Scaler(table, train_rows)
    classes = len(table.classes)
    rows = scaler(train_rows)

    def bagged(bags: IntArray) -> BaggedRows:
        return BaggedRows(rows, _positions(bags, train_rows, len(table)), count_labels(table.labels, bags, classes))

    bags = bagged(assignment.train)
    return Task(
        schema=Schema(
            numeric=len(table.numeric_names),
            cardinalities=tuple(len(names) + 1 for names in table.categories),
            classes=classes,
            prior=tuple(float(p) for p in bags.prior),
            rows_per_step=max(round(bags_per_step * len(train_rows) / len(assignment.train)), 1),
        ),
        train=bags if supervision == "bags" else bagged(train_rows[:, None]),
        validation=_holdout(table, scaler, assignment.split.validation, assignment.validation),
        test=_holdout(table, scaler, assignment.split.test, assignment.test),
        train_labels=table.labels[train_rows],
        bags=bags,
        manifest=assignment.manifest,
        fingerprint=table.fingerprint,
        rest=assignment.rest,
        test_bags=assignment.test_bags,
    )


def name_effects(effects: Iterable[FeatureEffect], table: Table, assignment: Assignment) -> list[FeatureEffect]:
    """Effects of features by their names, in the units and categories of the table that a task was built from."""
    scaler = _Scaler(table, assignment.train[assignment.train >= 0])
    numbers, found = len(table.numeric_names), []
    for effect in effects:
        if effect.feature < numbers:
            place = effect.feature
            mean, std = float(scaler.mean[place]), float(scaler.std[place])
            found.append(numeric_as(effect, table.numeric_names[place], mean, std))
        else:
            place = effect.feature - numbers
            found.append(categorical_as(effect, table.categorical_names[place], table.categories[place]))
    return found


class _Scaler:
    """z-scores and category vocabularies, from the training rows alone."""

    def __init__(self, table: Table, train_rows: IntArray) -> None:
        self.table = table
        numeric = table.numeric[train_rows]
        present = ~np.isnan(numeric)
        number = np.maximum(present.sum(axis=0), 1)
        self.mean = np.where(present, numeric, 0.0).sum(axis=0) / number
        self.std = np.sqrt(np.where(present, (numeric - self.mean) ** 2, 0.0).sum(axis=0) / number)
        self.std[self.std == 0.0] = 1.0  # a constant column carries nothing: it becomes 0
        self.seen = [
            np.isin(np.arange(len(names)), table.categorical[train_rows, column])
            for column, names in enumerate(table.categories)
        ]

    def __call__(self, rows: IntArray) -> Rows:
        numeric = (self.table.numeric[rows] - self.mean) / self.std
        missing = np.isnan(numeric)
        codes = self.table.categorical[rows]
        categorical = np.zeros(codes.shape, dtype=np.int64)
        for column, seen in enumerate(self.seen):
            code = codes[:, column]
            known = (code >= 0) & np.append(seen, False)[code]  # code -1 meets the appended False
            categorical[known, column] = code[known] + 1
        return Rows(np.where(missing, 0.0, numeric).astype(np.float32), categorical, missing)


def _holdout(table: Table, scaler: _Scaler, rows: IntArray, bags: IntArray) -> Holdout:
    return Holdout(
        rows=scaler(rows),
        labels=table.labels[rows],
        index=_positions(bags, rows, len(table)),
        counts=count_labels(table.labels, bags, len(table.classes)),
    )


def _positions(bags: IntArray, rows: IntArray, total: int) -> IntArray:
    """Rewrite row numbers of the table as positions in `rows`."""
    position = np.full(total + 1, -1, dtype=np.int64)  # the last entry, reached by -1, keeps padding at -1
    position[rows] = np.arange(len(rows))
    return position[bags]


def count_labels(labels: IntArray, bags: IntArray, classes: int) -> FloatArray:
    """Class counts of bags of row numbers `[bags, size]` (-1: padding) as `[bags, classes]` float64."""
    inside = bags >= 0
    counts = np.zeros((len(bags), classes))
    np.add.at(counts, (np.nonzero(inside)[0], labels[bags[inside]]), 1)
    return counts
