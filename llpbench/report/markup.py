"""Tables as Markdown, and as LaTeX that needs the package booktabs and nothing else."""

from __future__ import annotations

import re

from llpbench.report.report_table import Field, ReportTable
from llpbench.report.wording import clean

_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})

_MARKDOWN = re.compile(r"[\\`*\[\]|~$#]|(?<!\w)_|_(?!\w)")
"""what Markdown would take for its own; an underscore inside a word it leaves alone"""

_LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "⚑": r"$\ast$"}
    | {char: f"\\{char}" for char in "&%$#_{}"}
    | {char: f"\\text{name}{{}}" for char, name in (("<", "less"), (">", "greater"), ("|", "bar"))}
    | {char: f"$\\{name}$" for char, name in (("±", "pm"), ("×", "times"), ("→", "to"), ("·", "cdot"), ("†", "dagger"))}
    | {"−": "$-$"}
)


def escape(text: str) -> str:
    """Text from outside on one line, shown as it is: no character of it means anything to Markdown or HTML."""
    return _MARKDOWN.sub(r"\\\g<0>", clean(text)).translate(_HTML)


def escape_latex(text: str) -> str:
    """The same for LaTeX."""
    return clean(text).translate(_LATEX)


def to_markdown(table: ReportTable) -> str:
    """A section: title and caption unless they are empty, the table, and its notes."""
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


def to_latex(table: ReportTable) -> str:
    """A `table` environment with the table's title and caption."""
    rows = [" & ".join(map(_latex, row)) for row in table.rows]
    lines = [
        r"\begin{table}",
        rf"\caption{{\textbf{{{escape_latex(table.title)}}}. {escape_latex(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{''.join('r' if heading.numeric else 'l' for heading in table.headings)}}}",
        r"\toprule",
        " & ".join(escape_latex(heading.text) for heading in table.headings) + r" \\",
        r"\midrule",
        *(rf"{row} \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _markdown(field: Field) -> str:
    first, *rest = map(escape, field.lines)
    return "<br>".join([f"**{first}**" if field.strong and first else first, *rest])


def _latex(field: Field) -> str:
    first, *rest = map(escape_latex, field.lines)
    first = rf"\textbf{{{first}}}" if field.strong else first
    stacked = r" \\ ".join([first, *rest])
    return rf"\shortstack[r]{{{stacked}}}" if rest else first
