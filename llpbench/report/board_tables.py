"""Tables of a board: ranks, means and scores of its entries, and how little they vary over seeds (robustness)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pandas import DataFrame

from llpbench.core.text import plural, slug, some_of
from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import UNRANKED, Board
from llpbench.report.leaderboard import COLUMNS, standings
from llpbench.report.notes import FAILED, notes
from llpbench.report.report_table import Field, Heading, ReportTable, TableColumn, columns_of, number, text

SHORT = {"auc": "fine", "mpiou": "coarse-mpiou", "l1": "coarse-l1"}
"""Criteria in names of files."""

DETAILS = ("encoder", "pretraining", "configuration")
"""Columns that repeat parts of an entry's label."""

ANCHOR = "robustness"
"""Anchor of the ranking in `index.html` and `README.md`."""

MOST_NAMED = 5
"""Entries without a rank that are named."""

_CHANCE = 50.0
"""AUC times 100 of a constant prediction."""

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
        mark if role in UNRANKED else words.whole(rank)
        for role, mark, rank in zip(board.entries["role"], board.entries["mark"], lines["rank"], strict=True)
    ]
    return columns_of(
        name,
        words.title(board),
        words.caption_of(board),
        [
            (Heading("rank", key="rank"), [*map(text, ranks)]),
            *name_columns(board),
            *((column.heading(board.metric.title), column.fields(lines)) for column in COLUMNS.values()),
            *_score_columns(board),
        ],
        notes(board),
    )


def _score_columns(board: Board, digits: int = 2) -> Iterator[TableColumn]:
    """Yield the scores on each task. Leaders are bold."""
    for (task, scores), title in zip(board.scores.groupby(level="task"), board.titles, strict=True):
        lines = (tuple(words.score_lines(score, digits)) for score in scores.itertuples())
        leads = [(entry, task) in board.leaders for entry in board.entries.index]
        yield Heading(title), [*map(Field, lines, leads)]


def name_columns(board: Board) -> list[TableColumn]:
    """Return the column of methods, and those of `DETAILS` in which entries differ from the default."""
    details = ((name, board.entries[name].fillna("")) for name in DETAILS)
    return [
        (Heading("method", numeric=False), [*map(text, words.method_texts(board))]),
        *((Heading(name, numeric=False), [*map(text, of)]) for name, of in details if not of.isin(("", "none")).all()),
    ]


def unlabelled_table(board: Board, name: str) -> ReportTable:
    """Return the table of a board without labels: the criterion on test bags."""
    parts = (
        words.sentence(words.setting(board)),
        words.caption(f"bag_only_{board.criterion.name}"),
        words.tasks_text(board),
    )
    digits = 2 if board.metric.percent else 4
    return columns_of(
        name,
        f"Datasets without labels: {words.bags_words(board.bagging)}, {board.criterion.title}",
        " ".join(filter(None, parts)),
        [*name_columns(board), *_score_columns(board, digits)],
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
    constant = constants(board)
    values = board.counted()[[entry for entry in board.learners if entry not in constant]]
    stds = values.groupby(level=0).std().round(_DIGITS).dropna(axis="index", how="all")
    return stds if len(stds) else stds[[]]


def constants(board: Board) -> list[int]:
    """Return the floors that predict the same for every row: their AUC is that of chance in every run."""
    is_chance = board.counted("auc").eq(_CHANCE).all()
    return [*board.entries.index[(board.entries["mark"] == "floor") & is_chance]]


def robustness_table(board: Board, name: str) -> ReportTable | None:
    """Return the robustness ranking as a table; None if no entry has two seeds."""
    ranking = robustness(board)
    if ranking.empty:
        return None

    def labels(entries: Iterable[int]) -> list[str]:
        return [board.labels[entry] for entry in entries]

    return columns_of(
        f"{ANCHOR}-{name}",
        f"Robustness. {words.title(board)}",
        words.caption(
            "robustness", board, tasks=plural(int(ranking["tasks"].max()), "task"), constants=labels(constants(board))
        ),
        [
            (Heading("rank"), [number(rank) for rank in ranking["rank"].tolist()]),
            (Heading("method", numeric=False), [text(label) for label in labels(ranking.index)]),
            (Heading("mean rank"), [number(rank) for rank in ranking["mean_rank"]]),
            (Heading("std over seeds"), [number(std) for std in ranking["std"]]),
            (Heading(f"mean {board.metric.title}"), [number(mean) for mean in ranking["mean"]]),
        ],
        {"Not ranked: without two seeds on every task": some_of(labels(_unrankable(board)), MOST_NAMED)},
    )
