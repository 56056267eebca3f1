"""The Ray executor: many jobs at a time, on this machine or on a cluster.

Ray lives in a process of its own (`ray_host.py`), for it takes its process along when it dies. This one answers what
that asks, starts it again if it died, and alone knows the schedule and the journal.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llpbench.core.cell import Environment
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural
from llpbench.running.channel import Child, Died
from llpbench.running.cluster import Asked, Broken, Finished, Nodes, Order, Progressed, Room, Setup, Started
from llpbench.running.executors import Listener, RunCell, tell
from llpbench.running.resources import Resources, gpu_share
from llpbench.running.schedule import Ended, Job, Schedule

_MOST_STARTS = 4
"""of Ray in one run"""
_PATIENCE = 60.0
"""seconds after the end of the time budget in which Ray may still report"""
_MEGABYTES = 1024.0
"""of main memory that a job is given at least: what it wants is rounded up to a power of two times as much, so that
Ray gives most jobs the same, and need not start a process for each"""


@dataclass
class _Running:
    job: Job
    room: Room
    started: bool = False


@dataclass
class _State:
    """What one life of Ray's process has come to."""

    nodes: Nodes
    running: dict[str, _Running] = field(default_factory=dict)
    """by trial"""


class RayExecutor:
    """As many jobs at a time as the machine or the cluster holds, in processes of their own."""

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
        if address is not None:
            self._host, nodes = self._connect()
            self.slots = max(int(Room.sum(nodes.rooms).cpus) // self._threads, 1)
            self._first = nodes

    def run(self, schedule: Schedule, listener: Listener) -> None:
        for start in range(1, _MOST_STARTS + 1):
            state = _State(Nodes((), 0.0))
            try:
                if self._host is None:
                    self._host, state.nodes = self._connect()
                else:
                    state.nodes = self._first
                self._serve(self._host, state, schedule, listener)
                return
            except Died as died:
                lost = list(state.running.values())
                told = f"Ray died (exit code {died.code})"
                if start == _MOST_STARTS:
                    raise LLPBenchError(
                        f"{told} for the {_MOST_STARTS}th time. What is finished is safe; choose --executor inline."
                    ) from None
                listener.warned(f"{told} and is started again; {plural(len(lost), 'job')} that ran will run again")
                for each in lost:
                    _tell(listener, each, Ended("lost", "Ray died"))
            finally:
                if self._host is not None:
                    self._host.end(gently=True)
                    self._host = None

    def _connect(self) -> tuple[Child, Nodes]:
        """Start Ray's process; what it finds. Raises `LLPBenchError`."""
        host = Child("llpbench.running.ray_host")
        try:
            host.send(self._setup)
            found = host.receive()
        except BaseException as error:
            host.end(gently=True)
            if isinstance(error, Died):
                told = f"Ray ended as it began (exit code {error.code}). Choose --executor inline."
                raise LLPBenchError(told) from None
            raise
        if isinstance(found, Broken):
            host.end()
            raise LLPBenchError(found.reason)
        return host, found

    def _serve(self, host: Child, state: _State, schedule: Schedule, listener: Listener) -> None:
        """Answer Ray's process until all is done. Raises `Died`."""
        while True:
            try:
                message = host.receive(schedule.seconds_left + _PATIENCE)
            except TimeoutError:  # it hangs
                for each in state.running.values():
                    _tell(listener, each, Ended("stopped"))
                return
            match message:
                case Nodes():
                    state.nodes = message
                case Asked(trial):
                    host.send(self._answer(trial, state, schedule))
                case Started(trial):
                    state.running[trial].started = True
                    listener.started(state.running[trial].job)
                case Progressed(trial, epoch):
                    listener.progressed(state.running[trial].job, epoch)
                case Finished(trial, Ended("unfit", reason)):
                    raise LLPBenchError(reason)
                case Finished(trial, outcome):
                    _tell(listener, state.running.pop(trial), outcome)
                case Broken(reason):
                    raise LLPBenchError(reason)
                case None:
                    return

    def _answer(self, trial: str, state: _State, schedule: Schedule) -> Order | str:
        """The next job for which there is room, if any."""
        busy = [each.room for each in state.running.values()]

        def fits(job: Job) -> bool:
            return Room.sum(state.nodes.rooms).holds(Room.sum([*busy, self._needs(job, state.nodes)]))

        job = schedule.next(fits)
        if job is None:
            # with nothing running every job fits, so the schedule is empty and nobody can put a job back
            return "wait" if busy or schedule.waiting else "finished"
        state.running[trial] = _Running(job, self._needs(job, state.nodes))
        limit = schedule.limit(job)
        return Order(job, state.running[trial].room, limit.timeout, time.time() + limit.budget)

    def _needs(self, job: Job, nodes: Nodes) -> Room:
        """What a job is given: no more than a machine has."""
        largest = max(nodes.rooms, default=self._setup.room)
        gpus = max((int(each.gpus) for each in nodes.rooms), default=0)
        threads = min(self._threads, largest.cpus)
        memory = self._memory(job, min((each.megabytes for each in nodes.rooms if each.megabytes), default=0.0))
        if gpus == 0 or job.cell.protocol is None or self._setup.environment.device == "cpu":
            return Room(largest.cpus if job.alone else threads, 0.0, memory)
        if job.alone or not nodes.gpu_megabytes:
            return Room(threads, 1.0, memory)
        return Room(threads, gpu_share(self._gpu_megabytes(job), nodes.gpu_megabytes), memory)

    def _memory(self, job: Job, least: float) -> float:
        wanted = self._megabytes(job) or 0.0
        doublings = max(math.ceil(math.log2(max(wanted, 1.0) / _MEGABYTES)), 0)
        return min(_MEGABYTES * 2.0**doublings, least)


def _tell(listener: Listener, running: _Running, outcome: Any) -> None:
    if not running.started:  # its process did not even come up
        listener.started(running.job)
    tell(listener, running.job, outcome)
