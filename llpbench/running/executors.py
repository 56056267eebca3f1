"""Executors: what computes the jobs of a schedule. `Inline` does so in this process; Ray: `ray_executor.py`.

All call `attempt`, with the same number of threads, so all give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from llpbench.core.cell import Cell, Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import SCHEMA, Record, TuningRecord
from llpbench.core.text import one_line
from llpbench.running.schedule import Job, Schedule

Made = list[Record] | TuningRecord
"""what a job makes: the records of a cell's seeds, or that of a search"""
RunCell = Callable[[Cell, Sequence[int], Environment, Callable[[Epoch], None] | None], list[Record]]


class Listener(Protocol):
    """Hears what happens to jobs, in the driver's process."""

    def started(self, job: Job) -> None: ...

    def progressed(self, job: Job, epoch: Epoch) -> None: ...

    def finished(self, job: Job, records: list[Record]) -> None:
        """May put the job back on the schedule."""
        ...

    def found(self, job: Job, record: TuningRecord) -> None:
        """What a search has found. May put more on the schedule."""
        ...


class Executor(Protocol):
    """Empties a schedule."""

    name: str
    slots: int
    """jobs at a time, at most"""

    def run(self, schedule: Schedule, listener: Listener) -> None:
        """Return when nothing is left to start and nothing runs. `KeyboardInterrupt` passes and leaves no process."""
        ...


class Inline:
    """One job after the other, in this process."""

    name = "inline"
    slots = 1

    def __init__(self, environment: Environment, run: RunCell | None = None) -> None:
        self._environment = environment
        self._run = run

    def run(self, schedule: Schedule, listener: Listener, fits: Callable[[Job], bool] = lambda _: True) -> None:
        while (job := schedule.next(fits)) is not None:
            listener.started(job)
            tell(listener, job, do(job, self._environment, partial(listener.progressed, job), self._run))


class HeadStart:
    """An executor that takes long to start; the direct methods that are cheap are done here before it does."""

    def __init__(
        self, name: str, slots: int, start: Callable[[], Executor], environment: Environment, run: RunCell | None = None
    ) -> None:
        """`name` and `slots` are those of the executor that `start` gives."""
        self.name = name
        self.slots = slots
        self._start = start
        self._here = Inline(environment, run)

    def run(self, schedule: Schedule, listener: Listener) -> None:
        self._here.run(schedule, listener, lambda job: job.cell.protocol is None and schedule.is_cheap(job))
        if schedule.waiting:
            self._start().run(schedule, listener)


def tell(listener: Listener, job: Job, made: Made) -> None:
    """Tell a listener what became of a job."""
    if isinstance(made, list):
        listener.finished(job, made)
    else:
        listener.found(job, made)


def do(job: Job, environment: Environment, on_epoch: Callable[[Epoch], None], run: RunCell | None = None) -> Made:
    """What a job makes, whatever goes wrong with it. `run`: what computes cells; None for `training.cells.run_cell`."""
    if job.tuning is None:
        return attempt(job, environment, on_epoch, run)
    from llpbench.tuning.study import run_tuning  # Optuna

    try:
        return run_tuning(job.tuning, environment, on_epoch, job.instead)
    except LLPBenchError as error:
        return failed(job, str(error))
    except Exception as error:
        return failed(job, one_line(error))


def failed(job: Job, reason: str) -> Made:
    """What is told of a job that did not live to tell it."""
    if job.tuning is None:
        return failures(job, reason)
    from llpbench.training.stamp import cell_facts  # torch
    from llpbench.tuning.study import tuning_record  # Optuna

    return tuning_record(job.tuning, [], {**cell_facts(job.cell), "hardware": {}, "memory_mb": None}, reason)


def attempt(
    job: Job, environment: Environment, on_epoch: Callable[[Epoch], None], run: RunCell | None = None
) -> list[Record]:
    """The records of a cell's seeds, whatever goes wrong with them."""
    from llpbench.training.cells import run_cell  # torch: only where something is computed

    try:
        return (run or run_cell)(job.cell, job.seeds, environment, on_epoch)
    except LLPBenchError as error:
        return failures(job, str(error))
    except Exception as error:  # a fault of the engine's own must not end a run of many hours either
        return failures(job, one_line(error))


def failures(job: Job, reason: str) -> list[Record]:
    """Records of a cell's seeds that did not live to make their own."""
    from llpbench.core.provenance import utc_now
    from llpbench.training.stamp import cell_facts  # torch

    facts = cell_facts(job.cell)
    return [
        Record(
            schema=SCHEMA,
            run=job.cell.run_id(seed),
            cell=job.cell.id,
            seed=seed,
            spec=job.cell.spec,
            status="failed",
            reason=reason,
            results={},
            curves={},
            epochs=0,
            parameters=0,
            times={},
            memory_mb=None,
            members=0,
            data={},
            bags={},
            hardware={},
            finished=utc_now(),
            **facts,  # type: ignore[typeddict-item]
        )
        for seed in job.seeds
    ]
