"""The work of a run, in the order in which it is started: a few cheap cells, then the slowest first.

The cheap ones, so that something stands on the board at once; then the slowest, so that none of them is left alone at
the end. What would end too late is not started.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from llpbench.core.cell import Cell
from llpbench.core.text import duration, plural
from llpbench.core.tuning_spec import Tuning

_SOON = 20.0
"""seconds that the cheap jobs take together, at most"""


@dataclass(frozen=True)
class Job:
    """A cell with the seeds to run, or a search for its hyperparameters."""

    cell: Cell
    seeds: tuple[int, ...]
    alone: bool = False
    """a second attempt, with nothing else beside it, after it ran out of memory or its process was killed"""
    attempt: int = 1
    """counts those that were cut short through no fault of its own"""
    tuning: Tuning | None = None
    """the search to run, on its own seed; None: the runs of the cell"""
    instead: str = ""
    """when the search was finished that this one is made instead of: what is kept of it is not gone on with"""

    @property
    def id(self) -> str:
        """Names it among the jobs of a run."""
        return self.cell.id if self.tuning is None else self.tuning.id

    def __str__(self) -> str:
        return str(self.tuning or f"{self.cell} ({plural(len(self.seeds), 'seed')})")


@dataclass(frozen=True)
class Ended:
    """How a job has ended that has made nothing."""

    how: Literal["failed", "timed-out", "killed", "lost", "interrupted", "stopped", "unfit"]
    """`killed`: by somebody else, or out of memory; `lost`: with the machine that it ran on; `interrupted`: as Ray
    died, which is started again; `stopped`: since the time budget is over; `unfit`: the machine cannot do any"""
    reason: str = ""


@dataclass(frozen=True)
class Limit:
    """How long a job may take."""

    timeout: float = math.inf
    """seconds that the job itself may take"""
    budget: float = math.inf
    """seconds that are left of the run's time budget"""

    @property
    def timed_out(self) -> Ended:
        """How it ends that takes longer than it may."""
        return Ended("timed-out", f"took longer than {duration(self.timeout)}. Give it more by --cell-timeout.")


@dataclass(frozen=True)
class Deadline:
    """The moment when all work ends."""

    at: float = math.inf
    """as `time.monotonic` counts"""

    @staticmethod
    def after(seconds: float | None) -> Deadline:
        """The moment so many seconds from now; none if None."""
        return Deadline() if seconds is None else Deadline(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until then; 0 if it is past."""
        return max(self.at - time.monotonic(), 0.0)

    def allows(self, seconds: float) -> bool:
        """Whether work of so many seconds may still be started."""
        return seconds < self.left


class Schedule:
    """A queue of jobs that an executor empties: `next`, and `put` for what must be run again."""

    def __init__(
        self,
        jobs: Iterable[Job],
        seconds: Callable[[Job], float],
        deadline: Deadline | None = None,
        at_least: Callable[[Job], float] | None = None,
        timeout: Callable[[Job], float] = lambda _: math.inf,
    ) -> None:
        """`seconds` estimates the length of a job, `at_least` (None: the same) what it will hardly be below.

        `at_least` is asked each time, since estimates improve. Only jobs that may end in time are started.
        `timeout`: seconds after which a job is taken to hang.
        """
        self._at_least = at_least or seconds
        self._timeout = timeout
        self._deadline = deadline or Deadline()
        each = sorted(((seconds(job), job) for job in jobs), key=lambda pair: pair[0])
        jobs = [job for _, job in each]
        number = sum(end <= _SOON for end in accumulate(length for length, _ in each))
        self._cheap = {job.id for job in jobs[:number]}
        first = max(number, 1)  # even if it is not cheap: the board is not to stay empty for long
        self._queue = [*jobs[first:], *reversed(jobs[:first])]
        """the next one last, where it is taken away without moving the others"""
        self.left: list[Job] = []
        """jobs that were not started because they would end too late, or stopped"""

    def limit(self, job: Job) -> Limit:
        """How long a job that is started now may take."""
        return Limit(self._timeout(job), self._deadline.left)

    @property
    def seconds_left(self) -> float:
        """Seconds left of the time budget."""
        return self._deadline.left

    @property
    def waiting(self) -> list[Job]:
        """Jobs not yet started."""
        return self._queue[::-1]

    def is_cheap(self, job: Job) -> bool:
        """Whether it belongs to the jobs that take only seconds together."""
        return job.id in self._cheap

    def put(self, job: Job) -> None:
        """Add a job at the end."""
        self._queue.insert(0, job)

    def next(self, fits: Callable[[Job], bool] = lambda _: True) -> Job | None:
        """Take the first job for which there is room and time; None if there is none now."""
        place = len(self._queue)
        while (place := place - 1) >= 0:
            job = self._queue[place]
            if fits(job):
                del self._queue[place]
                if self._deadline.allows(self._at_least(job)):
                    return job
                self.left.append(job)
        return None
