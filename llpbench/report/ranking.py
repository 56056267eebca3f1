"""The order of a board's rows, and which scores are its best: decided only on runs that rows have in common.

A run, here, is a (column, seed). Those that more than half of the ranked methods have attempted, and at least one has
completed, count. So a method gains nothing from a failed run (without it, it is not ranked), and nobody loses a rank
because a newcomer also ran on columns or seeds of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import fsum, inf

from llpbench.report.boards import HEADLINE, Role, Row, summarise

Run = tuple[int, int]
"""index of a column, seed"""


def ranked(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows as shown: ceilings, ranked rows best first, rows without a rank, floors."""
    contenders = _of_role(rows, "")
    counting = runs_that_count(contenders)
    lacking = {row.contender: len(counting - completed(row)) for row in contenders}
    complete = [row for row in contenders if counting and not lacking[row.contender]]
    partial = [row for row in contenders if not counting or lacking[row.contender]]
    means = [mean_over_columns(row, counting) for row in complete]
    placed = [
        replace(row, rank=1 + sum(other > mean for other in means)) for row, mean in zip(complete, means, strict=True)
    ]
    return (
        *_of_role(rows, "ceiling"),
        *sorted(placed, key=lambda row: (row.rank or 0, row.contender.label)),
        *sorted(partial, key=lambda row: (lacking[row.contender], row.contender.label)),
        *_of_role(rows, "floor"),
    )


def mean_over_columns(row: Row, runs: Iterable[Run]) -> float:
    """Mean over columns of the row's mean in some runs, all of which it has."""
    by_column: dict[int, list[float]] = {}
    for column, seed in sorted(runs):
        by_column.setdefault(column, []).append(row.scores[column].values[HEADLINE][seed])
    means = [summary.mean for values in by_column.values() if (summary := summarise(values))]
    return fsum(means) / len(means)


def runs_that_count(contenders: Sequence[Row]) -> set[Run]:
    """Runs attempted by more than half of the rows and completed by at least one of them.

    What was tuned besides has no say in it: tuning some methods on one dataset is not to take the others' columns away.
    """
    contenders = [row for row in contenders if not row.contender.tuned] or contenders
    attempts = Counter(run for row in contenders for run in attempted(row))
    done = {run for row in contenders for run in completed(row)}
    return {run for run, number in attempts.items() if 2 * number > len(contenders) and run in done}


def completed(row: Row) -> set[Run]:
    """The row's runs that have a headline value."""
    return {(column, seed) for column, score in enumerate(row.scores) for seed in score.values.get(HEADLINE, {})}


def attempted(row: Row) -> set[Run]:
    """The row's runs that are in the journal, however they ended."""
    return {(column, seed) for column, score in enumerate(row.scores) for seed in (*score.succeeded, *score.failures)}


def leaders(rows: Sequence[Row]) -> frozenset[tuple[int, int]]:
    """(row, column) of each column's best score, ceilings aside, and of all within one std of it: no tie is a win.

    A best score over a single seed has no spread, so nothing is claimed for its column.
    """
    counting = runs_that_count([row for row in rows if row.contender.role == ""])
    found: set[tuple[int, int]] = set()
    for column in {column for column, _ in counting}:
        runs = {run for run in counting if run[0] == column}
        means = {
            index: summary
            for index, row in enumerate(rows)
            if row.contender.role != "ceiling" and runs <= completed(row) and (summary := row.scores[column].headline)
        }
        best = max(means.values(), key=lambda summary: summary.mean, default=None)
        if best is not None and best.std is not None:
            found |= {(index, column) for index, summary in means.items() if summary.mean >= best.mean - best.std}
    return frozenset(found)


def _of_role(rows: Sequence[Row], role: Role) -> list[Row]:
    """The rows of one role, best first."""
    found = [row for row in rows if row.contender.role == role]
    return sorted(found, key=lambda row: (-_mean(row, range(len(row.scores))), row.contender.label))


def _mean(row: Row, columns: Iterable[int]) -> float:
    """Mean of the shown means; the lowest of all for a row that has none."""
    headlines = [row.scores[column].headline for column in columns]
    means = [headline.mean for headline in headlines if headline is not None]
    return fsum(means) / len(means) if means else -inf
