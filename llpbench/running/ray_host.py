"""The process in which Ray lives, apart from the one that holds the journal: when Ray dies, its process dies.

One Tuner for the whole run, one trial a job, actors reused; an actor hands each job to a `Worker` of its own. Tune asks
for the next job whenever there is room (`_Jobs`), and tells what happens (`_Events`); both pass it on to the driver.
Its own state and logs are thrown away: what a run resumes from is the journal.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ray
from filelock import FileLock, Timeout
from ray import tune
from ray.exceptions import RayActorError
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from llpbench.core.cell import Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import LOG
from llpbench.core.version import PACKAGE
from llpbench.running.channel import Parent
from llpbench.running.cluster import (
    Alive,
    Broken,
    Finished,
    NodeFiles,
    Nodes,
    Progressed,
    Room,
    Setup,
    Started,
    TrialJob,
    TrialRequest,
    software,
)
from llpbench.running.executors import Outcome, RunCell, Warned
from llpbench.running.schedule import Ended, Limit
from llpbench.running.worker import Worker

_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # else relative paths break
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # after which it gives up a head that died, instead of 60
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # else Ctrl-C returns as if everything were done
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",  # nobody reads its state
}
_OBJECT_STORE_BYTES = 128 * 2**20  # tables pass through it only where machines share no folder
_SECONDS_BETWEEN_REPORTS = 0.5
_SECONDS_BETWEEN_COUNTS = 2.0
"""of the machines of a cluster"""
_SECONDS_BETWEEN_BEATS = 2.0
_LONGEST_FOLDER = 20
"""characters of the folder for temporary files: paths of Ray's sockets have 80 more, and a system allows 107"""
_SECONDS_IN_SILENCE, _SECONDS_OF_WAITING = 3.0, 300.0
"""for another process that starts Ray"""
_LEAST_PENDING = 16
"""trials that may wait for a process, so that machines that join are used at once"""


def main() -> None:
    """Ray's process: connect, do what the driver orders, end."""
    parent = Parent()
    setup: Setup = parent.receive()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _serve(parent, setup)
    except KeyboardInterrupt:
        return
    except Exception as error:
        parent.send(Broken(str(error) if isinstance(error, LLPBenchError) else f"Ray failed: {_in_short(error)}"))
        return
    parent.send(None)


def _serve(parent: Parent, setup: Setup) -> None:
    os.environ.update(_ENVIRONMENT)
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(max(int(setup.room.cpus), _LEAST_PENDING if setup.address else 1))
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    with _own_folder() as folder, _cluster(setup, folder):
        signal.signal(signal.SIGTERM, _interrupt)  # Ray takes it
        files = _pack(setup)
        monitor = _NodeMonitor(parent)
        monitor.take()
        ended = threading.Event()
        beating = threading.Thread(target=_beat, args=(parent, ended), daemon=True)
        beating.start()
        trial = tune.with_parameters(
            _trial, environment=setup.environment, folder=setup.folder, run=setup.run, files=files
        )
        tuner = tune.Tuner(
            tune.with_resources(trial, lambda config: tune.PlacementGroupFactory([config["bundle"]])),
            tune_config=tune.TuneConfig(
                search_alg=_Jobs(parent, monitor),
                scheduler=_AsTheyCome(),  # type: ignore[no-untyped-call]
                num_samples=-1,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name="run", storage_path=str(folder / "tune"), verbose=0, callbacks=[_Events(parent)]
            ),
        )
        try:
            tuner.fit()
        finally:
            ended.set()
            beating.join(_SECONDS_BETWEEN_BEATS)
            if files is not None:
                _remove_unpacked(files)


def _beat(parent: Parent, ended: threading.Event) -> None:
    """Give signs of life until the end, as long as Ray gives any: a process that is stopped gives none."""
    with contextlib.suppress(Exception):
        while not ended.wait(_SECONDS_BETWEEN_BEATS):
            if any(node["Alive"] for node in ray.nodes()):  # type: ignore[no-untyped-call]
                parent.send(Alive())


class _NodeMonitor:
    """Tells the driver which machines there are, as often as that changes."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._known: Nodes | None = None
        self._taken = -math.inf
        self._megabytes: dict[str, float] = {}
        """of the smallest GPU of a machine, by its id"""

    def take(self) -> None:
        """Count, unless that was done just now."""
        if time.monotonic() - self._taken < _SECONDS_BETWEEN_COUNTS:
            return
        self._taken = time.monotonic()
        alive = _alive()
        found = Nodes(tuple(_room_of(node["Resources"]) for node in alive), min(self._memory(alive), default=0.0))
        if found != self._known:
            self._known = found
            self._parent.send(found)

    def _memory(self, alive: list[dict[str, Any]]) -> list[float]:
        for node in alive:
            name = node["NodeID"]
            if node["Resources"].get("GPU") and name not in self._megabytes:
                where = NodeAffinitySchedulingStrategy(name, soft=False)
                self._megabytes[name] = ray.get(_gpu_megabytes.options(scheduling_strategy=where).remote())
        return [self._megabytes[node["NodeID"]] for node in alive if node["NodeID"] in self._megabytes]


class _Jobs(Searcher):  # type: ignore[misc]
    """Source of Tune's trials: the driver, which knows the jobs and the free resources."""

    def __init__(self, parent: Parent, monitor: _NodeMonitor) -> None:
        super().__init__()
        self._parent = parent
        self._monitor = monitor

    def suggest(self, trial_id: str) -> Any:
        self._monitor.take()
        self._parent.send(TrialRequest(trial_id))
        answer = self._parent.receive()
        if not isinstance(answer, TrialJob):
            return Searcher.FINISHED if answer == "finished" else None
        room = answer.room
        bundle = {"CPU": room.cpus, "GPU": room.gpus, "memory": int(room.megabytes * 2**20)}
        return {"trial_job": answer, "bundle": {name: amount for name, amount in bundle.items() if amount}}

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
        """Nothing: `_Events` has told it."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the journal is what a run resumes from."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing, as there is nothing saved."""

    def __getstate__(self) -> dict[str, Any]:
        """Nothing, as for `_Events`."""
        return {}


class _AsTheyCome(FIFOScheduler):  # type: ignore[misc]
    """Trials start in the order in which they come; looking through all trials would take long."""

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """Keep the order of arrival."""


class _Events(tune.Callback):  # type: ignore[misc]
    """Passes on what happens to trials.

    A job is finished when Tune is done with its trial, not when its result comes: only then the trial's process is
    free. If the next job came before that, Tune would request a process for it, and then kill one that starts.
    """

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._outcomes: dict[str, Outcome] = {}
        """by trial"""

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:  # noqa: ARG002
        self._parent.send(Started(trial.trial_id))

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:  # noqa: ARG002
        if "outcome" in result:
            self._outcomes[trial.trial_id] = _outcome(json.loads(result["outcome"]))
        elif "warning" in result:
            self._parent.send(Warned(result["warning"]))
        else:
            self._parent.send(Progressed(trial.trial_id, Epoch(**json.loads(result["progress"]))))

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:  # noqa: ARG002
        self._parent.send(Finished(trial.trial_id, self._outcomes.pop(trial.trial_id)))

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:  # noqa: ARG002
        outcome = self._outcomes.pop(trial.trial_id, None)
        self._parent.send(Finished(trial.trial_id, _misfortune(trial) if outcome is None else outcome))

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles its callbacks, for a restart that we never make."""
        return {}


_workers: dict[str | None, Worker] = {}
"""of this actor, by the GPUs that it sees; there is one"""


def _trial(
    config: dict[str, Any], environment: Environment, folder: Path, run: RunCell | None, files: NodeFiles | None
) -> dict[str, str]:
    """One job, in an actor; `folder` is the driver's. Texts, because Tune would make metrics of anything else."""
    trial_job: TrialJob = config["trial_job"]
    try:
        if files is not None:
            environment = files.unpack(environment, trial_job.job.cell.dataset, ray.get)
        worker = _worker(environment, folder if folder.is_dir() else None, run)
    except LLPBenchError as error:
        return {"outcome": json.dumps({"how": "unfit", "reason": str(error)})}
    reported = time.monotonic()

    def report(epoch: Epoch) -> None:
        nonlocal reported
        if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
            reported = time.monotonic()
            tune.report({"progress": json.dumps(asdict(epoch))})

    def warn(text: str) -> None:
        tune.report({"warning": text})

    made = worker.do(trial_job.job, Limit(trial_job.timeout, max(trial_job.until - time.time(), 0.0)), report, warn)
    return {"outcome": json.dumps(asdict(made) if isinstance(made, Ended) else {"made": made})}


def _worker(environment: Environment, folder: Path | None, run: RunCell | None) -> Worker:
    """This actor's worker, restarted where the environment has changed."""
    key = repr((environment, os.environ.get("CUDA_VISIBLE_DEVICES")))
    if key not in _workers:
        for other in _workers.values():
            other.end()
        _workers.clear()
        _workers[key] = Worker(environment, run, folder)
    return _workers[key]


def _outcome(value: dict[str, Any]) -> Outcome:
    made: Outcome = value["made"] if "made" in value else Ended(**value)
    return made


def _misfortune(trial: Any) -> Ended:
    """Why a trial ended without an outcome."""
    file = Path(trial.pickled_error_file or "")
    error = ray.cloudpickle.loads(file.read_bytes()) if file.is_file() else None
    if error is None or isinstance(error, RayActorError):
        return Ended("lost", "its process or machine died")
    return Ended("failed", f"Ray could not run it: {_in_short(error)}")


@contextlib.contextmanager
def _cluster(setup: Setup, folder: Path) -> Iterator[None]:
    """A silent Ray: of our own on this machine, which writes to a folder, or one that is there."""
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if setup.address is not None:
            try:
                ray.init(address=setup.address, **common)
            except Exception as error:
                raise LLPBenchError(
                    f"no Ray cluster can be joined at {setup.address!r} ({_in_short(error)}). Start one with "
                    "ray start --head and run this command on one of its machines."
                ) from error
        else:
            # Ray puts the folder in which it is started first on its workers' path: there they must find this very
            # package rather than, say, a checkout of another version in which somebody stands
            with contextlib.chdir(PACKAGE.parent):
                try:
                    ray.init(
                        address="local",
                        num_cpus=int(setup.room.cpus),
                        num_gpus=int(setup.room.gpus),
                        include_dashboard=False,
                        object_store_memory=_OBJECT_STORE_BYTES,
                        _temp_dir=str(folder),
                        **common,
                    )
                except Exception as error:
                    told = f"Ray could not be started ({_in_short(error)}). Choose --executor inline."
                    raise LLPBenchError(told) from error
        yield
    finally:
        ray.shutdown()


def _waiting(lock: FileLock) -> contextlib.AbstractContextManager[Any]:
    """Acquire a lock; after seconds the log says for what. Raises `LLPBenchError` after minutes."""
    try:
        return lock.acquire(timeout=_SECONDS_IN_SILENCE)
    except Timeout:
        LOG.warning(f"another process has locked {lock.lock_file!r} to start Ray; waiting")
    try:
        return lock.acquire(timeout=_SECONDS_OF_WAITING)
    except Timeout as error:
        raise LLPBenchError(
            f"Ray could not be started: {lock.lock_file!r} is locked by another process. End that process, or use "
            "--executor inline."
        ) from error


@contextlib.contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder for what Ray and Tune write, gone afterwards, with those of processes that were killed before."""
    base, name = Path(tempfile.gettempdir()), f"llpbench-{os.getuid() if hasattr(os, 'getuid') else 'ray'}"
    if len(str(base)) > _LONGEST_FOLDER and Path("/tmp").is_dir():
        base = Path("/tmp")
    with _waiting(FileLock(base / f"{name}.lock")):  # nobody takes a folder for a dead one's that is not locked yet
        for old in base.glob(f"{name}-*"):
            with contextlib.suppress(Timeout, OSError), FileLock(old / "lock", timeout=0):
                shutil.rmtree(old, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base))
        lock = FileLock(folder / "lock")
        lock.acquire()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _pack(setup: Setup) -> NodeFiles | None:
    """Files for machines that share no folder with this one; none for a local Ray."""
    if setup.address is None:
        return None
    plugins = {path: Path(path).read_bytes() for path in setup.environment.plugins}
    tables = {name: (str(path), path.stat().st_size, ray.put(path.read_bytes())) for name, path in setup.tables.items()}
    return NodeFiles(f"llpbench-{uuid.uuid4().hex[:12]}", software(), plugins, tables)


def _remove_unpacked(files: NodeFiles) -> None:
    """Remove what was unpacked on the machines that are still there."""
    where = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in _alive()]
    ray.wait(
        [_remove.options(scheduling_strategy=one).remote(files.folder.name) for one in where],
        num_returns=len(where),
        timeout=10,
    )


@ray.remote(num_cpus=0)  # type: ignore[untyped-decorator]
def _remove(name: str) -> None:
    shutil.rmtree(Path(tempfile.gettempdir()) / name, ignore_errors=True)


@ray.remote(num_cpus=0, num_gpus=0.001)  # type: ignore[untyped-decorator]
def _gpu_megabytes() -> float:
    """Memory of the smallest GPU that torch sees; 0.0 if it sees none."""
    import torch

    return min(
        (torch.cuda.get_device_properties(each).total_memory / 2**20 for each in range(torch.cuda.device_count())),
        default=0.0,
    )


def _alive() -> list[dict[str, Any]]:
    """The machines of the cluster."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in nodes if node["Alive"]]


def _room_of(resources: dict[str, float]) -> Room:
    return Room(resources.get("CPU", 0.0), resources.get("GPU", 0.0), resources.get("memory", 0.0) / 2**20)


def _in_short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _interrupt(number: int, frame: Any) -> None:  # noqa: ARG001
    raise KeyboardInterrupt
