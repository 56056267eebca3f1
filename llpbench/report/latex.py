"""Tables for papers: LaTeX that needs the package booktabs and nothing else."""

from __future__ import annotations

from llpbench.report.report_table import Field, ReportTable
from llpbench.report.wording import clean

_SPECIAL = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "⚑": r"$\ast$"}
    | {char: f"\\{char}" for char in "&%$#_{}"}
    | {char: f"\\text{name}{{}}" for char, name in (("<", "less"), (">", "greater"), ("|", "bar"))}
    | {char: f"$\\{name}$" for char, name in (("±", "pm"), ("×", "times"), ("→", "to"), ("·", "cdot"), ("†", "dagger"))}
    | {"−": "$-$"}
)


def to_latex(table: ReportTable) -> str:
    """A `table` environment with the table's title and caption."""
    columns = "".join("r" if heading.numeric else "l" for heading in table.headings)
    lines = [
        r"\begin{table}",
        rf"\caption{{\textbf{{{escape(table.title)}}}. {escape(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line([escape(heading.text) for heading in table.headings]),
        r"\midrule",
        *(_line([_field(field) for field in row]) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text from outside, shown as it is."""
    return clean(text).translate(_SPECIAL)


def _field(field: Field) -> str:
    first, *rest = map(escape, field.lines)
    first = rf"\textbf{{{first}}}" if field.strong else first
    stacked = r" \\ ".join([first, *rest])
    return rf"\shortstack[r]{{{stacked}}}" if rest else first


def _line(fields: list[str]) -> str:
    return " & ".join(fields) + r" \\"
