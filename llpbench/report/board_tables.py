"""From boards to tables: what each published table shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from llpbench.core.text import plural, slug
from llpbench.report import wording as words
from llpbench.report.boards import FEW_BAGS, Board, Column, Row, Score
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, number, score, text
from llpbench.report.standings import AgainstFloor, Gap, Standing

SHORT = {"auc": "fine", "mpiou": "coarse-mpiou", "l1": "coarse-l1"}
"""what the files of a criterion's boards are called"""
GAP = ("percent", "low", "high", "columns")
"""the parts of a field that says how much of a gap is closed"""
SECONDS = "seconds"
"""heads the column of training times"""
ASIDE = ("encoder", "pretraining", "configuration", "mean rank", "gap closed", "wins", "coverage")
"""columns of a whole board that a page shows on request: the label says the first three, too"""
OVERALL = "-overall"
"""how the names of tables over all columns end"""
OWN_SIZES = "own-sizes"
"""how those of tables end whose baggings have no size"""


def names_of(boards: Sequence[Board]) -> list[str]:
    """What tells boards apart in names of files, e.g. `fine-ordered`; where a bagging has several protocols,
    `fine-ordered-b2-e100-p10` of those that do not have more columns than all others, and `fine-ordered-direct` of what
    only methods without epochs have run on."""
    taken: Counter[str] = Counter()
    names = []
    for board in boards:
        name = name_of(board, boards)
        taken[name] += 1  # names of baggings may differ in signs alone
        names.append(name if taken[name] == 1 else f"{name}-{taken[name]}")
    return names


def name_of(board: Board, boards: Iterable[Board]) -> str:
    """As `names_of` has it, but for its last word."""
    peers = [other for other in boards if other.criterion == board.criterion and other.bagging == board.bagging]
    others = [other for other in peers if other is not board]
    rivals = [other for other in others if other.protocol is not None]
    name = f"{SHORT[board.criterion.name]}-{slug(board.bagging)}"
    trained = board.protocol is not None
    if not others or (trained and all(len(other.columns) < len(board.columns) for other in rivals)):
        return name
    protocol = board.protocol or {}
    return f"{name}-{slug('-'.join(f'{key[:1]}{value}' for key, value in protocol.items()) or 'direct')}"


def board_tables(board: Board, name: str) -> list[ReportTable]:
    """The whole of a board: where every row stands over all columns, then a table for each bag size."""
    sizes = sorted({column.bag_size for column in board.columns})
    return [overall(board, name), *(scores(board, size, name) for size in sizes)]


def overall(board: Board, name: str) -> ReportTable:
    """Where every row stands over all columns."""
    found = board.standings
    numbers = (
        Heading("rank"),
        *row_headings(board),
        Heading("mean AUC", SCORE),
        Heading("95 % of rank", ("low", "high")),
        Heading("tie", numeric=False),
        Heading("against floor", ("points", "low", "high", "ahead", "of")),
        Heading("mean rank"),
        Heading("gap closed", GAP),
        Heading("wins"),
        Heading("coverage", ("done", "failed", "expected", "stale")),
    )
    rows = [
        (text(words.rank_text(row)), *row_fields(board, row), *_standing(standing))
        for row, standing in zip(board.rows, found.rows, strict=True)
    ]
    return ReportTable(
        name=f"{name}{OVERALL}",
        title=f"{words.title(board)}: over all columns",
        caption=caption_of(
            board,
            words.datasets_text(len(found.datasets)),
            words.OVERALL.format(columns=plural(len(found.columns), "column"), runs=len(found.runs)),
            words.validation_text(board, board.columns),
        ),
        headings=numbers,
        rows=tuple(rows),
        notes={
            what: lines
            for what, lines in (
                ("Failed or undefined", board.failures),
                (words.STALE_NOTE, board.stale),
                ("Worth a look", board.surprises),
                (words.DIFFERENCES_NOTE, board.differences),
            )
            if lines
        },
    )


def whole(board: Board, overall: ReportTable) -> ReportTable:
    """Every row in every column of a board, with its place `overall` (the table of that name) before its scores."""
    after = [heading.text for heading in overall.headings].index("against floor") + 1
    return replace(
        overall,
        headings=(
            *overall.headings[:after],
            Heading(SECONDS),
            *overall.headings[after:],
            *(Heading(column.heading, SCORE) for column in board.columns),
        ),
        rows=tuple(
            (
                *place[:after],
                _seconds(standing),
                *place[after:],
                *(_score_field(each, (number, i) in board.leaders) for i, each in enumerate(row.scores)),
            )
            for number, (place, row, standing) in enumerate(
                zip(overall.rows, board.rows, board.standings.rows, strict=True)
            )
        ),
    )


def summary(board: Board, overall: ReportTable, most: int) -> ReportTable:
    """Where the first ranked rows stand, floor and best ceiling below them, in what a first screen has room for.

    `overall`: the table of that name.
    """
    kept = ("rank", "method", "mean AUC", "95 % of rank", "tie", "against floor", SECONDS)
    table = whole(board, overall)
    places = [[heading.text for heading in table.headings].index(text) for text in kept]
    ranked = [place for place, row in enumerate(board.rows) if row.rank is not None]
    ceilings = [place for place, row in enumerate(board.rows) if row.contender.role == "ceiling"]
    floors = [place for place in ranked[most:] if board.rows[place].contender.role == "floor"]
    chosen = [*ranked[:most], *floors[:1], *ceilings[:1]]
    method = kept.index("method")
    lines = [[table.rows[row][place] for place in places] for row in chosen]
    for line, row in zip(lines, chosen, strict=True):
        floor = f" ({board.rows[row].mark})" if board.rows[row].mark == "floor" else ""
        line[method] = text(board.rows[row].contender.label + floor)
    return replace(
        table,
        name=f"{table.name}-summary",
        caption=caption_of(board, words.datasets_text(len(board.standings.datasets))),
        headings=tuple(table.headings[place] for place in places),
        rows=tuple(map(tuple, lines)),
        notes={},
    )


def _seconds(standing: Standing) -> Field:
    """Of training, in three digits."""
    if standing.seconds is None:
        return Field((words.NOTHING,))
    return Field((words.seconds_text(standing.seconds),), {"": round(standing.seconds, 6)})


def _standing(standing: Standing) -> tuple[Field, ...]:
    interval = standing.interval
    shown = (words.NOTHING,) if interval is None else (f"{interval[0]}–{interval[1]}",)
    low, high = interval or (None, None)
    lacks = {"failed": standing.failed, words.STALE: standing.stale}
    overall = score(standing.overall)
    if standing.overall is not None and standing.overall.n == 0:
        overall = Field((f"{standing.overall.mean:.2f}", "no seed in common"), overall.values)
    return (
        overall,
        Field(shown, {"low": low, "high": high}),
        text(standing.letters or words.NOTHING),
        _against_floor(standing.floor),
        number(standing.mean_rank, 1),
        gap_field(standing.gap),
        number(standing.wins, 0),
        Field(
            (f"{standing.done}/{standing.expected}", *(f"{number} {what}" for what, number in lacks.items() if number)),
            {"done": standing.done, "expected": standing.expected, **lacks},
        ),
    )


def _against_floor(found: AgainstFloor | None) -> Field:
    if found is None:
        return Field((words.NOTHING,))
    low, high = found.interval or (None, None)
    return Field(
        (words.interval_text(found.mean, found.interval, sign="+"), f"ahead in {found.ahead}/{found.columns}"),
        {
            "points": _short(found.mean),
            "low": _short(low),
            "high": _short(high),
            "ahead": found.ahead,
            "of": found.columns,
        },
    )


def gap_field(found: Gap | None) -> Field:
    """How much of a gap is closed, with the parts `GAP`."""
    if found is None:
        return Field((words.NOTHING,))
    low, high = found.interval or (None, None)
    return Field(
        (words.interval_text(found.percent, found.interval, digits=0),),
        {"percent": _short(found.percent), "low": _short(low), "high": _short(high), "columns": found.columns},
    )


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def scores(board: Board, bag_size: int, name: str) -> ReportTable:
    """The scores of one bag size: a column for each dataset."""
    places = places_of(board, bag_size)
    columns = [board.columns[i] for i in places]
    bags = words.bags_text(bag_size)
    tried = [(n, row) for n, row in enumerate(board.rows) if any(row.scores[i].cell for i in places)]
    others = [row.contender.label for row in board.rows if not any(row.scores[i].cell for i in places)]
    return ReportTable(
        name=f"{name}-{bag_size or OWN_SIZES}",
        title=f"{words.title(board)}, {bags}",
        caption=caption_of(
            board,
            words.CAPTION,
            words.datasets_text(len(board.standings.datasets)),
            words.validation_text(board, columns),
        ),
        headings=(
            Heading("rank"),
            *row_headings(board),
            *(Heading(_short_title(column), SCORE) for column in columns),
        ),
        rows=tuple(
            (
                text(words.rank_text(row)),
                *row_fields(board, row),
                *(_score_field(row.scores[i], (n, i) in board.leaders) for i in places),
            )
            for n, row in tried
        ),
        notes={f"Not run with {bags}": (", ".join(others),)} if others else {},
    )


def places_of(board: Board, bag_size: int) -> list[int]:
    """The columns of one bag size, by index."""
    return [index for index, column in enumerate(board.columns) if column.bag_size == bag_size]


def _short_title(column: Column) -> str:
    """Of a column in a table of one bag size, which names its bags if their sizes are not just that."""
    named = column.title if column.unequal or not column.bag_size else column.dataset
    return named if column.counts else f"{named} {FEW_BAGS}"


def _score_field(of: Score, leads: bool) -> Field:
    field = score(of.headline, strong=leads)
    lacks = {"failed": len(of.failures), "missing": len(of.missing), words.STALE: len(of.stale)}
    return Field(tuple(words.score_lines(of)), {**field.values, **lacks}, leads)


def row_headings(board: Board) -> list[Heading]:
    return [Heading(name, numeric=False) for name in ("method", *_details(board))]


def row_fields(board: Board, row: Row) -> list[Field]:
    details = (str(getattr(row.contender, name) or "") for name in _details(board))
    method = Field((words.clean(words.method_text(row)),), {"": words.clean(row.contender.method)})
    return [method, *map(text, details)]


def _details(board: Board) -> list[str]:
    """The columns that tell rows of the same method apart, where any row needs them."""
    contenders = [row.contender for row in board.rows]
    needed: Mapping[str, bool] = {
        "encoder": any(contender.encoder for contender in contenders),
        "pretraining": any(contender.pretraining != "none" for contender in contenders),
        "configuration": any(contender.configuration for contender in contenders),
    }
    return [name for name, shown in needed.items() if shown]


def caption_of(board: Board, *explained: str) -> str:
    """Everything is labelled with protocol, encoder and hardware."""
    return " ".join(filter(None, (words.sentence(words.setting(board)), *explained, words.bags_note(board))))
