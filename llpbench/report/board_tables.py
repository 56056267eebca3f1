"""Tables of a board: its rows with their ranks, means and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from llpbench.core.text import plural, slug
from llpbench.report import wording as words
from llpbench.report.boards import Board, Score
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.report_table import Field, Heading, ReportTable, TableColumn, columns_of, score, text

SHORT = {"auc": "fine", "mpiou": "coarse-mpiou", "l1": "coarse-l1"}
"""Criteria in names of files."""

DETAILS = ("encoder", "pretraining", "configuration")
"""Columns that repeat parts of a row's label."""


def names_of(boards: Sequence[Board]) -> list[str]:
    """Return a unique file name for each board.

    `fine-ordered` is the board of a bagging with most columns, `fine-ordered-b2-e100-p10` another protocol, and
    `fine-ordered-direct` the columns that only methods without epochs have run on.
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
    is_largest = all(len(other.columns) < len(board.columns) for other in trained)
    if not others or (board.protocol is not None and is_largest):
        return name
    protocol = "-".join(f"{key[:1]}{value}" for key, value in (board.protocol or {}).items())
    return f"{name}-{slug(protocol or 'direct')}"


def overall_table(board: Board, name: str) -> ReportTable:
    """Return the columns of the leaderboard for every row."""
    return columns_of(
        name,
        f"{words.title(board)}: over all columns",
        words.caption_of(
            board,
            words.datasets_text(board),
            words.caption("overall", columns=plural(len(board.counting_columns), "column"), runs=len(board.counting)),
        ),
        [
            (Heading("rank", key="rank"), [text(words.rank_text(row)) for row in board.rows]),
            *name_columns(board),
            *((column.heading(board), column.fields(board)) for column in COLUMNS.values()),
        ],
        {
            "Failed": board.failures,
            words.WITHOUT_VALUE: board.without_value,
            words.STALE_NOTE: board.stale,
            "Worth a look": board.surprises,
            words.DIFFERENCES_NOTE: board.differences,
        },
    )


def whole_table(board: Board, name: str) -> ReportTable:
    """Return the columns of the leaderboard and the score in every column of the board."""
    headings = (Heading(column.heading) for column in board.columns)
    return overall_table(board, name).beside(
        [(heading, score_fields(board, place)) for place, heading in enumerate(headings)]
    )


def first_rows(board: Board, most: int) -> list[int]:
    """Return positions of the first ranked rows, of the best floor and of a ceiling."""
    ceilings = [place for place, row in enumerate(board.rows) if row.contender.role == "ceiling" and row.is_plain]
    ceilings.sort(key=lambda place: board.rows[place].mark != "ceiling")
    floors = [place for place in board.ranked[most:] if board.rows[place].contender.role == "floor"]
    return [*board.ranked[:most], *floors[:1], *ceilings[:1]]


def excerpt(board: Board, keys: Iterable[str], rows: Sequence[int], title: str, caption: str = "") -> ReportTable:
    """Return rank, label and some columns of the leaderboard for some rows."""
    table = overall_table(board, "").with_rows(rows)
    columns = table.columns()
    marks = (" (floor)" if board.rows[row].mark == "floor" else "" for row in rows)
    labels = [text(board.rows[row].contender.label + mark) for row, mark in zip(rows, marks, strict=True)]
    chosen = [columns[table.place(key)] for key in keys]
    return columns_of("", title, caption, [columns[0], (Heading("method", numeric=False), labels), *chosen])


def places_of(board: Board, bag_size: int | None) -> list[int]:
    """Return the positions of the columns of a bag size."""
    return [place for place, column in enumerate(board.columns) if column.bag_size == bag_size]


def score_fields(board: Board, column: int) -> list[Field]:
    """Return the scores of a column. Leaders are bold."""
    return [
        Field(tuple(words.score_lines(row.scores[column])), (place, column) in board.leaders)
        for place, row in enumerate(board.rows)
    ]


def name_columns(board: Board) -> list[TableColumn]:
    """Return the column of methods, and those of `DETAILS` in which rows differ from the default."""
    contenders = [row.contender for row in board.rows]
    return [
        (Heading("method", numeric=False), [text(words.method_text(row)) for row in board.rows]),
        *(
            (Heading(name, numeric=False), [text(str(getattr(who, name) or "")) for who in contenders])
            for name in DETAILS
            if any(getattr(who, name) not in (None, "", "none") for who in contenders)
        ),
    ]


def unlabelled_table(board: Board, name: str) -> ReportTable:
    """Return the table of a board without labels: the criterion on test bags, best mean first."""
    metric, digits = board.criterion.name, 2 if board.criterion.name == "mpiou" else 4
    sign = -1 if board.criterion.maximise else 1
    summaries = [
        [board.summary(row, column, metric) for column in range(len(board.columns))] for row in range(len(board.rows))
    ]

    def order(row: int) -> tuple[int, float, str]:
        means = [summary.mean for summary in summaries[row] if summary is not None]
        mean = sum(means) / len(means) if means else 0.0
        return summaries[row].count(None), sign * mean, board.rows[row].contender.label

    rows = sorted(range(len(board.rows)), key=order)
    columns = [
        (
            Heading(column.title),
            [
                score(summaries[row][place], *_lacking(board.rows[row].scores[place]), digits=digits)
                for row in range(len(board.rows))
            ],
        )
        for place, column in enumerate(board.columns)
    ]
    failed = dict.fromkeys(
        f"{board.rows[row].contender.label}: {reason}"
        for row in rows
        for cell in board.rows[row].scores
        for reason in cell.failures.values()
    )
    parts = (
        words.sentence(words.setting(board)),
        words.caption(f"bag_only_{metric}"),
        words.columns_text(board.columns),
    )
    return columns_of(
        name,
        f"Without labels: {words.lowered(words.title(board))}",
        " ".join(filter(None, parts)),
        [*name_columns(board), *columns],
        {"Failed": [*failed]},
    ).with_rows(rows)


def _lacking(cell: Score) -> list[str]:
    counts = {"failed": len(cell.failures), "missing": len(cell.missing)}
    return [f"{number} {what}" for what, number in counts.items() if number]
