"""Notes on a board: failures, stale runs, suspicious results, and how much bags differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Any

from pandas import DataFrame

from llpbench.core.text import one_line, plural, some_of
from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, UNRANKED, Board

FAILED, SURPRISES = "Failed", "Worth a look"

_CHANCE = 50.0
"""AUC x 100 of a random order."""


def notes(board: Board) -> dict[str, tuple[str, ...]]:
    """Return all notes on a board by their heading. Computed once."""
    makers = {
        FAILED: _failures,
        words.WITHOUT_VALUE: _runs_without_value,
        words.STALE_NOTE: _stale_runs,
        SURPRISES: _surprises,
        words.DIFFERENCES_NOTE: _differences,
    }
    return board.cached("notes", lambda: {heading: tuple(make(board)) for heading, make in makers.items()})


def failure_text(status: str, reason: str) -> str:
    """Return why a run failed, in one line."""
    line = one_line(reason) or "no reason was given"
    return line if status == "failed" else f"{status}: {line}"


def _failures(board: Board) -> Iterator[str]:
    """Yield a line for each entry, task and reason."""
    failed = board.runs[board.runs["status"] != "ok"]
    reasons = map(failure_text, failed["status"], failed["reason"])
    for (where, reason), seeds in _seeds(board, failed, reasons).items():
        yield f"{where}, {_seeds_text(seeds)}: {reason}"


def _runs_without_value(board: Board) -> Iterator[str]:
    """Yield a line on all runs that did not compute the metric, and one for each score in which it is undefined."""
    runs, title = board.runs, board.metric.title
    without = runs[(runs["status"] == "ok") & runs["value"].isna()]
    older = without[~without["is_computed"]]
    if len(older):
        labels = some_of([board.labels[entry] for entry in older["entry"].unique()], 3)
        yield (
            f"{plural(len(older), 'run')} of {', '.join(labels)}: {title} was not computed. "
            "To repeat older runs: llpbench run ... --retry done"
        )
    undefined = without[without["is_computed"]]
    for (where, what), seeds in _seeds(board, undefined, [f"{title} is undefined"] * len(undefined)).items():
        yield f"{where}, {_seeds_text(seeds)}: {what}"


def _seeds(board: Board, runs: DataFrame, texts: Any) -> dict[tuple[str, str], list[int]]:
    """Return the seeds of runs by score and text."""
    seeds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for entry, task, seed, text in zip(runs["entry"], runs["task"], runs["seed"], texts, strict=True):
        seeds[f"{board.labels[entry]} on {board.titles[task]}", text].append(seed)
    return seeds


def _stale_runs(board: Board) -> Iterator[str]:
    """Yield a line for each entry and change of the code; a single line if all runs share the change."""
    reasons = {*board.runs["stale"]}
    if len(board.runs) > 1 and len(reasons) == 1 and "" not in reasons:
        yield f"all {len(board.runs):,} runs: {reasons.pop()}"
        return
    stale = board.runs[board.runs["stale"] != ""]
    titles: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for entry, task, reason in zip(stale["entry"], stale["task"], stale["stale"], strict=True):
        titles[entry, reason][board.titles[task]] += 1
    for (entry, reason), counts in titles.items():
        yield f"{board.labels[entry]} on {', '.join(counts)} ({plural(counts.total(), 'run')}): {reason}"


def _surprises(board: Board) -> Iterator[str]:
    """Yield a line for each suspicious result: too good, below chance, or the same for all seeds.

    Only AUC has known limits. By other metrics only runs on different data are reported.
    """
    if board.metric.name == HEADLINE:
        below = board.runs[board.runs["value"] < _CHANCE].groupby("entry")
        below_chance = {entry: [*_below_chance(board, runs)] for entry, runs in below}
        ceilings = [*board.entries.index[board.entries["role"] == "ceiling"]]
        best = [
            max((summary.mean for entry in ceilings if (summary := board.summary(entry, task))), default=inf)
            for task in board.tasks.index
        ]
        for entry in board.entries.index:
            yield from _suspicious_means(board, entry, best)
            yield from below_chance.get(entry, ())
    yield from _mixed_data(board)


def _suspicious_means(board: Board, entry: int, ceilings: Sequence[float]) -> Iterator[str]:
    """Yield a line for means above the highest ceiling, and for equal values of all seeds."""
    above, equal, role = [], [], board.entries.at[entry, "role"]
    for task, title in enumerate(board.titles):
        summary = board.summary(entry, task)
        if summary is None or summary.std is None:  # a single seed says nothing of chance
            continue
        if role not in UNRANKED and summary.mean - summary.std > ceilings[task]:
            above.append(title)
        # seeds have different splits, so equal values are odd even for a deterministic method
        if summary.std == 0.0 and (role, summary.mean) != ("floor", _CHANCE):
            equal.append(title)
    for what, titles in (("more than one std above every ceiling", above), ("the same AUC for all seeds", equal)):
        if titles:
            yield f"{board.labels[entry]}: {what}, on {', '.join(titles)}"


def _below_chance(board: Board, runs: DataFrame) -> Iterator[str]:
    """Yield a line for each task on which a seed of an entry is below 50. `runs`: those below 50."""
    for task, below in runs.groupby("task"):
        entry, cell = below["entry"].iat[0], below["cell"].iat[0]
        values = ", ".join(f"{value:.2f}" for value in below["value"])
        where = f"{board.titles[task]}, {_seeds_text([*below['seed']])} (cell {cell})"
        yield f"{board.labels[entry]}: AUC below 50, worse than chance, on {where}: {values}"


def _mixed_data(board: Board) -> Iterator[str]:
    """Yield a line for each dataset with different tables, and for each seed with different bags."""
    tables: dict[str, set[str]] = defaultdict(set)
    bags: dict[str, set[str]] = defaultdict(set)
    names = [
        f"{dataset} by {key}" if key else f"{dataset} {size}" if size else dataset
        for dataset, size, key in zip(*(board.tasks[name] for name in ("dataset", "bag_size", "by")), strict=True)
    ]
    for run, task, seed in zip(*(board.runs[name] for name in ("run", "task", "seed")), strict=True):
        data = board.records[run]["data"]
        if "fingerprint" in data:
            tables[board.tasks.at[task, "dataset"]].add(data["fingerprint"])
        if "manifest" in data:
            bags[f"{names[task]}, seed {seed}"].add(data["manifest"])
    for kind, hashes in (("versions of the data", tables), ("assignments to bags", bags)):
        for name, distinct in sorted(hashes.items()):
            if len(distinct) > 1:
                yield f"{name}: its runs saw {len(distinct)} different {kind}, so they cannot be compared"


def bags_by_seed(board: Board) -> dict[int, dict[int, Mapping[str, Any]]]:
    """Return facts about bags by task and seed. All runs of a seed have the same bags."""
    bags: dict[int, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for run, task, seed in zip(*(board.runs[name] for name in ("run", "task", "seed")), strict=True):
        if facts := board.records[run]["bags"]:
            bags[task].setdefault(seed, facts)
    return bags


def _differences(board: Board) -> Iterator[str]:
    """Yield a line for each task on how much its training bags differ, if its runs recorded it."""
    for task, by_seed in sorted(bags_by_seed(board).items()):
        if text := _difference_text([*by_seed.values()]):
            yield f"{board.titles[task]}: {text}"


def _difference_text(bags: Sequence[Mapping[str, Any]]) -> str:
    """Return means over the seeds of a task in words."""
    parts = []
    for name, text in (
        ("spread", "proportions vary {:,.3g} times as much as those of random bags of these sizes"),
        ("separation", "rows of two bags are {:,.3g} times as far apart as rows of one bag"),
        ("dropped", "{:,.0f} training rows dropped from bags that are too small or too large"),
        ("pooled", "{:,.0f} of them pooled"),
    ):
        values = [facts[name] for facts in bags if facts.get(name) is not None]
        parts += [text.format(fmean(values))] if values else []
    return "; ".join(parts)


def _seeds_text(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
