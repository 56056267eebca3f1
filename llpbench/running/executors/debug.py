"""The executor for debugging: one job after the other in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self

from llpbench.core.cell import Environment
from llpbench.core.text import LOG
from llpbench.running.executors import Listener, LogHandler
from llpbench.running.schedule import RunCell, Schedule
from llpbench.running.settings import Settings


class _Debug:
    """Executor that runs one job after the other in this process, so that a debugger can stop in them.

    It shows the traceback of each failure. It cannot end a job that takes too long, and code that ends its process ends
    the whole run.
    """

    name = "debug"
    slots = 1

    def __init__(self, environment: Environment, run: RunCell | None = None) -> None:
        self._environment = environment
        self._run = run

    @classmethod
    def make(cls, settings: Settings, *_: object) -> Self:
        return cls(settings.environment)

    def run(self, schedule: Schedule, listener: Listener) -> None:
        with _tracebacks(listener.warned):
            while (job := schedule.next()) is not None:
                listener.started(job)
                listener.notify(job, job.run(self._environment, partial(listener.progressed, job), self._run))


EXECUTOR = _Debug


@contextmanager
def _tracebacks(show: Callable[[str], None]) -> Iterator[None]:
    """Show the tracebacks of failures, which are logged on level DEBUG, within the block."""
    handler, level = LogHandler(show), LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        LOG.setLevel(level)
        LOG.removeHandler(handler)
