"""Leaderboards in a terminal of 80 columns or more.

Of each board first what it says in a sentence and where every row stands over all columns; then all scores, whose
columns go into further tables where they do not fit side by side. Where the numbers come from stands at the end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from llpbench.core.text import clean
from llpbench.report.bag_only import bag_only
from llpbench.report.board_tables import SUMMARY, score_fields
from llpbench.report.boards import FEW_BAGS, Board, Leaderboards
from llpbench.report.finding import finding
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.report_table import Field, Heading, ReportTable, TableColumn, columns_of
from llpbench.report.wording import (
    LEVEL,
    NO_RUNS,
    NOTHING,
    STALE_NOTE,
    columns_text,
    datasets_text,
    origin_text,
    setting,
    title,
)

_GAP = 2
"""characters that the table puts between two columns"""

_STANDING = 57
"""characters that the numbers of a row's standing take"""

_MOST_NOTES = 20
"""of each kind; the files name them all"""

_LEGEND = (
    "Test {metric}{unit}, mean ± std over seeds (number of seeds). Bold: best, and what it does not clearly lead. "
    "First table: rows that share a letter do not differ significantly; seconds of training; intervals of {level}."
)

_SEEDS = re.compile(r" \(\d+\)$")
"""the number of seeds, which the further tables show"""

_NO_RESULTS = (
    "No run has a result, so there is no board. The journal and index.html have the reasons; llpbench run with --retry "
    "failed --executor debug runs what failed once more, with tracebacks, in one process that a debugger reaches."
)

_ASCII = str.maketrans({"±": "+-", "–": "-", "·": ";", "⚑": "!", "†": "*"})
"""for terminals that cannot show our few other characters"""


def render(leaderboards: Leaderboards, console: Console, own: Collection[str] = ()) -> None:
    """Print every board: where its rows stand, then methods as rows and (dataset, bag size) as columns.

    Rows with any of the cells `own` are marked as one's own.
    """

    def say(text: str, style: str = "") -> None:
        console.print(_text(clean(text), console, style))

    if not (leaderboards.boards or leaderboards.unlabelled):
        say(NO_RUNS)
        return
    render_tables([bag_only(board) for board in leaderboards.unlabelled], console)
    if not leaderboards.boards:
        say(origin_text(leaderboards.origin), "dim")
        return
    shown = [board for board in leaderboards.boards if _has_results(board)]
    for board in shown:
        say(title(board), "bold")
        say(finding(board))
        say(datasets_text(len(board.datasets)), "dim")
        _render_board(board, console, own)
        say("")
    boards = leaderboards.boards
    for what, style, notes in (
        ("Failed", "red", [board.failures for board in boards]),
        (STALE_NOTE, "yellow", [board.stale for board in boards]),
        ("Worth a look", "yellow", [board.surprises for board in boards]),
    ):
        for line in _notes(what, _with_boards(boards, notes)):
            say(line, style)
    if not shown:
        say(_NO_RESULTS)
        return
    metric = shown[0].metric
    legend = _LEGEND.format(metric=metric.title, unit=" x 100" if metric.percent else "", level=LEVEL)
    say(" ".join(filter(None, (legend, columns_text([c for board in shown for c in board.columns])))), "dim")
    say(origin_text(leaderboards.origin), "dim")


def _has_results(board: Board) -> bool:
    """Whether any run of it has succeeded: else its tables would be empty; without columns it says why itself."""
    return not board.columns or any(score.succeeded for row in board.rows for score in row.scores)


def _names(board: Board, own: Collection[str]) -> TableColumn:
    """Rank and label of each row, then whether it is a mark or one's own."""
    fields = []
    for row in board.rows:
        place = "" if row.contender.role == "ceiling" else NOTHING if row.rank is None else str(row.rank)
        mine = any(score.cell in own for score in row.scores if score.cell)
        more = [f"   {what}" for what in (row.mark, "yours" if mine else "") if what]
        fields.append(Field((f"{place:>2} {clean(row.contender.label)}", *more)))
    return Heading("method", numeric=False), fields


def _overall(board: Board, own: Collection[str]) -> ReportTable:
    """Where every row stands over all columns."""
    columns = []
    for column in (COLUMNS[key] for key in SUMMARY):
        lines = [_SEEDS.sub("", field.lines[0]) for field in column.fields(board)]
        heading = replace(column.heading(board), text=_two_lines(column.heading(board).text), numeric=True)
        columns.append((heading, [Field((line,)) for line in lines]))
    return columns_of("", "", "", [_names(board, own), *columns])


def _scores(board: Board, own: Collection[str]) -> ReportTable:
    columns = [
        (Heading(f"{clean(column.dataset)}\n{column.bags}{'' if column.counts else f' {FEW_BAGS}'}"), fields)
        for place, column in enumerate(board.columns)
        for fields in (score_fields(board, place),)
    ]
    return columns_of("", "", "", [_names(board, own), *columns])


def _render_board(board: Board, console: Console, own: Collection[str]) -> None:
    """Where rows stand, one's own even where they lack the runs that this takes, then their scores."""
    names, overall = _names(board, own)[1], _overall(board, own)
    kept = [n for n, field in enumerate(names) if n in board.complete or "   yours" in field.lines]
    longest = max(len(line) for field in names for line in field.lines)
    width = min(longest, max(24, console.width // 3))  # unless it would take most of a narrow terminal
    ceilings = sum(row.contender.role == "ceiling" for row in board.rows)
    room = min(width, max(console.width - _STANDING, 12))
    console.print(
        _grid(overall.with_rows(kept), range(len(overall.headings)), console, room, sum(n < ceilings for n in kept))
    )
    console.print(_text(clean(setting(board)), console, "dim"))
    scores = _scores(board, own)
    for columns in _parts(scores, console.width - width):
        console.print(_grid(scores, [0, *columns], console, width, ceilings))


def _two_lines(text: str) -> str:
    """A heading on two lines, broken at its middle space."""
    words = text.split()
    middle = (len(words) + 1) // 2 if len(words) > 2 else 1
    return "\n".join(filter(None, (" ".join(words[:middle]), " ".join(words[middle:]))))


def _with_boards(boards: Sequence[Board], notes: Iterable[Iterable[str]]) -> Iterator[str]:
    """Each note once, with the titles of its boards unless all boards have it."""
    owners: dict[str, list[str]] = {}
    for board, lines in zip(boards, notes, strict=True):
        for line in dict.fromkeys(lines):
            owners.setdefault(line, []).append(title(board))
    for line, titles in owners.items():
        yield line if len(titles) == len(boards) else f"{line} ({'; '.join(titles)})"


def _notes(what: str, lines: Iterable[str]) -> Iterator[str]:
    """Each line once, and no more than a screen can take."""
    distinct = list(dict.fromkeys(lines))
    yield from (f"{what}: {line}" for line in distinct[:_MOST_NOTES])
    if len(distinct) > _MOST_NOTES:
        yield f"{what}: {len(distinct) - _MOST_NOTES} more, named in the written leaderboards"


def render_tables(tables: Iterable[ReportTable], console: Console) -> None:
    """Print tables, each in as many parts as the width asks for; the columns of words are repeated in each."""
    for table in tables:
        console.print(_text(clean(table.title), console, "bold"))
        console.print(_text(clean(table.caption), console, "dim"))
        words = [place for place, heading in enumerate(table.headings) if not heading.numeric]
        room = console.width - sum(_width(table, place) for place in words)
        for part in _parts(table, room):
            console.print(_grid(table, [*words, *part], console))
        for what, lines in table.notes.items():
            for line in _notes(what, lines):
                console.print(_text(clean(line), console, "yellow"))
        console.print()


def _parts(table: ReportTable, room: int) -> Iterator[list[int]]:
    """Columns of numbers that fit side by side; at least one at a time, and one part of none where there are none."""
    part: list[int] = []
    for column in (place for place, heading in enumerate(table.headings) if heading.numeric):
        if part and sum(_width(table, place) for place in (*part, column)) > room:
            yield part
            part = []
        part.append(column)
    yield part


def _grid(
    table: ReportTable, columns: Iterable[int], console: Console, first: int | None = None, above: int = 0
) -> Grid:
    """`first`: width of the first column; `above`: rows above a line."""
    grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    shown = [*columns]
    for place in shown:
        heading = table.headings[place]
        text = "\n".join(map(clean, heading.text.split("\n")))
        width = first if place == shown[0] else None
        grid.add_column(
            _text(text, console), justify="right" if heading.numeric else "left", width=width, overflow="fold"
        )
    for number, row in enumerate(table.rows):
        if number == above and number:
            grid.add_section()
        fields = (row[place] for place in shown)
        grid.add_row(*(_text("\n".join(field.lines), console, "bold" if field.strong else "") for field in fields))
    return grid


def _width(table: ReportTable, column: int) -> int:
    """Characters of a column, with the gap behind it."""
    lines = [line for row in table.rows for line in row[column].lines]
    return _GAP + max(map(len, [*map(clean, table.headings[column].text.split("\n")), *lines]))


def _text(text: str, console: Console, style: str = "") -> Text:
    """Text that is shown as it is: rich's markup means nothing in it."""
    return Text(text.translate(_ASCII) if console.options.ascii_only else text, style=style)
