"""The executor that does one job after the other, in a process beside this one; and a start with it for slower ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llpbench.core.cell import Environment
from llpbench.running.executors import Executor, Listener, Request, RunCell, tell
from llpbench.running.schedule import Job, Schedule
from llpbench.running.worker import Worker


def make(request: Request) -> Inline:
    """Return the executor that does one job after the other."""
    return Inline(request.settings.environment)


class Inline:
    """One job after the other, in one process beside this one."""

    name = "inline"
    slots = 1

    def __init__(self, environment: Environment, run: RunCell | None = None) -> None:
        self._worker = Worker(environment, run)

    def run(self, schedule: Schedule, listener: Listener, fits: Callable[[Job], bool] = lambda _: True) -> None:
        with self._worker as worker:
            worker.start()
            while (job := schedule.next(fits)) is not None:
                listener.started(job)
                progressed = partial(listener.progressed, job)
                tell(listener, job, worker.do(job, schedule.limit(job), progressed, listener.warned))


class HeadStart:
    """An executor that takes long to start; the direct methods that are cheap are done before it does."""

    def __init__(
        self, name: str, slots: int, start: Callable[[], Executor], environment: Environment, run: RunCell | None = None
    ) -> None:
        """`name` and `slots` are those of the executor that `start` gives."""
        self.name = name
        self.slots = slots
        self._start = start
        self._here = Inline(environment, run)

    def run(self, schedule: Schedule, listener: Listener) -> None:
        def is_quick(job: Job) -> bool:
            return job.cell.protocol is None and schedule.is_cheap(job)

        if any(map(is_quick, schedule.waiting)):
            self._here.run(schedule, listener, is_quick)
        if schedule.waiting:
            self._start().run(schedule, listener)
