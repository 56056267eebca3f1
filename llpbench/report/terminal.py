"""Leaderboards and tables in a terminal of at least 80 columns: one board on one screen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.board_tables import Report
from llpbench.report.boards import UNRANKED, Board
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.overview import Standings
from llpbench.report.report_table import Field, Heading, ReportTable
from llpbench.report.tabulate import Leaderboards

_MOST_ENTRIES = 18
"""Entries of a board: with the texts around them, a screen of 40 lines."""

_GAP = 2
"""Characters between two columns."""

_COLUMNS = ("mean", "interval", "seconds", "first", "floor")
"""Columns of the leaderboard: as many as fit."""

_MOST_NOTES = 3
"""Notes of each kind."""

_ASCII = str.maketrans({"±": "+-", "–": "-", "·": ";", "⚑": "!", "†": "*", "→": "->", "…": "..."})
"""Replacements for terminals without Unicode."""


def render(leaderboards: Leaderboards, console: Console, yours: Collection[str] = ()) -> None:
    """Print the first board on one screen, and headlines of others without labels. `yours` are marked."""

    def say(text: str, style: str = "") -> None:
        console.print(_text(text, console, style))

    boards = leaderboards.main_boards()
    if not boards and leaderboards.unlabelled:
        render_tables(Report(leaderboards).unlabelled[:1], console)
        return
    shown = [board for board in boards if (board.runs["status"] == "ok").any()]
    if shown:
        first = shown[0]
        lines, *others = map(Standings.of, shown)
        say(lines.title, "bold")
        say(lines.headline)
        say(lines.verdict() or first.datasets_text(), "dim")
        console.print(_standing(first, console, yours))
        if lacking := [first.labels[n] for n in first.entries.index if n not in first.complete]:
            say(f"Without a rank, because runs are missing or failed: {', '.join(some_of(lacking, 3))}", "yellow")
        say(first.setting(), "dim")
        say(" ".join(filter(None, (words.caption("legend", first.metric), first.tasks_text()))), "dim")
        for board in others:
            if not board.has_labels:
                say(board.headline)
    elif yours:
        say("None of your runs counts, so there is no board.")
    else:
        say(words.caption("no_results") if boards else words.NO_RUNS)
    for text, style in _warnings(shown[:1] or boards, "not shown" if yours else "in index.html"):
        say(text, style)


def _warnings(boards: Sequence[Board], others: str) -> Iterator[tuple[str, str]]:
    """Yield failures, runs without a value, stale runs and different data, with styles; `others`: where more are."""
    for what in (words.FAILED, words.WITHOUT_VALUE, words.STALE_NOTE, words.DIFFERENT_DATA):
        style = "red" if what == words.FAILED else "yellow"
        distinct = [*dict.fromkeys(line for board in boards for line in board.notes[what])]
        for line in distinct[:_MOST_NOTES]:
            yield f"{what}: {line}", style
        if len(distinct) > _MOST_NOTES:
            yield f"{what}: {len(distinct) - _MOST_NOTES} more, {others}", style


def _standing(board: Board, console: Console, yours: Collection[str]) -> Table:
    """Return the first entries of the leaderboard, with the columns that fit."""
    rows = board.runs[["entry", "run"]]
    marked = {*rows["entry"][rows["run"].isin([*yours])]}
    entries = [n for n in board.entries.index if n in board.complete or n in marked]
    marks, hidden = board.entries["mark"], max(len(entries) - _MOST_ENTRIES, 0)
    entries = sorted(sorted(entries, key=lambda n: (n not in marked, not marks[n]))[:_MOST_ENTRIES])
    names = []
    for n, rank in zip(entries, board.entries["rank"][entries], strict=True):
        marks_of = filter(None, (marks[n], _yours_text(board, n, yours) if n in marked else ""))
        names.append(f"{rank or '':>2} {', '.join([words.clean(board.labels[n]), *marks_of])}")
    most = console.width // 2
    # names of one method often begin alike, and marks are at the end
    names = [name if len(name) <= most else f"{name[: most - 2 - most // 2]}..{name[-(most // 2) :]}" for name in names]
    columns = [(Heading("method", numeric=False), [Field((name,)) for name in names])]
    width = _width(*columns[0])
    for column in map(COLUMNS.__getitem__, _COLUMNS):
        heading = Heading(_two_lines(column.heading(board.metric.title).text))
        fields = [Field(field.lines[:1]) for field in column.fields(Standings.of(board).lines.loc[entries])]
        wide = _width(heading, fields)
        if any(not field.is_empty for field in fields) and width + wide <= console.width:
            columns.append((heading, fields))
            width += wide
    table = ReportTable("", "", "", columns)
    grid = _grid(table, range(len(columns)), console, above=sum(board.entries["role"][entries].isin(UNRANKED)))
    if hidden:
        place = "not shown" if yours else "in index.html"
        grid.add_row(_text(f"   {plural(hidden, 'more method')} {place}", console, "dim"))
    return grid


def _yours_text(board: Board, entry: int, yours: Collection[str]) -> str:
    """Return `yours`, with the number of your runs if others of the entry are published ones."""
    runs = board.runs["run"][board.runs["entry"] == entry]
    number = int(runs.isin([*yours]).sum())
    return "yours" if number == len(runs) else f"yours: {number} of {plural(len(runs), 'run')}"


def render_tables(tables: Iterable[ReportTable], console: Console) -> None:
    """Print tables, split into parts that fit the width."""
    for table in tables:
        console.print(_text(table.title, console, "bold"))
        console.print(_text(table.caption, console, "dim"))
        for grid in _grids(table, console):
            console.print(grid)
        for what, texts in table.notes.items():
            for line in dict.fromkeys(texts):
                console.print(_text(f"{what}: {line}", console, "yellow"))
        console.print()


def _grids(table: ReportTable, console: Console) -> Iterator[Table]:
    """Yield tables whose columns fit side by side. Columns of words are repeated in each."""
    widths = [_width(heading, fields) for heading, fields in table.columns]
    words_columns = [place for place, heading in enumerate(table.headings) if not heading.numeric]
    room = console.width - sum(widths[place] for place in words_columns)
    part: list[int] = []
    for place in (place for place, heading in enumerate(table.headings) if heading.numeric):
        if part and sum(widths[column] for column in (*part, place)) > room:
            yield _grid(table, [*words_columns, *part], console)
            part = []
        part.append(place)
    yield _grid(table, [*words_columns, *part], console)


def _grid(table: ReportTable, columns: Sequence[int], console: Console, above: int = 0) -> Table:
    """Return some columns of a table, with a line below the first `above` rows."""
    grid = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for place in columns:
        heading = table.headings[place]
        justify = "right" if heading.numeric else "left"
        grid.add_column(_text(heading.text, console), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for number, row in enumerate(table.rows):
        if number == above and number:
            grid.add_section()
        fields = (row[place] for place in columns)
        grid.add_row(*(_text("\n".join(field.lines), console, "bold" if field.strong else "") for field in fields))
    return grid


def _two_lines(text: str) -> str:
    """Return a heading on two lines, broken at its middle space."""
    parts = text.split()
    middle = (len(parts) + 1) // 2 if len(parts) > 2 else 1
    return "\n".join(filter(None, (" ".join(parts[:middle]), " ".join(parts[middle:]))))


def _width(heading: Heading, fields: Iterable[Field]) -> int:
    """Return the number of characters of a column, with the gap on its right."""
    texts = [line for field in fields for line in field.lines]
    return _GAP + max(map(len, [*map(words.clean, heading.text.split("\n")), *texts]))


def _text(text: str, console: Console, style: str = "") -> Text:
    """Return a text without control characters in which rich's markup has no meaning."""
    clean = "\n".join(map(words.clean, text.split("\n")))
    return Text(clean.translate(_ASCII) if console.options.ascii_only else clean, style=style)
