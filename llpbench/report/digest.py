"""README of a report: its first entries on one screen, and links to its other files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.board_tables import ANCHOR, FAILED, Report, notes
from llpbench.report.boards import Board
from llpbench.report.leaderboard import COLUMNS, standings
from llpbench.report.overview import BRIEF, MOST_ROWS, Overview, Standings
from llpbench.report.report_table import Field, ReportTable

README = "README.md"
STANDINGS = "boards.csv"

_MOST_NAMED = 8
"""Datasets of a board that are listed by name."""

_MOST_LINES = 40
"""Rows of a table."""

_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})

_MARKDOWN = re.compile(r"[\\`*\[\]|~$#]|(?<!\w)_|_(?!\w)")
"""Characters that have a meaning in Markdown. An underscore inside a word has none."""


def readme(report: Report, overview: Overview, beside: Mapping[str, str], figures: Mapping[str, str]) -> str:
    """Return the README of a report. `beside`: folders of other reports by title. `figures`: paths by name."""
    links = ["- [The page](index.html), to sort, filter and trace to runs"]
    links += [f"- [{_escape(title)}]({folder}/{README})" for title, folder in beside.items()]
    if figures:
        links.append(f"- Figures: {', '.join(f'[{_escape(name)}]({path})' for name, path in figures.items())}")
    links.append(f"- [All boards as CSV]({STANDINGS})")
    parts = [f"# {_escape(report.title)}"]
    if report.warnings:
        parts.append("\n".join(f"- **{_escape(words.sentence(line))}**" for line in some_of(report.warnings)))
    parts.append("\n".join(links))
    if boards := report.leaderboards.main_boards():
        parts += [
            f"**{_escape(overview.headline)}**",
            words.caption("what_is_shown", most=MOST_ROWS, page="index.html", standings=STANDINGS),
            "\n".join(_meaning(COLUMNS[key].explained(boards[0])) for key in BRIEF),
            *([_to_markdown(overview.which)] if overview.which else []),
            *(_to_markdown(_brief(board)) for board in boards),  # each with its protocol, even if all are the same
            *(_to_markdown(_ranking(table)) for table in report.robustness[:1]),
        ]
    else:
        parts += [*map(_to_markdown, report.unlabelled)] or [words.NO_RUNS]
    if report.leaderboards.origin.runs:
        parts.append("\n".join(f"- {_escape(line)}" for line in report.leaderboards.origin.lines()))
    return "\n\n".join(parts) + "\n"


def _meaning(explained: str) -> str:
    """Return the explanation of a column (`Seconds: mean time ...`) as an item of a list."""
    name, _, meaning = explained.partition(": ")
    return f"- **{_escape(name)}**: {_escape(meaning)}"


def _brief(board: Board) -> ReportTable:
    """Return the first entries of a board, with a floor, the control and a ceiling."""
    lines = Standings(standings(board))
    parts = (
        words.setting(board),
        words.datasets_text(board, named=_MOST_NAMED),
        lines.verdict(),
        lines.worth_of_labels(),
        words.caption("starred") if board.uses_both else "",
    )
    caption = " ".join(words.sentence(part) for part in parts if part)
    found = {heading: notes(board)[heading] for heading in (FAILED, words.WITHOUT_VALUE, words.STALE_NOTE)}
    shown = {heading: tuple(some_of(texts, 3)) for heading, texts in found.items() if texts}
    return replace(lines.table(), caption=caption, notes=shown)


def _ranking(table: ReportTable) -> ReportTable:
    """Return the robustness ranking under a heading to which other texts can link."""
    return replace(table, title=ANCHOR.capitalize(), caption=f"{words.sentence(table.title)} {table.caption}")


def _to_markdown(table: ReportTable) -> str:
    """Return a table as Markdown, with its title, caption and notes. Long tables are cut."""
    rows = [
        [_escape(heading.text) for heading in table.headings],
        ["---:" if heading.numeric else "---" for heading in table.headings],
        *([_markdown(field) for field in row] for row in table.rows[:_MOST_LINES]),
    ]
    parts = [f"## {_escape(table.title)}", _escape(table.caption)]
    parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    if (hidden := len(table.rows) - _MOST_LINES) > 0:
        parts.append(f"{plural(hidden, 'row')} more are not shown.")
    for heading, texts in table.notes.items():
        parts.append(f"**{_escape(heading)}**\n\n" + "\n".join(f"- {_escape(line)}" for line in texts))
    return "\n\n".join(filter(None, parts))


def _escape(text: str) -> str:
    """Return a text on one line, without a meaning in Markdown or HTML."""
    return _MARKDOWN.sub(r"\\\g<0>", words.clean(text)).translate(_HTML)


def _markdown(field: Field) -> str:
    first, *others = map(_escape, field.lines)
    return "<br>".join([f"**{first}**" if field.strong and first else first, *others])
