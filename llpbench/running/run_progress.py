"""Progress of a run: what displays are told, what they keep of it, and how it is drawn."""

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
"""Lines of running cells."""
_LINES_AROUND = 4
"""Lines besides running cells and board: bar, number of further cells, an empty line, the cursor's."""


@dataclass
class Running:
    """A job that runs."""

    title: str
    since: float = field(default_factory=time.monotonic)
    epoch: Epoch | None = None


class Display:
    """Display of a run and its state. A context manager, so that it is always closed."""

    def __init__(self, console: Console) -> None:
        """`console`: for lines that stay."""
        self._console = console
        self._runs = self._finished = self._failed = 0
        self._end: float | None = None
        self._running: dict[str, Running] = {}
        self._records: dict[str, Record] = {}
        self._searches: dict[str, TuningRecord] = {}
        self._board: tuple[tuple[int, ...], RenderableType | None] = (), None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take it down."""

    def begin(self, runs: int, known: Iterable[Record] = (), searches: Iterable[TuningRecord] = ()) -> None:
        """Expect this number of runs; `known` runs and `searches` of the same plan are done."""
        self._runs = runs
        self._searches |= {search["tuning"]: search for search in searches}
        self._records |= {record["run"]: record for record in known}
        self._changed()

    def estimate(self, seconds: float) -> None:
        """Take over an estimate of the seconds that remain."""
        self._end = time.monotonic() + seconds

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show a line that stays."""
        self._console.print(escape(text), style="yellow" if warning else "")
        self._changed()

    def started(self, job: Job) -> None:
        """Note that a job runs."""
        self._running[job.id] = Running(title(job))
        self._changed()

    def progressed(self, job: Job, epoch: Epoch) -> None:
        """Note the last epoch of a job."""
        self._running[job.id].epoch = epoch
        self._changed(little=True)

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        """Note the records of a job."""
        self._records |= {record["run"]: record for record in records}
        verdict, reason = in_short(records)
        failed = sum(record["status"] != "ok" for record in records)
        self._ended(job, len(records), failed, verdict, "; ".join(filter(None, (figure(records), reason))))

    def found(self, job: Job, record: TuningRecord, more: int) -> None:
        """Note the result of a search; `more` runs follow from it."""
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

    def _changed(self, *, little: bool = False) -> None:
        """Redraw, where that is not done anyway."""

    def render(self) -> RenderableType:
        """Return what is redrawn: a bar with the time that remains, running cells, a board of what is finished."""
        if not self._runs:
            return Text("")
        running = list(self._running.values())  # a copy: the display's thread draws while the run goes on
        shown, more = running[:_MOST_RUNNING], len(running) - _MOST_RUNNING
        size = self._console.size
        key = self._finished, len(self._records), size.height - len(shown) - _LINES_AROUND, size.width
        if self._board[0] != key:
            self._board = key, live_board.draw([*self._records.values()], [*self._searches.values()], *key[2:])
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
            Text(duration(time.monotonic() - one.since), style="dim"),
        )
    return table


def title(job: Job) -> str:
    """Return `dllp mlp on adult ordered 256 (3 seeds), hidden=128`; what differs from the defaults comes last."""
    differs = configuration(job.cell) if job.cell.params else ""
    return f"{job}, {differs}" if differs else str(job)


def gain(record: TuningRecord) -> str:
    """Return `auc 0.831, default 0.812`: the result of a search by its first criterion of a board; "" if none."""
    for name in BOARD_CRITERIA:
        if choice := record["best"].get(name):
            default = "" if choice["default"] is None else f", default {choice['default']:.3f}"
            return f"{name} {choice['value']:.3f}{default}"
    return ""


def figure(records: Iterable[Record]) -> str:
    """Return `AUC 88.1 ± 0.2` of the seeds that have a test AUC by fine-grained validation; "" if none has."""
    values = [value for record in records if (value := value_of(record, "auc", "auc")) is not None]
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"AUC {fmean(values):.1f}{spread}" if values else ""


def in_short(records: Sequence[Record]) -> tuple[str, str]:
    """Return `ok` and "", or the first failure's status and reason with the number of failed seeds."""
    if not records:
        return "put back", ""
    failed = [record for record in records if record["status"] != "ok"]
    if not failed:
        return "ok", ""
    some = "" if len(failed) == len(records) else f" ({plural(len(failed), 'seed')} of {len(records)})"
    return failed[0]["status"], f"{failed[0]['reason']}{some}"
