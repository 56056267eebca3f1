"""Leaderboards in a terminal of at least 80 columns: one board on one screen, or all boards on request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.board_tables import score_fields, unlabelled_table
from llpbench.report.boards import FEW_BAGS, UNRANKED, Board, Leaderboards
from llpbench.report.finding import finding
from llpbench.report.leaderboard import COLUMNS, fewest_seeds, is_tested
from llpbench.report.notes import FAILED, SURPRISES, notes
from llpbench.report.report_table import Field, Heading, ReportTable, TableColumn, columns_of

MOST_LINES = 36
"""Lines of a board and everything below it, which leaves room on a screen of 40 lines."""

_GAP = 2
"""Characters between two columns."""

_NUMBERS = 42
"""Characters of rank, mean, interval and seconds."""

_FEWEST_ROWS = 8
"""Entries of a board that are always shown."""

_PRIORITY = ("mean", "interval", "seconds", "floor", "tie")
"""Columns of the leaderboard, the most important first."""

_ORDER = ("mean", "interval", "tie", "floor", "seconds")
"""The same columns from left to right."""

_MOST_NOTES = 3
"""Notes of each kind on one screen."""

_MOST_IN_ALL = 20
"""Notes of each kind if all boards are shown."""

_ASCII = str.maketrans({"±": "+-", "–": "-", "·": ";", "⚑": "!", "†": "*", "→": "->"})
"""Replacements for terminals without Unicode."""


def render(
    leaderboards: Leaderboards,
    console: Console,
    yours: Collection[str] = (),
    *,
    every: bool = False,
    lines: int = MOST_LINES,
) -> None:
    """Print the first board in at most `lines` lines and its differences to others, or `every` board completely.

    Entries with one of the runs `yours` are marked.
    """
    for part in _screen(leaderboards, console, yours, every, lines):
        console.print(part)


def _screen(
    leaderboards: Leaderboards, console: Console, yours: Collection[str], every: bool, lines: int
) -> Iterator[RenderableType]:
    boards, unlabelled = leaderboards.boards, [unlabelled_table(board, "") for board in leaderboards.unlabelled]
    if not boards and not unlabelled:
        yield _text(words.NO_RUNS, console)
        return
    render_tables(unlabelled if every else [] if boards else unlabelled[:1], console)
    shown = [board for board in boards if (board.runs["status"] == "ok").any()]
    warnings = [*_warnings(boards, shown if every else shown[:1], console, every)]
    if shown and not every:
        below = [*(_text(line, console) for line in _other_boards(shown)), *warnings]
        yield from _one(shown[0], console, yours, lines - _height(below, console))
        yield from below
        return
    for board in shown:
        yield from _head(board, console)
        yield _standing(board, console, yours, len(board.entries))
        yield from _legend(board, console)
        yield from _score_grids(board, console, yours)
        yield Text()
    yield from warnings
    if boards and not shown:
        yield _text(words.caption("no_results"), console)
    yield _text(str(leaderboards.origin), console, "dim")


def _warnings(boards: Sequence[Board], shown: Sequence[Board], console: Console, every: bool) -> Iterator[Text]:
    """Yield failures, runs without a value and stale runs of all boards, and surprises of the boards that are shown."""
    most = _MOST_IN_ALL if every else _MOST_NOTES
    for what, style in ((FAILED, "red"), (words.WITHOUT_VALUE, "yellow"), (words.STALE_NOTE, "yellow")):
        yield from (_text(line, console, style) for line in _notes(what, _with_boards(boards, what), most))
    for board in shown:
        name = words.lowered(words.title(board))
        name = name if every else name.partition(", epochs selected by")[0]
        for line in _notes(f"{SURPRISES} ({name})", notes(board)[SURPRISES], _MOST_NOTES):
            yield _text(line, console, "yellow")


def _with_boards(boards: Sequence[Board], what: str) -> Iterator[str]:
    """Yield each note of a kind once, with the titles of its boards unless all boards have it."""
    titles: dict[str, list[str]] = {}
    for board in boards:
        for line in dict.fromkeys(notes(board)[what]):
            titles.setdefault(line, []).append(words.title(board))
    for line, of_line in titles.items():
        yield line if len(of_line) == len(boards) else f"{line} ({'; '.join(of_line)})"


def _notes(what: str, lines: Iterable[str], most: int = _MOST_IN_ALL) -> Iterator[str]:
    """Yield distinct lines, and the number of those beyond `most`."""
    distinct = list(dict.fromkeys(lines))
    yield from (f"{what}: {line}" for line in distinct[:most])
    if len(distinct) > most:
        yield f"{what}: {len(distinct) - most} more, all of them in index.html"


def _one(board: Board, console: Console, yours: Collection[str], lines: int) -> Iterator[RenderableType]:
    """Yield the part of a board that fits into some lines. Scores are shown if they add to the means and fit."""
    head, legend = [*_head(board, console)], [*_legend(board, console)]
    frame = _standing(board, console, yours, 0)
    room = max(lines - _height([*head, frame, *legend], console), _FEWEST_ROWS)
    standing = _standing(board, console, yours, room)
    yield from [*head, standing]
    scores = board.scores
    if ((scores["values"] != len(board.counting)) | (scores["stale"] > 0)).any():
        grids = [*_score_grids(board, console, yours)]
        if _height([*head, standing, *legend, *grids], console) <= lines:
            yield from grids
    yield from legend


def _head(board: Board, console: Console) -> Iterator[RenderableType]:
    """Yield the title of a board and its main finding."""
    yield _text(words.title(board), console, "bold")
    tested, number = is_tested(board), len(board.datasets)
    yield _text(finding(board, tested=tested), console)
    if tested:
        yield _text(words.datasets_text(board), console, "dim")
    elif board.ranked:
        yield _text(words.caption("too_few", datasets=number, seeds=fewest_seeds(board)), console, "dim")


def _legend(board: Board, console: Console) -> Iterator[RenderableType]:
    named = [*board.tasks["heading"]]
    where = ", ".join(named[:3]) + (f" and {len(named) - 3} more tasks" if len(named) > 3 else "")
    yield _text(f"{where} · {words.setting(board)}", console, "dim")
    legend = words.caption("terminal_legend", board, tested=is_tested(board), starred=board.uses_both)
    yield _text(" ".join(filter(None, (legend, words.tasks_text(board)))), console, "dim")


def _other_boards(boards: Sequence[Board]) -> Iterator[str]:
    """Yield lines on other boards: ranks that another criterion changes, and the finding on other bags."""
    first, *others = boards
    baggings = {first.bagging}
    for board in others:
        if (board.bagging, board.protocol) == (first.bagging, first.protocol):
            if moved := _moved(first, board):
                more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
                yield f"With epochs selected by {board.criterion.title}, ranks change: {', '.join(moved[:3])}{more}."
        elif board.bagging not in baggings and board.max_bags == first.max_bags and len(baggings) <= _MOST_NOTES:
            baggings.add(board.bagging)
            yield finding(board, tested=False)
    if any(board.bagging not in baggings or board.protocol != first.protocol for board in others):
        yield f"{plural(len(others), 'more board')}: --all-boards."


def _moved(first: Board, other: Board) -> list[str]:
    """Return the entries whose rank differs between two boards: `dllp (mlp) 3 → 2`."""
    before, after = (
        {board.labels[entry]: board.entries.at[entry, "rank"] for entry in board.ranked} for board in (first, other)
    )
    return [f"{label} {rank} → {after[label]}" for label, rank in before.items() if after.get(label, rank) != rank]


def _name_column(board: Board, yours: Collection[str], console: Console) -> TableColumn:
    """Return rank, label and marks of each entry. Long labels are shortened so that numbers fit."""
    most, marked = max(console.width - _NUMBERS, 24), _your_entries(board, yours)
    mine = [_yours_text(board, entry, yours) if entry in marked else "" for entry in board.entries.index]
    pairs = zip(board.entries["mark"], mine, strict=True)
    marks = ["".join(f", {mark}" for mark in pair if mark) for pair in pairs]
    labels = shortened([*map(words.clean, board.labels)], [most - len(mark) for mark in marks])
    roles = zip(board.entries["role"], words.rank_texts(board), strict=True)
    ranks = ["" if role in UNRANKED else rank for role, rank in roles]
    fields = [Field((f"{rank:>2} {label}{mark}",)) for rank, label, mark in zip(ranks, labels, marks, strict=True)]
    return Heading("method", numeric=False), fields


def shortened(labels: Sequence[str], rooms: Sequence[int]) -> list[str]:
    """Return labels cut to some characters each: at their end, or in their middle if two would read the same."""
    cut = [label if len(label) <= room else f"{label[: room - 2]}.." for label, room in zip(labels, rooms, strict=True)]
    return [
        f"{label[: room - 2 - room // 2]}..{label[-(room // 2) :]}" if cut.count(end) > 1 and end != label else end
        for label, room, end in zip(labels, rooms, cut, strict=True)
    ]


def _yours_text(board: Board, entry: int, yours: Collection[str]) -> str:
    """Return `yours`, with the number of your runs if others of the entry are published ones."""
    runs = board.runs["run"][board.runs["entry"] == entry]
    number = int(runs.isin([*yours]).sum())
    return "yours" if number == len(runs) else f"yours: {number} of {plural(len(runs), 'run')}"


def _your_entries(board: Board, yours: Collection[str]) -> set[int]:
    return {*board.runs["entry"][board.runs["run"].isin([*yours])]}


def _standing(board: Board, console: Console, yours: Collection[str], most: int) -> Table:
    """Return the leaderboard of at most `most` entries, with the columns that fit."""
    names = _name_column(board, yours, console)
    entries, hidden = _shown_entries(board, _your_entries(board, yours), most)
    columns = {}
    room = console.width - max((len(names[1][n].lines[0]) for n in entries), default=0)
    for key in _PRIORITY:
        heading = Heading(_two_lines(COLUMNS[key].heading(board).text))
        fields = [Field(field.lines[:1]) for field in COLUMNS[key].fields(board)]
        width = _width(heading, [fields[n] for n in entries])
        is_known = any(not fields[n].is_empty for n in entries) and (key != "tie" or is_tested(board))
        if is_known and width <= room:
            columns[key] = heading, fields
            room -= width
    table = columns_of("", "", "", [names, *(columns[key] for key in _ORDER if key in columns)]).with_rows(entries)
    ceilings = sum(board.entries["role"][entries].isin(UNRANKED))
    grid = _grid(table, range(len(table.headings)), console, above=ceilings)
    if hidden and entries:
        grid.add_row(_text(f"   {plural(hidden, 'more method')}: --all-boards", console, "dim"))
    return grid


def _shown_entries(board: Board, yours: set[int], most: int) -> tuple[list[int], int]:
    """Return at most `most` entries, and the number of others: yours, then marks, then the best."""
    entries, marks = [n for n in board.entries.index if n in board.complete or n in yours], board.entries["mark"]
    if len(entries) <= most:
        return entries, 0
    first = sorted(entries, key=lambda n: (n not in yours, not marks[n]))[: max(most - 1, 0)]
    return sorted(first), len(entries) - len(first)


def _score_grids(board: Board, console: Console, yours: Collection[str]) -> Iterator[RenderableType]:
    """Yield the scores on all tasks, in as many tables as the width needs."""
    columns = [
        (
            Heading(f"{words.clean(task.dataset)}\n{task.bags}{'' if task.counts else f' {FEW_BAGS}'}"),
            score_fields(board, task.Index),
        )
        for task in board.tasks.itertuples()
    ]
    table = columns_of("", "", "", [_name_column(board, yours, console), *columns])
    ceilings = sum(board.entries["role"].isin(UNRANKED))
    yield from _grids(table, console, above=ceilings)
    yield _text("Bold: best, and results within one standard deviation of it.", console, "dim")


def render_tables(tables: Iterable[ReportTable], console: Console) -> None:
    """Print tables, split into parts that fit the width."""
    for table in tables:
        console.print(_text(table.title, console, "bold"))
        console.print(_text(table.caption, console, "dim"))
        for grid in _grids(table, console):
            console.print(grid)
        for what, lines in table.notes.items():
            for line in _notes(what, lines):
                console.print(_text(line, console, "yellow"))
        console.print()


def _grids(table: ReportTable, console: Console, above: int = 0) -> Iterator[Table]:
    """Yield tables whose columns fit side by side. Columns of words are repeated in each."""
    widths = [_width(heading, fields) for heading, fields in table.columns()]
    words_columns = [place for place, heading in enumerate(table.headings) if not heading.numeric]
    room = console.width - sum(widths[place] for place in words_columns)
    part: list[int] = []
    for place in (place for place, heading in enumerate(table.headings) if heading.numeric):
        if part and sum(widths[column] for column in (*part, place)) > room:
            yield _grid(table, [*words_columns, *part], console, above)
            part = []
        part.append(place)
    yield _grid(table, [*words_columns, *part], console, above)


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


def _height(parts: Iterable[RenderableType], console: Console) -> int:
    """Return the number of lines of some parts."""
    return sum(len(console.render_lines(part, pad=False)) for part in parts)


def _width(heading: Heading, fields: Iterable[Field]) -> int:
    """Return the number of characters of a column, with the gap on its right."""
    lines = [line for field in fields for line in field.lines]
    return _GAP + max(map(len, [*map(words.clean, heading.text.split("\n")), *lines]))


def _text(text: str, console: Console, style: str = "") -> Text:
    """Return a text without control characters in which rich's markup has no meaning."""
    clean = "\n".join(map(words.clean, text.split("\n")))
    return Text(clean.translate(_ASCII) if console.options.ascii_only else clean, style=style)
