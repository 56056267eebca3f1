"""Markdown files of a report: a README of one screen, which method to take, and the effect of tuning."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.advice import ADVICE
from llpbench.report.assembling import Report
from llpbench.report.board_tables import excerpt, first_entries
from llpbench.report.boards import Board
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.notes import FAILED, notes
from llpbench.report.report_table import Field, ReportTable
from llpbench.report.robustness_ranking import ANCHOR

README = "README.md"
STANDINGS = "boards.csv"

NO_LINKS: Mapping[str, str] = MappingProxyType({})

MOST_ROWS = 8
"""Ranked entries of a board in the README."""

MOST_ROBUST = 20
"""Entries of the robustness ranking in the README."""

MOST_NAMED = 8
"""Datasets of a board that are listed by name in the README."""

MOST_LINES = 40
"""Rows of any other table."""

BRIEF = ("mean", "interval", "floor", "seconds")
"""Columns of the leaderboard in the README."""

_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})

_MARKDOWN = re.compile(r"[\\`*\[\]|~$#]|(?<!\w)_|_(?!\w)")
"""Characters that have a meaning in Markdown. An underscore inside a word has none."""


def markdown_files(
    report: Report,
    beside: Mapping[str, str] = NO_LINKS,
    advised: Mapping[str, str] = NO_LINKS,
    figures: Mapping[str, str] = NO_LINKS,
) -> dict[str, str]:
    """Return the Markdown files of a report by name.

    `beside`: folders of other reports by title. `advised`: those with recommended methods. `figures`: paths by name.
    """
    tuning = [table for table in report.tuning if "-coarse-l1-" not in table.name]  # nearly those by mPIoU
    contents = {
        f"{ADVICE}.md": ("Which method for my data?", [report.advice] if report.advice else []),
        "tuning.md": ("Tuning", tuning),
    }
    others = ", ".join(f"[{escape(title)}]({folder}/{ADVICE}.md)" for title, folder in advised.items())
    heads = {f"{ADVICE}.md": [f"The same table for other datasets or bags: {others}."] if others else []}
    files = {
        name: _file(report, title, heads.get(name, []), tables) for name, (title, tables) in contents.items() if tables
    }
    reports = [f"- [{escape(title)}]({folder}/{README})" for title, folder in beside.items()]
    pages = [f"- [{contents[name][0]}]({name})" for name in files]
    drawn = ", ".join(f"[{escape(name)}]({path})" for name, path in figures.items())
    return {README: _readme(report, [*reports, *pages, *([f"- Figures: {drawn}"] if drawn else [])]), **files}


def _readme(report: Report, links: Sequence[str]) -> str:
    boards = report.leaderboards.main_boards()
    page = "- [The page](index.html), to sort, filter and trace to runs"
    head = ["\n".join([page, *links, f"- [All boards as CSV]({STANDINGS})"])]
    if boards:
        head += [
            words.caption("what_is_shown", most=MOST_ROWS, page="index.html", standings=STANDINGS),
            "\n".join(_meaning(COLUMNS[key].explained(boards[0])) for key in BRIEF),
            words.caption("both_criteria"),
            *(to_markdown(brief(board)) for board in boards),  # each with its protocol, even if all are the same
            *(to_markdown(_ranking(table)) for table in report.robustness[:1]),
        ]
        return _file(report, report.title, head, [])
    head += [] if report.unlabelled else [words.NO_RUNS]
    return _file(report, report.title, head, report.unlabelled)


def _meaning(explained: str) -> str:
    """Return the explanation of a column (`Seconds: mean time ...`) as an item of a list."""
    name, _, meaning = explained.partition(": ")
    return f"- **{escape(name)}**: {escape(meaning)}"


def brief(board: Board) -> ReportTable:
    """Return the first entries of a board, with a floor and a ceiling."""
    starred = words.caption("starred") if board.uses_both else ""
    parts = (words.setting(board), words.datasets_text(board, named=MOST_NAMED), starred)
    caption = " ".join(words.sentence(part) for part in parts if part)
    table = excerpt(board, BRIEF, first_entries(board, MOST_ROWS), words.title(board), caption)
    lines = {heading: notes(board)[heading] for heading in (FAILED, words.WITHOUT_VALUE, words.STALE_NOTE)}
    return replace(table, notes={heading: tuple(some_of(texts, 3)) for heading, texts in lines.items() if texts})


def _ranking(table: ReportTable) -> ReportTable:
    """Return the first rows of a robustness ranking, under a heading to which other texts can link."""
    caption = f"{words.sentence(table.title)} {table.caption}"
    return _shortened(replace(table, title=ANCHOR.capitalize(), caption=caption), MOST_ROBUST)


def _file(report: Report, title: str, head: Sequence[str], tables: Sequence[ReportTable]) -> str:
    """Return a file of tables. Repeated titles and captions appear once."""
    parts = [f"# {escape(title)}"]
    if report.warnings:
        parts.append("\n".join(f"- **{escape(words.sentence(line))}**" for line in some_of(report.warnings)))
    parts += head
    captions: set[str] = set()
    for table in tables:
        caption = "" if table.caption in captions else table.caption
        heading = "" if table.title == title else table.title
        parts.append(to_markdown(_shortened(replace(table, title=heading, caption=caption), MOST_LINES)))
        captions.add(table.caption)
    if report.leaderboards.origin.runs:
        parts.append("\n".join(f"- {escape(line)}" for line in report.leaderboards.origin.lines()))
    return "\n\n".join(parts) + "\n"


def _shortened(table: ReportTable, most: int) -> ReportTable:
    """Return the first rows of a long table, with a note on the others."""
    hidden = len(table.rows) - most
    if hidden <= 0:
        return table
    return replace(table, rows=table.rows[:most], notes={**table.notes, "Not shown": (plural(hidden, "row"),)})


def to_markdown(table: ReportTable) -> str:
    """Return a table as Markdown, with its title, caption and notes."""
    rows = [
        [escape(heading.text) for heading in table.headings],
        ["---:" if heading.numeric else "---" for heading in table.headings],
        *([_markdown(field) for field in row] for row in table.rows),
    ]
    parts = [f"## {escape(table.title)}" if table.title else "", escape(table.caption)]
    parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    for heading, lines in table.notes.items():
        parts.append(f"**{escape(heading)}**\n\n" + "\n".join(f"- {escape(line)}" for line in lines))
    return "\n\n".join(filter(None, parts))


def escape(text: str) -> str:
    """Return a text on one line, without a meaning in Markdown or HTML."""
    return _MARKDOWN.sub(r"\\\g<0>", words.clean(text)).translate(_HTML)


def _markdown(field: Field) -> str:
    first, *others = map(escape, field.lines)
    return "<br>".join([f"**{first}**" if field.strong and first else first, *others])
