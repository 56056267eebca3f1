"""Progress on standard error, as in `llpbench run`."""

from __future__ import annotations

import os

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def progress_display(*, shown: bool = True, notebooks: bool = False) -> Progress:
    """Return a display of progress, which is hidden unless it is `shown` in a terminal (or in a notebook).

    The time left is shown for tasks with a total.
    """
    console = Console(stderr=True, highlight=False)
    live = (console.is_terminal and not os.environ.get("NO_COLOR")) or (notebooks and console.is_jupyter)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    return Progress(
        *columns, BarColumn(), TimeRemainingColumn(), console=console, transient=True, disable=not (shown and live)
    )
