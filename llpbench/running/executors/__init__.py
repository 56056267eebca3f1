"""The contract of executors: they run the jobs of a schedule and report each outcome to a listener.

All use `Job.run` with the same number of threads, so all give the same numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from llpbench.core.cell import Epoch
from llpbench.core.record import SomeDone
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


Message = Epoch | SomeDone | Warned | Alive
"""What a worker sends while it runs a job."""
Outcome = Result | Ended


class Listener(Protocol):
    """Receiver of the events of jobs, in the driver's process. It may add jobs to the schedule."""

    def started(self, job: Job) -> None: ...

    def warned(self, text: str) -> None: ...

    def notify(self, job: Job, message: Message | Outcome) -> None:
        """Receive a message of a job, or its outcome."""
        ...


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
