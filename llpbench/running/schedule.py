"""The work of a run, in the order in which it is started: the slowest cells first, none that would end too late."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from llpbench.core.cell import Cell
from llpbench.core.text import plural


@dataclass(frozen=True)
class Job:
    """A cell with the seeds to run."""

    cell: Cell
    seeds: tuple[int, ...]
    alone: bool = False
    """a second attempt after running out of memory, with nothing else beside it"""

    def __str__(self) -> str:
        return f"{self.cell} ({plural(len(self.seeds), 'seed')})"


@dataclass(frozen=True)
class Deadline:
    """The moment after which no new work is started."""

    at: float = math.inf
    """as `time.monotonic` counts"""

    @staticmethod
    def after(seconds: float | None) -> Deadline:
        """The moment so many seconds from now; none if None."""
        return Deadline() if seconds is None else Deadline(time.monotonic() + seconds)

    def allows(self, seconds: float | None) -> bool:
        """Whether work of so many seconds, or of an unknown length, may still be started."""
        return time.monotonic() + (seconds or 0.0) < self.at


class Schedule:
    """A queue of jobs that an executor empties: `next`, and `put` for what must be run again."""

    def __init__(
        self, jobs: Iterable[Job], seconds: Callable[[Job], float | None], deadline: Deadline | None = None
    ) -> None:
        """`seconds` estimates the length of a job; it is asked anew each time, so that it may learn as work is done."""
        self._seconds = seconds
        self._deadline = deadline or Deadline()
        # Unknown lengths first: what surprises should do so early. Neural methods are slower than direct ones.
        self._queue = sorted(jobs, key=lambda job: (-(seconds(job) or math.inf), job.cell.protocol is None))
        self.left: list[Job] = []
        """jobs that were not started because they would end too late"""

    @property
    def waiting(self) -> list[Job]:
        """Jobs not yet started."""
        return list(self._queue)

    def put(self, job: Job) -> None:
        """Add a job at the end."""
        self._queue.append(job)

    def next(self, fits: Callable[[Job], bool] = lambda _: True) -> Job | None:
        """Take the first job for which there is room and time; None if there is none now."""
        for job in list(self._queue):
            if fits(job):
                self._queue.remove(job)
                if self._deadline.allows(self._seconds(job)):
                    return job
                self.left.append(job)
        return None
