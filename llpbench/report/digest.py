"""The Markdown files: a README of one screen, which method to take, and what tuning changes.

Everything else is on the page, in `boards.csv`, and in the files of `--formats`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.advice import ADVICE
from llpbench.report.assembling import Report
from llpbench.report.board_tables import excerpt, first_rows, overall
from llpbench.report.boards import Board
from llpbench.report.groups import main_boards
from llpbench.report.markup import escape, to_markdown
from llpbench.report.report_table import ReportTable

README = "README.md"
STANDINGS = "boards.csv"

NO_LINKS: Mapping[str, str] = MappingProxyType({})

MOST_ROWS = 8
"""ranked rows of a board in the overview"""

MOST_BOARDS = 3

MOST_LINES = 40
"""rows of any other table"""

BRIEF = ("mean", "interval", "floor", "seconds")
"""columns of a board in the overview"""


def markdown_files(report: Report, beside: Mapping[str, str] = NO_LINKS) -> dict[str, str]:
    """Every Markdown file of a report, by name. `beside`: folders of other reports by title."""
    tuning = [table for table in report.tuning if "-coarse-l1-" not in table.name]  # nearly those by mPIoU
    made = {
        f"{ADVICE}.md": ("Which method for my data?", [report.advice] if report.advice else []),
        "tuning.md": ("Tuning", tuning),
    }
    files = {name: _file(report, title, [], tables) for name, (title, tables) in made.items() if tables}
    links = [f"- [{made[name][0]}]({name})" for name in files]
    others = [f"- [{escape(title)}]({folder}/{README})" for title, folder in beside.items()]
    return {README: _overview(report, [*others, *links]), **files}


def _overview(report: Report, links: Sequence[str]) -> str:
    boards = main_boards(report.leaderboards)[:MOST_BOARDS]
    links = ["- [The page](index.html), to sort, filter and trace to runs", *links]
    links.append(f"- [All boards as CSV]({STANDINGS})")
    head = ["\n".join(links)]
    if boards:
        head += [words.caption("briefly", boards[0]), words.caption("both_criteria")]
    elif not report.leaderboards.unlabelled:
        head.append(words.NO_RUNS)
    return _file(report, report.title, head, [*map(brief, boards), *([] if boards else report.unlabelled)])


def brief(board: Board) -> ReportTable:
    """Return the first rows of a board, with a floor and a ceiling."""
    caption = " ".join(
        words.sentence(text) for text in (words.setting(board), words.datasets_text(len(board.datasets))) if text
    )
    return excerpt(
        board,
        overall(board, ""),
        BRIEF,
        first_rows(board, MOST_ROWS),
        title=words.title(board),
        caption=caption,
        notes={
            "Failed or undefined": tuple(some_of(board.failures, 3)),
            words.STALE_NOTE: tuple(some_of(board.stale, 3)),
        },
    )


def _file(report: Report, title: str, head: Sequence[str], tables: Sequence[ReportTable]) -> str:
    """A file of tables; repeated titles and captions appear once."""
    parts = [f"# {escape(title)}"]
    if report.warnings:
        parts.append("\n".join(f"- **{escape(words.sentence(line))}**" for line in some_of(report.warnings)))
    parts += head
    seen: set[str] = set()
    for table in tables:
        caption = "" if table.caption in seen else table.caption
        heading = "" if table.title == title else table.title
        parts.append(to_markdown(_cut(replace(table, title=heading, caption=caption))))
        seen.add(table.caption)
    if report.leaderboards.origin.runs:
        parts.append(f"*{escape(words.origin_text(report.leaderboards.origin))}*")
    return "\n\n".join(parts) + "\n"


def _cut(table: ReportTable) -> ReportTable:
    if len(table.rows) <= MOST_LINES:
        return table
    more = f"{plural(len(table.rows) - MOST_LINES, 'row')}: llpbench report --formats csv writes them"
    return replace(table, rows=table.rows[:MOST_LINES], notes={**table.notes, "Not shown": (more,)})
