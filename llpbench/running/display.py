"""What a run shows while it works: in a terminal a live display with a board that fills, elsewhere a few plain lines.

It goes to standard error; standard output is for the leaderboards. A notebook's is `notebook.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from llpbench.core.cell import Epoch
from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import duration, plural
from llpbench.running.preliminary import Preliminary, figure
from llpbench.running.schedule import Job
from llpbench.training.specification import configuration

_MOST_RUNNING = 12
"""lines of running cells"""
_LINES_AROUND = 4
"""besides running cells and board: the overall bar, how many more cells run, an empty line, the cursor's"""


class Display(Protocol):
    """Shows a run. A context manager, so that a live display is always taken down."""

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def begin(self, runs: int, known: Iterable[Record] = (), searches: Iterable[TuningRecord] = ()) -> None:
        """So many runs are to do; of the same plan are those that are `known`, and the `searches` that are done."""
        ...

    def estimate(self, seconds: float) -> None:
        """They will still take about so long."""
        ...

    def say(self, text: str, *, warning: bool = False) -> None:
        """A line that stays."""
        ...

    def started(self, job: Job) -> None: ...

    def progressed(self, job: Job, epoch: Epoch) -> None: ...

    def finished(self, job: Job, records: Sequence[Record]) -> None: ...

    def found(self, job: Job, record: TuningRecord, more: int) -> None:
        """What a search has found; so many more runs are to do because of it."""
        ...


def make_display() -> Display:
    """The live display in a terminal, or that of a notebook; plain lines otherwise, or if NO_COLOR asks for them."""
    console = Console(stderr=True, highlight=False)
    if console.is_jupyter:
        from llpbench.running.notebook import NotebookDisplay, cell_output

        return NotebookDisplay(cell_output())
    return LiveDisplay(console) if console.is_terminal and not os.environ.get("NO_COLOR") else PlainDisplay(console)


class PlainDisplay:
    """A line for the start and the end of each cell."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._runs = 0
        self._finished = 0
        self._since: dict[str, float] = {}

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def begin(self, runs: int, known: Iterable[Record] = (), searches: Iterable[TuningRecord] = ()) -> None:  # noqa: ARG002
        self._runs = runs

    def estimate(self, seconds: float) -> None:
        """Nothing: plain lines do not change."""

    def say(self, text: str, *, warning: bool = False) -> None:  # noqa: ARG002
        self._console.print(text, markup=False, soft_wrap=True)

    def started(self, job: Job) -> None:
        self._since[job.id] = time.monotonic()
        self.say(f"started {title(job)}")

    def progressed(self, job: Job, epoch: Epoch) -> None:
        """Nothing: a line for each epoch would be too many."""

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        self._finished += len(records)
        verdict, reason = in_short(records)
        self._ended(job, verdict, "; ".join(filter(None, (figure(records), reason))))

    def found(self, job: Job, record: TuningRecord, more: int) -> None:
        self._finished += 1
        self._runs += more
        self._ended(job, record["status"], gain(record) or record["reason"])

    def _ended(self, job: Job, verdict: str, told: str) -> None:
        took = duration(time.monotonic() - self._since.pop(job.id))
        self.say(f"{verdict} {title(job)} in {took}, {self._finished}/{self._runs} runs{told and f': {told}'}")


@dataclass
class _Running:
    """A job that is being computed."""

    title: str
    since: float = field(default_factory=time.monotonic)
    epoch: Epoch | None = None


class Watching:
    """What a display knows of a run: an overall bar with the time that remains, the running cells with epoch and
    criterion, what is finished so far. Where that is shown, and when, its subclasses decide."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._runs = 0
        self._finished = 0
        self._failed = 0
        self._end: float | None = None
        self._running: dict[str, _Running] = {}
        self._board = Preliminary()

    def begin(self, runs: int, known: Iterable[Record] = (), searches: Iterable[TuningRecord] = ()) -> None:
        self._runs = runs
        self._board.add_searches(searches)
        self._board.add(known)

    def estimate(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def say(self, text: str, *, warning: bool = False) -> None:
        self._console.print(escape(text), style="yellow" if warning else "")

    def started(self, job: Job) -> None:
        self._running[job.id] = _Running(title(job))

    def progressed(self, job: Job, epoch: Epoch) -> None:
        self._running[job.id].epoch = epoch

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        self._running.pop(job.id)
        self._finished += len(records)
        self._board.add(records)
        verdict, reason = in_short(records)
        if reason:
            self._failed += sum(record["status"] != "ok" for record in records)
            self._console.print(f"[red]{verdict}[/] {escape(title(job))}: {escape(reason)}")

    def found(self, job: Job, record: TuningRecord, more: int) -> None:
        self._running.pop(job.id)
        self._finished += 1
        self._runs += more
        self._board.add_searches([record])
        if record["status"] != "ok":
            self._failed += 1
            self._console.print(f"[red]{record['status']}[/] {escape(title(job))}: {escape(record['reason'])}")

    def _render(self) -> RenderableType:
        if not self._runs:
            return Text("")
        # The display's thread draws while the run goes on: it must work on a copy.
        running = list(self._running.values())
        more = len(running) - _MOST_RUNNING
        parts: list[RenderableType] = [self._overall(), self._table(running[:_MOST_RUNNING])]
        if more > 0:
            parts.append(Text(f"and {more} more", style="dim"))
        size = self._console.size
        board = self._board.draw(size.height - min(len(running), _MOST_RUNNING) - _LINES_AROUND, size.width)
        return Group(*parts, *(() if board is None else ("", board)))

    def _overall(self) -> Table:
        end = self._end
        line = Table.grid(padding=(0, 1))
        failed = Text(f"{self._failed} failed", style="red") if self._failed else Text("")
        line.add_row(
            ProgressBar(total=max(self._runs, 1), completed=self._finished, width=40),
            Text(f"{self._finished}/{plural(self._runs, 'run')}"),
            failed,
            Text("" if end is None else f"about {duration(max(end - time.monotonic(), 0))} left", style="cyan"),
        )
        return line

    def _table(self, running: Sequence[_Running]) -> Table:
        table = Table.grid(padding=(0, 2))
        for one in running:
            epoch = one.epoch
            table.add_row(
                Text(one.title),
                Text("" if epoch is None else f"epoch {epoch.epoch + 1}/{epoch.epochs}", style="dim"),
                Text("" if epoch is None else f"{epoch.criterion} {epoch.value:.3f}", style="dim"),
                Text(duration(time.monotonic() - one.since), style="dim"),
            )
        return table


class LiveDisplay(Watching):
    """In a terminal: redrawn four times a second; failures stay above it as they come."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()


def title(job: Job) -> str:
    """`dllp mlp on adult ordered 256 (3 seeds), hidden=128`: what differs from the defaults comes last."""
    differs = configuration(job.cell) if job.cell.params else ""
    return f"{job}, {differs}" if differs else str(job)


def gain(record: TuningRecord) -> str:
    """`auc 0.831, default 0.812`: what a search has found by its first criterion of a board, "" if nothing."""
    for name in BOARD_CRITERIA:
        if choice := record["best"].get(name):
            usual = "" if choice["default"] is None else f", default {choice['default']:.3f}"
            return f"{name} {choice['value']:.3f}{usual}"
    return ""


def in_short(records: Sequence[Record]) -> tuple[str, str]:
    """`ok` and "", or the first failure's status and reason, with the number of seeds that failed."""
    if not records:
        return "put back", ""
    failed = [record for record in records if record["status"] != "ok"]
    if not failed:
        return "ok", ""
    some = "" if len(failed) == len(records) else f" ({plural(len(failed), 'seed')} of {len(records)})"
    return failed[0]["status"], f"{failed[0]['reason']}{some}"
