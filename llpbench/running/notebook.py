"""The display of a run in a notebook: one output that is redrawn in place."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.console import Console

from llpbench.core.text import duration, plural
from llpbench.running.run_progress import Display

Show = Callable[[str], None]
"""Function that shows HTML and replaces what it showed before."""

_SECONDS_BETWEEN = 0.5
_WIDTH, _HEIGHT = 100, 40
_PRE = '<pre style="line-height:1.2;font-family:monospace">{code}</pre>'


class NotebookDisplay(Display):
    """Progress as HTML. At the end only messages and the number of runs remain."""

    def __init__(self, show: Show) -> None:
        super().__init__(_html_console())
        self._show = show
        self._last_drawn = 0.0
        self._start = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._finished:
            seconds = time.monotonic() - self._start
            failed = f", {self._failed:,} failed" if self._failed else ""
            self._console.print(f"{self._finished:,} of {plural(self._runs, 'run')} in {duration(seconds)}{failed}")
        if self._last_drawn:
            self._show(_html(self._console))

    def _changed(self, *, minor: bool = False) -> None:
        if minor and time.monotonic() - self._last_drawn < _SECONDS_BETWEEN:
            return
        live = _html_console()
        live.print(self.render())
        self._show(_html(self._console) + _html(live))
        self._last_drawn = time.monotonic()


def _html_console() -> Console:
    file = io.StringIO()
    return Console(file=file, record=True, width=_WIDTH, height=_HEIGHT, force_jupyter=False, highlight=False)


def _html(console: Console) -> str:
    return console.export_html(inline_styles=True, code_format=_PRE, clear=False)


def cell_output() -> Show:
    """Return a function that shows HTML below the running notebook cell."""
    from IPython.display import HTML, display

    handles: list[Any] = []

    def show(html: str) -> None:
        if handles:
            handles[0].update(HTML(html))
        else:
            handles.append(display(HTML(html), display_id=True))

    return show
