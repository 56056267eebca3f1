"""A process of its own that does jobs, one after the other, and outlives each of them unless one ends it.

What a job does to its process (a hang, a crash, memory that runs out, code that calls `os._exit`) then costs that job
alone, and it can be ended at any moment.
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

from llpbench.core import memory
from llpbench.core.cell import Environment, Epoch
from llpbench.core.text import LOG, one_line
from llpbench.running.channel import Child, Died, Parent
from llpbench.running.executors import LogHandler, Outcome, RunCell, Warned, do, failed
from llpbench.running.schedule import Ended, Job, Limit

_SECONDS_BETWEEN_REPORTS = 0.1
_FROM_OUTSIDE = {getattr(signal, name, None) for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGQUIT")}
"""signals that a process does not send to itself"""


class Worker:
    """The process, seen from the one that it works for. A context manager; it is started when it is first wanted."""

    def __init__(self, environment: Environment, run: RunCell | None = None, folder: Path | None = None) -> None:
        """`run`: what computes cells, None for `training.cell_runs.run_cell`; `folder`: where, None for here."""
        self._setup = environment, run
        self._folder = folder
        self._child: Child | None = None
        self._ready = False

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def start(self) -> Child:
        """Start it unless it runs: what it imports takes seconds, in which other things can be done."""
        if self._child is None:
            self._child = Child(__name__, self._folder)
            with contextlib.suppress(Died):  # the next job meets the same error
                self._child.send(self._setup)
        return self._child

    def do(
        self, job: Job, limit: Limit, on_epoch: Callable[[Epoch], None], on_warning: Callable[[str], None]
    ) -> Outcome:
        """Result of a job, or the reason why it has none."""
        over = time.monotonic() + limit.budget
        try:
            child = self.start()
            if not self._ready:
                child.receive(limit.budget)
                self._ready = True
            until = min(time.monotonic() + limit.timeout, over)
            child.send(job)
            while isinstance(message := child.receive(max(until - time.monotonic(), 0.0)), Epoch | Warned):
                if isinstance(message, Epoch):
                    on_epoch(message)
                else:
                    on_warning(message.text)
        except TimeoutError:
            self.end()
            return limit.timed_out if time.monotonic() < over else Ended("stopped")
        except Died as died:
            self.end()
            return _end_of(died.code)
        except BaseException:
            self.end()
            raise
        made: Outcome = message
        return made

    def end(self) -> None:
        """End it, whatever it does; the next job starts another."""
        if self._child is not None:
            self._child.end()
            self._child, self._ready = None, False


def _end_of(code: int) -> Ended:
    """Meaning of the exit code of a job."""
    if code >= 0:
        return Ended("failed", f"its code ended the process (exit code {code})")
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    if -code in _FROM_OUTSIDE:
        return Ended("killed", f"worker killed ({name}), possibly out of memory")
    return Ended("failed", f"its process crashed ({name})")


def main() -> None:
    """The process, from inside."""
    parent = Parent()
    environment, run = parent.receive()
    LOG.addHandler(LogHandler(lambda text: parent.send(Warned(text)), logging.WARNING))
    if run is None:
        import pandas  # noqa: F401  (these, before the first job comes)
        import sklearn.ensemble  # noqa: F401

        import llpbench.training.cell_runs  # noqa: F401

    parent.send("ready")
    reported = -_SECONDS_BETWEEN_REPORTS

    def report(epoch: Epoch) -> None:
        nonlocal reported
        if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
            reported = time.monotonic()
            parent.send(epoch)

    process = os.getpid()
    while True:
        job = parent.receive()
        try:
            made = do(job, environment, report, run)
        except BaseException as error:  # whatever a method's code raises, to end the process it takes more
            made = failed(job, one_line(error))
        if os.getpid() != process:  # a copy that a method's code has made, and that came back from it
            os._exit(1)
        parent.send(made)
        gc.collect()  # while the driver writes it down
        memory.give_back()
