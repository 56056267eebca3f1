"""A benchmark run: make a plan, load the data, run missing and stale cells, and write each result to the journal.

The journal has every finished run, so a run can be stopped at any moment. The same command continues it.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from llpbench.core.cell import Average, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import obstacle
from llpbench.core.record import Record, SomeDone, Status, TuningRecord
from llpbench.core.text import plural
from llpbench.data.loading import locate
from llpbench.results.journal import Contents, Journal
from llpbench.results.staleness import comparison
from llpbench.running.channel import Alive
from llpbench.running.display import Display
from llpbench.running.estimates import FACTOR, Estimator, estimate_text
from llpbench.running.executors import Executor, Listener, Message, Outcome, Resources, Warned
from llpbench.running.executors.inline import Inline
from llpbench.running.interrupts import interruptible
from llpbench.running.obstacles import Resolved, obstacles
from llpbench.running.planning import Plan, Planned, expand
from llpbench.running.schedule import Ended, Job, Schedule
from llpbench.running.settings import PREDICTIONS, PRETRAINED, Settings

_SECONDS_WORTH_RAY = 30.0
"""Least seconds of work for which Ray is started, which takes about ten seconds."""
_LEAST_TIMEOUT, _TIMES_ESTIMATED = 3600.0, 30.0
"""Default timeout of a job: seconds, and a multiple of its estimate. The larger one counts."""
_PAUSE_BETWEEN_ESTIMATES = 100.0
"""Time between two estimates of the remaining time, in multiples of the time that the last one took."""
_MOST_ATTEMPTS = 3
"""Largest number of attempts of a job that was lost with its machine."""


@dataclass(frozen=True)
class _RunSummary:
    """The outcome of a run."""

    plan: Plan
    """The plan before the run."""
    contents: Contents
    """Contents of the journal after the run."""

    @property
    def failed(self) -> list[Record | TuningRecord]:
        """Runs and searches of the plan that failed, in this run or earlier."""
        searches = [self.contents.tunings[name] for name in self.plan.tunings if name in self.contents.tunings]
        chosen = [cell for record in searches for cell in Plan.chosen_cells(record)]
        cells = (*(one.cell for one in self.plan.cells), *chosen)
        names = {cell.run_id(seed) for cell in cells for seed in self.plan.seeds}
        runs = [self.contents.records[name] for name in names if name in self.contents.records]
        records: list[Record | TuningRecord] = [*searches, *runs]
        return [record for record in records if record["status"] != "ok"]

    @property
    def incomplete(self) -> bool:
        """Whether a run failed or data could not be loaded. Impossible and remaining runs are not failures."""
        obstacles = (one.obstacle for one in self.plan.entries)
        return any(obstacle and not obstacle.lasting for obstacle in obstacles) or bool(self.failed)


def preview(settings: Settings, say: Callable[[str], None]) -> tuple[Plan, float]:
    """Return the plan of a run, and the seconds of its jobs, one after the other. `say` shows a line.

    Downloads, writes and runs nothing. Raises `LLPBenchError` for bad settings, and if all cells are impossible.
    """
    cells = expand(settings)
    contents = Contents.of_run(settings.out)
    for warning in contents.warnings:
        say(warning)
    plan = Plan.of_run(settings, cells, contents).with_obstacles(obstacles(settings.data_dir, load=False))
    if plan.jobs:
        _require_device(settings)
    seconds = _estimator(settings, contents.records).seconds(*plan.expected)
    for line in _remarks(settings, plan.to_run):
        say(line)
    return plan, seconds


def run(settings: Settings, display: Display) -> _RunSummary:
    """Run missing and stale cells, and write the results to the journal in `settings.out`.

    Raises `LLPBenchError` for bad settings, bad data and a journal that cannot be written, and `KeyboardInterrupt` on
    SIGINT and SIGTERM. In every case the journal has all finished runs.
    """
    end = math.inf if settings.time_budget is None else time.monotonic() + settings.time_budget
    cells = expand(settings)
    with interruptible(), Journal(settings.out) as journal:
        plan = Plan.of_run(settings, cells, journal.contents)
        with display:
            for warning in journal.contents.warnings:
                display.say(warning, warning=True)
            for spec in {one.cell.dataset: one.dataset for one in plan.to_run}.values():
                if spec.remote is not None and spec.source is not None and locate(spec, settings.data_dir) is None:
                    display.say(f"downloading {spec.name} from {spec.source.describe()}")
            plan = plan.with_obstacles(obstacles(settings.data_dir, load=True))
            for reason in plan.reasons:
                display.say(f"impossible: {reason}", warning=True)
            for doubt in plan.doubts:
                display.say(doubt, warning=True)
            _execute(settings, plan, journal, display, end)
        return _RunSummary(plan, journal.contents)


def _execute(settings: Settings, plan: Plan, journal: Journal, display: Display, end: float) -> None:
    """Run the jobs of the plan until `end`."""
    jobs, stale = plan.jobs, [f"stale: {change}" for change in plan.changes]
    if not jobs:
        for line in (f"nothing to run: {plan}", *stale):
            display.say(line)
        return
    _require_device(settings)
    written = {PRETRAINED: any(job.cell.pretraining != "none" for job in jobs), PREDICTIONS: settings.save_predictions}
    for name, is_written in written.items():
        if is_written and (reason := obstacle(settings.out / name / "file")):
            raise LLPBenchError(f"{name} cannot be stored in {str(settings.out)!r}: {reason}. Choose another --out.")
    estimator = _estimator(settings, journal.contents.records)
    if settings.ray_address is not None:
        display.say(f"joining the Ray cluster at {settings.ray_address}")
        if settings.save_predictions:
            display.say(f"predictions of machines that do not share {settings.out} stay on them", warning=True)
    executor, note = _pick_executor(settings, jobs, Resources.of(settings.device), estimator)
    schedule = Schedule(
        jobs,
        estimator.seconds,
        end,
        at_least=lambda job: estimator.seconds(job) / FACTOR,
        timeout=partial(_timeout, settings, estimator),
    )
    listener = _RunListener(
        journal, estimator, schedule, display, executor.slots, partial(_following_jobs, settings, plan, journal)
    )
    remaining = listener.remaining
    notes = (*filter(None, [note]), *_remarks(settings, plan.to_run))
    for line in (*notes, f"{plan}; {estimate_text(remaining)}; {executor.name}, {executor.slots} at a time", *stale):
        display.say(line)
    display.begin(sum(len(job.seeds) for job in jobs))
    display.estimate(remaining)
    executor.run(schedule, listener)
    left = sum(len(job.seeds) for job in schedule.left)
    if left:
        display.say(f"time is up: {plural(left, 'run')} left. Run the same command again to continue.", warning=True)


@dataclass
class _RunListener(Listener):
    """Executor listener: writes records, updates estimates and display, and adds jobs that follow or are retried."""

    _journal: Journal
    _estimator: Estimator
    _schedule: Schedule
    _display: Display
    _slots: int
    _following_jobs: Callable[[TuningRecord], list[Job]]
    """Returns the jobs that follow from the result of a search."""
    _running: dict[str, tuple[Job, float]] = field(default_factory=dict)
    """Running jobs with the moments of their start, by id."""
    _done: set[str] = field(default_factory=set)
    """Ids of cells that have run."""
    _written: dict[str, dict[int, Record]] = field(default_factory=lambda: defaultdict(dict))
    """Runs of unfinished jobs that are in the journal, by the job's id and seed."""
    _next_estimate: float = -math.inf

    @property
    def remaining(self) -> float:
        """Seconds until all jobs are done: an equal share for each slot, and at least the longest job."""
        now = time.monotonic()
        jobs = [*(job for job, _ in self._running.values()), *self._schedule.waiting]
        spent = [now - start for _, start in self._running.values()] + [0.0] * len(self._schedule.waiting)
        seconds = [*map(self._estimator.seconds, jobs)]
        done = sum(map(min, spent, seconds))
        longest = max((max(all_ - gone, 0.0) for all_, gone in zip(seconds, spent, strict=True)), default=0.0)
        return max((self._estimator.seconds(*jobs) - done) / self._slots, longest)

    def started(self, job: Job) -> None:
        self._running[job.id] = job, time.monotonic()
        self._display.started(job)

    def warned(self, text: str) -> None:
        self._display.say(text, warning=True)

    def notify(self, job: Job, message: Message | Outcome) -> None:
        match message:
            case Alive():
                pass
            case Warned(text):
                self.warned(text)
            case Epoch():
                self._display.progressed(job, message)
            case SomeDone(records):
                self._write(job, [record for record in records if record["status"] == "ok"])
            case Ended():
                self._end(job, message)
            case list():
                self._finish(job, message)
            case _:
                self._finish_search(job, message)

    def _finish_search(self, job: Job, record: TuningRecord) -> None:
        del self._running[job.id]
        self._journal.append(record)
        running = (other for other, _ in self._running.values())
        known = self._done | {other.id for other in (*running, *self._schedule.waiting, *self._schedule.left)}
        following = [other for other in self._following_jobs(record) if other.id not in known]
        for other in following:
            self._schedule.put(other)
        self._display.search_finished(job, record, sum(len(other.seeds) for other in following))
        self._estimate()

    def _finish(self, job: Job, records: list[Record]) -> None:
        del self._running[job.id]
        self._done.add(job.id)
        shared = self._slots > 1 and not job.alone
        retried = tuple(record["seed"] for record in records if shared and record["status"] == "out-of-memory")
        self._write(job, [record for record in records if record["seed"] not in retried])
        if retried:
            self._schedule.put(Job(job.cell, retried, alone=True))
            self.warned(f"{job.title}: out of memory while sharing the device; retrying alone")
        self._display.finished(job, [*self._written.pop(job.id).values()])
        self._estimate()

    def _write(self, job: Job, records: Iterable[Record]) -> None:
        written = self._written[job.id]
        new = {record["seed"]: record for record in records if record["seed"] not in written}
        self._journal.append(*new.values())
        for record in new.values():
            self._estimator.learn(record)
        written |= new

    def _end(self, job: Job, end: Ended) -> None:
        """Retry a job, or record why it ended. Its written runs stay."""
        job = replace(job, seeds=tuple(seed for seed in job.seeds if seed not in self._written[job.id]))
        retry = _retry(job, end)
        if end.how == "stopped":
            self._schedule.left.append(job)
        elif retry is None:
            status: Status = "timed-out" if end.how == "timed-out" else "failed"
            self.notify(job, job.failed(end.reason, status))
            return
        else:
            self._schedule.put(retry)
            self.warned(f"{job.title}: {end.reason}; retrying{' alone' if retry.alone and not job.alone else ''}")
        del self._running[job.id]
        self._display.finished(job, [])

    def _estimate(self) -> None:
        """Show the remaining time, unless that was done just now: with many jobs an estimate takes long itself."""
        now = time.monotonic()
        if now >= self._next_estimate:
            self._display.estimate(self.remaining)
            self._next_estimate = now + _PAUSE_BETWEEN_ESTIMATES * (time.monotonic() - now)


def _retry(job: Job, end: Ended) -> Job | None:
    """Return the job to retry; None if it failed by its own fault, or was tried often enough."""
    if end.how == "killed" and not job.alone:
        return replace(job, alone=True)
    if end.how == "interrupted":
        return job
    if end.how == "lost" and job.attempt < _MOST_ATTEMPTS:
        return replace(job, attempt=job.attempt + 1)
    return None


def _timeout(settings: Settings, estimator: Estimator, job: Job) -> float:
    """Return the seconds after which a job is considered to hang."""
    if settings.cell_timeout is not None:
        return settings.cell_timeout
    return max(_TIMES_ESTIMATED * estimator.seconds(job), _LEAST_TIMEOUT)


def _following_jobs(settings: Settings, plan: Plan, journal: Journal, record: TuningRecord) -> list[Job]:
    """Return the runs that follow from the result of a search of the plan."""
    if record["status"] != "ok":
        return []
    start = plan.tunings[record["tuning"]].resolved
    following = [Planned(start._replace(cell=cell)) for cell in Plan.chosen_cells(record)]
    known = journal.contents.records
    return Plan.of(following, settings.seeds, known, repeat=settings.repeat, why_stale=comparison(known.values())).jobs


def _estimator(settings: Settings, records: Mapping[str, Record]) -> Estimator:
    on_gpu, pretrained = Resources.of(settings.device).gpus > 0, (settings.out / PRETRAINED).is_dir()
    return Estimator(records.values(), settings.data_dir, gpu=on_gpu, pretrained=pretrained)


def _remarks(settings: Settings, cells: Sequence[Resolved]) -> Iterator[str]:
    """Yield lines about epochs of averages, and about compilation on a CPU, which delays the first epoch."""
    if "epochs" in settings.narrowed and any(one.cell.average for one in cells):
        average, other = Average.of(settings.average), settings.epochs
        if other != average.epochs:
            yield f"averages train {average.epochs} epochs, got --epochs {other}. Use --average {average.kind}:{other}."
    pairs = [(one.method.load(), one.encoder) for one in cells]
    deep = [encoder.name for method, encoder in pairs if encoder and method.compiles and encoder.load().compiles]
    if not deep or Resources.of(settings.device).gpus or settings.compile is not None:
        return
    from llpbench.training.device import compiler_exists  # torch

    if compiler_exists():
        yield f"long trainings of {deep[0]} begin with one to three minutes of compilation, mostly cached afterwards"
    else:
        yield f"no C++ compiler: steps of {deep[0]} run uncompiled, which takes longer. Install g++ to compile them."


def _require_device(settings: Settings) -> None:
    """Raise `LLPBenchError` once, instead of in every cell, if device, precision, threads or compiler are missing."""
    if settings.threads > 1 and settings.ray_address is None and settings.threads > (cpus := Resources.of("cpu").cpus):
        raise LLPBenchError(f"--threads {settings.threads} is more than this machine's {cpus} CPU cores. Give fewer.")
    from llpbench.training.device import compiler_exists, pick_device, pick_precision  # torch

    device = pick_device(settings.device)
    pick_precision(settings.precision, device)
    if settings.compile and device.type == "cpu" and not compiler_exists():
        raise LLPBenchError("--compile needs a C++ compiler on a CPU, and there is none. Install g++, or leave it out.")


def _pick_executor(
    settings: Settings, jobs: Sequence[Job], resources: Resources, estimator: Estimator
) -> tuple[Executor, str]:
    """Return the executor that the settings ask for, and a line to show ("" mostly).

    `auto` is Ray if it is installed, several jobs can run at a time, and they take long enough. Raises `LLPBenchError`
    if the executor is unavailable.
    """
    name, note = "ray" if settings.ray_address is not None else settings.executor, ""
    if name == "auto":
        several = min(resources.cpus // settings.threads, len(jobs)) > 1 and not settings.device.startswith("cuda:")
        worth = several and estimator.seconds(*jobs) > _SECONDS_WORTH_RAY
        missing = worth and importlib.util.find_spec("ray") is None
        name = "ray" if worth and not missing else "inline"
        note = "Ray is not installed: cells run one after the other." if missing else ""
    if name == "ray":
        from llpbench.running.executors.ray import RayExecutor

        return RayExecutor.make(settings, jobs, resources, estimator), note
    return Inline(settings.environment, debug=name == "debug"), note
