"""Report of a journal: the tables of its boards (ranks, scores, robustness over seeds), and notes below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.boards import UNRANKED, Board
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.overview import Standings
from llpbench.report.report_table import Field, Heading, ReportTable, TableColumn
from llpbench.report.tabulate import Leaderboards

DETAILS = ("encoder", "pretraining", "configuration")
"""Columns that repeat parts of an entry's label."""

ANCHOR = "robustness"
"""Anchor of the ranking in `index.html` and `README.md`."""

_MOST_NAMED = 5
"""Entries without a rank that are named."""


def _whole_table(board: Board, name: str) -> ReportTable:
    """Return the columns of the leaderboard and the score on every task."""
    standings = Standings.of(board)
    ranks = [
        Field.text(mark) if role in UNRANKED else Field.number(rank)
        for role, mark, rank in zip(board.entries["role"], board.entries["mark"], standings.lines["rank"], strict=True)
    ]
    has_own_sizes = not any(board.tasks["bag_size"])
    bags = words.caption("natural_bags", new="split=bags" in board.bagging.split(":")) if has_own_sizes else ""
    return ReportTable(
        name,
        standings.title,
        " ".join(filter(None, (words.sentence(board.setting()), bags, board.tasks_text()))),
        [
            (Heading("rank"), ranks),
            *_name_columns(board),
            *((column.heading(board.metric.title), column.fields(standings.lines)) for column in COLUMNS.values()),
            *_score_columns(board),
        ],
        board.notes,
    )


def _score_columns(board: Board) -> Iterator[TableColumn]:
    """Yield the scores on each task. Leaders are bold."""
    for (task, scores), title in zip(board.scores.groupby(level="task"), board.titles, strict=True):
        lines = (tuple(_score_lines(score)) for score in scores.itertuples())
        leads = [(entry, task) in board.leaders for entry in board.entries.index]
        yield Heading(title), [*map(Field, lines, leads)]


def _score_lines(score: Any) -> list[str]:
    """Return the texts of a line of `Board.scores`: the mean, and numbers of runs without a value and of stale runs."""
    if not score.runs:
        return [words.NOTHING]
    if score.failed == score.expected:
        return ["failed", words.STALE] if score.stale else ["failed"]
    counts = {
        "failed": score.failed,
        "missing": score.missing,
        "undefined": score.undefined,
        "not computed": score.uncomputed,
        words.STALE: score.stale,
    }
    lacking = [f"{number}/{score.expected} {what}" for what, number in counts.items() if number]
    return [words.summary_text(score.mean, score.std, score.values) if score.values else words.NOTHING, *lacking]


def _name_columns(board: Board) -> list[TableColumn]:
    """Return the column of methods, and those of `DETAILS` in which entries differ from the default."""
    floors = board.entries["mark"].eq("floor").map({True: " (floor)", False: ""})
    columns = {"method": board.entries["method"] + floors}
    details = ((name, board.entries[name].fillna("")) for name in DETAILS)
    columns |= {name: values for name, values in details if not values.isin(("", "none")).all()}
    return [(Heading(name, numeric=False), [*map(Field.text, values)]) for name, values in columns.items()]


def _unlabelled_table(board: Board, name: str) -> ReportTable:
    """Return the table of a board without labels: the criterion on test bags."""
    parts = (words.sentence(board.setting()), words.caption(f"bag_only_{board.criterion.name}"), board.tasks_text())
    return ReportTable(
        name,
        f"Datasets without labels: {words.bags_words(board.bagging)}, {board.criterion.title}",
        " ".join(filter(None, parts)),
        [*_name_columns(board), *_score_columns(board)],
        {words.FAILED: board.notes[words.FAILED]},
    )


def _robustness_table(board: Board, name: str) -> ReportTable | None:
    """Return the robustness ranking as a table; None if no entry has two seeds."""
    ranking = board.robustness()
    if ranking.empty:
        return None

    def labels(entries: Iterable[int]) -> list[str]:
        return [board.labels[entry] for entry in entries]

    return ReportTable(
        f"{ANCHOR}-{name}",
        f"Robustness. {Standings.of(board).title}",
        words.caption(
            "robustness",
            board.metric,
            datasets=board.datasets if len(board.datasets) <= _MOST_NAMED else (),
            tasks=plural(int(ranking["tasks"].max()), "task"),
            constants=labels(board.constants),
        ),
        [
            (Heading("rank"), [*map(Field.number, ranking["rank"].tolist())]),
            (Heading("method", numeric=False), [*map(Field.text, labels(ranking.index))]),
            (Heading("mean rank"), [*map(Field.number, ranking["mean_rank"])]),
            (Heading("std over seeds"), [*map(Field.number, ranking["std"])]),
            (Heading(f"mean {board.metric.title}"), [*map(Field.number, ranking["mean"])]),
        ],
        {"Not ranked: without two seeds on every task": some_of(labels(board.unrankable), _MOST_NAMED)},
    )


TITLE = "Leaderboards"


@dataclass(frozen=True)
class Report:
    """Content of a report, without its files."""

    leaderboards: Leaderboards
    warnings: tuple[str, ...] = ()
    """problems of the journal"""
    title: str = TITLE

    def table(self, board: Board) -> ReportTable:
        """Return the table of a board with labels; its last columns are the scores on each task."""
        return _whole_table(board, self.leaderboards.names[board])

    @cached_property
    def robustness(self) -> list[ReportTable]:
        """Robustness rankings of the boards without labels of rows."""
        names = replace(self.leaderboards, boards=tuple(self.leaderboards.headline_boards())).names
        return [table for board, name in names.items() if (table := _robustness_table(board, name)) is not None]

    @property
    def unlabelled(self) -> list[ReportTable]:
        """Boards of datasets without labels."""
        names = replace(self.leaderboards, boards=self.leaderboards.unlabelled).names
        return [_unlabelled_table(board, name) for board, name in names.items()]
