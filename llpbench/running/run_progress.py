"""Progress of a run: the state of a display, and how it is drawn."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from llpbench.core.cell import Epoch
from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import duration, plural
from llpbench.results.frame import value_of
from llpbench.running import live_board
from llpbench.running.schedule import Job
from llpbench.training.specification import configuration

_MOST_RUNNING = 12
"""Largest number of lines for running cells."""
_LINES_AROUND = 4
"""Lines besides running cells and board: bar, number of further cells, an empty line, the line of the cursor."""


@dataclass
class Running:
    """A running job."""

    title: str
    start: float = field(default_factory=time.monotonic)
    epoch: Epoch | None = None


class Display:
    """Display of a run. A context manager that closes it."""

    def __init__(self, console: Console) -> None:
        """`console`: for lines that remain."""
        self._console = console
        self._runs = self._finished = self._failed = 0
        self._end: float | None = None
        self._running: dict[str, Running] = {}
        self._records: dict[str, Record] = {}
        self._searches: dict[str, TuningRecord] = {}
        self._board: tuple[tuple[int, ...], RenderableType | None] = (), None
        """The board, and the numbers that it was drawn from."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the display."""

    def begin(self, runs: int, done: Iterable[Record] = (), searches: Iterable[TuningRecord] = ()) -> None:
        """Set the number of runs, and the records of the plan that were `done` before."""
        self._runs = runs
        self._searches |= {search["tuning"]: search for search in searches}
        self._records |= {record["run"]: record for record in done}
        self._changed()

    def estimate(self, seconds: float) -> None:
        """Set the remaining seconds."""
        self._end = time.monotonic() + seconds

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show a line that remains."""
        self._console.print(escape(text), style="yellow" if warning else "")
        self._changed()

    def started(self, job: Job) -> None:
        """Add a running job."""
        self._running[job.id] = Running(title(job))
        self._changed()

    def progressed(self, job: Job, epoch: Epoch) -> None:
        """Set the last epoch of a job."""
        self._running[job.id].epoch = epoch
        self._changed(minor=True)

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        """Add the records of a job."""
        self._records |= {record["run"]: record for record in records}
        verdict, reason = in_short(records)
        failed = sum(record["status"] != "ok" for record in records)
        self._ended(job, len(records), failed, verdict, "; ".join(filter(None, (figure(records), reason))))

    def search_finished(self, job: Job, record: TuningRecord, more: int) -> None:
        """Add the result of a search. `more` runs follow from it."""
        self._runs += more
        self._searches[record["tuning"]] = record
        self._ended(job, 1, int(record["status"] != "ok"), record["status"], gain(record) or record["reason"])

    def _ended(self, job: Job, runs: int, failed: int, verdict: str, details: str) -> None:
        running = self._running.pop(job.id)
        self._finished += runs
        self._failed += failed
        self._show_end(running, failed > 0, verdict, details)
        self._changed()

    def _show_end(self, running: Running, failed: bool, verdict: str, details: str) -> None:
        if failed:
            self._console.print(f"[red]{verdict}[/] {escape(running.title)}: {escape(details)}")

    def _changed(self, *, minor: bool = False) -> None:
        """Redraw the display, unless it is redrawn anyway. `minor` changes may be skipped."""

    def render(self) -> RenderableType:
        """Return a bar with the remaining time, the running cells and a board of finished runs."""
        if not self._runs:
            return Text("")
        running = list(self._running.values())  # a copy, since the display draws in another thread
        shown, more = running[:_MOST_RUNNING], len(running) - _MOST_RUNNING
        room = self._console.height - len(shown) - _LINES_AROUND
        key = self._finished, len(self._records), room
        if self._board[0] != key:  # drawing is slow
            self._board = key, live_board.draw([*self._records.values()], [*self._searches.values()], room)
        board = self._board[1]
        parts: list[RenderableType] = [self._bar(), _table(shown)]
        parts += [Text(f"and {more} more", style="dim")] if more > 0 else []
        return Group(*parts, *(() if board is None else ("", board)))

    def _bar(self) -> Table:
        line = Table.grid(padding=(0, 1))
        line.add_row(
            ProgressBar(total=max(self._runs, 1), completed=self._finished, width=40),
            Text(f"{self._finished}/{plural(self._runs, 'run')}"),
            Text(f"{self._failed} failed" if self._failed else "", style="red"),
            Text("" if self._end is None else f"about {duration(max(self._end - time.monotonic(), 0))} left", "cyan"),
        )
        return line


def _table(running: Sequence[Running]) -> Table:
    table = Table.grid(padding=(0, 2))
    for one in running:
        epoch = one.epoch
        table.add_row(
            Text(one.title),
            Text("" if epoch is None else f"epoch {epoch.epoch + 1}/{epoch.epochs}", style="dim"),
            Text("" if epoch is None else f"{epoch.criterion} {epoch.value:.3f}", style="dim"),
            Text(duration(time.monotonic() - one.start), style="dim"),
        )
    return table


def title(job: Job) -> str:
    """Return a job with its changed hyperparameters: `dllp mlp on adult ordered 256 (3 seeds), hidden=128`."""
    changed = configuration(job.cell) if job.cell.params else ""
    return f"{job}, {changed}" if changed else str(job)


def gain(record: TuningRecord) -> str:
    """Return the result of a search by its first board criterion, `auc 0.831, default 0.812`; "" if there is none."""
    for name in BOARD_CRITERIA:
        if choice := record["best"].get(name):
            default = "" if choice["default"] is None else f", default {choice['default']:.3f}"
            return f"{name} {choice['value']:.3f}{default}"
    return ""


def figure(records: Iterable[Record]) -> str:
    """Return mean and deviation over seeds by fine-grained validation, `AUC 88.1 ± 0.2`; "" without a test AUC."""
    values = [value for record in records if (value := value_of(record, "auc", "auc")) is not None]
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"AUC {fmean(values):.1f}{spread}" if values else ""


def in_short(records: Sequence[Record]) -> tuple[str, str]:
    """Return `ok` and "", or status and reason of the first failure, with the number of failed seeds.

    A job without records is `unfinished`: it is retried, or the time budget was used up.
    """
    if not records:
        return "unfinished", ""
    failed = [record for record in records if record["status"] != "ok"]
    if not failed:
        return "ok", ""
    some = "" if len(failed) == len(records) else f" ({plural(len(failed), 'seed')} of {len(records)})"
    return failed[0]["status"], f"{failed[0]['reason']}{some}"
