"""Notes on a board: failures, stale runs, suspicious results, and how much bags differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Any

from llpbench.core.cell import without_key
from llpbench.core.criteria import Metric
from llpbench.core.record import Record
from llpbench.core.text import plural, some_of
from llpbench.report.boards import HEADLINE, Column, ColumnKey, Row

CHANCE = 50.0
"""AUC x 100 of a random order."""


def failure_notes(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[str, ...]:
    """Return one line per row, column and reason of failed runs."""
    lines = []
    for row in rows:
        for column, score in zip(columns, row.scores, strict=True):
            reasons: dict[str, list[int]] = defaultdict(list)
            for seed, reason in score.failures.items():
                reasons[reason].append(seed)
            where = f"{row.contender.label} on {column.title}"
            lines += [f"{where}, {_seeds_text(seeds)}: {reason}" for reason, seeds in reasons.items()]
    return tuple(lines)


def value_notes(columns: Sequence[Column], rows: Sequence[Row], metric: Metric) -> tuple[str, ...]:
    """Return one line per row and column with an undefined metric, and one for all runs that did not compute it."""
    uncomputed = Counter({row.contender.label: sum(len(score.uncomputed) for score in row.scores) for row in rows})
    undefined = (
        f"{row.contender.label} on {column.title}, {_seeds_text(score.undefined)}: {metric.title} is undefined"
        for row in rows
        for column, score in zip(columns, row.scores, strict=True)
        if score.undefined
    )
    if not (number := uncomputed.total()):
        return tuple(undefined)
    labels = some_of([label for label, runs in uncomputed.items() if runs], 3)
    older = f"{plural(number, 'run')} of {', '.join(labels)}: {metric.title} was not computed"
    return (f"{older}. To repeat older runs: llpbench run ... --retry done", *undefined)


def stale_notes(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[str, ...]:
    """Return one line per row and change of the code; a single line if all runs share the change."""
    runs = [
        (row.contender.label, column.title, score.stale.get(seed))
        for row in rows
        for column, score in zip(columns, row.scores, strict=True)
        for seed in score.runs
    ]
    reasons = {reason for _, _, reason in runs}
    if len(runs) > 1 and len(reasons) == 1 and None not in reasons:
        return (f"all {len(runs):,} runs: {runs[0][2]}",)
    titles: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for label, title, reason in runs:
        if reason is not None:
            titles[label, reason][title] += 1
    return tuple(
        f"{label} on {', '.join(counts)} ({plural(counts.total(), 'run')}): {reason}"
        for (label, reason), counts in titles.items()
    )


def surprise_notes(
    columns: Sequence[Column], rows: Sequence[Row], runs: Iterable[Record], metric: Metric
) -> tuple[str, ...]:
    """Return one line per suspicious result: too good, below chance, or the same for all seeds.

    Only AUC has known limits. By other metrics only runs on different data are reported.
    """
    lines: list[str] = []
    if metric.name == HEADLINE:
        ceilings = [
            [
                score.headline.mean
                for row in rows
                if row.contender.role == "ceiling" and (score := row.scores[n]).headline
            ]
            for n in range(len(columns))
        ]
        for row in rows:
            lines += _suspicious_means(columns, row, [max(means, default=inf) for means in ceilings])
            lines += _below_chance(columns, row)
    return (*lines, *_mixed_data(runs))


def _suspicious_means(columns: Sequence[Column], row: Row, ceilings: Sequence[float]) -> Iterator[str]:
    """Yield a line for means above the highest ceiling, and for equal values of all seeds."""
    above, equal = [], []
    for column, score, ceiling in zip(columns, row.scores, ceilings, strict=True):
        summary = score.headline
        if summary is None:
            continue
        if row.contender.role != "ceiling" and summary.mean - (summary.std or 0.0) > ceiling:
            above.append(column.title)
        # seeds have different splits, so equal values are odd even for a deterministic method
        if summary.std == 0.0 and (row.contender.role, summary.mean) != ("floor", CHANCE):
            equal.append(column.title)
    for what, titles in (("more than one std above every ceiling", above), ("the same AUC for all seeds", equal)):
        if titles:
            yield f"{row.contender.label}: {what}, on {', '.join(titles)}"


def _below_chance(columns: Sequence[Column], row: Row) -> Iterator[str]:
    """Yield a line for each column with a seed below 50."""
    for column, score in zip(columns, row.scores, strict=True):
        below = {seed: value for seed, value in score.values.items() if value < CHANCE}
        if below:
            values = ", ".join(f"{value:.2f}" for value in below.values())
            where = f"{column.title}, {_seeds_text([*below])} (cell {score.cell})"
            yield f"{row.contender.label}: AUC below 50, worse than chance, on {where}: {values}"


def _mixed_data(runs: Iterable[Record]) -> Iterator[str]:
    """Yield a line for each dataset with different tables, and for each seed with different bags."""
    tables: dict[str, set[str]] = defaultdict(set)
    bags: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        data = run["data"]
        dataset, size, key = _column_of(run)
        if "fingerprint" in data:
            tables[dataset].add(data["fingerprint"])
        if "manifest" in data:
            column = f"{dataset} by {key}" if key else f"{dataset} {size}" if size else dataset
            bags[f"{column}, seed {run['seed']}"].add(data["manifest"])
    for kind, hashes in (("versions of the data", tables), ("assignments to bags", bags)):
        for name, distinct in sorted(hashes.items()):
            if len(distinct) > 1:
                yield f"{name}: its runs saw {len(distinct)} different {kind}, so they cannot be compared"


def difference_notes(columns: Sequence[Column], runs: Iterable[Record]) -> tuple[str, ...]:
    """Return one line per column on how much its training bags differ, if its runs recorded it."""
    bags: dict[ColumnKey, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for run in runs:
        if run["bags"]:
            bags[_column_of(run)].setdefault(run["seed"], run["bags"])
    texts = ((column, _difference_text([*bags[column.key].values()])) for column in columns)
    return tuple(f"{column.title}: {text}" for column, text in texts if text)


def _difference_text(bags: Sequence[Mapping[str, Any]]) -> str:
    """Return means over the seeds of a column in words."""
    parts = []
    for name, text in (
        ("spread", "proportions vary {:,.3g} times as much as those of random bags of these sizes"),
        ("separation", "rows of two bags are {:,.3g} times as far apart as rows of one"),
        ("dropped", "{:,.0f} training rows dropped from bags that are too small or too large"),
        ("pooled", "{:,.0f} of them pooled"),
    ):
        values = [facts[name] for facts in bags if facts.get(name) is not None]
        parts += [text.format(fmean(values))] if values else []
    return "; ".join(parts)


def _column_of(run: Record) -> ColumnKey:
    spec = run["spec"]
    return spec["dataset"], spec["bag_size"] or None, without_key(spec["bagging"])[1]


def _seeds_text(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
