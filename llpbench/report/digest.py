"""The Markdown files: what a reader wants first, in at most ten files of at most `LARGEST` bytes.

Everything that has no room here stands on the page, and in the files of `--formats`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from llpbench.core.criteria import CRITERIA
from llpbench.core.text import plural, some_of
from llpbench.report import further_tables
from llpbench.report import wording as words
from llpbench.report.advice import ADVICE
from llpbench.report.bag_only import BAG_ONLY
from llpbench.report.board_tables import excerpt, overall, whole
from llpbench.report.boards import Board, Row
from llpbench.report.groups import groups
from llpbench.report.markdown import escape, to_markdown
from llpbench.report.pages import Report
from llpbench.report.report_table import Field, ReportTable
from llpbench.report.tabulate import part_of

LARGEST = 30_000
"""bytes of a file"""

OVERVIEW = "README"

MOST_ROWS = 8
"""ranked rows of a board in the overview"""

MOST_LISTED = 20
"""rows of a board that is shown as a whole; of a larger one those without a rank are left out"""

MOST_TITLES = 12
"""of tables that have no room"""

LONGEST_TITLE = 200
"""characters of each of them"""

ROOM_FOR_TITLES = 3_000
"""bytes"""

MOST_FAILURES = 5
"""lines below a board"""

PLACE = ("mean", "interval", "floor", "gap", "wins", "seconds", "coverage")
"""columns of a board"""

BRIEF = ("mean", "interval", "floor", "seconds")
"""columns of a board in the overview"""


def markdown_files(report: Report) -> dict[str, str]:
    """Every Markdown file of a report, by name."""
    made: dict[str, str] = {}
    for name, (title, _, write) in _FILES.items():
        head, sections = write(report)
        if sections:
            made[f"{name}.md"] = _fitted(report, title, head, sections)
    links = [f"- [{title}]({name}.md): {what}" for name, (title, what, _) in _FILES.items() if f"{name}.md" in made]
    return {f"{OVERVIEW}.md": _overview(report, links), **made}


Written = tuple[Sequence[str], Sequence[ReportTable | str]]
"""paragraphs that begin a file, which are our own words, and its sections"""


def _overview(report: Report, links: Sequence[str]) -> str:
    head = ["The whole of it, to sort, filter and trace to its runs: [`index.html`](index.html)."]
    sections = []
    head += ["\n".join(links)] if links else []
    if report.leaderboards.boards:
        head.append(words.caption("briefly", report.leaderboards.boards[0]))
    elif not report.leaderboards.unlabelled:
        head.append(words.NO_RUNS)
    first = groups(report.leaderboards)[:2]
    chosen = [group[name] for group in first for name in ("auc", "mpiou") if name in group]
    for board in [board for place, board in enumerate(chosen[:3]) if place == 0 or _has_epochs(board)]:
        known = {*board.complete}
        marks = [n for n, row in enumerate(board.rows) if row.mark in ("floor", "ceiling") and _is_shown(row)]
        marks = sorted(marks, key=lambda place: board.rows[place].mark != "floor")
        kept = dict.fromkeys([*board.ranked[:MOST_ROWS], *(place for place in marks if place in known)])
        table = overall(board, "")
        sections.append(excerpt(board, table, BRIEF, [*kept], title=words.title(board), caption=_caption(board)))
    return _fitted(report, "Leaderboards", head, sections)


def _fine(report: Report) -> Written:
    boards = [group["auc"] for group in groups(report.leaderboards) if "auc" in group]
    head = [
        words.caption("selection_fine"),
        words.caption("roles"),
        words.caption("boards", boards[0] if boards else None),
    ]
    return head, [*_board_sections(boards)]


def _coarse(report: Report) -> Written:
    found = groups(report.leaderboards)
    boards = [group["mpiou"] for group in found if "mpiou" in group and _has_epochs(group["mpiou"])]
    gaps = [
        _brief(further_tables.selection_gap(group["auc"], group["mpiou"], ""))
        for group in found
        if {"auc", "mpiou"} <= group.keys() and _has_epochs(group["auc"]) and group["auc"].max_bags is None
    ]
    sections = [*_board_sections(boards)]
    sections[2:2] = [table for table in gaps if table.rows]
    by_l1 = words.caption("by_l1", l1=CRITERIA["l1"].title)
    return [words.caption("selection_coarse"), by_l1, words.caption("boards", boards[0] if boards else None)], sections


def _board_sections(boards: Sequence[Board]) -> Iterator[ReportTable]:
    """Where rows stand, of each board; of the first one their scores in each column, too."""
    for number, board in enumerate(boards):
        table = whole(board, overall(board, ""))
        every = len(board.rows) <= MOST_LISTED
        kept = [place for place, row in enumerate(board.rows) if every or _is_shown(row)]
        left = len(board.rows) - len(kept)
        notes = {
            "Failed or undefined": tuple(some_of(board.failures, MOST_FAILURES)),
            words.STALE_NOTE: tuple(some_of(board.stale, MOST_FAILURES)),
            "Not shown": (f"{plural(left, 'row')} without a rank, which the page has",) if left else (),
        }
        yield excerpt(board, table, PLACE, kept, title=_title(board), caption=_caption(board), notes=notes)
        if number == 0:
            title = f"{_title(board)}: by dataset and bag size"
            yield excerpt(board, table, (column.heading for column in board.columns), kept, title=title)


def _title(board: Board) -> str:
    """What tells it from the others of a file, which all go by one criterion."""
    bags = words.bags_words(board.bagging)
    return f"{bags[:1].upper()}{bags[1:]}, {words.protocol_text(board.protocol)}"


def _caption(board: Board) -> str:
    texts = (
        words.setting(board),
        words.datasets_text(len(board.datasets)),
        words.validation_text(board, board.columns),
        words.bags_note(board),
    )
    return " ".join(words.sentence(text) for text in texts if text)


def _timing(report: Report) -> Written:
    sections = []
    for group in groups(report.leaderboards):
        board = group.get("auc")
        if board is not None and board.max_bags is None:
            kept = part_of(board, [n for n, row in enumerate(board.rows) if _is_shown(row)], range(len(board.columns)))
            for size in sorted({column.bag_size for column in board.columns}):
                table = further_tables.timing(kept, size, "")
                sections.append(replace(table, caption=words.sentence(words.setting(kept))))
    return [words.caption("timing")], sections


def _studies(report: Report) -> Written:
    """The first table of each study, which is the one nearest to the paper; those with its numbers come first."""
    (page,) = [page for page in report.pages if page.name == "studies"]
    first: dict[str, ReportTable] = {}
    for table in page.tables:
        first.setdefault(table.name.rstrip("-0123456789").removesuffix("-arms"), table)
    ordered = sorted(
        first.values(), key=lambda table: not any("difference" in f.values for row in table.rows for f in row)
    )
    sections: list[ReportTable | str] = [_ours(table) for table in ordered]
    if page.missing:
        sections.append("## Not run yet\n\n" + "\n".join(f"- {escape(line)}" for line in page.missing))
    return [words.caption("beside")], sections


def _page(name: str) -> Callable[[Report], Written]:
    """The tables of a page, each caption once, but for those by L1, which nearly repeat those by mPIoU."""

    def write(report: Report) -> Written:
        tables = [table for page in report.pages if page.name == name for table in page.tables]
        chosen = [table for table in tables if "-coarse-l1-" not in table.name]
        before = [{table.caption for table in chosen[:place]} for place in range(len(chosen))]
        return [], [
            replace(table, caption="") if table.caption in told else table
            for table, told in zip(chosen, before, strict=True)
        ]

    return write


_FILES: dict[str, tuple[str, str, Callable[[Report], Written]]] = {
    ADVICE: ("Which method for my data?", "what to take for which kind and size of bags", _page(ADVICE)),
    "fine": ("Fine-grained validation", "epochs chosen by labels of validation rows", _fine),
    "coarse": ("Coarse-grained validation", "epochs chosen by proportions of validation bags", _coarse),
    "tuning": ("Tuning", "what a search for hyperparameters changes", _page("tuning")),
    "timing": ("Time and memory", "what a run takes", _timing),
    "studies": ("Studies: the paper and ours", "the paper's tables, our numbers beside its own", _studies),
    BAG_ONLY: ("Datasets without labels", "whole bags are predicted", _page(BAG_ONLY)),
}
"""by name: title, what stands there, and what writes it"""


def _is_shown(row: Row) -> bool:
    """Ranked rows, and what is trained on all labels without anything else."""
    return row.rank is not None or (row.contender.role == "ceiling" and row.is_plain)


def _has_epochs(board: Board) -> bool:
    """Whether its criterion has anything to choose: without epochs scores are the same by any."""
    return board.protocol is not None


def _brief(table: ReportTable) -> ReportTable:
    """Rows with a known mean, without single columns."""
    end = table.place("mean")
    return table.taken(range(end + 1), [n for n, row in enumerate(table.rows) if row[end].values])


def _ours(table: ReportTable) -> ReportTable:
    """Without columns that hold numbers of the paper alone, and without differences that say nothing."""
    kept = [
        place
        for place, heading in enumerate(table.headings)
        if "paper" not in heading.parts
        or any(row[place].values.get(part) is not None for row in table.rows for part in ("mean", "ours"))
    ]
    headings = tuple(table.headings[place] for place in kept)
    return replace(table, headings=headings, rows=tuple(tuple(_plain(row[at]) for at in kept) for row in table.rows))


def _plain(field: Field) -> Field:
    """A number of the paper and ours, without their difference where nothing is to be made of it."""
    known = field.values.get("difference") is not None and not field.values.get("beyond 2 std")
    return replace(field, lines=field.lines[:2]) if known else field


def _fitted(report: Report, title: str, head: Sequence[str], sections: Sequence[ReportTable | str]) -> str:
    """A file of the sections that it has room for, in their order; what has none is named."""
    begin = [f"# {escape(title)}"]
    if report.warnings:
        begin.append("\n".join(f"- **{escape(words.sentence(line))}**" for line in some_of(report.warnings)))
    begin += head
    origin = report.leaderboards.origin
    end = [f"*{escape(words.origin_text(origin))}*"] if origin.runs else []
    room = LARGEST - ROOM_FOR_TITLES - sum(map(_size, (*begin, *end)))
    kept: list[str] = []
    left: list[str] = []
    for place, section in enumerate(sections):
        written = section if isinstance(section, str) else to_markdown(section if place else _cut(section, room))
        if _size(written) > room:
            left.append("" if isinstance(section, str) else section.title)
        else:
            room -= _size(written)
            kept.append(written)
    if named := [f"- {escape(name)[:LONGEST_TITLE]}" for name in some_of(left, MOST_TITLES)]:
        end.insert(0, "\n\n".join(["## Without room here", "On [the page](index.html#tables):", "\n".join(named)]))
    return "\n\n".join([*begin, *kept, *end]) + "\n"


def _cut(table: ReportTable, room: int) -> ReportTable:
    """As many rows as there is room for."""
    cut = table
    while _size(to_markdown(cut)) > room and len(cut.rows) > 1:
        rows = table.rows[: len(cut.rows) // 2]
        more = f"{plural(len(table.rows) - len(rows), 'row')} without room, which the page has"
        cut = replace(table, rows=rows, notes={"Not shown": (more,)})
    return cut


def _size(text: str) -> int:
    """Bytes, with the empty line after it."""
    return len(text.encode("utf-8", "replace")) + 2
