"""Robustness ranking of a board: entries by how little their results vary over seeds."""

from __future__ import annotations

from collections.abc import Iterable

from pandas import DataFrame

from llpbench.core.text import plural, some_of
from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.report_table import Heading, ReportTable, columns_of, number, text

ANCHOR = "robustness"
"""Anchor of the ranking in `index.html` and `README.md`."""

MOST_NAMED = 5
"""Entries without a rank that are named."""

_CHANCE = 50.0
"""AUC times 100 of a constant prediction."""

_DIGITS = 9


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
