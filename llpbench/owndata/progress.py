"""Progress on standard error, as in `llpbench run`.

A comparison of methods shows a bar in a terminal or notebook, elsewhere a line for each fold. A fit or a prediction
shows its stage in a line of a terminal, elsewhere nothing.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from llpbench.core.text import duration, plural


class ComparisonProgress:
    """Display of the folds of a comparison. A context manager, so that a bar is always removed."""

    def __init__(self, progress: bool | Callable[[str], None], folds: int) -> None:
        """Start the display. `progress` is False for none, or a function for lines instead of standard error."""
        console = Console(stderr=True, highlight=False)
        alive = console.is_jupyter or _is_live(console)
        self._tell = progress if callable(progress) else lambda text: console.print(text, markup=False, soft_wrap=True)
        self._folds, self._done = folds, 0
        self.silent = not progress
        self._bar: Progress | None = None
        if progress is True and alive:
            columns = (BarColumn(), TextColumn("{task.description}", markup=False))
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> ComparisonProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if not self.silent:
            self._tell(text)

    def fitting(self, name: str, left: float | None, share: float) -> None:
        """Show the current fit, the finished `share` of the fold's fits, and seconds left (None if not known)."""
        if self._bar is not None:
            text = f"fold {min(self._done + 1, self._folds)} of {self._folds}: {name}{_left(left)}"
            self._bar.update(self._task, total=self._folds, completed=self._done + share, description=text)

    def fold(self, left: float | None) -> None:
        """Count a finished fold."""
        self._done += 1
        if self._bar is None:
            self.say(f"fold {self._done} of {self._folds}{_left(left)}")


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


class RemainingFits:
    """Estimate of the remaining time of a comparison: from finished folds, before that from trials.

    A trial is a fit to fewer rows. A full fit takes at least as long, and if its time is linear in rows, longer by the
    ratio of rows. Before the first fold the estimate is the geometric mean of both.
    """

    def __init__(self, fits: Mapping[str, int], trials: Mapping[str, float], ratio: float) -> None:
        """Set, by method, the number of fits and the seconds of its trial, if there was one.

        `ratio` is the number of rows of a fit divided by that of a trial.
        """
        self._left = dict(fits)
        self._trials, self._ratio = trials, max(ratio, 1.0)
        self._took: dict[str, list[float]] = {name: [] for name in fits}

    def took(self, name: str, seconds: float) -> None:
        """Count a finished fit."""
        self._left[name] -= 1
        self._took[name].append(seconds)

    def drop(self, name: str) -> None:
        """Remove the remaining fits of a method that has failed."""
        self._left[name] = 0

    @property
    def seconds(self) -> float | None:
        """Seconds left; None if unknown."""
        if any(self._left[name] and not self._took[name] and name not in self._trials for name in self._left):
            return None
        return sum(number * self._each(name) for name, number in self._left.items() if number)

    @property
    def text(self) -> str:
        """Estimate before the first fit, such as `about 2 min (1 min to 4 min)`."""
        if self.seconds is None:
            return "time unknown until the first fold is done"
        low = sum(number * self._trials[name] for name, number in self._left.items())
        return f"about {duration(self.seconds)} ({duration(low)} to {duration(self._ratio * low)})"

    def _each(self, name: str) -> float:
        if took := self._took[name]:
            return float(np.mean(took))
        return self._trials[name] * math.sqrt(self._ratio)


def _is_live(console: Console) -> bool:
    return console.is_terminal and not os.environ.get("NO_COLOR")


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f", about {duration(seconds)} left"
