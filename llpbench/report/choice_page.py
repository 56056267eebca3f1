"""The page of `llpbench choose`: one HTML file, which needs nothing but itself and runs no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llpbench.report.html import STYLE, content_policy, read_part, template
from llpbench.report.plots.plot import Plot
from llpbench.report.report_table import ReportTable

_OWN_STYLE = """
table.choice thead th { position: static; padding: 0.45rem 0.7rem; }
table.choice .words { white-space: nowrap; }
table.choice { width: max-content; min-width: 100%; }
.explained + .scroll { margin-top: 0.7rem; }
.canvas img { width: 100%; }
"""
"""headings that sort nothing hold no button, which has the padding elsewhere"""


def choice_page(
    name: str,
    advice: str,
    warning: str,
    facts: Mapping[str, str],
    tables: Sequence[ReportTable],
    plots: Sequence[Plot],
) -> str:
    """The page: what is advised and warned of ("": nothing), the facts it rests on, board and other tables, plots."""
    style = read_part(STYLE) + _OWN_STYLE
    page = template("choice.html").render(
        name=name,
        advice=advice,
        warning=warning,
        facts=facts,
        tables=tables,
        plots=plots,
        style=style,
        policy=content_policy(style, ""),
    )
    return page.encode("utf-8", "replace").decode("utf-8")
