"""From the journal to what people read: leaderboards. Needs neither torch nor ray, only the records."""

from llpbench.report.files import write_leaderboards
from llpbench.report.tables import Leaderboards
from llpbench.report.terminal import render

__all__ = ["Leaderboards", "render", "write_leaderboards"]
