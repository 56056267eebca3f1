"""Leaderboards in a terminal of 80 columns or more.

Of each board first what it says in a sentence and where every row stands over all columns; then all scores, whose
columns go into further tables where they do not fit side by side. Where the numbers come from stands at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from llpbench.report.bag_only import bag_only
from llpbench.report.boards import FEW_BAGS, Board, Leaderboards, Row
from llpbench.report.finding import finding
from llpbench.report.report_table import ReportTable
from llpbench.report.wording import (
    NO_RUNS,
    NOTHING,
    STALE_NOTE,
    clean,
    columns_text,
    datasets_text,
    interval_text,
    origin_text,
    score_lines,
    seconds_text,
    setting,
    title,
)

_GAP = 2
"""characters that the table puts between two columns"""

_STANDING = 57
"""characters that the numbers of a row's standing take"""

_MOST_NOTES = 20
"""of each kind; the files name them all"""

_OWN = "\n   yours"

_LEGEND = (
    "Test AUC x 100, mean ± std over seeds (number of seeds). Bold: best, and what it does not clearly lead. First "
    "table: rows that share a letter cannot be told apart; seconds of training; intervals of 95 %."
)

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
        say(datasets_text(len(board.standings.datasets)), "dim")
        console.print(_overall(board, console, own))
        say(setting(board), "dim")
        for columns in _chunks(board, console.width):
            console.print(_table(board, columns, console, own))
        say("")
    for line in _notes("Failed", (line for board in leaderboards.boards for line in board.failures)):
        say(line, "red")
    for line in _notes(STALE_NOTE, (line for board in leaderboards.boards for line in board.stale)):
        say(line, "yellow")
    for board in leaderboards.boards:  # what is odd on one board need not be on another
        for line in _notes("Worth a look", board.surprises):
            say(line if len(leaderboards.boards) == 1 else f"{title(board)}. {line}", "yellow")
    if not shown:
        say(_NO_RESULTS)
        return
    say(" ".join(filter(None, (_LEGEND, columns_text([c for board in shown for c in board.columns])))), "dim")
    say(origin_text(leaderboards.origin), "dim")


def _has_results(board: Board) -> bool:
    """Whether any run of it has succeeded: else its tables would be empty; without columns it says why itself."""
    return not board.columns or any(score.succeeded for row in board.rows for score in row.scores)


def _overall(board: Board, console: Console, own: Collection[str]) -> Grid:
    """Where every row stands over all columns; one's own are shown even where they lack the runs that this takes."""
    table = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", width=min(_name_width(board, console.width), max(console.width - _STANDING, 12)))
    for name in ("mean\nAUC", "95 % of\nrank", "tie", "against\nfloor", "seconds"):
        table.add_column(name, justify="left" if name == "tie" else "right", overflow="fold")
    for index, (row, standing) in enumerate(zip(board.rows, board.standings.rows, strict=True)):
        if standing.overall is None and not _is_own(row, own):
            continue
        _separate(table, board, index)
        known = standing.overall
        spread = "" if known is None or known.std is None else f" ± {known.std:.2f}"
        fields = (
            NOTHING if known is None else f"{known.mean:.2f}{spread}",
            NOTHING if standing.interval is None else "–".join(map(str, standing.interval)),
            standing.letters or NOTHING,
            NOTHING
            if standing.floor is None
            else interval_text(standing.floor.mean, standing.floor.interval, sign="+"),
            NOTHING if standing.seconds is None else seconds_text(standing.seconds),
        )
        table.add_row(_named(row, console, own), *(_text(field, console) for field in fields))
    return table


def _separate(table: Grid, board: Board, index: int) -> None:
    """A line between what is trained on all labels and the others."""
    if index and (board.rows[index].contender.role == "ceiling") != (board.rows[index - 1].contender.role == "ceiling"):
        table.add_section()


def _named(row: Row, console: Console, own: Collection[str]) -> Text:
    return _text(_name(row) + (_OWN if _is_own(row, own) else ""), console)


def _is_own(row: Row, own: Collection[str]) -> bool:
    return any(score.cell in own for score in row.scores if score.cell)


def _notes(what: str, lines: Iterable[str]) -> Iterator[str]:
    """Each line once, and no more than a screen can take."""
    distinct = list(dict.fromkeys(lines))
    yield from (f"{what}: {line}" for line in distinct[:_MOST_NOTES])
    if len(distinct) > _MOST_NOTES:
        yield f"{what}: {len(distinct) - _MOST_NOTES} more, named in the written leaderboards"


def _chunks(board: Board, width: int) -> Iterator[range]:
    """The columns of each table, by index."""
    step = max(1, (width - _name_width(board, width)) // (_score_width(board) + _GAP))
    for start in range(0, len(board.columns), step):
        yield range(start, min(start + step, len(board.columns)))


def _table(board: Board, columns: range, console: Console, own: Collection[str]) -> Grid:
    table = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", width=_name_width(board, console.width), overflow="fold")
    for column in columns:
        shown = board.columns[column]
        few = "" if shown.counts else f" {FEW_BAGS}"
        heading = _text(f"{clean(shown.dataset)}\n{shown.bags}{few}", console)
        table.add_column(heading, justify="right", min_width=_score_width(board), overflow="fold")
    for index, row in enumerate(board.rows):
        _separate(table, board, index)
        table.add_row(_named(row, console, own), *(_score(board, index, column, console) for column in columns))
    return table


def render_tables(tables: Iterable[ReportTable], console: Console) -> None:
    """Print tables, each in as many parts as the width asks for; the columns of words are repeated in each."""
    for table in tables:
        console.print(_text(clean(table.title), console, "bold"))
        console.print(_text(clean(table.caption), console, "dim"))
        words = [i for i, heading in enumerate(table.headings) if not heading.numeric]
        numbers = [i for i, heading in enumerate(table.headings) if heading.numeric]
        widths = {i: _field_width(table, i) for i in (*words, *numbers)}
        room = max(console.width - sum(widths[i] + _GAP for i in words), 1)
        for part in _parts(numbers, widths, room):
            console.print(_grid(table, [*words, *part], console))
        for what, lines in table.notes.items():
            for line in _notes(what, lines):
                console.print(_text(clean(line), console, "yellow"))
        console.print()


def _parts(columns: Sequence[int], widths: Mapping[int, int], room: int) -> Iterator[list[int]]:
    """Columns that fit side by side; at least one at a time, and one part of none where there are none."""
    part: list[int] = []
    for column in columns:
        if part and sum(widths[i] + _GAP for i in (*part, column)) > room:
            yield part
            part = []
        part.append(column)
    yield part


def _grid(table: ReportTable, columns: Sequence[int], console: Console) -> Grid:
    grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for i in columns:
        heading = table.headings[i]
        grid.add_column(_text(clean(heading.text), console), justify="right" if heading.numeric else "left")
    for row in table.rows:
        fields = (row[i] for i in columns)
        grid.add_row(*(_text("\n".join(field.lines), console, "bold" if field.strong else "") for field in fields))
    return grid


def _field_width(table: ReportTable, column: int) -> int:
    lines = [line for row in table.rows for line in row[column].lines]
    return max(map(len, [clean(table.headings[column].text), *lines]))


def _name(row: Row) -> str:
    """The rank, or nothing for a row without one, then what is ranked."""
    place = "" if row.contender.role == "ceiling" else NOTHING if row.rank is None else str(row.rank)
    role = f"\n   {row.mark}" if row.mark else ""
    return f"{place:>2} {clean(row.contender.label)}{role}"


def _name_width(board: Board, width: int) -> int:
    """That of the longest name, unless it would take most of a narrow terminal."""
    longest = max(len(line) for row in board.rows for line in _name(row).split("\n"))
    return min(longest, max(24, width // 3))


def _score(board: Board, row: int, column: int, console: Console) -> Text:
    text = "\n".join(score_lines(board.rows[row].scores[column]))
    return _text(text, console, "bold" if (row, column) in board.leaders else "")


def _score_width(board: Board) -> int:
    lines = [line for row in board.rows for score in row.scores for line in score_lines(score)]
    names = [
        part
        for column in board.columns
        for part in (clean(column.dataset), column.bags + ("" if column.counts else f" {FEW_BAGS}"))
    ]
    return max(map(len, [*lines, *names]), default=1)


def _text(text: str, console: Console, style: str = "") -> Text:
    """Text that is shown as it is: rich's markup means nothing in it."""
    return Text(text.translate(_ASCII) if console.options.ascii_only else text, style=style)
