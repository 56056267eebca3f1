"""Gains from tuning: on test rows of new seeds, and on the validation rows of the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Any

from llpbench.core.criteria import METRICS
from llpbench.core.record import Chosen, TuningRecord
from llpbench.report import wording as words
from llpbench.report.board_tables import caption_of, names
from llpbench.report.boards import Board, Score, summarise
from llpbench.report.leaderboard import plain
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, number, score, text
from llpbench.report.statistics import interval
from llpbench.report.wording import NOTHING
from llpbench.results.choices import start_of
from llpbench.results.frame import value_of


def tuning_gains(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Tuned minus default, column by column, and what it took; None if nothing on the board was tuned."""
    rows, searches, named = [], {tuning["tuning"]: tuning for tuning in tunings}, names(board)
    for place, row in enumerate(board.rows):
        if not row.contender.tuned:
            continue
        for index, column in enumerate(board.columns):
            tuning = searches.get(row.scores[index].tuning or "")
            if tuning is not None:
                who = [fields[place] for _, fields in named]
                default = start_row(board, index, tuning)
                usual = None if default is None else board.rows[default].scores[index]
                rows.append((*who, text(column.title), *_fields(board, row.scores[index], usual, tuning)))
    if not rows:
        return None
    measured = f"({board.criterion.name})"
    return ReportTable(
        name=f"tuning-{name}",
        title=f"Gain from tuning, {words.lowered(words.title(board))}",
        caption=caption_of(board, words.caption("tuning", board)),
        headings=(
            *(heading for heading, _ in named),
            Heading("column", numeric=False),
            Heading("default", SCORE),
            Heading("tuned", SCORE),
            Heading("gain", ("mean", "low", "high")),
            Heading(f"validation gain {measured}"),
            Heading(f"test gain {measured}"),
            *(Heading(what) for what in ("chosen trial", "trials", "stopped", "failed", "epochs", "minutes")),
        ),
        rows=tuple(rows),
    )


def start_row(board: Board, index: int, tuning: TuningRecord) -> int | None:
    """The row that has, in a column, what a search started from; None if that has not run."""
    start = start_of(tuning)
    rows = (n for n, row in enumerate(board.rows) if row.scores[index].cell == start and not row.contender.tuned)
    return next(rows, None)


def _fields(board: Board, tuned: Score, usual: Score | None, tuning: TuningRecord) -> list[Field]:
    criterion = board.criterion
    choice = tuning["best"][criterion.name]
    percent, digits = (100.0, 2) if METRICS[criterion.name].percent else (1.0, 4)
    sign = 1.0 if criterion.maximise else -1.0
    states = Counter(trial["status"] for trial in tuning["trials"])
    test = None if usual is None else summarise(_paired(tuned, usual, criterion.name, criterion.name))
    return [
        score(None if usual is None else usual.headline),
        score(tuned.headline),
        _gain([] if usual is None else _paired(tuned, usual, criterion.name, board.metric.name)),
        number(_validation_gain(choice, sign * percent), digits),
        number(None if test is None else sign * test.mean + 0.0, digits),
        number(choice["trial"]),
        number(len(tuning["trials"])),
        number(states["stopped"]),
        number(states["failed"] + states["out-of-memory"]),
        number(tuning["epochs"] or None),
        number(_minutes(tuning), 1),
    ]


def _validation_gain(choice: Chosen, times: float) -> float | None:
    return None if choice["default"] is None else times * (choice["value"] - choice["default"]) + 0.0


def _minutes(tuning: TuningRecord) -> float | None:
    seconds: Any = tuning["times"].get("total")
    return None if seconds is None else float(seconds) / 60


def _paired(tuned: Score, usual: Score, criterion: str, metric: str) -> list[float]:
    """Differences of the seeds that both have."""
    first, second = ({seed: value_of(run, criterion, metric) for seed, run in of.runs.items()} for of in (tuned, usual))
    pairs = ((first[seed], second[seed]) for seed in sorted(first.keys() & second.keys()))
    return [one - other for one, other in pairs if one is not None and other is not None]


def _gain(differences: Sequence[float]) -> Field:
    """Mean of the paired differences with its t interval; without an interval for a single seed."""
    summary = summarise(differences)
    if summary is None:
        return Field((NOTHING,))
    low, high = interval(differences)
    if not isfinite(low):
        return Field((f"{summary.mean:+.2f}",), {"mean": plain(summary.mean)})
    shown = f"{summary.mean:+.2f} [{low:+.2f}, {high:+.2f}]"
    return Field((shown,), {"mean": plain(summary.mean), "low": plain(low), "high": plain(high)})
