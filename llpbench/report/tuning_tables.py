"""What tuning has gained: on the test rows of fresh seeds, and on the validation rows that chose."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from llpbench.core.criteria import METRICS
from llpbench.core.record import Chosen, TuningRecord
from llpbench.report import wording as words
from llpbench.report.board_tables import caption_of, row_fields, row_headings
from llpbench.report.boards import HEADLINE, Board, Row, Score, summarise
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, number, score, text
from llpbench.report.wording import NOTHING
from llpbench.results.choices import start_of

_LEVEL = 0.95


def tuning_gains(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Tuned minus default, column by column, and what it took; None if nothing on the board was tuned."""
    rows, searches = [], {tuning["tuning"]: tuning for tuning in tunings}
    for row in board.rows:
        if not row.contender.tuned:
            continue
        for index, column in enumerate(board.columns):
            tuning = searches.get(row.scores[index].tuning or "")
            if tuning is not None:
                default = start_row(board, index, tuning)
                rows.append((*row_fields(board, row), text(column.title), *_fields(board, row, default, index, tuning)))
    if not rows:
        return None
    measured = f"({board.criterion.name})"
    return ReportTable(
        name=f"tuning-{name}",
        title=f"Gain from tuning, {words.lowered(words.title(board))}",
        caption=caption_of(board, words.TUNING),
        headings=(
            *row_headings(board),
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


def start_row(board: Board, index: int, tuning: TuningRecord) -> Row | None:
    """The row that has, in a column, what a search started from; None if that has not run."""
    start = start_of(tuning)
    rows = (row for row in board.rows if row.scores[index].cell == start and not row.contender.tuned)
    return next(rows, None)


def _fields(board: Board, row: Row, default: Row | None, index: int, tuning: TuningRecord) -> list[Field]:
    tuned, criterion = row.scores[index], board.criterion
    usual = None if default is None else default.scores[index]
    choice = tuning["best"][criterion.name]
    percent, digits = (100.0, 2) if METRICS[criterion.name].percent else (1.0, 4)
    sign = 1.0 if criterion.maximise else -1.0
    states = Counter(trial["status"] for trial in tuning["trials"])
    test = None if usual is None else _mean_gain(tuned, usual, criterion.name)
    return [
        score(None if usual is None else usual.headline),
        score(tuned.headline),
        _gain(tuned, usual),
        number(_validation_gain(choice, sign * percent), digits),
        number(None if test is None else sign * test + 0.0, digits),
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


def _paired(tuned: Score, usual: Score, metric: str) -> list[float]:
    first, second = (of.values.get(metric, {}) for of in (tuned, usual))
    return [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]


def _mean_gain(tuned: Score, usual: Score, metric: str) -> float | None:
    summary = summarise(_paired(tuned, usual, metric))
    return None if summary is None else summary.mean


def _gain(tuned: Score, usual: Score | None) -> Field:
    """Mean of the paired differences with its 95 % t interval; without an interval for a single seed."""
    summary = None if usual is None else summarise(_paired(tuned, usual, HEADLINE))
    if summary is None:
        return Field((NOTHING,))
    values: Mapping[str, float] = {"mean": round(summary.mean, 6)}
    if summary.std is None:
        return Field((f"{summary.mean:+.2f}",), values)
    from scipy.stats import t

    half = float(t.ppf((1 + _LEVEL) / 2, summary.n - 1)) * summary.std / math.sqrt(summary.n)
    low, high = summary.mean - half, summary.mean + half
    shown = f"{summary.mean:+.2f} [{low:+.2f}, {high:+.2f}]"
    return Field((shown,), {**values, "low": round(low, 6), "high": round(high, 6)})
