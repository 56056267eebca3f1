"""The contract of executors: they run the jobs of a schedule and report each outcome to a listener.

Each executor is a module of this package, by whose name it is called. Its function `make` takes the settings, jobs,
`Resources` and `Estimator` of a run; it raises `LLPBenchError` if the executor is unavailable or does not fit the
settings. All use `run_job` with the same number of threads, so all give the same numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from llpbench.core.cell import Cell, Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record, Status, TuningRecord
from llpbench.core.text import LOG, one_line
from llpbench.running.channel import Alive
from llpbench.running.schedule import Ended, Job, Schedule

_SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
_MARGIN = 1.25
"""Factor on memory, since allocators fragment it."""
_UNKNOWN_MEGABYTES = 16_000.0
"""GPU memory reserved for a cell whose memory is unknown."""


@dataclass(frozen=True)
class Resources:
    """Resources that jobs share."""

    cpus: int
    gpus: int = 0


def gpu_share(megabytes: float | None, memory: float) -> float:
    """Return the share of a GPU that a job needs, in steps of 1/8, 1/4, 1/2 and 1.

    `megabytes`: memory of the job, None if unknown; `memory`: megabytes of the GPU.
    """
    share = (_UNKNOWN_MEGABYTES if megabytes is None else megabytes * _MARGIN) / memory
    return next((step for step in _SHARES if share <= step), 1.0)


def available(device: str) -> Resources:
    """Return the resources for cells on a device (see `Environment`)."""
    return Resources(usable_cpus(), gpus_of(device))


def gpus_of(device: str) -> int:
    """Return the number of GPUs for cells on a device (see `Environment`)."""
    if device == "cpu":
        return 0
    import torch

    return torch.cuda.device_count()


def usable_cpus() -> int:
    """Return the number of CPU cores that this process may use, within its affinity and its container's quota."""
    from joblib import cpu_count

    return int(cpu_count())


Result = list[Record] | TuningRecord
"""The result of a job: the records of a cell's seeds, or the record of a search."""
Outcome = Result | Ended
RunCell = Callable[[Cell, Sequence[int], Environment, Callable[[Epoch], None] | None], list[Record]]
"""A function that runs a cell, such as `training.cell_runs.run_cell`."""


class Warned(NamedTuple):
    """A warning from the log of a worker."""

    text: str


Message = Epoch | Warned | Alive
"""What a worker sends while it runs a job."""


class Listener(Protocol):
    """Receiver of the events of jobs, in the driver's process. It may add jobs to the schedule."""

    def started(self, job: Job) -> None: ...

    def progressed(self, job: Job, epoch: Epoch) -> None: ...

    def finished(self, job: Job, records: list[Record]) -> None: ...

    def search_finished(self, job: Job, record: TuningRecord) -> None: ...

    def ended(self, job: Job, end: Ended) -> None:
        """Receive the end of a job without a result."""
        ...

    def warned(self, text: str) -> None: ...


def notify(listener: Listener, job: Job, message: Message | Outcome) -> None:
    """Pass a message of a job or its outcome to the method of the listener that receives it."""
    match message:
        case Alive():
            pass
        case Warned(text):
            listener.warned(text)
        case Epoch():
            listener.progressed(job, message)
        case Ended():
            listener.ended(job, message)
        case list():
            listener.finished(job, message)
        case _:
            listener.search_finished(job, message)


class LogHandler(logging.Handler):
    """Handler that passes log messages to a function."""

    def __init__(self, show: Callable[[str], None], level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(self.format(record))


class Executor(Protocol):
    """An object that runs all jobs of a schedule."""

    name: str
    slots: int
    """Largest number of jobs at a time."""

    def run(self, schedule: Schedule, listener: Listener) -> None:
        """Run all jobs. Return when none is waiting or running. `KeyboardInterrupt` is raised on, after all worker
        processes have ended.
        """
        ...


def run_job(
    job: Job, environment: Environment, on_epoch: Callable[[Epoch], None], run: RunCell | None = None
) -> Result:
    """Return the result of a job; after an error, failed records. `run`: function that runs cells."""
    try:
        if job.tuning is not None:
            from llpbench.tuning.tuning_runs import run_tuning  # Optuna

            return run_tuning(job.tuning, environment, on_epoch, job.replaces)
        if run is None:
            from llpbench.training.cell_runs import run_cell  # torch

            run = run_cell
        return run(job.cell, job.seeds, environment, on_epoch)
    except (Exception, SystemExit) as error:  # even a fault of the engine must not end a run of many hours
        if not isinstance(error, LLPBenchError) or error.__cause__ is not None:  # otherwise its text says everything
            LOG.debug("What failed:", exc_info=error)
        return failure(job, str(error) if isinstance(error, LLPBenchError) else one_line(error))


def failure(job: Job, reason: str, status: Status = "failed") -> Result:
    """Return the result of a job that failed as a whole."""
    from llpbench.training.stamp import SeedResult, cell_facts  # torch

    facts = {**cell_facts(job.cell), "hardware": {}}
    if job.tuning is not None:
        from llpbench.tuning.tuning_runs import tuning_record  # Optuna

        return tuning_record(job.tuning, [], {**facts, "memory_mb": None}, reason, status)
    results = (SeedResult(seed, status, reason, members=0) for seed in job.seeds)
    return [result.record(job.cell, None, 0.0, facts) for result in results]
