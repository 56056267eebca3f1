"""The contract of executors: they run the jobs of a schedule and report each outcome to a listener.

All use `Job.run` with the same number of threads, so all give the same numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from llpbench.core.cell import Epoch
from llpbench.core.record import Record, TuningRecord
from llpbench.running.channel import Alive
from llpbench.running.schedule import Ended, Job, Result, Schedule


@dataclass(frozen=True)
class Resources:
    """Resources that jobs share."""

    cpus: int
    """CPU cores that this process may use, within its affinity and its container's quota"""
    gpus: int = 0

    @classmethod
    def of(cls, device: str) -> Self:
        """Return the resources for cells on a device (see `Environment`)."""
        from joblib import cpu_count

        if device == "cpu":
            return cls(cpu_count())
        import torch

        return cls(cpu_count(), torch.cuda.device_count())


class Warned(NamedTuple):
    """A warning from the log of a worker."""

    text: str


Message = Epoch | Warned | Alive
"""What a worker sends while it runs a job."""
Outcome = Result | Ended


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

    def notify(self, job: Job, message: Message | Outcome) -> None:
        """Pass a message of a job or its outcome to the method that receives it."""
        match message:
            case Alive():
                pass
            case Warned(text):
                self.warned(text)
            case Epoch():
                self.progressed(job, message)
            case Ended():
                self.ended(job, message)
            case list():
                self.finished(job, message)
            case _:
                self.search_finished(job, message)


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
