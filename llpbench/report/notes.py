"""Notes on a board: failures, and results worth a look."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Any

from llpbench.core.cell import without_key
from llpbench.core.criteria import Metric
from llpbench.core.record import Record
from llpbench.core.text import plural
from llpbench.report.boards import HEADLINE, Column, ColumnKey, Role, Row
from llpbench.report.statistics import interval

CHANCE = 50.0

MOST_NAMED = 3
"""columns of a note"""


def failure_notes(columns: Sequence[Column], rows: Sequence[Row], metric: Metric) -> tuple[str, ...]:
    """One line for each row, column and reason: runs that failed, and runs without the metric."""
    lines = []
    for row in rows:
        for column, score in zip(columns, row.scores, strict=True):
            reasons: dict[str, list[int]] = defaultdict(list)
            for seed, reason in score.failures.items():
                reasons[reason].append(seed)
            if undefined := score.undefined:
                reasons[f"no {metric.title}: undefined, or the run is older (--retry done)"].extend(undefined)
            lines += [
                f"{row.contender.label} on {column.title}, {_seeds(s)}: {reason}" for reason, s in reasons.items()
            ]
    return tuple(lines)


def surprise_notes(
    columns: Sequence[Column], rows: Sequence[Row], runs: Iterable[Record], metric: Metric
) -> tuple[str, ...]:
    """One line for each result that is too bad, too good or too regular to be taken on trust."""
    if metric.name != HEADLINE:  # what is too good or too bad is known of AUC
        return tuple(_mixed_data(runs))
    # a floor that predicts the same for every row is at chance: beating it says nothing
    floors = [
        row
        for row in rows
        if row.contender.role == "floor" and any(each.headline and each.headline.mean != CHANCE for each in row.scores)
    ]
    ceilings = [_means(rows, "ceiling", column) for column in range(len(columns))]
    lines: list[str] = []
    for row in rows:
        shown = [(i, score.headline) for i, score in enumerate(row.scores) if score.headline is not None]
        if row.contender.role == "" and floors:
            differences = [_differences_to(row, floor, columns) for floor in floors]
            if all(len(each) > 1 and interval(each)[1] < 0 for each in differences):
                below = [i for i, _ in shown if any(floor.scores[i].headline for floor in floors)]
                names = " and ".join(floor.contender.label for floor in floors)
                where = _named([columns[i].title for i in below])
                lines.append(f"{row.contender.label}: significantly below {names}, on {where}")
        odd = {
            "more than one std above every ceiling": [
                i
                for i, h in shown
                if row.contender.role != "ceiling" and h.mean - (h.std or 0.0) > max(ceilings[i], default=inf)
            ],
            # seeds differ in their split, so this is odd even of a method without any randomness of its own
            "the same AUC for all seeds": [
                i for i, h in shown if h.std == 0.0 and (row.contender.role, h.mean) != ("floor", CHANCE)
            ],
        }
        for what, places in odd.items():
            if places:
                lines.append(f"{row.contender.label}: {what}, on {', '.join(columns[i].title for i in places)}")
        lines += _below_chance(columns, row)
    return (*lines, *_mixed_data(runs))


def difference_notes(columns: Sequence[Column], runs: Iterable[Record]) -> tuple[str, ...]:
    """One line for each column whose runs say how much its training bags differ, and what limits of size left over."""
    bags: dict[ColumnKey, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for run in runs:
        if run["seed"] not in bags[key := _column_of(run)] and run["bags"]:
            bags[key][run["seed"]] = run["bags"]
    found = ((column, [*bags[column.key].values()]) for column in columns)
    return tuple(f"{column.title}: {text}" for column, own in found if (text := _differences(own)))


def _column_of(run: Record) -> ColumnKey:
    spec = run["spec"]
    return spec["dataset"], spec["bag_size"], without_key(spec["bagging"])[1]


def _differences(bags: Sequence[Mapping[str, Any]]) -> str:
    """Text about the bags of a column; each figure is a mean over the seeds whose bags are known."""
    parts = []
    for name, text in (
        ("spread", "proportions vary {:,.3g} times as much as those of random bags of these sizes"),
        ("separation", "rows of two bags are {:,.3g} times as far apart as rows of one"),
        ("dropped", "{:,.0f} training rows dropped from bags that are too small or too large"),
        ("pooled", "{:,.0f} of them pooled"),
    ):
        values = [each[name] for each in bags if each.get(name) is not None]
        parts += [text.format(fmean(values))] if values else []
    return "; ".join(parts)


def stale_notes(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[str, ...]:
    """One line for each row and reason for which runs of it count as made by other code; one alone if all are."""
    runs = [
        (row.contender.label, column.title, score.stale.get(seed))
        for row in rows
        for column, score in zip(columns, row.scores, strict=True)
        for seed in score.runs
    ]
    reasons = {reason for _, _, reason in runs}
    if len(runs) > 1 and len(reasons) == 1 and None not in reasons:
        return (f"all {len(runs):,} runs: {runs[0][2]}",)
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for label, title, reason in runs:
        if reason is not None:
            found[label, reason][title] += 1
    return tuple(
        f"{label} on {', '.join(titles)} ({plural(titles.total(), 'run')}): {reason}"
        for (label, reason), titles in found.items()
    )


def _differences_to(row: Row, floor: Row, columns: Sequence[Column]) -> list[float]:
    """Differences to a floor that are independent of one another: a dataset's mean each; of one dataset its seeds'."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for column, own, other in zip(columns, row.scores, floor.scores, strict=True):
        for seed in own.values.keys() & other.values.keys():
            found[column.dataset][seed].append(own.values[seed] - other.values[seed])
    if len(found) == 1:
        return [fmean(each) for seeds in found.values() for each in seeds.values()]
    return [fmean(value for each in seeds.values() for value in each) for seeds in found.values()]


def _named(titles: Sequence[str]) -> str:
    """A few columns, and how many more there are."""
    more = len(titles) - MOST_NAMED
    return ", ".join([*titles[:MOST_NAMED], *([f"and {plural(more, 'more column')}"] if more > 0 else [])])


def _below_chance(columns: Sequence[Column], row: Row) -> Iterator[str]:
    """A line for each column where a single seed is below 50, whatever the mean is."""
    for column, score in zip(columns, row.scores, strict=True):
        below = {seed: value for seed, value in score.values.items() if value < CHANCE}
        if below:
            values = ", ".join(f"{value:.2f}" for value in below.values())
            where = f"{column.title}, {_seeds([*below])} (cell {score.cell})"
            yield f"{row.contender.label}: AUC below 50, worse than chance, on {where}: {values}"


def _mixed_data(runs: Iterable[Record]) -> Iterator[str]:
    """Datasets whose runs saw different tables, and seeds whose runs saw different bags: not comparable."""
    tables: dict[str, set[str]] = defaultdict(set)
    bags: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        spec, data = run["spec"], run["data"]
        if "fingerprint" in data:
            tables[spec["dataset"]].add(data["fingerprint"])
        if "manifest" in data:
            dataset, size, key = _column_of(run)
            column = f"{dataset} by {key}" if key else f"{dataset} {size}" if size else dataset
            bags[f"{column}, seed {run['seed']}"].add(data["manifest"])
    for kind, found in (("versions of the data", tables), ("assignments to bags", bags)):
        for name, hashes in sorted(found.items()):
            if len(hashes) > 1:
                yield f"{name}: its runs saw {len(hashes)} different {kind}, so they cannot be compared"


def _means(rows: Sequence[Row], role: Role, column: int) -> list[float]:
    headlines = [row.scores[column].headline for row in rows if row.contender.role == role]
    return [headline.mean for headline in headlines if headline is not None]


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
