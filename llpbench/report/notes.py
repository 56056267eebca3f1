"""Notes on a board: failures, runs without a value, stale runs, and runs on different data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from pandas import DataFrame

from llpbench.core.text import one_line, plural, some_of
from llpbench.report import wording as words
from llpbench.report.boards import Board

FAILED, DIFFERENT_DATA = "Failed", "Different data"


def notes(board: Board) -> dict[str, tuple[str, ...]]:
    """Return all notes on a board by their heading. Computed once."""
    makers = {
        FAILED: _failures,
        words.WITHOUT_VALUE: _runs_without_value,
        words.STALE_NOTE: _stale_runs,
        DIFFERENT_DATA: _mixed_data,
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


def _seeds_text(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
