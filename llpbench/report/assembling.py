"""Report of a journal: leaderboards and the tables that are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan

from pandas import Series

from llpbench.core.cell import NATURAL
from llpbench.core.criteria import METRICS
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.board_tables import name_columns, names_of, robustness_table, unlabelled_table
from llpbench.report.boards import HEADLINE, REFERENCE, Board, Leaderboards
from llpbench.report.leaderboard import lines
from llpbench.report.overview import Standings, advice_table
from llpbench.report.report_table import Field, Heading, ReportTable, number, rows_of, score, text
from llpbench.report.statistics import compared
from llpbench.report.tabulate import part_of, tabulate
from llpbench.results.choices import start_of
from llpbench.results.frame import NO_STALE_RUNS

ADVICE = "which-method"
"""Name of the page and of its table."""

KINDS = {
    "ordered": "bags cut from rows sorted by features",
    "random": "bags of random rows",
    "kmeans": "bags of similar rows (clusters)",
    "principal-component": "bags cut from rows sorted along the first principal component",
    "dirichlet": "bags with chosen proportions, made with labels",
    NATURAL: "bags by a column, such as the district or the day",
}
"""Descriptions of the built-in baggings."""

TITLE = "Leaderboards"


@dataclass(frozen=True)
class Report:
    """Content of a report, without its files."""

    leaderboards: Leaderboards
    warnings: tuple[str, ...] = ()
    """problems of the journal"""
    title: str = TITLE

    @cached_property
    def advice(self) -> ReportTable | None:
        """Recommended methods by bagging and bag size; None if methods cannot be compared."""
        return advice(self.leaderboards)

    @cached_property
    def robustness(self) -> list[ReportTable]:
        """Robustness rankings of the boards without labels of rows."""
        boards = self.leaderboards.headline_boards()
        tables = [robustness_table(board, name) for board, name in zip(boards, names_of(boards), strict=True)]
        return [table for table in tables if table is not None]

    @cached_property
    def tuning(self) -> list[ReportTable]:
        """Effects of hyperparameter searches."""
        tables = (tuning_gains(board, self.leaderboards.tunings) for board in self.leaderboards.main_boards())
        return [table for table in tables if table is not None]

    @property
    def unlabelled(self) -> list[ReportTable]:
        """Boards of datasets without labels."""
        boards = self.leaderboards.unlabelled
        return [unlabelled_table(board, name) for board, name in zip(boards, names_of(boards), strict=True)]


def make_report(
    records: Sequence[Record],
    *,
    warnings: Sequence[str] = (),
    stale: Mapping[str, str] = NO_STALE_RUNS,
    tunings: Sequence[TuningRecord] = (),
    metric: str = HEADLINE,
    title: str = TITLE,
) -> Report:
    """Return the report of some records.

    The order of records matters only for records of the same run: the last one counts. `stale`: what has changed in the
    code since a run or search, by its id. `tunings`: searches, whose choices are additional entries. `metric`: what
    boards show and rank by.
    """
    leaderboards = tabulate(records, stale=stale, tunings=tunings, metric=metric)
    return Report(leaderboards, tuple(warnings), title)


def advice(leaderboards: Leaderboards) -> ReportTable | None:
    """Return a line for each bagging and bag size with at least two methods; None if there is none.

    No labels of rows are used. Only single default networks without pretraining are compared.
    """
    parts: dict[str, Board] = {}
    for board in leaderboards.headline_boards(most=None):
        for size in sorted({*board.tasks["bag_size"]}, key=lambda size: size or 0):
            if len((part := _plain_part(board, size)).ranked) < 2:
                continue
            name = f"{kind(board)}, {_sizes(part)}"
            parts[name] = max(parts.get(name, part), part, key=lambda each: len(each.tasks))
    if not parts:
        return None
    bags = [_training_bags(part) for part in parts.values()]
    cases = {name: Standings(lines(part, ("mean", "first"))) for name, part in parts.items()}
    return advice_table(ADVICE, "By bagging and bag size", cases, {"training bags": bags})


def _plain_part(board: Board, size: int | None) -> Board:
    """Return the plain entries of a board on the tasks of one bag size.

    Results in bfloat16 count only if there are none in float32.
    """
    names = [*zip(board.entries["method"], board.entries["encoder"], strict=True)]
    precisions, is_plain = board.entries["precision"], board.entries["is_plain"]
    in_reference = {name for name, precision in zip(names, precisions, strict=True) if precision == REFERENCE}
    tasks = [task for task, other in enumerate(board.tasks["bag_size"]) if other == size]
    plain = [
        entry
        for entry in sorted(board.runs["entry"][board.runs["task"].isin(tasks)].unique())
        if is_plain[entry] and (precisions[entry] == REFERENCE or names[entry] not in in_reference)
    ]
    return part_of(board, plain, tasks)


def kind(board: Board) -> str:
    """Return a description of the board's bagging."""
    name, *options = board.bagging.removeprefix(f"{board.max_bags:,} " if board.max_bags else "").split(":")
    keys = {*board.tasks["by"]}
    description = f"{name}: {KINDS[name]}" if name in KINDS else name
    if name == NATURAL and len(keys) == 1:
        description = f"grouped by {' and '.join(keys.pop().split('+'))}"
    others = ", ".join(option for option in options if not option.startswith("split="))
    description += f" ({others})" if others else ""
    description += ", tested on other bags" if "split=bags" in options else ""
    return description + (f", {plural(board.max_bags, 'training bag')}" if board.max_bags else "")


def _sizes(part: Board) -> str:
    """Return the smallest and largest number of rows in a bag."""
    tasks = part.tasks.loc[part.counting_tasks]
    sizes = tasks[["least_rows", "most_rows"]].astype(float).T.fillna(tasks["bag_size"].astype(float))
    low, high = sizes.min(axis=None), sizes.max(axis=None)
    if isnan(low):
        return "unknown sizes"
    return f"{low:,.0f} rows" if low == high else f"{low:,.0f}–{high:,.0f} rows"


def _training_bags(part: Board) -> str:
    """Return the median number of training bags over runs."""
    number = part.runs["bags"].median()
    return words.NOTHING if isnan(number) else f"{number:,.0f}"


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
