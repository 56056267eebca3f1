"""Jobs and the schedule of a run: a queue of jobs, and how long each may take.

A few cheap jobs come first, for early results. The slowest jobs follow, so that none of them is left alone at the end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from llpbench.core.cell import Cell, Environment, Epoch, Tuning
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record, SomeDone, Status, TuningRecord
from llpbench.core.text import LOG, one_line, plural

_CHEAP_SECONDS = 20.0
"""Seconds that all cheap jobs take together, at most."""


Result = list[Record] | TuningRecord
"""The result of a job: the records of a cell's seeds, or the record of a search."""
RunCell = Callable[[Cell, Sequence[int], Environment, Callable[[Epoch | SomeDone], None] | None], list[Record]]
"""A function that runs a cell, such as `training.cell_runs.run_cell`."""


@dataclass(frozen=True)
class Job:
    """A cell with the seeds to run, or a search for its hyperparameters."""

    cell: Cell
    seeds: tuple[int, ...]
    alone: bool = False
    """Whether this is a retry that must not share the device, after the job ran out of memory or was killed."""
    attempt: int = 1
    """Number of the attempt. Only attempts that were lost with a machine count."""
    tuning: Tuning | None = None
    """The search to run, on the seed of the search; None for the runs of a cell."""
    replaces: str = ""
    """Time stamp of the search that this one replaces. Its stored trials are not continued."""

    @property
    def id(self) -> str:
        """Identifier of the job within a run."""
        return self.cell.id if self.tuning is None else self.tuning.id

    def __str__(self) -> str:
        return str(self.tuning or f"{self.cell} ({plural(len(self.seeds), 'seed')})")

    @property
    def title(self) -> str:
        """The job with its changed hyperparameters: `dllp mlp on adult ordered 256 (3 seeds), hidden=128`."""
        from llpbench.training.specification import configuration  # torch

        changed = configuration(self.cell) if self.cell.params else ""
        return f"{self}, {changed}" if changed else str(self)

    def run(
        self, environment: Environment, say: Callable[[Epoch | SomeDone], None], run: RunCell | None = None
    ) -> Result:
        """Return the result; after an error, failed records. `run`: function that runs cells."""
        try:
            if self.tuning is not None:
                from llpbench.tuning.tuning_runs import run_tuning  # Optuna

                return run_tuning(self.tuning, environment, say, self.replaces)
            if run is None:
                from llpbench.training.cell_runs import run_cell  # torch

                run = run_cell
            return run(self.cell, self.seeds, environment, say)
        except (Exception, SystemExit) as error:  # even a fault of the engine must not end a run of many hours
            if not isinstance(error, LLPBenchError) or error.__cause__ is not None:  # else its text says everything
                LOG.debug("What failed:", exc_info=error)
            return self.failed(str(error) if isinstance(error, LLPBenchError) else one_line(error))

    def failed(self, reason: str, status: Status = "failed") -> Result:
        """Return the result of the job if it failed as a whole."""
        from llpbench.training.stamp import SeedResult, cell_facts  # torch

        facts = {**cell_facts(self.cell), "hardware": {}}
        if self.tuning is not None:
            from llpbench.tuning.tuning_runs import tuning_record  # Optuna

            return tuning_record(self.tuning, [], {**facts, "memory_mb": None}, reason, status)
        results = (SeedResult(seed, status, reason, members=0) for seed in self.seeds)
        return [result.record(self.cell, None, 0.0, facts) for result in results]


@dataclass(frozen=True)
class Ended:
    """The end of a job without a result."""

    how: Literal["failed", "timed-out", "killed", "lost", "interrupted", "stopped", "unfit"]
    """How the job ended.

    - `failed`: by a fault of its own
    - `timed-out`: it took too long
    - `killed`: by another process or the system, possibly out of memory
    - `lost`: with its machine
    - `interrupted`: with Ray, which is restarted
    - `stopped`: the time budget was used up
    - `unfit`: the machine cannot run any job
    """
    reason: str = ""


@dataclass(frozen=True)
class Limit:
    """Time limits of a job."""

    timeout: float = math.inf
    """Seconds after which the job is considered to hang."""
    budget: float = math.inf
    """Seconds left in the time budget of the run."""


class Schedule:
    """A queue of jobs. An executor empties it with `next`; `put` adds jobs that follow or are retried."""

    def __init__(
        self,
        jobs: Iterable[Job],
        seconds: Callable[[Job], float],
        end: float = math.inf,
        at_least: Callable[[Job], float] | None = None,
        timeout: Callable[[Job], float] = lambda _: math.inf,
    ) -> None:
        """Sort the jobs.

        - `seconds`: estimated length of a job
        - `end`: moment when the time budget is used up, as `time.monotonic` counts
        - `at_least`: lower bound of a job's length; default `seconds`. It is called when the job would start, since
          estimates improve. Jobs that cannot end within the budget are not started.
        - `timeout`: seconds after which a job is considered to hang
        """
        self._at_least = at_least or seconds
        self._timeout = timeout
        self._end = end
        pairs = sorted(((seconds(job), job) for job in jobs), key=lambda pair: pair[0])
        shortest_first = [job for _, job in pairs]
        cheap = sum(total <= _CHEAP_SECONDS for total in accumulate(length for length, _ in pairs))
        first = max(cheap, 1)  # the shortest job, even if it is not cheap: the first result should not take long
        self._queue = [*shortest_first[first:], *reversed(shortest_first[:first])]
        """Waiting jobs. The next one is last, where removing it is fast."""
        self.left: list[Job] = []
        """Jobs without a result because the time budget was used up."""

    def limit(self, job: Job) -> Limit:
        """Return the limits of a job that starts now."""
        return Limit(self._timeout(job), self.seconds_left)

    @property
    def seconds_left(self) -> float:
        """Seconds left in the time budget."""
        return max(self._end - time.monotonic(), 0.0)

    @property
    def waiting(self) -> list[Job]:
        """Jobs that have not started."""
        return self._queue[::-1]

    def put(self, job: Job) -> None:
        """Add a job at the end of the queue."""
        self._queue.insert(0, job)

    def next(self, fits: Callable[[Job], bool] = lambda _: True) -> Job | None:
        """Remove and return the first job that `fits` and can end in time; None if there is none now."""
        for index in reversed(range(len(self._queue))):
            job = self._queue[index]
            if fits(job):
                del self._queue[index]
                if self._at_least(job) < self.seconds_left:
                    return job
                self.left.append(job)
        return None
