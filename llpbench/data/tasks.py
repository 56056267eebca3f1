"""Construction of a task from a table and its assignment to bags. Labels and training rows meet only here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from llpbench.core.bags import SUPERVISIONS, BaggedRows, FloatArray, Holdout, IntArray, Rows, Schema, Supervision, Task
from llpbench.core.cell import Protocol
from llpbench.core.effects import FeatureEffect
from llpbench.core.errors import LLPBenchError
from llpbench.core.numbers import TRANSFORMS, Transform
from llpbench.core.tables import Assignment, Table


def build_task(
    table: Table,
    assignment: Assignment,
    *,
    supervision: Supervision = "bags",
    bags_per_step: int = Protocol.bags_per_step,
    numbers: str = "z",
) -> Task:
    """Return a task: normalise with statistics of the training rows, count labels in bags, and drop the labels.

    With `supervision="instances"`, the training set has bags of one row, so supervised methods run the same code as all
    others. With `"validation"`, these are the validation rows, and no label of a training row is included. If labels
    are unknown, bags have their published counts. Raises `LLPBenchError` if labels are needed but unknown. `numbers` is
    the representation of numbers for methods (`cell.NUMBERS`).
    """
    if supervision not in SUPERVISIONS:
        raise LLPBenchError(f"supervision must be {' or '.join(map(repr, SUPERVISIONS))}, got {supervision!r}")
    train_rows = assignment.train[assignment.train >= 0]
    scaler = Scaler(table.numeric[train_rows], table.categorical[train_rows], table.categories, numbers)
    rows = scaler(table.numeric[train_rows], table.categorical[train_rows])

    noise = 0.0 if table.published is None else table.published.noise
    index = _positions(assignment.train, train_rows, len(table))
    bags = BaggedRows(rows, index, _bag_counts(table, assignment.train), noise)
    validation = _holdout(table, scaler, assignment.split.validation, assignment.validation)
    trained_on = {
        "bags": lambda: bags,
        "instances": lambda: _of_single_rows(table, rows, train_rows),
        "validation": lambda: _of_single_rows(table, validation.rows, assignment.split.validation),
    }
    return Task(
        schema=Schema(
            numeric=len(table.numeric_names),
            cardinalities=tuple(len(names) + 1 for names in table.categories),
            classes=len(table.classes),
            prior=tuple(float(p) for p in bags.prior),
            rows_per_step=max(round(bags_per_step * len(train_rows) / len(assignment.train)), 1),
        ),
        train=trained_on[supervision](),
        validation=validation,
        test=_holdout(table, scaler, assignment.split.test, assignment.test),
        train_labels=None if table.labels is None else table.labels[train_rows],
        bags=bags,
        manifest=assignment.manifest,
        fingerprint=table.fingerprint,
        dropped=assignment.dropped,
        test_bags=assignment.test_bags,
    )


class Scaler:
    """Normalisation of numbers and vocabularies of categories, from the training rows only."""

    transform: Transform | None = None
    """representation of numbers; None: z-scores"""

    def __init__(
        self, numeric: FloatArray, categorical: IntArray, categories: Sequence[Sequence[str]], numbers: str = "z"
    ) -> None:
        """`numeric` [training rows, features] is NaN if missing; `categorical` are codes, -1 if missing."""
        self.transform = TRANSFORMS[numbers](numeric) if numbers != "z" else None
        present = ~np.isnan(numeric)
        number = np.maximum(present.sum(axis=0), 1)
        self.mean = np.where(present, numeric, 0.0).sum(axis=0) / number
        self.std = np.sqrt(np.where(present, (numeric - self.mean) ** 2, 0.0).sum(axis=0) / number)
        lowest = np.where(present, numeric, np.inf).min(axis=0, initial=np.inf)
        constant = ~(lowest < np.where(present, numeric, -np.inf).max(axis=0, initial=-np.inf))
        # a constant column must become exactly 0, although the mean of equal numbers has a rounding error
        self.mean = np.where(constant & present.any(axis=0), lowest, self.mean)
        self.std[constant] = 1.0
        self.gaps = ~present.all(axis=0)
        self.categories = categories
        self.seen = [np.isin(np.arange(len(names)), categorical[:, column]) for column, names in enumerate(categories)]

    def __call__(self, numeric: FloatArray, categorical: IntArray) -> Rows:
        """Return any rows, in the form of `__init__`, as inputs of methods."""
        numeric = (numeric - self.mean) / self.std if self.transform is None else self.transform(numeric)
        missing = np.isnan(numeric)
        known_gap = missing & self.gaps  # no method has learned what a gap means in a column without any in training
        codes = np.zeros(categorical.shape, dtype=np.int64)
        for column, seen in enumerate(self.seen):
            code = categorical[:, column]
            known = (code >= 0) & np.append(seen, False)[code]  # code -1 selects the appended False
            codes[known, column] = code[known] + 1
        limited = np.where(missing, 0.0, numeric).clip(-1e9, 1e9)  # squares of larger ones overflow in networks
        return Rows(limited.astype(np.float32), codes, known_gap)

    def named(
        self, effects: Iterable[FeatureEffect], numeric: Sequence[str], categorical: Sequence[str]
    ) -> list[FeatureEffect]:
        """Return effects with the names of features, in their units and categories."""
        return [
            self._named_number(effect, numeric[effect.feature])
            if effect.feature < len(numeric)
            else self._named_category(effect, effect.feature - len(numeric), categorical)
            for effect in effects
        ]

    def _named_number(self, effect: FeatureEffect, name: str) -> FeatureEffect:
        """Return the effect of a number with edges in the units of its column.

        Edges are rounded to 1e-5 of the column's standard deviation, since rows are float32.
        """
        column = effect.feature
        assert effect.edges is not None
        edges = np.asarray(effect.edges * self.std[column] + self.mean[column])
        if self.transform is not None:
            edges = self.transform.inverse(column, effect.edges)
        edges = np.round(edges, int(5 - np.floor(np.log10(self.std[column]))))
        return replace(effect, name=name, edges=edges + 0.0)  # -0 becomes 0

    def _named_category(self, effect: FeatureEffect, column: int, names: Sequence[str]) -> FeatureEffect:
        """Return the effect of a category with the names of its categories; code 0 means missing."""
        assert effect.codes is not None
        known = ("missing", *self.categories[column])
        texts = (known[codes[0]] if len(codes) == 1 else f"{len(codes)} others" for codes in effect.codes)
        return replace(effect, name=names[column], categories=tuple(texts))


def _holdout(table: Table, scaler: Scaler, rows: IntArray, bags: IntArray) -> Holdout:
    return Holdout(
        rows=scaler(table.numeric[rows], table.categorical[rows]),
        labels=None if table.labels is None else table.labels[rows],
        index=_positions(bags, rows, len(table)),
        counts=_bag_counts(table, bags),
        numbers=rows,
    )


def _positions(bags: IntArray, rows: IntArray, total: int) -> IntArray:
    """Return row numbers of the table as positions in `rows`."""
    position = np.full(total + 1, -1, dtype=np.int64)  # -1 selects the last entry, so padding stays -1
    position[rows] = np.arange(len(rows))
    return position[bags]


def _of_single_rows(table: Table, rows: Rows, numbers: IntArray) -> BaggedRows:
    """Return bags of one row, in the order of the row `numbers` of the table."""
    counts = count_labels(table.row_labels, numbers[:, None], len(table.classes))
    return BaggedRows(rows, np.arange(len(numbers))[:, None], counts)


def _bag_counts(table: Table, bags: IntArray) -> FloatArray:
    """Return the counts [bags, classes] of bags of row numbers `[bags, size]`: from labels, or as published."""
    if table.published is None:
        return count_labels(table.row_labels, bags, len(table.classes))
    return table.published.counts[table.published.of_row[bags[:, 0]]]


def count_labels(labels: IntArray, bags: IntArray, classes: int) -> FloatArray:
    """Return class counts of bags of row numbers `[bags, size]` (-1: padding) as `[bags, classes]` float64."""
    inside = bags >= 0
    counts = np.zeros((len(bags), classes))
    np.add.at(counts, (np.nonzero(inside)[0], labels[bags[inside]]), 1)
    return counts
