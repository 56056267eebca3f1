"""Boards of datasets without labels: how well the proportions of bags that nobody trained on are met."""

from __future__ import annotations

from llpbench.report import wording as words
from llpbench.report.board_tables import names
from llpbench.report.boards import Board, Score
from llpbench.report.report_table import SCORE, Heading, ReportTable, columns_of, score

BAG_ONLY = "bag-only"
"""the page that they stand on"""

METRIC = {"mpiou": "mpiou", "l1": "l1"}
"""of test bags, by the criterion that chose the epoch: a board is judged by what it selects"""


def bag_only(board: Board, name: str = BAG_ONLY) -> ReportTable:
    """Every row of a board without labels, best mean first."""
    metric = METRIC[board.criterion.name]
    found = [
        [board.summary(row, column, metric) for column in range(len(board.columns))] for row in range(len(board.rows))
    ]
    digits = 2 if metric == "mpiou" else 4

    def order(place: int) -> tuple[int, float, str]:
        """Rows that lack no column first; of them the best first."""
        means = [summary.mean for summary in found[place] if summary is not None]
        mean = sum(means) / len(means) if means else 0.0
        return found[place].count(None), -mean if board.criterion.maximise else mean, board.rows[place].contender.label

    rows = sorted(range(len(board.rows)), key=order)
    told = (
        f"{board.rows[n].contender.label}: {why}"
        for n in rows
        for s in board.rows[n].scores
        for why in s.failures.values()
    )
    failed = tuple(dict.fromkeys(told))
    columns = [
        (
            Heading(column.title, SCORE),
            [
                score(own[place], *_lacking(row.scores[place]), digits=digits)
                for own, row in zip(found, board.rows, strict=True)
            ],
        )
        for place, column in enumerate(board.columns)
    ]
    caption = (
        words.sentence(words.setting(board)),
        words.caption(f"bag_only_{metric}"),
        words.columns_text(board.columns),
    )
    return columns_of(
        name,
        f"Without labels: {words.lowered(words.title(board))}",
        " ".join(filter(None, caption)),
        [*names(board), *columns],
        {"Failed": failed} if failed else {},
    ).with_rows(rows)


def _lacking(each: Score) -> list[str]:
    counted = {"failed": len(each.failures), "missing": len(each.missing)}
    return [f"{number} {what}" for what, number in counted.items() if number]
