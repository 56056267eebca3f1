"""Displays of a run on standard error: live in a terminal, plain lines elsewhere. `notebook.py` has another one."""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live

from llpbench.core.text import duration
from llpbench.running.run_progress import Display, Running, title
from llpbench.running.schedule import Job


def make_display() -> Display:
    """Return the display for a terminal or notebook. Elsewhere, or if NO_COLOR is set, it prints plain lines."""
    console = Console(stderr=True, highlight=False)
    if console.is_jupyter:
        from llpbench.running.notebook import NotebookDisplay, cell_output

        return NotebookDisplay(cell_output())
    return LiveDisplay(console) if console.is_terminal and not os.environ.get("NO_COLOR") else PlainDisplay(console)


class PlainDisplay(Display):
    """Display that prints a line at the start and the end of each cell."""

    def say(self, text: str, *, warning: bool = False) -> None:  # noqa: ARG002
        self._console.print(text, markup=False, soft_wrap=True)

    def started(self, job: Job) -> None:
        super().started(job)
        self.say(f"started {title(job)}")

    def _show_end(self, running: Running, failed: bool, verdict: str, details: str) -> None:  # noqa: ARG002
        seconds = time.monotonic() - running.start
        text = f"{verdict} {running.title} in {duration(seconds)}, {self._finished}/{self._runs} runs"
        self.say(f"{text}: {details}" if details else text)


class LiveDisplay(Display):
    """Progress in a terminal, redrawn four times per second. Failures remain above it."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()
