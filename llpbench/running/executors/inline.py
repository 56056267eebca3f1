"""The executor that runs one job after the other in a worker process."""

from __future__ import annotations

from functools import partial
from typing import Self

from llpbench.core.cell import Environment
from llpbench.running.executors import Listener
from llpbench.running.schedule import RunCell, Schedule
from llpbench.running.settings import Settings
from llpbench.running.worker import Worker


class _Inline:
    """Executor that runs one job after the other in one worker."""

    name = "inline"
    slots = 1

    def __init__(self, environment: Environment, run: RunCell | None = None) -> None:
        self._worker = Worker(environment, run)

    @classmethod
    def make(cls, settings: Settings, *_: object) -> Self:
        return cls(settings.environment)

    def run(self, schedule: Schedule, listener: Listener) -> None:
        with self._worker as worker:
            worker.start()
            while (job := schedule.next()) is not None:
                listener.started(job)
                listener.notify(job, worker.run_job(job, schedule.limit(job), partial(listener.notify, job)))


EXECUTOR = _Inline
