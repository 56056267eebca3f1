"""Effect of hyperparameter searches: gains on test rows of other seeds."""

from __future__ import annotations

from collections.abc import Sequence

from pandas import Series

from llpbench.core.criteria import METRICS
from llpbench.core.record import TuningRecord
from llpbench.report import wording as words
from llpbench.report.board_tables import name_columns
from llpbench.report.boards import Board
from llpbench.report.report_table import Field, Heading, ReportTable, number, rows_of, score, text
from llpbench.report.statistics import compared
from llpbench.results.choices import start_of


def tuning_gains(board: Board, tunings: Sequence[TuningRecord]) -> ReportTable | None:
    """Return tuned minus default for each tuned score; None if nothing was tuned."""
    rows, columns = [], name_columns(board)
    searches = {tuning["tuning"]: tuning for tuning in tunings}
    tuned = board.scores["search"][board.scores["search"].notna()]
    for (entry, task), search in tuned.items():
        if search in searches:
            names = {heading: fields[entry] for heading, fields in columns}
            names[Heading("task", numeric=False)] = text(board.titles[task])
            rows.append({**names, **_gain(board, entry, task, searches[search])})
    if not rows:
        return None
    title = f"Gain from tuning. {words.title(board)}"
    return rows_of("tuning", title, words.caption_of(board, words.caption("tuning", board)), rows)


def _gain(board: Board, entry: int, task: int, tuning: TuningRecord) -> dict[Heading, Field]:
    criterion, choice, start = board.criterion, tuning["best"][board.criterion.name], _start_entry(board, task, tuning)
    is_percent = METRICS[criterion.name].percent
    scale = (100.0 if is_percent else 1.0) * (1 if criterion.maximise else -1)
    promised = None if choice["default"] is None else scale * (choice["value"] - choice["default"]) + 0.0
    differences = Series(dtype=float)
    if start is not None:
        values = board.values().loc[task]
        differences = (values[entry] - values[start]).dropna()
    gain = compared({"gain": [*differences]})["gain"] if len(differences) else None
    return {
        Heading("default"): score(None if start is None else board.summary(start, task)),
        Heading("tuned"): score(board.summary(entry, task)),
        Heading("gain"): text(words.NOTHING if gain is None else words.difference_text(gain, 2)),
        Heading(f"gain on validation data ({criterion.name})"): number(promised, 2 if is_percent else 4),
        Heading("trials"): number(len(tuning["trials"])),
    }


def _start_entry(board: Board, task: int, tuning: TuningRecord) -> int | None:
    """Return the entry of the configuration from which a search started; None if it has not run."""
    cells = board.scores["cell"].xs(task, level="task")
    return next(iter(cells.index[(cells == start_of(tuning)) & ~board.entries["is_tuned"]]), None)
