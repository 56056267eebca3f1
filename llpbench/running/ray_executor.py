"""The Ray executor: one Tuner for the whole run, one trial a job, actors reused.

Tune asks `_Jobs` for the next one whenever there is room, and tells `_Events` what happens. Its own state and logs are
thrown away: what a run resumes from is the journal. This module imports Ray; it is itself imported only when wanted.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.exceptions import RayActorError
from ray.tune.search import Searcher

import llpbench
from llpbench.core.cell import Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.running.executors import Listener, Made, RunCell, do, failed, tell
from llpbench.running.resources import Resources
from llpbench.running.schedule import Job, Schedule

_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_AUTH_MODE": "disabled",  # else it writes a token into the home folder
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # else relative paths break
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # else Ctrl-C returns as if everything were done
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",  # nobody reads its state
}
_OBJECT_STORE_BYTES = 128 * 2**20  # tables do not pass through it
_SECONDS_BETWEEN_REPORTS = 0.5


@dataclass(frozen=True)
class _Room:
    """CPUs and GPUs that a job occupies, or that are free."""

    cpus: float
    gpus: float


class RayExecutor:
    """As many jobs at a time as the machine holds, in processes of their own."""

    name = "ray"

    def __init__(
        self,
        environment: Environment,
        resources: Resources,
        megabytes: Callable[[Job], float | None] = lambda _: None,
        run: RunCell | None = None,
    ) -> None:
        """`megabytes` estimates the GPU memory of a job."""
        self._environment = environment
        self._resources = resources
        self._megabytes = megabytes
        self._run = run
        self.slots = resources.slots(environment.threads)

    def run(self, schedule: Schedule, listener: Listener) -> None:
        room = _Room(self.slots * self._environment.threads, self._resources.gpus)
        trial = tune.with_resources(
            tune.with_parameters(_trial, environment=self._environment, folder=Path.cwd(), run=self._run),
            lambda config: tune.PlacementGroupFactory([config["bundle"]]),
        )
        events = _Events(listener)
        with _cluster(room, self.slots), tempfile.TemporaryDirectory(prefix="llpbench-") as folder:
            tuner = tune.Tuner(
                trial,
                tune_config=tune.TuneConfig(
                    search_alg=_Jobs(schedule, room, self._needs), num_samples=-1, reuse_actors=True
                ),
                run_config=tune.RunConfig(name="run", storage_path=folder, verbose=0, callbacks=[events]),
            )
            try:
                tuner.fit()
            except Exception as error:
                raise events.error or error from None

    def _needs(self, job: Job) -> _Room:
        threads = self._environment.threads
        if self._resources.gpus == 0 or job.cell.protocol is None:
            return _Room(self.slots * threads if job.alone else threads, 0)
        return _Room(threads, 1 if job.alone else self._resources.gpu_share(self._megabytes(job)))


class _Jobs(Searcher):  # type: ignore[misc]
    """What Tune takes its trials from: the schedule, as far as there is room."""

    def __init__(self, schedule: Schedule, room: _Room, needs: Callable[[Job], _Room]) -> None:
        super().__init__()
        self._schedule = schedule
        self._room = room
        self._needs = needs
        self._running: dict[str, _Room] = {}

    def suggest(self, trial_id: str) -> Any:
        job = self._schedule.next(self._fits)
        if job is None:
            # With nothing running every job fits, so the schedule is empty and nobody can put a job back.
            return None if self._running else Searcher.FINISHED
        needs = self._running[trial_id] = self._needs(job)
        return {"job": job, "bundle": {"CPU": needs.cpus, "GPU": needs.gpus}}

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:  # noqa: ARG002
        del self._running[trial_id]

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the journal is what a run resumes from."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing, as there is nothing saved."""

    def __getstate__(self) -> dict[str, Any]:
        """Nothing, as for `_Events`."""
        return {}

    def _fits(self, job: Job) -> bool:
        needs, busy = self._needs(job), self._running.values()
        return (
            sum(room.cpus for room in busy) + needs.cpus <= self._room.cpus
            and sum(room.gpus for room in busy) + needs.gpus <= self._room.gpus
        )


class _Events(tune.Callback):  # type: ignore[misc]
    """Passes on what happens to trials, in the driver's process."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._started: set[str] = set()
        self.error: Exception | None = None
        """what the listener raised: Tune makes a text of it"""

    def on_trial_start(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:  # noqa: ARG002
        self._started.add(trial.trial_id)
        self._listener.started(trial.config["job"])

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:  # noqa: ARG002
        if "records" in result:
            self._finished(trial.config["job"], json.loads(result["records"]))
        else:
            self._listener.progressed(trial.config["job"], Epoch(**json.loads(result["progress"])))

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:  # noqa: ARG002
        job = trial.config["job"]
        if trial.trial_id not in self._started:  # its process did not even come up
            self._listener.started(job)
        self._finished(job, failed(job, _misfortune(trial)))

    def _finished(self, job: Job, made: Made) -> None:
        try:
            tell(self._listener, job, made)
        except Exception as error:
            self.error = error
            raise

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune pickles its callbacks, for a restart that we never make."""
        return {}


def _trial(config: dict[str, Any], environment: Environment, folder: Path, run: RunCell | None) -> dict[str, str]:
    """One job, in a worker; `folder` is the driver's. Texts, because Tune would make metrics of anything else."""
    os.chdir(folder)
    reported = time.monotonic()

    def report(epoch: Epoch) -> None:
        nonlocal reported
        if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
            reported = time.monotonic()
            tune.report({"progress": json.dumps(asdict(epoch))})

    return {"records": json.dumps(do(config["job"], environment, report, run))}


def _misfortune(trial: Any) -> str:
    """Why a trial ended without records, although `attempt` never raises."""
    file = Path(trial.pickled_error_file or "")
    error = ray.cloudpickle.loads(file.read_bytes()) if file.is_file() else None
    if error is None or isinstance(error, RayActorError):
        return "its process died: killed (for memory, perhaps) or crashed"
    return f"Ray could not run it: {str(error).strip().splitlines()[-1]}"


@contextlib.contextmanager
def _cluster(room: _Room, slots: int) -> Iterator[None]:
    """A silent Ray of our own on this machine, shut down afterwards."""
    os.environ.update(_ENVIRONMENT)
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(slots)  # processes that start at a time
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        _start(room)
        signal.signal(signal.SIGTERM, on_terminate)  # Ray takes it
        with contextlib.redirect_stdout(io.StringIO()):  # where Ray tells the death of a worker, in a long paragraph
            yield
    finally:
        ray.shutdown()


def _start(room: _Room) -> None:
    # Ray puts the folder in which it is started first on its workers' path: there they must find this very package
    # rather than, say, a checkout of another version in which somebody stands
    package = Path(llpbench.__file__).resolve().parent.parent
    try:
        with contextlib.chdir(package):
            ray.init(
                address="local",
                num_cpus=int(room.cpus),
                num_gpus=int(room.gpus),
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=_OBJECT_STORE_BYTES,
            )
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise LLPBenchError(f"Ray could not be started ({reason}). Choose --executor inline.") from error
