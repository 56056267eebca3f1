"""The executor that runs one job after the other in a worker process, and its use before a slower executor starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llpbench.core.cell import Environment
from llpbench.running.executors import Executor, Listener, Request, RunCell, notify
from llpbench.running.schedule import Job, Schedule
from llpbench.running.worker import Worker


def make(request: Request) -> Inline:
    """Return the executor."""
    return Inline(request.settings.environment)


class Inline:
    """Executor that runs one job after the other in one worker."""

    name = "inline"
    slots = 1

    def __init__(self, environment: Environment, run: RunCell | None = None) -> None:
        self._worker = Worker(environment, run)

    def run(self, schedule: Schedule, listener: Listener, fits: Callable[[Job], bool] = lambda _: True) -> None:
        """Run all jobs that `fits` accepts."""
        with self._worker as worker:
            worker.start()
            while (job := schedule.next(fits)) is not None:
                listener.started(job)
                notify(listener, job, worker.run_job(job, schedule.limit(job), partial(notify, listener, job)))


class HeadStart:
    """Executor that runs cheap direct methods at once, before another executor that starts slowly."""

    def __init__(
        self, name: str, slots: int, start: Callable[[], Executor], environment: Environment, run: RunCell | None = None
    ) -> None:
        """`start` returns the other executor, with `name` and `slots`."""
        self.name = name
        self.slots = slots
        self._start = start
        self._inline = Inline(environment, run)

    def run(self, schedule: Schedule, listener: Listener) -> None:
        def is_fast(job: Job) -> bool:
            return job.cell.protocol is None and schedule.is_cheap(job)

        if any(map(is_fast, schedule.waiting)):
            self._inline.run(schedule, listener, is_fast)
        if schedule.waiting:
            self._start().run(schedule, listener)
