"""From the journal to what people read: leaderboards. Needs neither torch nor ray, only the records."""

from llpbench.report.boards import Leaderboards
from llpbench.report.pages import Report
from llpbench.report.publishing import make_report, select_formats, write_report
from llpbench.report.terminal import render, render_tables

__all__ = [
    "Leaderboards",
    "Report",
    "make_report",
    "render",
    "render_tables",
    "select_formats",
    "write_report",
]
