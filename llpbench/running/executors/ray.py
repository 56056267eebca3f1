"""The Ray executor: many jobs at a time, on this machine or on a cluster.

Ray runs in a process of its own (`ray_host.py`), because a failure of Ray ends its process. The driver answers the
messages of this process and restarts it if it dies. Only the driver has the schedule and the journal.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from llpbench.core.cell import Environment
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import duration, one_line, plural
from llpbench.data.loading import EMBEDDED, locate
from llpbench.data.specs import dataset_spec
from llpbench.running.channel import Alive, Child, ChildDied
from llpbench.running.cluster import Broken, Finished, Heard, Nodes, Room, Setup, TrialJob, TrialRequest
from llpbench.running.estimates import Estimator
from llpbench.running.executors import Listener, Outcome, Resources, Warned
from llpbench.running.schedule import Ended, Job, RunCell, Schedule
from llpbench.running.settings import Settings
from llpbench.running.worker import SECONDS_OF_SILENCE

_MOST_STARTS = 4
"""Largest number of starts of Ray in one run."""
_SECONDS_TO_START = 180.0
_SECONDS_TO_ANSWER, _SECONDS_TO_JOIN = 8.0, 60.0
_SECONDS_OF_SILENCE = 60.0
"""Time without a message after which Ray is considered frozen."""
_SECONDS_OF_SILENT_TRIAL = SECONDS_OF_SILENCE + 120.0
"""Time without a message after which the process of a trial is considered frozen, or was not started."""
_LEAST_MEGABYTES = 1024.0
"""Smallest main memory of a job. Larger amounts are rounded up to a power of two times this one.

Jobs with equal resources share processes of Ray.
"""


def _tables(data_dir: str | None, jobs: Sequence[Job]) -> dict[str, Path]:
    """Return the local files of datasets that the machines of a cluster may lack."""
    places = {name: locate(dataset_spec(name), data_dir) for name in {job.cell.dataset for job in jobs}}
    files = {name: place.path for name, place in places.items() if place is not None}
    return {name: path for name, path in files.items() if path.is_file() and not path.is_relative_to(EMBEDDED)}


@dataclass
class _RunningJob:
    job: Job
    room: Room
    heard: float
    """Moment of the last message about the job, as `time.monotonic` counts."""
    started: bool = False


class RayExecutor:
    """Executor that runs as many jobs as the machine or cluster has room for, each in a worker of its own."""

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
        """Prepare a local Ray, or join the cluster at `address`. Raises `LLPBenchError` if there is no such cluster.

        - `resources`: those of this machine
        - `gpu_megabytes`, `megabytes`: estimates of the GPU memory and main memory of a job
        - `tables`: local files of datasets that machines of a cluster may lack
        - `run`: function that runs cells; default `run_cell`
        """
        self._gpu_megabytes = gpu_megabytes
        self._megabytes = megabytes
        self._threads = environment.threads
        self.slots = max(resources.cpus // self._threads, 1)
        room = Room(self.slots * self._threads, resources.gpus)
        self._setup = Setup(environment, run, Path.cwd(), room, address, dict(tables or {}))
        self._host: Child | None = None
        self._nodes = Nodes(())
        self._warnings: set[str] = set()
        self._was_up = False
        """Whether Ray has started once in this run."""
        if address is not None:
            try:
                _require_port(address)
            except (OSError, ValueError, OverflowError) as error:
                raise self._setup.no_cluster(one_line(error)) from error
            try:
                self._connect(_SECONDS_TO_JOIN)
            except TimeoutError:
                raise self._setup.no_cluster(f"no answer within {duration(_SECONDS_TO_JOIN)}") from None
            except ChildDied as died:
                raise LLPBenchError(f"Ray died while it started ({died}). Check the cluster at {address!r}.") from None
            self.slots = max(int(self._nodes.total.cpus) // self._threads, 1)

    @classmethod
    def make(cls, settings: Settings, jobs: Sequence[Job], resources: Resources, estimator: Estimator) -> Self:
        """Return the executor. Raises `LLPBenchError` if Ray is not installed or the settings name a GPU."""
        if importlib.util.find_spec("ray") is None:
            raise LLPBenchError(
                "--executor ray: Ray is not installed. Install 'ray[tune]', or choose --executor inline."
            )
        if os.name == "posix" and settings.ray_address is None and not shutil.which("bash", path=_search_path()):
            raise LLPBenchError(
                "--executor ray needs bash, which is not in PATH. Install bash, or use --executor inline."
            )
        device, address = settings.device, settings.ray_address
        if device.startswith("cuda:"):
            raise LLPBenchError(f"--executor ray assigns GPUs itself, got --device {device}. Use --device cuda.")
        return cls(
            settings.environment,
            resources,
            estimator.gpu_megabytes,
            estimator.megabytes,
            address=address,
            tables=None if address is None else _tables(settings.data_dir, jobs),
        )

    def run(self, schedule: Schedule, listener: Listener) -> None:
        for starts in range(1, _MOST_STARTS + 1):
            running: dict[str, _RunningJob] = {}
            try:
                if self._host is None:
                    self._connect(schedule.seconds_left)
                self._serve(running, schedule, listener)
                return
            except TimeoutError:  # the time budget is used up, and Ray still starts or hangs
                for trial in running.values():
                    _notify(listener, trial, Ended("stopped"))
                schedule.next()  # moves waiting jobs to `schedule.left`
                return
            except ChildDied as died:
                if starts == _MOST_STARTS:
                    raise LLPBenchError(
                        f"Ray died ({died}) {_MOST_STARTS} times. Finished runs are kept. Use --executor inline."
                    ) from None
                jobs = plural(len(running), "job")
                listener.warned(f"Ray died ({died}). Restarting it and {jobs} that it was running.")
                for trial in running.values():
                    _notify(listener, trial, Ended("interrupted", "Ray died"))
            finally:
                self._disconnect()

    def _connect(self, seconds: float) -> None:
        """Start the Ray process and wait for its machines. Raises `LLPBenchError`, `ChildDied` and `TimeoutError`."""
        variables = _private_ray() if self._setup.address is None else None
        self._host = Child("llpbench.running.ray_host", quiet=True, variables=variables)
        try:
            self._host.send(self._setup)
            try:
                answer = self._host.receive(min(seconds, _SECONDS_TO_START))
            except TimeoutError:
                if seconds <= _SECONDS_TO_START:
                    raise
                raise LLPBenchError(
                    f"Ray did not start within {duration(_SECONDS_TO_START)}. Finished runs are kept. "
                    "Check the cluster."
                ) from None
            if isinstance(answer, Broken):
                if self._was_up:  # Ray works here, so it was disturbed
                    raise ChildDied(1, answer.reason)
                raise LLPBenchError(answer.reason)
        except BaseException:
            self._disconnect()
            raise
        self._nodes, self._was_up = answer, True

    def _disconnect(self) -> None:
        if self._host is not None:
            self._host.end(gently=True)
            self._host = None

    def _serve(self, running: dict[str, _RunningJob], schedule: Schedule, listener: Listener) -> None:
        """Answer the Ray process until all jobs are done. `running`: jobs by trial. Raises as `_connect`."""
        assert self._host is not None
        while True:
            self._require_signs(running, listener)
            match self._host.receive(schedule.seconds_left, _SECONDS_OF_SILENCE):
                case Alive():
                    pass
                case Nodes() as nodes:
                    self._nodes = nodes
                case TrialRequest(trial):
                    self._host.send(self._answer(trial, running, schedule))
                case Heard(trial, _) | Finished(trial, _) if trial not in running:
                    pass  # its machine died just after it had reported the result
                case Heard(trial, message):
                    one = running[trial]
                    one.heard = time.monotonic()
                    if message is None:
                        one.started = True
                        listener.started(one.job)
                    elif isinstance(message, Warned):
                        self._warn(message.text, listener)
                    else:
                        listener.notify(one.job, message)
                case Finished(_, Ended("unfit", reason)) | Broken(reason):
                    raise LLPBenchError(reason)
                case Finished(trial, outcome):
                    _notify(listener, running.pop(trial), outcome)
                case None:
                    return

    def _require_signs(self, running: dict[str, _RunningJob], listener: Listener) -> None:
        """Raise `ChildDied` if the process of a trial has been silent for long: it is frozen or could not be started.

        On a cluster, trials may wait for their start until the jobs of others have ended.
        """
        silence = duration(_SECONDS_OF_SILENT_TRIAL)
        late = [trial for trial, one in running.items() if one.heard < time.monotonic() - _SECONDS_OF_SILENT_TRIAL]
        frozen = [trial for trial in late if running[trial].started]
        for trial in frozen:
            _notify(listener, running.pop(trial), Ended("killed", f"worker frozen (no sign of life for {silence})"))
        if frozen or (late and self._setup.address is None):
            raise ChildDied(None, f"a process of it gave no sign of life for {silence}")
        if late:
            self._warn(f"jobs have waited {silence} for room in the cluster. ray status shows who uses it.", listener)

    def _warn(self, text: str, listener: Listener) -> None:
        """Show a warning, unless another job has caused the same one."""
        if text not in self._warnings:
            self._warnings.add(text)
            listener.warned(text)

    def _answer(self, trial: str, running: dict[str, _RunningJob], schedule: Schedule) -> TrialJob | str:
        """Return the next job for which there is room, or whether to wait for one."""
        free = self._nodes.total.without(Room.sum(other.room for other in running.values()))
        job = None
        if not running or free.cpus >= self._least_cpus:  # otherwise no job fits, and the queue may be long
            job = schedule.next(lambda job: free.holds(self._needs(job)))
        if job is None:  # if nothing runs, every job fits: then the schedule is empty
            return "wait" if running or schedule.waiting else "finished"
        running[trial] = _RunningJob(job, self._needs(job), time.monotonic())
        return TrialJob(job, running[trial].room, schedule.limit(job).timeout)

    @property
    def _least_cpus(self) -> float:
        """CPUs of a job that shares its machine."""
        return min(self._threads, self._nodes.most_cpus)

    def _needs(self, job: Job) -> Room:
        """Return the resources of a job, at most those of a machine."""
        nodes, memory = self._nodes, self._memory(job)
        if nodes.total.gpus == 0 or job.cell.protocol is None or self._setup.environment.device == "cpu":
            return Room(nodes.most_cpus if job.alone else self._least_cpus, 0.0, memory)
        if job.alone or not nodes.gpu_megabytes:
            return Room(self._least_cpus, 1.0, memory)
        return Room(self._least_cpus, nodes.gpu_share(self._gpu_megabytes(job)), memory)

    def _memory(self, job: Job) -> float:
        megabytes = _LEAST_MEGABYTES
        while megabytes < (self._megabytes(job) or 0.0):
            megabytes *= 2
        of_machines = (room.megabytes for room in self._nodes.rooms if room.megabytes)
        return min(megabytes, min(of_machines, default=0.0))


def _require_port(address: str) -> None:
    """Raise `OSError`, `ValueError` or `OverflowError` if nothing listens at HOST:PORT, for which Ray would wait."""
    host, colon, port = address.rpartition("//")[2].rpartition(":")
    if colon:
        socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER).close()


def _private_ray() -> dict[str, str]:
    """Return environment variables for a Ray that serves this run only.

    A process that connects to Ray can execute code in it. So Ray requires a token, which stays in the memory of this
    run's processes, and listens on the loopback address only. The cluster of `--ray-address` has its owner's settings.
    """
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "PATH": _search_path(),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on every system: listen on the loopback address only
    }


def _search_path() -> str:
    """Return PATH with the folders of the system, since Ray starts its processes with bash."""
    return os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath)))


def _notify(listener: Listener, running: _RunningJob, outcome: Outcome) -> None:
    if not running.started:  # its process died before it could report the start
        listener.started(running.job)
    listener.notify(running.job, outcome)
