"""The executor that does one job after the other in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from llpbench.core.cell import Environment
from llpbench.core.text import LOG
from llpbench.running.executors import Listener, LogHandler, Request, RunCell, do, tell
from llpbench.running.schedule import Schedule


def make(request: Request) -> Debug:
    """Return it."""
    return Debug(request.settings.environment)


class Debug:
    """One job after the other in this process, where a debugger reaches them; but so they reach this process, too.

    The traceback of what fails is shown. Nothing here ends a job that takes too long, and code that ends its process
    ends the run.
    """

    name = "debug"
    slots = 1

    def __init__(self, environment: Environment, run: RunCell | None = None) -> None:
        self._environment = environment
        self._run = run

    def run(self, schedule: Schedule, listener: Listener) -> None:
        with tracebacks(listener.warned):
            while (job := schedule.next()) is not None:
                listener.started(job)
                tell(listener, job, do(job, self._environment, partial(listener.progressed, job), self._run))


@contextmanager
def tracebacks(show: Callable[[str], None]) -> Iterator[None]:
    """Within, the whole traceback of what fails is shown, beside the line that its record has."""

    handler, level = LogHandler(show), LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        LOG.setLevel(level)
        LOG.removeHandler(handler)
