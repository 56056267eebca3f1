"""Report of a journal: the tables of its boards (ranks, scores, robustness over seeds), and notes below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pandas import DataFrame

from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import one_line, plural, slug, some_of
from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, UNRANKED, Board, Leaderboards, once
from llpbench.report.leaderboard import COLUMNS, standings
from llpbench.report.report_table import Field, Heading, ReportTable, TableColumn
from llpbench.report.tabulate import tabulate
from llpbench.results.frame import NO_STALE_RUNS

SHORT = {"auc": "fine", "mpiou": "coarse-mpiou", "l1": "coarse-l1"}
"""Criteria in names of files."""

DETAILS = ("encoder", "pretraining", "configuration")
"""Columns that repeat parts of an entry's label."""

ANCHOR = "robustness"
"""Anchor of the ranking in `index.html` and `README.md`."""

MOST_NAMED = 5
"""Entries without a rank that are named."""

_DIGITS = 9


def names_of(boards: Sequence[Board]) -> list[str]:
    """Return a unique file name for each board.

    `fine-ordered` is the board of a bagging with most tasks, `fine-ordered-b2-e100-p10` another protocol, and
    `fine-ordered-direct` the tasks that only methods without epochs have run on.
    """
    counts: Counter[str] = Counter()
    names = []
    for board in boards:
        name = _name_of(board, boards)
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name}-{counts[name]}")
    return names


def _name_of(board: Board, boards: Iterable[Board]) -> str:
    name = f"{SHORT[board.criterion.name]}-{slug(board.bagging)}"
    others = [
        other
        for other in boards
        if other is not board and (other.criterion, other.bagging) == (board.criterion, board.bagging)
    ]
    trained = [other for other in others if other.protocol is not None]
    is_largest = all(len(other.tasks) < len(board.tasks) for other in trained)
    if not others or (board.protocol is not None and is_largest):
        return name
    protocol = "-".join(f"{key[:1]}{value}" for key, value in (board.protocol or {}).items())
    return f"{name}-{slug(protocol or 'direct')}"


def whole_table(board: Board, name: str) -> ReportTable:
    """Return the columns of the leaderboard and the score on every task."""
    lines = standings(board)
    ranks = [
        Field.text(mark) if role in UNRANKED else Field.number(rank)
        for role, mark, rank in zip(board.entries["role"], board.entries["mark"], lines["rank"], strict=True)
    ]
    has_own_sizes = not any(board.tasks["bag_size"])
    bags = words.caption("natural_bags", new="split=bags" in board.bagging.split(":")) if has_own_sizes else ""
    return ReportTable(
        name,
        words.title(board),
        " ".join(filter(None, (words.sentence(words.setting(board)), bags, words.tasks_text(board)))),
        [
            (Heading("rank"), ranks),
            *_name_columns(board),
            *((column.heading(board.metric.title), column.fields(lines)) for column in COLUMNS.values()),
            *_score_columns(board),
        ],
        notes(board),
    )


def _score_columns(board: Board, digits: int = 2) -> Iterator[TableColumn]:
    """Yield the scores on each task. Leaders are bold."""
    for (task, scores), title in zip(board.scores.groupby(level="task"), board.titles, strict=True):
        lines = (tuple(_score_lines(score, digits)) for score in scores.itertuples())
        leads = [(entry, task) in board.leaders for entry in board.entries.index]
        yield Heading(title), [*map(Field, lines, leads)]


def _score_lines(score: Any, digits: int = 2) -> list[str]:
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
    return [
        words.summary_text(score.mean, score.std, score.values, digits) if score.values else words.NOTHING,
        *lacking,
    ]


def _name_columns(board: Board) -> list[TableColumn]:
    """Return the column of methods, and those of `DETAILS` in which entries differ from the default."""
    floors = board.entries["mark"].eq("floor").map({True: " (floor)", False: ""})
    columns = {"method": board.entries["method"] + floors}
    details = ((name, board.entries[name].fillna("")) for name in DETAILS)
    columns |= {name: values for name, values in details if not values.isin(("", "none")).all()}
    return [(Heading(name, numeric=False), [*map(Field.text, values)]) for name, values in columns.items()]


def unlabelled_table(board: Board, name: str) -> ReportTable:
    """Return the table of a board without labels: the criterion on test bags."""
    parts = (
        words.sentence(words.setting(board)),
        words.caption(f"bag_only_{board.criterion.name}"),
        words.tasks_text(board),
    )
    digits = 2 if board.metric.percent else 4
    return ReportTable(
        name,
        f"Datasets without labels: {words.bags_words(board.bagging)}, {board.criterion.title}",
        " ".join(filter(None, parts)),
        [*_name_columns(board), *_score_columns(board, digits)],
        {FAILED: notes(board)[FAILED]},
    )


def robustness(board: Board) -> DataFrame:
    """Return the robustness ranking: one row per entry, by its position on the board, best first.

    `mean_rank`: mean rank of the standard deviation over seeds within each task; `std` and `mean`: mean standard
    deviation and mean of the board's metric, averaged over the tasks of a dataset, then over datasets; `tasks`: number
    of tasks; `rank`: entries with equal mean ranks share it. Runs that count are used. Entries trained on labels,
    constant predictions and `_unrankable` entries are left out.
    """
    stds = _deviations(board).dropna(axis="columns")
    means = board.counted()[stds.columns].groupby(level=0).mean().loc[stds.index]
    ranking = DataFrame(
        {
            "mean_rank": statistics.robustness(stds.T, board.of_task(stds.index)),
            "std": board.by_dataset(stds).mean(),
            "mean": board.by_dataset(means).mean(),
            "tasks": len(stds),
        }
    )
    ranking.insert(0, "rank", ranking["mean_rank"].round(_DIGITS).rank(method="min").astype(int))
    return ranking.sort_values(["rank", "std"], kind="stable")


def _unrankable(board: Board) -> list[int]:
    """Return the entries that lack a standard deviation, two seeds, on a task where others have one."""
    stds = _deviations(board)
    return [*stds.columns[stds.isna().any()]]


def _deviations(board: Board) -> DataFrame:
    """Return standard deviations over seeds, tasks x entries. Tasks on which no entry has two seeds are left out."""
    values = board.counted()[[entry for entry in board.learners if entry not in board.constants]]
    stds = values.groupby(level=0).std().round(_DIGITS).dropna(axis="index", how="all")
    return stds if len(stds) else stds[[]]


def _robustness_table(board: Board, name: str) -> ReportTable | None:
    """Return the robustness ranking as a table; None if no entry has two seeds."""
    ranking = robustness(board)
    if ranking.empty:
        return None

    def labels(entries: Iterable[int]) -> list[str]:
        return [board.labels[entry] for entry in entries]

    return ReportTable(
        f"{ANCHOR}-{name}",
        f"Robustness. {words.title(board)}",
        words.caption(
            "robustness", board, tasks=plural(int(ranking["tasks"].max()), "task"), constants=labels(board.constants)
        ),
        [
            (Heading("rank"), [*map(Field.number, ranking["rank"].tolist())]),
            (Heading("method", numeric=False), [*map(Field.text, labels(ranking.index))]),
            (Heading("mean rank"), [*map(Field.number, ranking["mean_rank"])]),
            (Heading("std over seeds"), [*map(Field.number, ranking["std"])]),
            (Heading(f"mean {board.metric.title}"), [*map(Field.number, ranking["mean"])]),
        ],
        {"Not ranked: without two seeds on every task": some_of(labels(_unrankable(board)), MOST_NAMED)},
    )


FAILED, DIFFERENT_DATA = "Failed", "Different data"


@once
def notes(board: Board) -> dict[str, tuple[str, ...]]:
    """Return all notes on a board by their heading."""
    makers = {
        FAILED: _failures,
        words.WITHOUT_VALUE: _runs_without_value,
        words.STALE_NOTE: _stale_runs,
        DIFFERENT_DATA: _mixed_data,
    }
    return {heading: tuple(make(board)) for heading, make in makers.items()}


def _failure_text(status: str, reason: str) -> str:
    """Return why a run failed, in one line."""
    line = one_line(reason) or "no reason was given"
    return line if status == "failed" else f"{status}: {line}"


def _failures(board: Board) -> Iterator[str]:
    """Yield a line for each entry, task and reason."""
    failed = board.runs[board.runs["status"] != "ok"]
    return _of_runs(board, failed, map(_failure_text, failed["status"], failed["reason"]))


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
    yield from _of_runs(board, undefined, [f"{title} is undefined"] * len(undefined))


def _of_runs(board: Board, runs: DataFrame, texts: Iterable[str]) -> Iterator[str]:
    """Yield each text with the entry, task and seeds of its runs."""
    for (entry, task, text), of in runs.assign(text=[*texts]).groupby(["entry", "task", "text"], sort=False):
        seeds = f"seed{'s' if len(of) > 1 else ''} {', '.join(map(str, of['seed']))}"
        yield f"{board.labels[entry]} on {board.titles[task]}, {seeds}: {text}"


def _stale_runs(board: Board) -> Iterator[str]:
    """Yield a line for each entry and change of the code; a single line if all runs share the change."""
    reasons = {*board.runs["stale"]}
    if len(board.runs) > 1 and len(reasons) == 1 and "" not in reasons:
        yield f"all {len(board.runs):,} runs: {reasons.pop()}"
        return
    stale = board.runs[board.runs["stale"] != ""]
    for (entry, reason), runs in stale.groupby(["entry", "stale"], sort=False):
        titles = ", ".join(board.titles[task] for task in runs["task"].unique())
        yield f"{board.labels[entry]} on {titles} ({plural(len(runs), 'run')}): {reason}"


def _mixed_data(board: Board) -> Iterator[str]:
    """Yield a line for each dataset with different tables, and for each seed with different bags."""
    data = DataFrame([board.records[run]["data"] for run in board.runs["run"]], board.runs.index)
    data = data.reindex(columns=["fingerprint", "manifest"])
    tasks = board.tasks.loc[board.runs["task"], ["dataset", "bag_size", "by"]].itertuples(index=False, name=None)
    names = [f"{name} by {key}" if key else f"{name} {size}" if size else name for name, size, key in tasks]
    seeds = [f"{name}, seed {seed}" for name, seed in zip(names, board.runs["seed"], strict=True)]
    for column, kind, places in (
        ("fingerprint", "versions of the data", board.runs["dataset"]),
        ("manifest", "assignments to bags", seeds),
    ):
        numbers = data[column].groupby(places).nunique()
        for name, number in numbers[numbers > 1].items():
            yield f"{name}: its runs saw {number} different {kind}, so they cannot be compared"


TITLE = "Leaderboards"


@dataclass(frozen=True)
class Report:
    """Content of a report, without its files."""

    leaderboards: Leaderboards
    warnings: tuple[str, ...] = ()
    """problems of the journal"""
    title: str = TITLE

    @cached_property
    def robustness(self) -> list[ReportTable]:
        """Robustness rankings of the boards without labels of rows."""
        boards = self.leaderboards.headline_boards()
        tables = [_robustness_table(board, name) for board, name in zip(boards, names_of(boards), strict=True)]
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
    return Report(tabulate(records, stale=stale, tunings=tunings, metric=metric), tuple(warnings), title)
