"""The executor that runs one job after the other in a worker process."""

from __future__ import annotations

from functools import partial

from llpbench.core.cell import Environment
from llpbench.running.executors import Listener, RunCell, notify
from llpbench.running.schedule import Schedule
from llpbench.running.settings import Settings
from llpbench.running.worker import Worker


def make(settings: Settings, *_: object) -> Inline:
    """Return the executor."""
    return Inline(settings.environment)


class Inline:
    """Executor that runs one job after the other in one worker."""

    name = "inline"
    slots = 1

    def __init__(self, environment: Environment, run: RunCell | None = None) -> None:
        self._worker = Worker(environment, run)

    def run(self, schedule: Schedule, listener: Listener) -> None:
        with self._worker as worker:
            worker.start()
            while (job := schedule.next()) is not None:
                listener.started(job)
                notify(listener, job, worker.run_job(job, schedule.limit(job), partial(notify, listener, job)))
