"""From the journal to what people read: leaderboards. Needs neither torch nor ray, only the records."""

from llpbench.report.boards import Leaderboards
from llpbench.report.pages import Report
from llpbench.report.publishing import FORMATS, make_report, write_report
from llpbench.report.terminal import render, render_tables

__all__ = [
    "FORMATS",
    "Leaderboards",
    "Report",
    "make_report",
    "render",
    "render_tables",
    "write_report",
]
