"""Leaderboards in a terminal of 80 columns or more: one board on one screen.

First what the board says in a sentence, then where every row stands; then the scores, if there are several columns and
they fit; then how other boards differ, and warnings last. The page has the rest, and so has `every=True`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from llpbench.core.text import clean, plural
from llpbench.report.bag_only import bag_only
from llpbench.report.board_tables import score_fields
from llpbench.report.boards import FEW_BAGS, FEWEST_DATASETS, Board, Leaderboards
from llpbench.report.finding import finding
from llpbench.report.leaderboard import COLUMNS, fewest_seeds, is_tested
from llpbench.report.report_table import Field, Heading, ReportTable, TableColumn, columns_of
from llpbench.report.wording import (
    LEVEL,
    NO_RUNS,
    NOTHING,
    STALE_NOTE,
    columns_text,
    datasets_text,
    lowered,
    origin_text,
    setting,
    title,
)

MOST_LINES = 36
"""of a board and everything below it, so that a screen of 40 has room for where the page is"""

_GAP = 2
"""characters that the table puts between two columns"""

_NUMBERS = 42
"""characters that mean, interval and seconds take, with the rank of a row"""

_FEWEST_ROWS = 8
"""that are shown whatever else there is to say"""

_STANDING = ("mean", "interval", "seconds", "floor", "tie")
"""columns of the leaderboard, those first that a narrow terminal shows"""

_ORDER = ("mean", "interval", "tie", "floor", "seconds")
"""the same as they stand side by side"""

_MOST_NOTES = 3
"""of each kind on a screen; the page has them all"""

_MOST_IN_ALL = 20
"""of each kind where there is no such limit"""

_LEGEND = (
    "Test {metric}{unit}, mean ± std (number of seeds). Intervals of {level}: of the rank, of the difference to the "
    "floor. Seconds of training."
)

_NO_RESULTS = (
    "No run has a result, so there is no board. The journal and index.html have the reasons. To see tracebacks, repeat "
    "the failed runs in this process: --retry failed --executor debug."
)

_ASCII = str.maketrans({"±": "+-", "–": "-", "·": ";", "⚑": "!", "†": "*", "→": "->"})
"""for terminals that cannot show our few other characters"""


def render(
    leaderboards: Leaderboards,
    console: Console,
    own: Collection[str] = (),
    *,
    every: bool = False,
    lines: int = MOST_LINES,
) -> None:
    """Print the first board in at most so many lines, and how the others differ from it; or `every` board whole.

    Rows with any of the cells `own` are marked as yours, and boards that have them come first.
    """
    for part in _screen(leaderboards, console, own, every, lines):
        console.print(part)


def _screen(
    leaderboards: Leaderboards, console: Console, own: Collection[str], every: bool, lines: int
) -> Iterator[RenderableType]:
    def text(line: str, style: str = "") -> Text:
        return _text(clean(line), console, style)

    if not (leaderboards.boards or leaderboards.unlabelled):
        yield text(NO_RUNS)
        return
    unlabelled = [bag_only(board) for board in leaderboards.unlabelled]
    render_tables(unlabelled if every else [] if leaderboards.boards else unlabelled[:1], console)
    shown = [board for board in leaderboards.boards if _has_results(board)]
    notes: list[RenderableType] = [
        text(line, style)
        for what, style, found in (
            ("Failed", "red", [board.failures for board in leaderboards.boards]),
            (STALE_NOTE, "yellow", [board.stale for board in leaderboards.boards]),
        )
        for line in _notes(what, _with_boards(leaderboards.boards, found), _MOST_IN_ALL if every else _MOST_NOTES)
    ]
    surprises: list[RenderableType] = [
        text(line, "yellow")
        for board in (shown if every else shown[:1])  # what is odd on one board need not be on another
        for line in _notes(f"Worth a look ({_name(board, every)})", board.surprises, _MOST_NOTES)
    ]
    if every:
        for board in shown:
            yield from _whole(board, console, own)
    elif shown:
        below = [*map(text, _other_boards(shown)), *notes, *surprises]
        yield from _one(shown[0], console, own, lines - _height(below, console))
        yield from below
        return
    yield from [*notes, *surprises]
    if not shown and leaderboards.boards:
        yield text(_NO_RESULTS)
    yield text(origin_text(leaderboards.origin), "dim")


def _name(board: Board, every: bool) -> str:
    """A board inside a line; what selects its epochs is said where boards differ by it."""
    name = lowered(title(board))
    return name if every else name.partition(", selected by")[0]


def _whole(board: Board, console: Console, own: Collection[str]) -> Iterator[RenderableType]:
    """Everything of a board."""
    yield from _head(board, console)
    yield _standing(board, console, own, len(board.rows))
    yield from _legend(board, console)
    yield from _score_grids(board, console, own)
    yield Text()


def _one(board: Board, console: Console, own: Collection[str], lines: int) -> Iterator[RenderableType]:
    """The part of a board that fits into some lines; scores are shown only if they add to the means."""
    head, legend = [*_head(board, console)], [*_legend(board, console)]
    frame = _standing(board, console, own, 0)
    room = max(lines - _height([*head, frame, *legend], console), _FEWEST_ROWS)
    standing = _standing(board, console, own, room)
    yield from [*head, standing]
    runs = len(board.counting)
    if any(len(score.values) != runs or score.stale for row in board.rows for score in row.scores):
        scores = [*_score_grids(board, console, own)]
        if _height([*head, standing, *legend, *scores], console) <= lines:
            yield from scores
    yield from legend


def _head(board: Board, console: Console) -> Iterator[RenderableType]:
    """Heading of a board: what it compares, the first method, and how certain its lead is."""
    yield _text(clean(title(board)), console, "bold")
    if is_tested(board):
        yield _text(clean(finding(board)), console)
        yield _text(clean(datasets_text(len(board.datasets))), console, "dim")
        return
    yield _text(clean(finding(board, tested=False)), console)
    if board.ranked:
        number = len(board.datasets)
        yield _text(
            f"Too few {'datasets' if number < FEWEST_DATASETS else 'seeds'} to test differences "
            f"({plural(number, 'dataset')}, {plural(fewest_seeds(board), 'seed')}).",
            console,
            "dim",
        )


def _legend(board: Board, console: Console) -> Iterator[RenderableType]:
    named = [column.heading for column in board.columns]
    where = ", ".join(named[:3]) + (f" and {len(named) - 3} more columns" if len(named) > 3 else "")
    yield _text(clean(f"{where} · {setting(board)}"), console, "dim")
    legend = _LEGEND.format(metric=board.metric.title, unit=" x 100" if board.metric.percent else "", level=LEVEL)
    letters = "Rows that share a letter do not differ significantly." if is_tested(board) else ""
    yield _text(" ".join(filter(None, (legend, letters, columns_text(board.columns)))), console, "dim")


def _has_results(board: Board) -> bool:
    """Whether any run of it has succeeded: else its tables would be empty."""
    return any(score.succeeded for row in board.rows for score in row.scores)


def _other_boards(boards: list[Board]) -> Iterator[str]:
    """Lines on other boards: where another criterion changes the order, and the first method on other bags."""
    first, *others = boards
    baggings = {first.bagging}
    for board in others:
        if (board.bagging, board.protocol) == (first.bagging, first.protocol):
            if moved := _moved(first, board):
                more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
                yield f"Selected by {board.criterion.title}, ranks change: {', '.join(moved[:3])}{more}."
        elif board.bagging not in baggings and board.max_bags == first.max_bags and len(baggings) <= _MOST_NOTES:
            baggings.add(board.bagging)
            yield finding(board, tested=False)
    if any(board.bagging not in baggings or board.protocol != first.protocol for board in others):
        yield f"{plural(len(others), 'more board')}: --all-boards."


def _moved(first: Board, other: Board) -> list[str]:
    """Rows whose rank is another: `dllp (mlp) 3 → 2`."""
    before = {row.contender.label: row.rank for row in first.rows if row.rank is not None}
    after = {row.contender.label: row.rank for row in other.rows if row.rank is not None}
    return [f"{label} {rank} → {after[label]}" for label, rank in before.items() if after.get(label, rank) != rank]


def _names(board: Board, own: Collection[str], console: Console) -> TableColumn:
    """Rank and label of each row, and whether it is a mark or yours; a long label is cut, so that numbers fit."""
    most = max(console.width - _NUMBERS, 24)
    fields = []
    for row in board.rows:
        place = "" if row.contender.role == "ceiling" else NOTHING if row.rank is None else str(row.rank)
        mine = any(score.cell in own for score in row.scores if score.cell)
        marks = "".join(f", {mark}" for mark in (row.mark, "yours" if mine else "") if mark)
        label, room = clean(row.contender.label), most - len(marks)
        fields.append(Field((f"{place:>2} {label if len(label) <= room else f'{label[: room - 2]}..'}{marks}",)))
    return Heading("method", numeric=False), fields


def _standing(board: Board, console: Console, own: Collection[str], most: int) -> Grid:
    """Means and ranks of rows over all columns."""
    names = _names(board, own, console)
    kept, left = _shown_rows(board, [field.lines[0].endswith(", yours") for field in names[1]], most)
    parts = {}
    room = console.width - max((len(names[1][n].lines[0]) for n in kept), default=0)
    for key in _STANDING:
        heading, fields = COLUMNS[key].heading(board), COLUMNS[key].fields(board)
        column = (
            replace(heading, text=_two_lines(heading.text), numeric=True),
            [Field(field.lines[:1]) for field in fields],
        )
        width = _width(columns_of("", "", "", [column]).with_rows(kept), 0)
        known = any(column[1][n].lines != (NOTHING,) for n in kept) and (key != "tie" or is_tested(board))
        if known and width <= room:
            parts[key] = column
            room -= width
    table = columns_of("", "", "", [names, *(parts[key] for key in _ORDER if key in parts)]).with_rows(kept)
    grid = _grid(
        table, range(len(table.headings)), console, above=sum(board.rows[n].contender.role == "ceiling" for n in kept)
    )
    if left and kept:
        grid.add_row(_text(f"   {plural(left, 'more row')}: --all-boards", console, "dim"))
    return grid


def _shown_rows(board: Board, mine: list[bool], most: int) -> tuple[list[int], int]:
    """Places of at most so many rows, and how many more there are: yours, then marks, then the best.

    Yours even where they lack the runs that this takes.
    """
    rows = [n for n in range(len(board.rows)) if n in board.complete or mine[n]]
    if len(rows) <= most:
        return rows, 0
    first = sorted(rows, key=lambda n: (not mine[n], not board.rows[n].mark))[: max(most - 1, 0)]
    return sorted(first), len(rows) - len(first)


def _score_grids(board: Board, console: Console, own: Collection[str]) -> Iterator[RenderableType]:
    """Methods as rows and (dataset, bag size) as columns, in as many tables as the width asks for."""
    names = _names(board, own, console)
    columns = [
        (Heading(f"{clean(column.dataset)}\n{column.bags}{'' if column.counts else f' {FEW_BAGS}'}"), fields)
        for place, column in enumerate(board.columns)
        for fields in (score_fields(board, place),)
    ]
    table = columns_of("", "", "", [names, *columns])
    ceilings = sum(row.contender.role == "ceiling" for row in board.rows)
    longest = max(len(field.lines[0]) for field in names[1])
    for part in _parts(table, console.width - longest - _GAP):
        yield _grid(table, [0, *part], console, above=ceilings)
    yield _text("Bold: best, and results within one standard deviation of it.", console, "dim")


def _height(parts: Iterable[RenderableType], console: Console) -> int:
    """Lines that they take."""
    return sum(len(console.render_lines(part, pad=False)) for part in parts)


def _two_lines(text: str) -> str:
    """A heading on two lines, broken at its middle space."""
    words = text.split()
    middle = (len(words) + 1) // 2 if len(words) > 2 else 1
    return "\n".join(filter(None, (" ".join(words[:middle]), " ".join(words[middle:]))))


def _with_boards(boards: Sequence[Board], notes: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield each note once, with the titles of its boards unless all boards have it."""
    owners: dict[str, list[str]] = {}
    for board, lines in zip(boards, notes, strict=True):
        for line in dict.fromkeys(lines):
            owners.setdefault(line, []).append(title(board))
    for line, titles in owners.items():
        yield line if len(titles) == len(boards) else f"{line} ({'; '.join(titles)})"


def _notes(what: str, lines: Iterable[str], most: int = _MOST_IN_ALL) -> Iterator[str]:
    """Each line once, and no more than a screen can take."""
    distinct = list(dict.fromkeys(lines))
    yield from (f"{what}: {line}" for line in distinct[:most])
    if len(distinct) > most:
        yield f"{what}: {len(distinct) - most} more, all of them in index.html"


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


def _grid(table: ReportTable, columns: Iterable[int], console: Console, above: int = 0) -> Grid:
    """`above`: rows above a line."""
    grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for place in (shown := [*columns]):
        heading = table.headings[place]
        text = "\n".join(map(clean, heading.text.split("\n")))
        grid.add_column(_text(text, console), justify="right" if heading.numeric else "left", overflow="fold")
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
