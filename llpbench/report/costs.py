"""What a row costs: seconds of training, over the runs that count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from llpbench.core.record import Record
from llpbench.report.boards import Column, Row
from llpbench.report.ranking import Run, completed, mean_over_datasets, over_datasets


@dataclass(frozen=True)
class Cost:
    """A row over the runs that count."""

    row: Row
    seconds: float
    """mean over datasets of the mean over their columns"""
    auc: float
    by_column: Mapping[int, tuple[float, ...]]
    """seconds of each run, by index of the column, in order of seeds"""


def cost_of(row: Row, counting: set[Run], columns: Sequence[Column]) -> Cost | None:
    """Of a row that has completed every run that counts, and whose runs say how long they took; None of others."""
    if not counting or counting - completed(row):
        return None
    by_column: dict[int, list[float]] = {}
    for column, seed in sorted(counting):
        found = training_seconds(row.scores[column].runs[seed])
        if found is None:
            return None
        by_column.setdefault(column, []).append(found)
    means = {column: fsum(values) / len(values) for column, values in by_column.items()}
    return Cost(
        row,
        over_datasets(means, columns),
        mean_over_datasets(row, counting, columns),
        {column: tuple(values) for column, values in by_column.items()},
    )


def training_seconds(run: Record) -> float | None:
    """Steps, warm-up and pretraining of one run; None where it does not say, or took no time at all."""
    times = run["times"]
    if times.get("train") is None or (run["spec"]["pretraining"] != "none" and times.get("pretraining") is None):
        return None
    pretraining = times["pretraining"] if run["spec"]["pretraining"] != "none" else 0.0
    return fsum((times["train"], times.get("warm-up") or 0.0, pretraining)) or None
