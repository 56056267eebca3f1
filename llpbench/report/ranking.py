"""The order of a board's rows, and which scores are its best: decided only on runs that rows have in common.

A run, here, is a (column, seed). Those that more than half of the methods have attempted, and at least one row has
completed, count, in columns that do (`Column.counts`). So a method gains nothing from a failed run (without it, it is
not ranked), and nobody loses a rank because a newcomer also ran on columns or seeds of its own. A floor is ranked like
every other row that knows bags alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum, inf
from typing import Literal

from llpbench.report.boards import HEADLINE, Column, Row, Summary, summarise

Run = tuple[int, int]
"""index of a column, seed"""


def ranked(rows: Sequence[Row], columns: Sequence[Column]) -> tuple[Row, ...]:
    """The rows as shown: what is trained on labels of rows, ranked rows best first, rows without a rank."""
    rows = [replace(row, mark=_mark(row, rows)) for row in rows]
    contenders = [row for row in rows if row.contender.role != "ceiling"]
    counting = runs_that_count(contenders, columns)
    lacking = {row.contender: len(counting - completed(row)) for row in contenders}
    complete = [row for row in contenders if counting and not lacking[row.contender]]
    partial = [row for row in contenders if not counting or lacking[row.contender]]
    means = [mean_over_datasets(row, counting, columns) for row in complete]
    placed = [
        replace(row, rank=1 + sum(other > mean for other in means)) for row, mean in zip(complete, means, strict=True)
    ]
    supervised = [row for row in rows if row.contender.role == "ceiling"]
    return (
        *sorted(supervised, key=lambda row: (-_mean(row, range(len(columns))), row.contender.label)),
        *sorted(placed, key=lambda row: (row.rank or 0, row.contender.label)),
        *sorted(partial, key=lambda row: (lacking[row.contender], row.contender.label)),
    )


def _mark(row: Row, rows: Iterable[Row]) -> Literal["ceiling", "supervised", "floor", ""]:
    """A ceiling is what gaps are measured by: with an encoder, unless no row of the board has any."""
    if row.contender.role != "ceiling":
        return row.contender.role
    without = row.contender.encoder is None and any(other.contender.encoder for other in rows)
    return "ceiling" if row.is_plain and not without else "supervised"


def mean_over_datasets(row: Row, runs: Iterable[Run], columns: Sequence[Column], metric: str = HEADLINE) -> float:
    """Mean over datasets of the mean over their columns of the row's mean in some runs, all of which it has."""
    by_column: dict[int, list[float]] = {}
    for column, seed in sorted(runs):
        by_column.setdefault(column, []).append(row.scores[column].values[metric][seed])
    return over_datasets({c: found.mean for c, values in by_column.items() if (found := summarise(values))}, columns)


def over_datasets(values: Mapping[int, float], columns: Sequence[Column]) -> float:
    """Mean over datasets of the mean over their columns, of one value a column, by index."""
    by_dataset: dict[str, list[float]] = {}
    for column, value in values.items():
        by_dataset.setdefault(columns[column].dataset, []).append(value)
    means = [found.mean for each in by_dataset.values() if (found := summarise(each))]
    return fsum(means) / len(means)


def runs_that_count(contenders: Sequence[Row], columns: Sequence[Column]) -> set[Run]:
    """Runs in columns that count, attempted by more than half of the methods and completed by at least one row.

    A method has one vote, however many rows it has: arms of a study on one column are not to take the others away. What
    was tuned besides has none.
    """
    contenders = [row for row in contenders if not row.contender.tuned] or contenders
    votes: dict[Run, set[str]] = {}
    for row in contenders:
        for run in attempted(row):
            votes.setdefault(run, set()).add(row.contender.method)
    methods = {row.contender.method for row in contenders}
    done = {run for row in contenders for run in completed(row)}
    most = {run for run, voters in votes.items() if 2 * len(voters) > len(methods) and run in done}
    return {(column, seed) for column, seed in most if columns[column].counts}


def completed(row: Row) -> set[Run]:
    """The row's runs that have a headline value."""
    return {(column, seed) for column, score in enumerate(row.scores) for seed in score.values.get(HEADLINE, {})}


def attempted(row: Row) -> set[Run]:
    """The row's runs that are in the journal, however they ended."""
    return {(column, seed) for column, score in enumerate(row.scores) for seed in (*score.succeeded, *score.failures)}


def leaders(rows: Sequence[Row], columns: Sequence[Column]) -> frozenset[tuple[int, int]]:
    """(row, column) of each column's best score, ceilings aside, and of all within one std of it: no tie is a win.

    A best score over a single seed has no spread, so nothing is claimed for its column.
    """
    counting = runs_that_count([row for row in rows if row.contender.role != "ceiling"], columns)
    found: set[tuple[int, int]] = set()
    for column in {column for column, _ in counting}:
        runs = {run for run in counting if run[0] == column}
        means = {
            index: summary
            for index, row in enumerate(rows)
            if row.contender.role != "ceiling" and runs <= completed(row) and (summary := _summary(row, runs))
        }
        best = max(means.values(), key=lambda summary: summary.mean, default=None)
        if best is not None and best.std is not None:
            found |= {(index, column) for index, summary in means.items() if summary.mean >= best.mean - best.std}
    return frozenset(found)


def _summary(row: Row, runs: Iterable[Run]) -> Summary | None:
    """Of some of its runs."""
    return summarise([row.scores[column].values[HEADLINE][seed] for column, seed in sorted(runs)])


def _mean(row: Row, columns: Iterable[int]) -> float:
    """Mean of the shown means; the lowest of all for a row that has none."""
    headlines = [row.scores[column].headline for column in columns]
    means = [headline.mean for headline in headlines if headline is not None]
    return fsum(means) / len(means) if means else -inf
