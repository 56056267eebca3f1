"""Contract of executors: they compute the jobs of a schedule and report each outcome to a listener.

Each has a module of its own with a function `make`, and a line in `executor_names.py`. All call `do`, with the same
number of threads, so all give the same numbers.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from llpbench.core.cell import Cell, Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import SCHEMA, Record, Status, TuningRecord
from llpbench.core.text import log_traceback, one_line
from llpbench.running.executor_names import EXECUTORS
from llpbench.running.schedule import Ended, Job, Schedule

if TYPE_CHECKING:
    from llpbench.running.estimates import Estimator
    from llpbench.running.resources import Resources
    from llpbench.running.settings import Settings

Made = list[Record] | TuningRecord
"""what a job makes: the records of a cell's seeds, or that of a search"""
Outcome = Made | Ended


class Warned(NamedTuple):
    """A warning in the log of a worker process."""

    text: str


RunCell = Callable[[Cell, Sequence[int], Environment, Callable[[Epoch], None] | None], list[Record]]


class Listener(Protocol):
    """Hears what happens to jobs, in the driver's process."""

    def started(self, job: Job) -> None: ...

    def progressed(self, job: Job, epoch: Epoch) -> None: ...

    def finished(self, job: Job, records: list[Record]) -> None:
        """May put the job back on the schedule."""
        ...

    def found(self, job: Job, record: TuningRecord) -> None:
        """A search has ended. May add jobs to the schedule."""
        ...

    def ended(self, job: Job, end: Ended) -> None:
        """The job has no result. May put it back on the schedule."""
        ...

    def warned(self, text: str) -> None:
        """Something that somebody should know."""
        ...


class LogHandler(logging.Handler):
    """Passes on what the log says, as text."""

    def __init__(self, show: Callable[[str], None], level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(self.format(record))


class Executor(Protocol):
    """Empties a schedule."""

    name: str
    slots: int
    """jobs at a time, at most"""

    def run(self, schedule: Schedule, listener: Listener) -> None:
        """Return when nothing is left to start and nothing runs. `KeyboardInterrupt` passes and leaves no process."""
        ...


@dataclass(frozen=True)
class Request:
    """Everything that an executor needs to start."""

    settings: Settings
    jobs: Sequence[Job]
    resources: Resources
    estimator: Estimator


def make_executor(name: str, request: Request) -> Executor:
    """Return the executor of that name. Raises `LLPBenchError` if it is unavailable or does not fit these settings."""
    made: Executor = importlib.import_module(f"{__package__}.{EXECUTORS[name]}").make(request)
    return made


def tell(listener: Listener, job: Job, outcome: Outcome) -> None:
    """Tell a listener what became of a job."""
    if isinstance(outcome, Ended):
        listener.ended(job, outcome)
    elif isinstance(outcome, list):
        listener.finished(job, outcome)
    else:
        listener.found(job, outcome)


def do(job: Job, environment: Environment, on_epoch: Callable[[Epoch], None], run: RunCell | None = None) -> Made:
    """Return the outcome of a job, also after an error. `run`: function that computes cells; default `run_cell`."""
    if job.tuning is None:
        return attempt(job, environment, on_epoch, run)
    from llpbench.tuning.tuning_runs import run_tuning  # Optuna

    try:
        return run_tuning(job.tuning, environment, on_epoch, job.instead)
    except (Exception, SystemExit) as error:
        return failed(job, _told(error))


def failed(job: Job, reason: str, status: Status = "failed") -> Made:
    """Outcome of a job whose process died."""
    if job.tuning is None:
        return failures(job, reason, status)
    from llpbench.training.stamp import cell_facts  # torch
    from llpbench.tuning.tuning_runs import tuning_record  # Optuna

    return tuning_record(job.tuning, [], {**cell_facts(job.cell), "hardware": {}, "memory_mb": None}, reason, status)


def attempt(
    job: Job, environment: Environment, on_epoch: Callable[[Epoch], None], run: RunCell | None = None
) -> list[Record]:
    """The records of a cell's seeds, whatever goes wrong with them."""
    if run is None:
        from llpbench.training.cell_runs import run_cell  # torch: only where something is computed

        run = run_cell
    try:
        return run(job.cell, job.seeds, environment, on_epoch)
    except (Exception, SystemExit) as error:  # a fault of the engine's own must not end a run of many hours either
        return failures(job, _told(error))


def _told(error: BaseException) -> str:
    """Text in the record about an error that ended the whole job."""
    if isinstance(error, LLPBenchError) and error.__cause__ is None:  # its text says all
        return str(error)
    log_traceback(error)
    return str(error) if isinstance(error, LLPBenchError) else one_line(error)


def failures(job: Job, reason: str, status: Status = "failed") -> list[Record]:
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
            status=status,
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
            finished=utc_now(),
            **facts,  # type: ignore[typeddict-item]
            hardware={},
        )
        for seed in job.seeds
    ]
