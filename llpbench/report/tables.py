"""Gone: see boards.py."""

from llpbench.report.boards import *  # noqa: F403
