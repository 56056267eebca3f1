"""The Ray executor: many jobs at a time, on this machine or on a cluster.

Ray lives in a process of its own (`ray_host.py`), for it takes its process along when it dies. This one answers what
that asks, starts it again if it died, and alone knows the schedule and the journal.
"""

from __future__ import annotations

import importlib.util
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llpbench.core.cell import Environment
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import duration, plural
from llpbench.data.loading import EMBEDDED, find_local
from llpbench.running.channel import Child, Died
from llpbench.running.cluster import (
    Alive,
    Broken,
    Finished,
    Nodes,
    Progressed,
    Room,
    Setup,
    Started,
    TrialJob,
    TrialRequest,
)
from llpbench.running.executors import Listener, Request, RunCell, Warned, tell
from llpbench.running.resources import Resources, gpu_share
from llpbench.running.schedule import Ended, Job, Limit, Schedule

_MOST_STARTS = 4
"""of Ray in one run"""
_STARTING = 180.0
"""seconds that Ray may take to start"""
_JOINING = 60.0
"""seconds that a cluster may take to answer"""
_PATIENCE = 15.0
"""seconds after the end of the time budget in which Ray may still report"""
_SILENCE = 60.0
"""seconds without a sign of life after which Ray is taken to be frozen"""
_GRACE = 120.0
"""seconds after a job has taken too long in which the process that does it must say so, that it starts included"""
_MEGABYTES = 1024.0
"""of main memory that a job is given at least: what it wants is rounded up to a power of two times as much, so that
Ray gives most jobs the same, and need not start a process for each"""


def make(request: Request) -> RayExecutor:
    """Return it. Raises `LLPBenchError` if there is no Ray, or a GPU is named, which Ray assigns itself."""
    settings, estimator = request.settings, request.estimator
    if importlib.util.find_spec("ray") is None:
        raise LLPBenchError("--executor ray: Ray is not installed. Install 'ray[tune]', or choose --executor inline.")
    if settings.device.startswith("cuda:"):
        raise LLPBenchError(f"--executor ray assigns GPUs itself, got --device {settings.device}. Use --device cuda.")
    address = settings.ray_address
    return RayExecutor(
        settings.environment,
        request.resources,
        estimator.gpu_megabytes,
        estimator.megabytes,
        address=address,
        tables=None if address is None else _tables(settings.data_dir, request.jobs),
    )


def _tables(data_dir: str | None, jobs: Sequence[Job]) -> dict[str, Path]:
    """Return the files of datasets, for the machines of a cluster that do not have them."""
    found = {name: find_local(name, data_dir) for name in {job.cell.dataset: None for job in jobs}}
    return {name: path for name, path in found.items() if path is not None and not path.is_relative_to(EMBEDDED)}


@dataclass
class _Running:
    job: Job
    room: Room
    limit: Limit
    started: bool = False
    until: float = math.inf
    """when it must have ended, as `time.monotonic` counts"""


class RayExecutor:
    """Executor that runs as many jobs at a time as the machine or the cluster has room for, each in its own process."""

    name = "ray"

    def __init__(
        self,
        environment: Environment,
        resources: Resources,
        gpu_megabytes: Callable[[Job], float | None] = lambda _: None,
        megabytes: Callable[[Job], float | None] = lambda _: None,
        *,
        address: str | None = None,
        tables: Mapping[str, Path] | None = None,
        run: RunCell | None = None,
    ) -> None:
        """`gpu_megabytes` and `megabytes` estimate what a job wants of a GPU's memory and of the machine's.

        With `address` jobs are done by the cluster there, and else by the `resources` of this machine. `tables`: local
        files of datasets, for machines that do not have them. Raises `LLPBenchError` if there is no such cluster.
        """
        self._gpu_megabytes = gpu_megabytes
        self._megabytes = megabytes
        self._threads = environment.threads
        self.slots = resources.slots(self._threads)
        room = Room(self.slots * self._threads, resources.gpus)
        self._setup = Setup(environment, run, Path.cwd(), room, address, dict(tables or {}))
        self._host: Child | None = None
        self._nodes = Nodes(())
        self._heard: set[str] = set()
        self._lived = False
        """whether Ray has been up in this run"""
        if address is not None:
            try:
                self._connect(_JOINING)
            except TimeoutError:
                told = f"no Ray cluster can be joined at {address!r}: no answer within {duration(_JOINING)}."
                raise LLPBenchError(
                    f"{told} Start one with ray start --head and run this command on one of its machines."
                ) from None
            except Died as died:
                raise LLPBenchError(f"Ray died while it started ({died}). Check the cluster at {address!r}.") from None
            self.slots = max(int(self._nodes.total.cpus) // self._threads, 1)

    def run(self, schedule: Schedule, listener: Listener) -> None:
        for starts in range(1, _MOST_STARTS + 1):
            running: dict[str, _Running] = {}
            try:
                if self._host is None:
                    self._connect(schedule.seconds_left)
                self._serve(running, schedule, listener)
                return
            except TimeoutError:  # the time budget is over, and Ray still starts, or hangs
                for each in running.values():
                    _tell(listener, each, Ended("stopped"))
                schedule.next()  # leaves what is waiting
                return
            except Died as died:
                told = f"Ray died ({died})"
                if starts == _MOST_STARTS:
                    raise LLPBenchError(
                        f"{told} {_MOST_STARTS} times. Finished runs are kept. Use --executor inline."
                    ) from None
                listener.warned(f"{told}. Restarting it and {plural(len(running), 'job')} that it was running.")
                for each in running.values():
                    _tell(listener, each, Ended("interrupted", "Ray died"))
            finally:
                self._disconnect()

    def _connect(self, seconds: float) -> None:
        """Start Ray's process and hear what it finds. Raises `LLPBenchError`, `Died`, and `TimeoutError`."""
        variables = _private() if self._setup.address is None else None
        self._host = Child("llpbench.running.ray_host", quiet=True, variables=variables)
        try:
            self._host.send(self._setup)
            try:
                found = self._host.receive(min(seconds, _STARTING))
            except TimeoutError:
                if seconds <= _STARTING:
                    raise
                told = f"Ray did not start within {duration(_STARTING)}. Finished runs are kept. Check the cluster."
                raise LLPBenchError(told) from None
            if isinstance(found, Broken):
                if self._lived:  # it can start, and something disturbs it
                    raise Died(1, found.reason)
                raise LLPBenchError(found.reason)
        except BaseException:
            self._disconnect()
            raise
        self._nodes, self._lived = found, True

    def _disconnect(self) -> None:
        if self._host is not None:
            self._host.end(gently=True)
            self._host = None

    def _serve(self, running: dict[str, _Running], schedule: Schedule, listener: Listener) -> None:
        """Answer Ray's process until all is done; `running`: by trial. Raises as `_connect`."""
        assert self._host is not None
        end = time.monotonic() + schedule.seconds_left + _PATIENCE  # however much it asks until then
        while True:
            _require_answers(running, listener)
            match self._receive(end):
                case Alive():
                    pass
                case Nodes() as nodes:
                    self._nodes = nodes
                case TrialRequest(trial):
                    self._host.send(self._answer(trial, running, schedule))
                case Started(trial) | Progressed(trial, _) | Finished(trial, _) if trial not in running:
                    pass  # its machine died just after it had told what it made
                case Started(trial):
                    running[trial].started = True
                    running[trial].until = time.monotonic() + running[trial].limit.timeout + _GRACE
                    listener.started(running[trial].job)
                case Warned(text):
                    if text not in self._heard:  # several processes may say the same
                        listener.warned(text)
                    self._heard.add(text)
                case Progressed(trial, epoch):
                    listener.progressed(running[trial].job, epoch)
                case Finished(_, Ended("unfit", reason)) | Broken(reason):
                    raise LLPBenchError(reason)
                case Finished(trial, outcome):
                    _tell(listener, running.pop(trial), outcome)
                case None:
                    return

    def _receive(self, end: float) -> Any:
        """Return the next message of Ray's process. Raises `Died` if it is silent, and `TimeoutError` at the `end`."""
        assert self._host is not None
        try:
            return self._host.receive(max(min(end - time.monotonic(), _SILENCE), 0.0))
        except TimeoutError:
            if time.monotonic() >= end:
                raise
            raise Died(1, f"no sign of life for {duration(_SILENCE)}") from None

    def _answer(self, trial: str, running: dict[str, _Running], schedule: Schedule) -> TrialJob | str:
        """The next job for which there is room, if any."""
        free = self._nodes.total.without(Room.sum(each.room for each in running.values()))
        job = None
        if not running or free.cpus >= self._least_cpus:  # else no job fits: there may be many to look through
            job = schedule.next(lambda job: free.holds(self._needs(job)))
        if job is None:
            # with nothing running every job fits, so the schedule is empty and nobody can put a job back
            return "wait" if running or schedule.waiting else "finished"
        limit = schedule.limit(job)
        running[trial] = _Running(job, self._needs(job), limit)
        return TrialJob(job, running[trial].room, limit.timeout, time.time() + limit.budget)

    @property
    def _least_cpus(self) -> float:
        """CPUs of a job that is not alone."""
        return min(self._threads, self._nodes.most_cpus)

    def _needs(self, job: Job) -> Room:
        """Resources of a job: at most those of a machine."""
        nodes, memory = self._nodes, self._memory(job)
        if nodes.total.gpus == 0 or job.cell.protocol is None or self._setup.environment.device == "cpu":
            return Room(nodes.most_cpus if job.alone else self._least_cpus, 0.0, memory)
        known = nodes.gpu_megabytes and not job.alone
        share = gpu_share(self._gpu_megabytes(job), nodes.gpu_megabytes) if known else 1.0
        return Room(self._least_cpus, share, memory)

    def _memory(self, job: Job) -> float:
        given = _MEGABYTES
        while given < (self._megabytes(job) or 0.0):
            given *= 2
        return min(given, self._nodes.least_megabytes)


def _private() -> dict[str, str]:
    """Environment of a Ray that serves this run alone, read when its process imports Ray.

    Who connects to Ray executes code in it, so it asks for a token, which stays in the memory of the run's processes,
    and listens on this machine's loopback address only. The cluster of `--ray-address` has settings of its owner.
    """
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's name, on every system, for "not only on the loopback address"
    }


def _require_answers(running: dict[str, _Running], listener: Listener) -> None:
    """Raise `Died` if a job should have ended long ago: the process that would say so is frozen."""
    late = [trial for trial, each in running.items() if each.until < time.monotonic()]
    for trial in late:
        each = running.pop(trial)
        _tell(listener, each, each.limit.timed_out)
    if late:
        raise Died(1, "a process of it is frozen")


def _tell(listener: Listener, running: _Running, outcome: Any) -> None:
    if not running.started:  # its process did not even come up
        listener.started(running.job)
    tell(listener, running.job, outcome)
