"""The Ray process. The journal is in another process, the driver, because a failure of Ray ends the process.

There is one Tuner for the run, with one trial per job. Actors are reused, and each runs its jobs in a `Worker`. Tune
requests jobs through `_Jobs` and reports events through `_Events`; both pass messages to the driver. Tune's state and
logs are discarded: a run resumes from the journal.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import pickle
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from llpbench.core import PACKAGE
from llpbench.core.cell import Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import USER, private_root, temporary_folder
from llpbench.core.provenance import software
from llpbench.core.record import SomeDone
from llpbench.core.text import one_line
from llpbench.running.channel import Alive, Parent
from llpbench.running.cluster import Broken, Finished, Heard, NodeFiles, Nodes, Room, Setup, TrialJob, TrialRequest
from llpbench.running.executors import Message, Outcome, Warned
from llpbench.running.schedule import Ended, Limit, RunCell
from llpbench.running.worker import Worker

_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # otherwise relative paths break
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # after which Ray gives up a dead head; default 60
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # otherwise Ctrl-C looks like a normal end
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",  # the state is not used
}
_OBJECT_STORE_BYTES = 128 * 2**20  # tables pass through it only if machines share no folder
_SECONDS_BETWEEN_REPORTS = {Epoch: 0.5, Alive: 30.0, SomeDone: 0.0, Warned: 0.0}
"""Least time between a message of a job and the one before it; others are skipped."""
_SECONDS_BETWEEN_COUNTS = 2.0
"""Seconds between two counts of the machines of a cluster."""
_LONGEST_TEMPORARY_PATH = 22 - len(USER)
"""Characters. The system allows 107 for paths of sockets, and Ray and `core/files.py` need the others."""
_LEAST_PENDING = 16
"""Smallest number of pending trials on a cluster, so that machines that join are used at once."""


def main() -> None:
    """Connect to Ray, run the jobs that the driver sends, and end. This is the main function of the Ray process."""
    parent = Parent()
    setup: Setup = parent.receive()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _serve(parent, setup)
    except KeyboardInterrupt:
        return
    except Exception as error:
        parent.send(Broken(str(error) if isinstance(error, LLPBenchError) else f"Ray failed: {one_line(error)}"))
        return
    parent.send(None)


def _serve(parent: Parent, setup: Setup) -> None:
    os.environ.update(_ENVIRONMENT)
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(max(int(setup.room.cpus), _LEAST_PENDING if setup.address else 1))
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    is_long = len(tempfile.gettempdir()) > _LONGEST_TEMPORARY_PATH
    with (
        temporary_folder(Path("/tmp") if is_long and Path("/tmp").is_dir() else None) as folder,
        _connected(setup, folder),
    ):
        signal.signal(signal.SIGTERM, _interrupt)  # Ray has replaced it
        files = _pack(setup)
        monitor = _NodeMonitor(parent)
        monitor.update()
        trial = tune.with_parameters(
            _trial, environment=setup.environment, folder=setup.folder, run=setup.run, files=files
        )
        tuner = tune.Tuner(
            tune.with_resources(trial, lambda config: tune.PlacementGroupFactory([config["bundle"]])),
            tune_config=tune.TuneConfig(
                search_alg=_Jobs(parent, monitor),
                scheduler=_ArrivalOrder(),  # type: ignore[no-untyped-call]
                num_samples=-1,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name="run", storage_path=str(folder / "tune"), verbose=0, callbacks=[_Events(parent)]
            ),
        )
        try:
            with parent.beating(lambda: bool(_alive())):  # a process of Ray that is stopped does not answer
                tuner.fit()
        finally:
            if files is not None:
                _remove_unpacked(files)


class _NodeMonitor:
    """Sends the machines of the cluster to the driver whenever they change."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._nodes: Nodes | None = None
        self._last_count = -math.inf
        self._gpu_megabytes: dict[str, float] = {}
        """Memory of the smallest GPU of a machine, by its id."""

    def update(self) -> None:
        """Count the machines, unless that was done just now."""
        if time.monotonic() - self._last_count < _SECONDS_BETWEEN_COUNTS:
            return
        self._last_count = time.monotonic()
        alive = _alive()
        offers = (node["Resources"] for node in alive)
        rooms = (Room(of.get("CPU", 0.0), of.get("GPU", 0.0), of.get("memory", 0.0) / 2**20) for of in offers)
        nodes = Nodes(tuple(rooms), min(self._memory(alive), default=0.0))
        if nodes != self._nodes:
            self._nodes = nodes
            self._parent.send(nodes)

    def _memory(self, alive: list[dict[str, Any]]) -> list[float]:
        ids = [node["NodeID"] for node in alive if node["Resources"].get("GPU")]
        for name in ids:
            if name not in self._gpu_megabytes:
                strategy = NodeAffinitySchedulingStrategy(name, soft=False)
                task = _smallest_gpu_megabytes.options(scheduling_strategy=strategy).remote()
                self._gpu_megabytes[name] = ray.get(task)
        return [self._gpu_megabytes[name] for name in ids]


class _Jobs(Searcher):  # type: ignore[misc]
    """Source of Tune's trials. It requests each job from the driver, which knows the jobs and the free resources."""

    def __init__(self, parent: Parent, monitor: _NodeMonitor) -> None:
        super().__init__()
        self._parent = parent
        self._monitor = monitor

    def suggest(self, trial_id: str) -> Any:
        self._monitor.update()
        self._parent.send(TrialRequest(trial_id))
        answer = self._parent.receive()
        if not isinstance(answer, TrialJob):
            return Searcher.FINISHED if answer == "finished" else None
        room = answer.room
        bundle = {"CPU": room.cpus, "GPU": room.gpus, "memory": int(room.megabytes * 2**20)}
        return {"trial_job": answer, "bundle": {name: amount for name, amount in bundle.items() if amount}}

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
        """Do nothing: `_Events` reports it."""

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: a run resumes from the journal."""

    def __getstate__(self) -> dict[str, Any]:
        """Return nothing, as `_Events` does."""
        return {}


class _ArrivalOrder(FIFOScheduler):  # type: ignore[misc]
    """Scheduler that starts trials in the order of arrival. Searching all trials would be slow."""

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """Keep the order of arrival."""


class _Events(tune.Callback):  # type: ignore[misc]
    """Sends the events of trials to the driver.

    A job is finished when Tune has ended its trial, not when its result arrives, because only then the trial's process
    is free. If the next job came earlier, Tune would start a process for it in vain.
    """

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._outcomes: dict[str, Outcome] = {}
        """Outcomes by trial, until Tune has ended it."""

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:  # noqa: ARG002
        self._parent.send(Heard(trial.trial_id, None))

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:  # noqa: ARG002
        message = pickle.loads(result["message"])
        if isinstance(message, Message):
            self._parent.send(Heard(trial.trial_id, message))
        else:
            self._outcomes[trial.trial_id] = message

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:  # noqa: ARG002
        self._parent.send(Finished(trial.trial_id, self._outcomes.pop(trial.trial_id)))

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:  # noqa: ARG002
        outcome = self._outcomes.pop(trial.trial_id, None)
        self._parent.send(Finished(trial.trial_id, _lost_trial(trial) if outcome is None else outcome))

    def __getstate__(self) -> dict[str, Any]:
        """Return nothing. Tune pickles its callbacks for restarts, which are not used here."""
        return {}


_workers: dict[str, Worker] = {}
"""Worker of this actor, by its environment and visible GPUs. There is at most one."""


def _trial(
    config: dict[str, Any], environment: Environment, folder: Path, run: RunCell | None, files: NodeFiles | None
) -> dict[str, bytes]:
    """Run one job in an actor and return its outcome pickled, since Tune makes metrics of other types.

    `folder`: working directory of the driver.
    """
    trial_job: TrialJob = config["trial_job"]
    try:
        if files is not None:
            environment = files.unpack(environment, trial_job.job.cell.dataset, ray.get)
        worker = _worker(environment, folder if folder.is_dir() else None, run)
    except LLPBenchError as error:
        return {"message": pickle.dumps(Ended("unfit", str(error)))}
    last_report = time.monotonic()

    def report(message: Message) -> None:
        nonlocal last_report
        if time.monotonic() - last_report >= _SECONDS_BETWEEN_REPORTS[type(message)]:
            last_report = time.monotonic()
            tune.report({"message": pickle.dumps(message)})

    return {"message": pickle.dumps(worker.run_job(trial_job.job, Limit(trial_job.timeout), report))}


def _worker(environment: Environment, folder: Path | None, run: RunCell | None) -> Worker:
    """Return this actor's worker; a new one if the environment has changed."""
    key = repr((environment, os.environ.get("CUDA_VISIBLE_DEVICES")))
    if key not in _workers:
        for other in _workers.values():
            other.end()
        _workers.clear()
        _workers[key] = Worker(environment, run, folder)
    return _workers[key]


def _lost_trial(trial: Any) -> Ended:
    """Return why a trial ended without an outcome, from Ray's text. The pickle beside it could run any code."""
    file = Path(trial.error_file or "")
    _, _, text = file.read_text(encoding="utf-8", errors="replace").partition("\n") if file.is_file() else ("", "", "")
    if not text or text.startswith("The actor "):  # Ray's text if a process or machine has died
        return Ended("lost", "its process or machine died")
    return Ended("failed", f"Ray could not run it: {one_line(text.strip().rpartition(chr(10))[2])}")


@contextlib.contextmanager
def _connected(setup: Setup, folder: Path) -> Iterator[None]:
    """Connect to a cluster, or start Ray on this machine with its files in `folder`. Ray prints nothing."""
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if setup.address is not None:
            try:
                ray.init(address=setup.address, **common)
            except Exception as error:
                raise setup.no_cluster(one_line(error)) from error
        else:
            # Ray puts its working directory first on the import path of its workers. They must find this package,
            # not another version of it in the user's working directory.
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
                    raise LLPBenchError(
                        f"Ray could not be started ({one_line(error)}). Choose --executor inline."
                    ) from error
        yield
    finally:
        ray.shutdown()


def _pack(setup: Setup) -> NodeFiles | None:
    """Return files for machines that share no folder with this one; None for a local Ray."""
    if setup.address is None:
        return None
    plugins = {path: Path(path).read_bytes() for path in setup.environment.plugins}
    tables = {name: (str(path), path.stat().st_size, ray.put(path.read_bytes())) for name, path in setup.tables.items()}
    return NodeFiles(f"llpbench-{uuid.uuid4().hex[:12]}", software(), plugins, tables)


def _remove_unpacked(files: NodeFiles) -> None:
    """Remove unpacked files on all machines that are alive."""
    strategies = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in _alive()]
    tasks = [_remove.options(scheduling_strategy=strategy).remote(files.folder.name) for strategy in strategies]
    ray.wait(tasks, num_returns=len(tasks), timeout=10)


@ray.remote(num_cpus=0)  # type: ignore[untyped-decorator]
def _remove(name: str) -> None:
    shutil.rmtree(private_root() / name, ignore_errors=True)


@ray.remote(num_cpus=0, num_gpus=0.001)  # type: ignore[untyped-decorator]
def _smallest_gpu_megabytes() -> float:
    """Return the memory of the smallest GPU that torch sees; 0.0 if there is none."""
    import torch

    return min(
        (torch.cuda.get_device_properties(index).total_memory / 2**20 for index in range(torch.cuda.device_count())),
        default=0.0,
    )


def _alive() -> list[dict[str, Any]]:
    """Return the machines of the cluster that are alive."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in nodes if node["Alive"]]


def _interrupt(number: int, frame: Any) -> None:  # noqa: ARG001
    raise KeyboardInterrupt
