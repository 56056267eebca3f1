"""The executor that runs one job after the other: in a worker process, or for debugging in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from llpbench.core.cell import Environment, Epoch
from llpbench.core.record import SomeDone
from llpbench.core.text import LOG
from llpbench.running.executors import Listener, LogHandler
from llpbench.running.schedule import RunCell, Schedule
from llpbench.running.worker import Worker


class Inline:
    """Executor that runs one job after the other in one worker, or in this process with `debug`.

    In this process, a debugger can stop in a job, and the traceback of each failure is shown. But a job that takes too
    long cannot be ended, and code that ends its process ends the whole run.
    """

    slots = 1

    def __init__(self, environment: Environment, run: RunCell | None = None, *, debug: bool = False) -> None:
        self.name = "debug" if debug else "inline"
        self._environment, self._run, self._debug = environment, run, debug

    def run(self, schedule: Schedule, listener: Listener) -> None:
        with _tracebacks(listener.warned) if self._debug else Worker(self._environment, self._run) as worker:
            if worker is not None:
                worker.start()
            while (job := schedule.next()) is not None:
                listener.started(job)
                say = partial(listener.notify, job)
                if worker is None:
                    listener.notify(job, job.run(self._environment, partial(_epochs_alone, say), self._run))
                else:
                    listener.notify(job, worker.run_job(job, schedule.limit(job), say))


def _epochs_alone(say: Callable[[Epoch], None], message: Epoch | SomeDone) -> None:
    """Pass on epochs. Writing results within a job would turn an error of the journal into one of the job."""
    if isinstance(message, Epoch):
        say(message)


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
