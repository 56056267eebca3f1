"""Boards of datasets without labels: how well the proportions of bags that nobody trained on are met."""

from __future__ import annotations

from llpbench.report import wording as words
from llpbench.report.board_tables import row_fields, row_headings
from llpbench.report.boards import Board, Row, Score
from llpbench.report.report_table import SCORE, Heading, ReportTable, score

BAG_ONLY = "bag-only"
"""the page that they stand on"""

METRIC = {"mpiou": "mpiou", "l1": "l1"}
"""of test bags, by the criterion that chose the epoch: a board is judged by what it selects"""


def bag_only(board: Board, name: str = BAG_ONLY) -> ReportTable:
    """Every row of a board without labels, best mean first."""
    metric = METRIC[board.criterion.name]
    rows = sorted(board.rows, key=lambda row: _order(board, row, metric))
    percent = metric == "mpiou"
    told = (f"{row.contender.label}: {why}" for row in rows for each in row.scores for why in each.failures.values())
    failed = tuple(dict.fromkeys(told))
    return ReportTable(
        name=name,
        title=f"Without labels: {words.lowered(words.title(board))}",
        caption=" ".join(
            [words.sentence(words.setting(board)), words.BAG_ONLY[metric], words.columns_text(board.columns)]
        ).strip(),
        headings=(*row_headings(board), *(Heading(column.title, SCORE) for column in board.columns)),
        rows=tuple(
            (
                *row_fields(board, row),
                *(score(each.summary(metric), *_lacking(each), digits=2 if percent else 4) for each in row.scores),
            )
            for row in rows
        ),
        notes={"Failed": failed} if failed else {},
    )


def _lacking(each: Score) -> list[str]:
    counted = {"failed": len(each.failures), "missing": len(each.missing)}
    return [f"{number} {what}" for what, number in counted.items() if number]


def _order(board: Board, row: Row, metric: str) -> tuple[int, float, str]:
    """Rows that lack no column first; of them the best first."""
    found = [summary.mean for score in row.scores if (summary := score.summary(metric)) is not None]
    mean = sum(found) / len(found) if found else 0.0
    best = -mean if board.criterion.maximise else mean
    return len(row.scores) - len(found), best, row.contender.label
