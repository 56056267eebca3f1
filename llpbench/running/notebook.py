"""What a run shows in a notebook: one output that is redrawn in place, never line under line."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console

from llpbench.core.cell import Epoch
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import duration, plural
from llpbench.running.display import Watching
from llpbench.running.schedule import Job

Show = Callable[[str], None]
"""takes HTML, and shows it in the place of what it was given before"""

_SECONDS_BETWEEN = 0.5
_SIZE = 100, 40
"""characters of a line, and lines"""
_PRE = '<pre style="line-height:1.2;font-family:monospace">{code}</pre>'


class NotebookDisplay(Watching):
    """The live display as HTML; what stays above it in a terminal stays above it here. At the end these lines remain,
    and how many runs there are now."""

    def __init__(self, show: Show) -> None:
        self._said = self._sheet()
        super().__init__(self._said)
        self._show = show
        self._drawn = 0.0
        self._since = time.monotonic()

    def __enter__(self) -> NotebookDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._finished:
            told = f"{self._finished:,} of {plural(self._runs, 'run')} in {duration(time.monotonic() - self._since)}"
            self._said.print(told + (f", {self._failed:,} failed" if self._failed else ""))
        if self._drawn:
            self._show(self._html(self._said))

    def begin(self, runs: int, known: Iterable[Record] = (), searches: Iterable[TuningRecord] = ()) -> None:
        super().begin(runs, known, searches)
        self._draw()

    def say(self, text: str, *, warning: bool = False) -> None:
        super().say(text, warning=warning)
        self._draw()

    def started(self, job: Job) -> None:
        super().started(job)
        self._draw()

    def progressed(self, job: Job, epoch: Epoch) -> None:
        super().progressed(job, epoch)
        if time.monotonic() - self._drawn >= _SECONDS_BETWEEN:
            self._draw()

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        super().finished(job, records)
        self._draw()

    def found(self, job: Job, record: TuningRecord, more: int) -> None:
        super().found(job, record, more)
        self._draw()

    def _draw(self) -> None:
        live = self._sheet()
        live.print(self._render())
        self._show(self._html(self._said) + self._html(live))
        self._drawn = time.monotonic()

    @staticmethod
    def _sheet() -> Console:
        width, height = _SIZE
        return Console(
            file=io.StringIO(), record=True, width=width, height=height, force_jupyter=False, highlight=False
        )

    @staticmethod
    def _html(console: Console) -> str:
        return console.export_html(inline_styles=True, code_format=_PRE, clear=False)


def cell_output() -> Show:
    """What shows HTML under the cell that runs, in one place, which there is from the first time on."""
    from IPython.display import HTML, display

    place: list[Any] = []

    def show(html: str) -> None:
        if place:
            place[0].update(HTML(html))
        else:
            place.append(display(HTML(html), display_id=True))

    return show
