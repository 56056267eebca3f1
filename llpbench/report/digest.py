"""Markdown files of a report: a README of one screen, which method to take, and the effect of tuning."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.assembling import ADVICE, Report
from llpbench.report.board_tables import ANCHOR
from llpbench.report.boards import Board
from llpbench.report.leaderboard import COLUMNS, lines
from llpbench.report.notes import FAILED, notes
from llpbench.report.overview import BRIEF, MOST_ROWS, WHICH, Overview, Standings
from llpbench.report.report_table import Field, ReportTable

README = "README.md"
STANDINGS = "boards.csv"

MOST_NAMED = 8
"""Datasets of a board that are listed by name in the README."""

MOST_LINES = 40
"""Rows of a table."""

_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})

_MARKDOWN = re.compile(r"[\\`*\[\]|~$#]|(?<!\w)_|_(?!\w)")
"""Characters that have a meaning in Markdown. An underscore inside a word has none."""


def markdown_files(
    report: Report, overview: Overview, beside: Mapping[str, str], figures: Mapping[str, str]
) -> dict[str, str]:
    """Return the Markdown files of a report by name.

    `beside`: folders of other reports by title. `figures`: paths by name.
    """
    advice = overview.which or report.advice
    contents = {f"{ADVICE}.md": (WHICH, [advice] if advice else []), "tuning.md": ("Tuning", report.tuning)}
    files = {name: _file(report, title, [], tables) for name, (title, tables) in contents.items() if tables}
    links = ["- [The page](index.html), to sort, filter and trace to runs"]
    links += [f"- [{escape(title)}]({folder}/{README})" for title, folder in beside.items()]
    links += [f"- [{contents[name][0]}]({name})" for name in files]
    if figures:
        links.append(f"- Figures: {', '.join(f'[{escape(name)}]({path})' for name, path in figures.items())}")
    links.append(f"- [All boards as CSV]({STANDINGS})")
    return {README: _readme(report, overview, links), **files}


def _readme(report: Report, overview: Overview, links: Sequence[str]) -> str:
    boards = report.leaderboards.main_boards()
    head = ["\n".join(links)]
    if boards:
        head += [
            f"**{escape(overview.headline)}**",
            words.caption("what_is_shown", most=MOST_ROWS, page="index.html", standings=STANDINGS),
            "\n".join(_meaning(COLUMNS[key].explained(boards[0])) for key in BRIEF),
            *([_to_markdown(overview.which)] if overview.which else []),
            *(_to_markdown(brief(board)) for board in boards),  # each with its protocol, even if all are the same
            *(_to_markdown(_ranking(table)) for table in report.robustness[:1]),
        ]
    elif not report.unlabelled:
        head.append(words.NO_RUNS)
    return _file(report, report.title, head, [] if boards else report.unlabelled)


def _meaning(explained: str) -> str:
    """Return the explanation of a column (`Seconds: mean time ...`) as an item of a list."""
    name, _, meaning = explained.partition(": ")
    return f"- **{escape(name)}**: {escape(meaning)}"


def brief(board: Board) -> ReportTable:
    """Return the first entries of a board, with a floor, the control and a ceiling."""
    standings = Standings(lines(board))
    starred = words.caption("starred") if board.uses_both else ""
    parts = (
        words.setting(board),
        words.datasets_text(board, named=MOST_NAMED),
        standings.verdict(),
        standings.worth_of_labels(),
        starred,
    )
    caption = " ".join(words.sentence(part) for part in parts if part)
    found = {heading: notes(board)[heading] for heading in (FAILED, words.WITHOUT_VALUE, words.STALE_NOTE)}
    shown = {heading: tuple(some_of(texts, 3)) for heading, texts in found.items() if texts}
    return replace(standings.table(), caption=caption, notes=shown)


def _ranking(table: ReportTable) -> ReportTable:
    """Return the robustness ranking under a heading to which other texts can link."""
    return replace(table, title=ANCHOR.capitalize(), caption=f"{words.sentence(table.title)} {table.caption}")


def _file(report: Report, title: str, head: Sequence[str], tables: Sequence[ReportTable]) -> str:
    """Return a file of tables. Repeated titles and captions appear once."""
    parts = [f"# {escape(title)}"]
    if report.warnings:
        parts.append("\n".join(f"- **{escape(words.sentence(line))}**" for line in some_of(report.warnings)))
    parts += head
    captions: set[str] = {""}
    for table in tables:
        caption = "" if table.caption in captions else table.caption
        heading = "" if table.title == title else table.title
        parts.append(_to_markdown(replace(table, title=heading, caption=caption)))
        captions.add(table.caption)
    if report.leaderboards.origin.runs:
        parts.append("\n".join(f"- {escape(line)}" for line in report.leaderboards.origin.lines()))
    return "\n\n".join(parts) + "\n"


def _to_markdown(table: ReportTable) -> str:
    """Return a table as Markdown, with its title, caption and notes. Long tables are cut."""
    rows = [
        [escape(heading.text) for heading in table.headings],
        ["---:" if heading.numeric else "---" for heading in table.headings],
        *([_markdown(field) for field in row] for row in table.rows[:MOST_LINES]),
    ]
    parts = [f"## {escape(table.title)}" if table.title else "", escape(table.caption)]
    parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    if (hidden := len(table.rows) - MOST_LINES) > 0:
        parts.append(f"{plural(hidden, 'row')} more are not shown.")
    for heading, texts in table.notes.items():
        parts.append(f"**{escape(heading)}**\n\n" + "\n".join(f"- {escape(line)}" for line in texts))
    return "\n\n".join(filter(None, parts))


def escape(text: str) -> str:
    """Return a text on one line, without a meaning in Markdown or HTML."""
    return _MARKDOWN.sub(r"\\\g<0>", words.clean(text)).translate(_HTML)


def _markdown(field: Field) -> str:
    first, *others = map(escape, field.lines)
    return "<br>".join([f"**{first}**" if field.strong and first else first, *others])
