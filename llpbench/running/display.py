"""The display of a run on standard error: a line for each finished cell, and in a terminal the running cells."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import fmean, stdev
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from llpbench.core.cell import Epoch
from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import duration, plural
from llpbench.results.frame import items
from llpbench.running.schedule import Job

_MOST_RUNNING = 12
"""Largest number of running cells that a terminal shows."""


class Display:
    """Display of a run. A context manager that closes it.

    A live display has bars of the run and of running cells below the lines, redrawn four times per second. Otherwise
    cells have a line at their start, too.
    """

    def __init__(self, console: Console, *, live: bool) -> None:
        self._console = console
        self._live = live
        self._runs = self._finished = self._failed = 0
        self._end = ""
        self._running: dict[str, TaskID] = {}
        """Bars of running jobs, by id."""
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(20),
            TextColumn("{task.fields[details]}", style="dim"),
            TimeElapsedColumn(),
            console=console,
            refresh_per_second=4,
            transient=True,
            disable=not live,
        )
        self._all = self._bars.add_task("runs", total=None, details="", visible=False)

    @classmethod
    def on_stderr(cls) -> Self:
        """Return the display on standard error: live in a terminal, unless NO_COLOR is set."""
        console = Console(stderr=True, highlight=False, emoji=False, force_jupyter=False)
        return cls(console, live=console.is_terminal and not os.environ.get("NO_COLOR"))

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Close the display."""
        self._bars.stop()

    def begin(self, runs: int) -> None:
        """Set the number of runs."""
        self._runs = runs
        self._changed()

    def estimate(self, seconds: float) -> None:
        """Set the remaining seconds."""
        self._end = f"until about {datetime.now() + timedelta(seconds=seconds):%a %H:%M}"
        self._changed()

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show a line that remains."""
        style = "yellow" if warning and self._live else ""
        self._console.print(text, markup=False, style=style, soft_wrap=not self._live)

    def started(self, job: Job) -> None:
        """Add a running job."""
        title = job.title
        self._running[job.id] = self._bars.add_task(title, total=None, details="")
        if not self._live:
            self.say(f"started {title}")
        self._changed()

    def progressed(self, job: Job, epoch: Epoch) -> None:
        """Set the last epoch of a job."""
        details = f"epoch {epoch.epoch + 1}/{epoch.epochs}, {epoch.criterion} {epoch.value:.3f}"
        self._bars.update(self._running[job.id], total=epoch.epochs, completed=epoch.epoch + 1, details=details)

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        """Add the records of a job."""
        verdict, reason = _in_short(records)
        failed = sum(record["status"] != "ok" for record in records)
        self._ended(job, len(records), failed, verdict, "; ".join(filter(None, (_auc_text(records), reason))))

    def search_finished(self, job: Job, record: TuningRecord, more: int) -> None:
        """Add the result of a search. `more` runs follow from it."""
        self._runs += more
        self._ended(job, 1, int(record["status"] != "ok"), record["status"], _choices(record) or record["reason"])

    def _ended(self, job: Job, runs: int, failed: int, verdict: str, details: str) -> None:
        bar = self._running.pop(job.id)
        (task,) = (each for each in self._bars.tasks if each.id == bar)
        self._bars.remove_task(bar)
        self._finished += runs
        self._failed += failed
        took = duration(task.elapsed or 0.0)
        text = f"{verdict} {task.description} in {took}, {self._finished}/{self._runs} runs"
        self.say(f"{text}: {details}" if details else text, warning=failed > 0)
        self._changed()

    def _changed(self) -> None:
        """Update the bar of the run, and hide running cells that are too many."""
        failed = f"{self._failed} failed" if self._failed else ""
        details = ", ".join(filter(None, (f"{self._finished}/{self._runs}", failed, self._end)))
        self._bars.update(self._all, total=self._runs, completed=self._finished, details=details, visible=True)
        for place, bar in enumerate(self._running.values()):
            self._bars.update(bar, visible=place < _MOST_RUNNING)


def _choices(record: TuningRecord) -> str:
    """Return the choices of a search, `auc 0.831, default 0.812: weight=0.1`; "" if there are none."""
    parts, start = [], record["spec"]["cell"]["params"]
    for name in BOARD_CRITERIA:
        if choice := record["best"].get(name):
            default = "" if choice["default"] is None else f", default {choice['default']:.3f}"
            differs = {key: value for key, value in choice["params"].items() if value != start.get(key)}
            changed = ", ".join(sorted(items(differs))) or "as default"
            parts.append(f"{name} {choice['value']:.3f}{default}: {changed}")
    return "; ".join(parts)


def _auc_text(records: Iterable[Record]) -> str:
    """Return mean and deviation over seeds by fine-grained validation, `AUC 88.1 ± 0.2`; "" without a test AUC."""
    results = (record["results"].get("auc") for record in records)
    values = [100 * auc for result in results if result and (auc := result["test"].get("auc")) is not None]
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"AUC {fmean(values):.1f}{spread}" if values else ""


def _in_short(records: Sequence[Record]) -> tuple[str, str]:
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
