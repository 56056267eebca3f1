"""Recommended methods by bagging and bag size."""

from __future__ import annotations

from math import isnan

from llpbench.core.cell import NATURAL
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import REFERENCE, Board, Leaderboards
from llpbench.report.leaderboard import lines
from llpbench.report.overview import Standings, advice_table
from llpbench.report.report_table import ReportTable
from llpbench.report.tabulate import part_of

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


def advice(leaderboards: Leaderboards) -> ReportTable | None:
    """Return a line for each bagging and bag size with at least two methods; None if there is none.

    No labels of rows are used. Only single default networks without pretraining are compared.
    """
    parts = {
        f"{kind(board)}, {_sizes(part)}": part
        for board in leaderboards.headline_boards(most=None)
        for size in sorted({*board.tasks["bag_size"]}, key=lambda size: size or 0)
        if len((part := _plain_part(board, size)).ranked) >= 2
    }
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
