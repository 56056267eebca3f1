"""The display of a run on standard error: live in a terminal, HTML in a notebook, plain lines elsewhere."""

from __future__ import annotations

import io
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, Literal, Self

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
from llpbench.results.choices import chosen_by_searches
from llpbench.results.frame import configuration as changes_text
from llpbench.results.frame import value_of
from llpbench.running.schedule import Job
from llpbench.training.specification import configuration

_MOST_RUNNING = 12
"""Largest number of lines for running cells."""
_LINES_AROUND = 4
"""Lines besides running cells and board: bar, number of further cells, an empty line, the line of the cursor."""
_SECONDS_BETWEEN_OUTPUTS = 0.5
"""Seconds between two outputs in a notebook."""
_PRE = '<pre style="line-height:1.2;font-family:monospace">{code}</pre>'

Show = Callable[[str], None]
"""Function that shows HTML and replaces what it showed before."""


def make_display() -> Display:
    """Return the display for a terminal or notebook. Elsewhere, or if NO_COLOR is set, it prints plain lines."""
    console = Console(stderr=True, highlight=False)
    if console.is_jupyter:
        return Display(_html_console(), "notebook", _cell_output())
    return Display(console, "live" if console.is_terminal and not os.environ.get("NO_COLOR") else "plain")


@dataclass
class _Running:
    """A running job."""

    title: str
    start: float = field(default_factory=time.monotonic)
    epoch: Epoch | None = None


class Display:
    """Display of a run. A context manager that closes it.

    - `plain`: a line at the start and the end of each cell
    - `live`: progress in a terminal, redrawn four times per second; failures remain above it
    - `notebook`: progress as HTML; at the end only messages and the number of runs remain
    """

    def __init__(
        self, console: Console, form: Literal["plain", "live", "notebook"], show: Show = lambda _: None
    ) -> None:
        """`console`: for lines that remain; `show`: for a notebook."""
        self.form = form
        self._console = console
        self._show = show
        self._runs = self._finished = self._failed = 0
        self._start, self._last_output = time.monotonic(), 0.0
        self._end: float | None = None
        self._running: dict[str, _Running] = {}
        self._records: dict[str, Record] = {}
        self._searches: dict[str, TuningRecord] = {}
        self._board: tuple[tuple[int, ...], RenderableType | None] = (), None
        """The board, and the numbers that it was drawn from."""
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        if self.form == "live":
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Close the display."""
        self._live.stop()
        if self.form == "notebook" and self._finished:
            failed = f", {self._failed:,} failed" if self._failed else ""
            seconds = duration(time.monotonic() - self._start)
            self._console.print(f"{self._finished:,} of {plural(self._runs, 'run')} in {seconds}{failed}")
        if self._last_output:
            self._show(_html(self._console))

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
        plain = self.form == "plain"
        self._console.print(escape(text), style="yellow" if warning and not plain else "", soft_wrap=plain)
        self._changed()

    def started(self, job: Job) -> None:
        """Add a running job."""
        self._running[job.id] = _Running(title(job))
        if self.form == "plain":
            self.say(f"started {title(job)}")
        self._changed()

    def progressed(self, job: Job, epoch: Epoch) -> None:
        """Set the last epoch of a job."""
        self._running[job.id].epoch = epoch
        self._changed(minor=True)

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        """Add the records of a job."""
        self._records |= {record["run"]: record for record in records}
        verdict, reason = _in_short(records)
        failed = sum(record["status"] != "ok" for record in records)
        self._ended(job, len(records), failed, verdict, "; ".join(filter(None, (figure(records), reason))))

    def search_finished(self, job: Job, record: TuningRecord, more: int) -> None:
        """Add the result of a search. `more` runs follow from it."""
        self._runs += more
        self._searches[record["tuning"]] = record
        self._ended(job, 1, int(record["status"] != "ok"), record["status"], _gain(record) or record["reason"])

    def _ended(self, job: Job, runs: int, failed: int, verdict: str, details: str) -> None:
        running = self._running.pop(job.id)
        self._finished += runs
        self._failed += failed
        if self.form == "plain":
            seconds = duration(time.monotonic() - running.start)
            text = f"{verdict} {running.title} in {seconds}, {self._finished}/{self._runs} runs"
            self.say(f"{text}: {details}" if details else text)
        elif failed:
            self._console.print(f"[red]{verdict}[/] {escape(running.title)}: {escape(details)}")
        self._changed()

    def _changed(self, *, minor: bool = False) -> None:
        """Redraw the output of a notebook, but `minor` changes not too often. A terminal is redrawn anyway."""
        now = time.monotonic()
        if self.form == "notebook" and not (minor and now - self._last_output < _SECONDS_BETWEEN_OUTPUTS):
            progress = _html_console()
            progress.print(self.render())
            self._show(_html(self._console) + _html(progress))
            self._last_output = now

    def render(self) -> RenderableType:
        """Return a bar with the remaining time, the running cells and a board of finished runs."""
        if not self._runs:
            return Text("")
        running = list(self._running.values())  # a copy, since the display draws in another thread
        shown, more = running[:_MOST_RUNNING], len(running) - _MOST_RUNNING
        room = self._console.height - len(shown) - _LINES_AROUND
        key = self._finished, len(self._records), room
        if self._board[0] != key:  # drawing is slow
            self._board = key, draw_board([*self._records.values()], [*self._searches.values()], room)
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


def _table(running: Sequence[_Running]) -> Table:
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


def _gain(record: TuningRecord) -> str:
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


def _html_console() -> Console:
    return Console(file=io.StringIO(), record=True, width=100, height=40, force_jupyter=False, highlight=False)


def _html(console: Console) -> str:
    return console.export_html(inline_styles=True, code_format=_PRE, clear=False)


def _cell_output() -> Show:
    """Return a function that shows HTML below the running notebook cell."""
    from IPython.display import HTML, display

    handles: list[Any] = []

    def show(html: str) -> None:
        if handles:
            handles[0].update(HTML(html))
        else:
            handles.append(display(HTML(html), display_id=True))

    return show


BOARD_TITLE = "finished so far (preliminary): test AUC by fine-grained validation, mean over seeds and columns"
_LINES_OF_BOARD = 3
"""Lines besides methods: title, heading, and number of hidden methods."""


def draw_board(records: Collection[Record], searches: Collection[TuningRecord], height: int) -> RenderableType | None:
    """Return means of finished runs within a height; None if no run is finished or there is no room.

    Test AUC x 100 is shown at the epochs that fine-grained validation selects. Nothing is ranked. A method has a mean
    only if it has results in every column, which is a dataset with a bagging and a bag size.
    """
    chosen = chosen_by_searches(searches)
    tuned = {choice["cell"] for search in searches if (choice := search["best"].get("auc"))}
    scores: defaultdict[str, defaultdict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    columns = set()
    for record in {record["run"]: record for record in records}.values():
        is_chosen = record["cell"] in chosen and bool(record["method"]["changed"])
        if is_chosen and record["cell"] not in tuned:
            continue
        column = tuple(record["spec"].get(part) for part in ("dataset", "bagging", "bag_size", "max_bags"))
        columns.add(column)
        of_method, value = scores[_entry(record, is_chosen)], value_of(record, "auc", "auc")
        if value is not None:
            of_method[column].append(value)
    room = height - _LINES_OF_BOARD
    if not scores or room < 1:
        return None
    means = {name: fmean(map(fmean, cells.values())) if cells else 0.0 for name, cells in scores.items()}
    names = sorted(scores, key=lambda name: (-len(scores[name]), -means[name], name))
    table = Table("method", "AUC", "columns", "runs", box=None, padding=(0, 1))
    for name in names[:room]:
        cells = scores[name]
        mean = f"{means[name]:.1f}" if len(cells) == len(columns) else "–"
        table.add_row(Text(name), mean, f"{len(cells)}/{len(columns)}", f"{sum(map(len, cells.values())):,}")
    hidden = len(names) - room
    rest = [Text(f"and {plural(hidden, 'more method')}", style="dim")] if hidden > 0 else []
    return Group(Text(BOARD_TITLE, style="bold", no_wrap=True, overflow="ellipsis"), table, *rest)


def _entry(record: Record, is_chosen: bool) -> str:
    """Return everything in which entries of a board differ: method, encoder, pretraining, settings, role."""
    spec, method = record["spec"], record["method"]
    pretraining = "" if spec["pretraining"] == "none" else spec["pretraining"]
    settings = "tuned" if is_chosen else changes_text(method["changed"], spec)
    role = f"({method['role']})" if method["role"] else ""
    return " ".join(filter(None, (spec["method"], spec["encoder"], pretraining, settings, role)))
