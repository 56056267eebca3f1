"""Progress on standard error, as in `llpbench run`.

A comparison of methods shows a bar in a terminal or notebook. A fit or a prediction shows its stage in a line of a
terminal. Elsewhere nothing is shown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from llpbench.core.text import duration, plural


def comparison_bar(shown: bool) -> Progress:
    """Return the progress bar of a comparison, hidden unless it is `shown` in a terminal or notebook."""
    console = Console(stderr=True, highlight=False)
    columns = (BarColumn(), TextColumn("{task.description}", markup=False), TimeRemainingColumn())
    hidden = not (shown and (console.is_jupyter or _is_live(console)))
    return Progress(*columns, console=console, transient=True, disable=hidden)


class StageLine:
    """A line of a terminal with the stage of a long computation. A context manager, which removes the line."""

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        self._line: Progress | None = None
        if _is_live(console):
            columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
            self._line = Progress(*columns, console=console, transient=True)
            self._task = self._line.add_task("", total=None)

    def __enter__(self) -> StageLine:
        if self._line is not None:
            self._line.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._line is not None:
            self._line.stop()

    def show(self, text: str) -> None:
        """Replace the text of the line."""
        if self._line is not None:
            self._line.update(self._task, description=text)


class RowsDone:
    """Number of rows that a pass has processed, and the time left."""

    def __init__(self, show: Callable[[str], None], name: str, total: int | None) -> None:
        """Start a pass over `total` rows (None if not known)."""
        self._show, self._name, self._total = show, name, total
        self._start, self._done = time.perf_counter(), 0
        show(name)

    def add(self, rows: int) -> None:
        """Count some rows."""
        self._done += rows
        if self._total is None:
            self._show(f"{self._name}: {plural(self._done, 'row')}")
        elif self._done:
            left = (time.perf_counter() - self._start) * max(self._total / self._done - 1, 0.0)
            self._show(f"{self._name}: {self._done:,} of {plural(self._total, 'row')}{_left(left)}")


def _is_live(console: Console) -> bool:
    return console.is_terminal and not os.environ.get("NO_COLOR")


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f", about {duration(seconds)} left"
