"""The tables of a board: where every row stands, with its scores in every column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from llpbench.core.text import plural, slug
from llpbench.report import wording as words
from llpbench.report.boards import Board, Score
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, columns_of, score, text

SHORT = {"auc": "fine", "mpiou": "coarse-mpiou", "l1": "coarse-l1"}
"""what the files of a criterion's boards are called"""
DETAILS = ("encoder", "pretraining", "configuration")
"""columns of a whole board that its labels say, too"""
SUMMARY = ("mean", "interval", "tie", "floor", "seconds")
"""columns of the leaderboard that a first screen has room for"""


def names_of(boards: Sequence[Board]) -> list[str]:
    """Names of files, one a board: `fine-ordered`; where a bagging has several protocols, `fine-ordered-b2-e100-p10` of
    those that do not have more columns than all others, and `fine-ordered-direct` of what only methods without epochs
    have run on."""
    taken: Counter[str] = Counter()
    names = []
    for board in boards:
        name = _name_of(board, boards)
        taken[name] += 1  # names of baggings may differ in signs alone
        names.append(name if taken[name] == 1 else f"{name}-{taken[name]}")
    return names


def _name_of(board: Board, boards: Iterable[Board]) -> str:
    peers = [other for other in boards if other.criterion == board.criterion and other.bagging == board.bagging]
    others = [other for other in peers if other is not board]
    rivals = [other for other in others if other.protocol is not None]
    name = f"{SHORT[board.criterion.name]}-{slug(board.bagging)}"
    trained = board.protocol is not None
    if not others or (trained and all(len(other.columns) < len(board.columns) for other in rivals)):
        return name
    protocol = board.protocol or {}
    return f"{name}-{slug('-'.join(f'{key[:1]}{value}' for key, value in protocol.items()) or 'direct')}"


def overall(board: Board, name: str) -> ReportTable:
    """Columns over all columns of the board: mean, rank, interval and others, for every row."""
    notes = {
        "Failed or undefined": board.failures,
        words.STALE_NOTE: board.stale,
        "Worth a look": board.surprises,
        words.DIFFERENCES_NOTE: board.differences,
    }
    return columns_of(
        name,
        f"{words.title(board)}: over all columns",
        caption_of(
            board,
            words.datasets_text(len(board.datasets)),
            words.caption("overall", columns=plural(len(board.counting_columns), "column"), runs=len(board.counting)),
        ),
        [*ranks(board), *names(board), *((each.heading(board), each.fields(board)) for each in COLUMNS.values())],
        {what: lines for what, lines in notes.items() if lines},
    )


def whole(board: Board, overall: ReportTable) -> ReportTable:
    """Every row in every column of a board, behind its place `overall` (the table of that name)."""
    headings = (Heading(column.heading, SCORE) for column in board.columns)
    return overall.beside([(heading, score_fields(board, place)) for place, heading in enumerate(headings)])


def first_rows(board: Board, most: int) -> list[int]:
    """Places of the first ranked rows, then of a floor that is not among them and of a ceiling."""
    ceilings = [place for place, row in enumerate(board.rows) if row.contender.role == "ceiling" and row.is_plain]
    ceilings.sort(key=lambda place: board.rows[place].mark != "ceiling")
    floors = [place for place in board.ranked[most:] if board.rows[place].contender.role == "floor"]
    return [*board.ranked[:most], *floors[:1], *ceilings[:1]]


def excerpt(
    board: Board,
    table: ReportTable,
    keys: Iterable[str],
    rows: Sequence[int],
    *,
    name: str = "",
    title: str | None = None,
    caption: str = "",
    notes: dict[str, tuple[str, ...]] | None = None,
) -> ReportTable:
    """Rank, whole label and some columns of some rows of a board's table."""
    kept = table.taken([table.place("rank")], rows)
    marks = (" (floor)" if board.rows[row].mark == "floor" else "" for row in rows)
    labels = [text(board.rows[row].contender.label + mark) for row, mark in zip(rows, marks, strict=True)]
    others = table.taken([table.place(key) for key in keys], rows)
    return columns_of(
        name or table.name,
        table.title if title is None else title,
        caption,
        [*kept.columns(), (Heading("method", numeric=False), labels), *others.columns()],
        {what: lines for what, lines in (notes or {}).items() if lines},
    )


def places_of(board: Board, bag_size: int) -> list[int]:
    """The columns of one bag size, by index."""
    return [index for index, column in enumerate(board.columns) if column.bag_size == bag_size]


def score_fields(board: Board, column: int) -> list[Field]:
    """The scores of a column, those of leaders bold."""
    return [_score_field(row.scores[column], (n, column) in board.leaders) for n, row in enumerate(board.rows)]


def _score_field(of: Score, leads: bool) -> Field:
    field = score(of.headline, strong=leads)
    lacks = {"failed": len(of.failures), "missing": len(of.missing), words.STALE: len(of.stale)}
    return Field(tuple(words.score_lines(of)), {**field.values, **lacks}, leads)


def ranks(board: Board) -> list[tuple[Heading, list[Field]]]:
    """The column of ranks."""
    return [(Heading("rank", key="rank"), [text(words.rank_text(row)) for row in board.rows])]


def names(board: Board) -> list[tuple[Heading, list[Field]]]:
    """Columns that name the rows: the method, and what sets rows of the same method apart, where any row needs it."""
    contenders = [row.contender for row in board.rows]
    methods = [
        Field((words.clean(words.method_text(row)),), {"": words.clean(row.contender.method)}) for row in board.rows
    ]
    return [
        (Heading("method", numeric=False), methods),
        *(
            (Heading(name, numeric=False), [text(str(getattr(who, name) or "")) for who in contenders])
            for name in DETAILS
            if any(getattr(who, name) not in (None, "", "none") for who in contenders)
        ),
    ]


def caption_of(board: Board, *explained: str) -> str:
    """Everything is labelled with protocol, encoder and hardware."""
    return " ".join(filter(None, (words.sentence(words.setting(board)), *explained, words.bags_note(board))))
