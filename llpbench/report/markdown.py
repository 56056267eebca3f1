"""Tables as Markdown, readable by somebody who knows none of the code."""

from __future__ import annotations

import re
from collections.abc import Iterable

from llpbench.report.report_table import Field, ReportTable
from llpbench.report.wording import clean

_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})

_SPECIAL = re.compile(r"[\\`*\[\]|~$#]|(?<!\w)_|_(?!\w)")
"""what Markdown would take for its own; an underscore inside a word it leaves alone"""


def to_markdown(table: ReportTable) -> str:
    """A section: title and caption unless they are empty, the table, and its notes."""
    parts = [f"## {escape(table.title)}"] if table.title else []
    parts += [*([escape(table.caption)] if table.caption else []), grid(table)]
    for heading, lines in table.notes.items():
        parts.append(f"**{escape(heading)}**\n\n" + "\n".join(f"- {escape(line)}" for line in lines))
    return "\n\n".join(parts)


def escape(text: str) -> str:
    """Text from outside on one line, shown as it is: no character of it means anything to Markdown or HTML."""
    return _SPECIAL.sub(r"\\\g<0>", clean(text)).translate(_HTML)


def grid(table: ReportTable) -> str:
    """Its headings and rows alone."""
    marks = ["---:" if heading.numeric else "---" for heading in table.headings]
    lines = [_line(escape(heading.text) for heading in table.headings), _line(marks)]
    return "\n".join([*lines, *(_line(map(_field, row)) for row in table.rows)])


def _field(field: Field) -> str:
    first, *rest = map(escape, field.lines)
    return "<br>".join([f"**{first}**" if field.strong and first else first, *rest])


def _line(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |"
