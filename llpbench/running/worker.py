"""The worker: a process that runs jobs, one after the other.

A job that hangs, crashes, runs out of memory or calls `os._exit` costs only itself, and can be ended at any moment.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from llpbench.core.cell import Environment, Epoch
from llpbench.core.record import SomeDone
from llpbench.core.text import LOG, duration, one_line
from llpbench.running.channel import Child, ChildDied, Parent
from llpbench.running.executors import LogHandler, Message, Outcome, Warned
from llpbench.running.schedule import Ended, Job, Limit, RunCell
from llpbench.training import memory

_SECONDS_BETWEEN_REPORTS = 0.1
SECONDS_OF_SILENCE = 600.0
"""Time without a heartbeat after which a worker is considered frozen. One call of a library can hold all threads."""
_EXTERNAL_SIGNALS = {getattr(signal, name, None) for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGQUIT")}
"""Signals that a process does not send to itself."""


class Worker:
    """The worker, as seen by the process that uses it. A context manager that ends the worker."""

    def __init__(self, environment: Environment, run: RunCell | None = None, folder: Path | None = None) -> None:
        """`run`: function that runs cells (default `run_cell`); `folder`: working directory (default this one)."""
        self._setup = environment, run
        self._folder = folder
        self._child: Child | None = None
        self._ready = False

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def start(self) -> Child:
        """Start the process, unless it runs. It imports its libraries while the caller continues."""
        if self._child is None:
            self._child = Child(__name__, self._folder)
            with contextlib.suppress(ChildDied):  # the next job meets the same error
                self._child.send(self._setup)
        return self._child

    def run_job(self, job: Job, limit: Limit, on_message: Callable[[Message], None]) -> Outcome:
        """Return the outcome of a job. Other messages go to `on_message`."""
        budget_end = time.monotonic() + limit.budget
        try:
            child = self.start()
            if not self._ready:
                while child.receive(budget_end - time.monotonic(), SECONDS_OF_SILENCE) != "ready":
                    pass
                self._ready = True
            end = min(time.monotonic() + limit.timeout, budget_end)
            child.send(job)
            while isinstance(message := child.receive(end - time.monotonic(), SECONDS_OF_SILENCE), Message):
                on_message(message)
        except TimeoutError:
            self.end()
            if time.monotonic() >= budget_end:
                return Ended("stopped")
            return Ended("timed-out", f"took longer than {duration(limit.timeout)}. Use a longer --cell-timeout.")
        except ChildDied as died:
            self.end()
            return _end_of(died)
        except BaseException:
            self.end()
            raise
        return message

    def end(self) -> None:
        """End the process at once. The next job starts another."""
        if self._child is not None:
            self._child.end()
            self._child, self._ready = None, False


def _end_of(died: ChildDied) -> Ended:
    """Return what the end of a worker means for its job."""
    code = died.code
    if code is None:
        return Ended("killed", f"worker frozen ({died})")
    if code >= 0:
        return Ended("failed", f"its code ended the process (exit code {code})")
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    if -code in _EXTERNAL_SIGNALS:
        return Ended("killed", f"worker killed ({name}), possibly out of memory")
    return Ended("failed", f"its process crashed ({name})")


def main() -> None:
    """Run the jobs that the parent process sends. This is the worker's main function."""
    parent = Parent()
    with parent.beating():
        environment, run = parent.receive()
        LOG.addHandler(LogHandler(lambda text: parent.send(Warned(text)), logging.WARNING))
        if run is None:  # import before the first job comes
            import pandas  # noqa: F401
            import sklearn.ensemble  # noqa: F401

            import llpbench.training.cell_runs  # noqa: F401
    parent.send("ready")
    last_report = -_SECONDS_BETWEEN_REPORTS

    def report(message: Epoch | SomeDone) -> None:
        nonlocal last_report
        if isinstance(message, SomeDone) or time.monotonic() - last_report >= _SECONDS_BETWEEN_REPORTS:
            last_report = time.monotonic()
            parent.send(message)

    process = os.getpid()
    while True:
        job: Job = parent.receive()
        try:
            with parent.beating():
                result = job.run(environment, report, run)
        except BaseException as error:  # such as KeyboardInterrupt raised by a method
            result = job.failed(one_line(error))
        if os.getpid() != process:  # a fork by a method that returned from its code
            os._exit(1)
        parent.send(result)
        gc.collect()  # while the driver writes the result
        memory.give_back()
