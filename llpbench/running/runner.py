"""A benchmark run: plan, make the data local, compute what is missing or stale, journal each result.

Everything that is finished is in the journal, so a run can be stopped at any moment and repeated: it does what is
missing. Reports are made elsewhere.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from llpbench.core.cell import Cell, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import require_folder
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record, Status, TuningRecord
from llpbench.core.registry import ENCODERS, METHODS
from llpbench.core.text import duration, plural
from llpbench.results.journal import FILE, Contents, Journal, read
from llpbench.results.merging import join
from llpbench.results.staleness import cell_spec, comparison
from llpbench.running.estimates import Basis, Estimate, Estimator, make_estimator
from llpbench.running.executors import Executor, Request, failure, make_executor, notify
from llpbench.running.inline import HeadStart
from llpbench.running.interrupts import interruptible
from llpbench.running.obstacles import downloads, obstacles
from llpbench.running.planning import Plan, chosen_cells, expand, make_plan, tunings_of, with_tunings
from llpbench.running.resources import Resources, available, usable_cpus
from llpbench.running.run_progress import Display, title
from llpbench.running.schedule import Ended, Job, Schedule
from llpbench.running.settings import PREDICTIONS, PRETRAINED, Settings

_SECONDS_WORTH_RAY = 30.0
"""of work: Ray takes about ten to start and to stop"""
_WORTH_NAMING = 0.05
"""of an estimate: the least share of a basis that is named"""
_LEAST_TIMEOUT, _TIMES_ESTIMATED = 3600.0, 10.0
"""when a job is taken to hang, unless somebody says: seconds at least, and times the most that is estimated"""
_ESTIMATING = 100.0
"""for how many times as long as an estimate of what remains has taken there is no other"""
_MOST_ATTEMPTS = 3
"""of a job that was cut short through no fault of its own"""


Kind = TypeVar("Kind", Record, TuningRecord)


@dataclass(frozen=True)
class RunSummary:
    """How a run ended."""

    plan: Plan
    """as it stood before the run"""
    left: int
    """runs that were not started because the time budget was over"""
    contents: Contents
    """of the journal, after the run"""

    @property
    def failed(self) -> list[Record | TuningRecord]:
        """The runs and searches of the plan that have failed, now or before."""
        made = (self.contents.tunings.get(each.tuning.id) for each in self.plan.tunings)
        searches = [record for record in made if record is not None]
        chosen = [cell for record in searches for cell in chosen_cells(record)]
        cells = (*(each.cell for each in self.plan.cells), *chosen)
        runs = {cell.run_id(seed) for cell in cells for seed in self.plan.seeds}
        found = [self.contents.records[run] for run in runs if run in self.contents.records]
        every: list[Record | TuningRecord] = [*searches, *found]
        return [record for record in every if record["status"] != "ok"]

    @property
    def incomplete(self) -> bool:
        """Whether a run failed or data could not be loaded. Impossible and remaining runs are no failures."""
        met = [*(cell.obstacle for cell in self.plan.cells), *(each.obstacle for each in self.plan.tunings)]
        unlucky = any(obstacle and not obstacle.lasting for obstacle in met)
        return unlucky or bool(self.failed)


def preview(settings: Settings, say: Callable[[str], None]) -> tuple[Plan, Estimate]:
    """The plan of a run, and how long its work takes, one job after the other; `say` is told what to expect besides.

    Downloads, writes and computes nothing.

    Raises `LLPBenchError` for bad settings, and if not a single cell is possible.
    """
    cells = expand(settings)
    contents = _known(settings, read(settings.journal / FILE))
    plan = _plan(settings, cells, contents).with_obstacles(obstacles(settings.data_dir, load=False))
    if plan.jobs:
        _require_device(settings)
    resources = available(settings.device)
    estimate = _estimator(settings, contents.records, resources).total(plan.expected)
    if compiling := _compiling(settings, plan.jobs, resources):
        say(compiling)
    return plan, estimate


def run(settings: Settings, display: Display) -> RunSummary:
    """Do what is missing or stale, and journal it in `settings.out`.

    Raises `LLPBenchError` for bad settings, bad data and a journal that cannot be written, `KeyboardInterrupt` on
    SIGINT and SIGTERM. In every case what was finished is in the journal.
    """
    end = math.inf if settings.time_budget is None else time.monotonic() + settings.time_budget
    cells = expand(settings)
    with interruptible(), Journal(settings.journal) as journal:
        plan = _plan(settings, cells, _known(settings, journal.contents))
        with display:
            for warning in journal.contents.warnings:
                display.say(warning, warning=True)
            for source in downloads({job.cell.dataset: None for job in plan.jobs}, settings.data_dir):
                display.say(f"downloading {source}")
            plan = plan.with_obstacles(obstacles(settings.data_dir, load=True))
            for reason in plan.reasons:
                display.say(f"impossible: {reason}", warning=True)
            for doubt in plan.doubts:
                display.say(doubt, warning=True)
            if without := _without_predictions(settings, plan, journal.contents):
                display.say(f"{plural(without, 'run')} done without predictions: --retry done makes them again with.")
            left = _execute(settings, plan, journal, display, end)
        return RunSummary(plan, left, _known(settings, journal.contents))


def _execute(settings: Settings, plan: Plan, journal: Journal, display: Display, end: float) -> int:
    """Run the plan; return the number of runs that were left because time was over."""
    jobs = plan.jobs
    if not jobs:
        display.say(f"nothing to run: {counts(plan)}")
        for change in plan.changes:
            display.say(f"stale: {change}")
        return 0
    _require_device(settings)
    if any(job.cell.pretraining != "none" for job in jobs):
        require_folder(settings.out / PRETRAINED, "pretrained weights")
    if settings.save_predictions:
        require_folder(settings.out / PREDICTIONS, "predictions")
    resources = available(settings.device)
    estimator = _estimator(settings, _known(settings, journal.contents).records, resources)
    executor, note = pick_executor(settings, jobs, resources, estimator)
    schedule = Schedule(
        jobs,
        lambda job: estimator.estimate(job).seconds,
        end,
        at_least=lambda job: estimator.estimate(job).low,
        timeout=partial(_timeout, settings, estimator),
    )
    work = _Work(journal, estimator, schedule, display, executor.slots, partial(_follow, settings, journal))
    for line in filter(None, (note, _compiling(settings, jobs, resources))):
        display.say(line)
    display.say(f"{counts(plan)}; {about(work.remaining)}; {executor.name}, {executor.slots} at a time")
    for change in plan.changes:
        display.say(f"stale: {change}")
    known = _kept(plan, _known(settings, journal.contents))
    display.begin(sum(len(job.seeds) for job in jobs), known, plan.found)
    display.estimate(work.remaining.seconds)
    executor.run(schedule, work)
    left = sum(len(job.seeds) for job in schedule.left)
    if left:
        display.say(f"time is up: {plural(left, 'run')} left. Run the same command again to go on.", warning=True)
    return left


class _Work:
    """Hears what an executor does: journals it, learns from it, shows it, puts back what ran out of memory."""

    def __init__(
        self,
        journal: Journal,
        estimator: Estimator,
        schedule: Schedule,
        display: Display,
        slots: int,
        follow: Callable[[TuningRecord], list[Job]],
    ) -> None:
        """`follow`: what is to run because of what a search has found."""
        self._follow = follow
        self._journal = journal
        self._estimator = estimator
        self._schedule = schedule
        self._display = display
        self._slots = slots
        self._running: dict[str, tuple[Job, float]] = {}
        self._done: set[str] = set()
        """cells that have run"""
        self._estimated = -math.inf
        """when the next estimate of what remains is due"""

    @property
    def remaining(self) -> Estimate:
        """How long it takes until all is done: what is left for each slot, and no less than the longest job."""
        now = time.monotonic()
        jobs = [*(job for job, _ in self._running.values()), *self._schedule.waiting]
        spent = [now - since for _, since in self._running.values()] + [0.0] * len(self._schedule.waiting)
        total = self._estimator.total(jobs)
        each = [self._estimator.estimate(job).seconds for job in jobs]
        done = sum(map(min, spent, each))
        longest = max((max(seconds - gone, 0.0) for seconds, gone in zip(each, spent, strict=True)), default=0.0)
        return replace(total, seconds=max((total.seconds - done) / self._slots, longest))

    def started(self, job: Job) -> None:
        self._running[job.id] = job, time.monotonic()
        self._display.started(job)

    def progressed(self, job: Job, epoch: Epoch) -> None:
        self._display.progressed(job, epoch)

    def found(self, job: Job, record: TuningRecord) -> None:
        del self._running[job.id]
        self._journal.append_tuning(record)
        running = (one for one, _ in self._running.values())
        known = self._done | {each.id for each in (*running, *self._schedule.waiting, *self._schedule.left)}
        follow = [each for each in self._follow(record) if each.id not in known]
        for each in follow:
            self._schedule.put(each)
        self._display.found(job, record, sum(len(each.seeds) for each in follow))
        self._estimate()

    def finished(self, job: Job, records: list[Record]) -> None:
        del self._running[job.id]
        self._done.add(job.id)
        crowded = self._slots > 1 and not job.alone
        again = tuple(record["seed"] for record in records if crowded and record["status"] == "out-of-memory")
        ended = [record for record in records if record["seed"] not in again]  # the others are still to run
        self._journal.append(*ended)
        for record in ended:
            self._estimator.learn(record)
        if again:
            self._schedule.put(Job(job.cell, again, alone=True))
            self._display.say(f"{title(job)}: out of memory beside others, will be tried alone", warning=True)
        self._display.finished(job, ended)
        self._estimate()

    def ended(self, job: Job, end: Ended) -> None:
        again = _again(job, end)
        if end.how == "stopped":
            self._schedule.left.append(job)
        elif again is None:
            status: Status = "timed-out" if end.how == "timed-out" else "failed"
            notify(self, job, failure(job, end.reason, status))
            return
        else:
            self._schedule.put(again)
            how = " alone" if again.alone and not job.alone else ""
            self.warned(f"{title(job)}: {end.reason}; it will be tried once more{how}")
        del self._running[job.id]
        self._display.finished(job, [])

    def warned(self, text: str) -> None:
        self._display.say(text, warning=True)

    def _estimate(self) -> None:
        """Show how much remains, unless that was done just now: with many jobs, it takes longer than some of them."""
        now = time.monotonic()
        if now >= self._estimated:
            self._display.estimate(self.remaining.seconds)
            self._estimated = now + _ESTIMATING * (time.monotonic() - now)


def _again(job: Job, end: Ended) -> Job | None:
    """The job to retry; None if its end is its own fault, or it was tried often enough."""
    if end.how == "killed" and not job.alone:
        return replace(job, alone=True)
    if end.how == "interrupted":
        return job
    if end.how == "lost" and job.attempt < _MOST_ATTEMPTS:
        return replace(job, attempt=job.attempt + 1)
    return None


def _timeout(settings: Settings, estimator: Estimator, job: Job) -> float:
    """Seconds after which a job is taken to hang."""
    if settings.cell_timeout is not None:
        return settings.cell_timeout
    return max(_TIMES_ESTIMATED * estimator.estimate(job).high, _LEAST_TIMEOUT)


def counts(plan: Plan) -> str:
    """`12 runs to do in 4 cells, 2 of them stale, 3 done, 1 failed, 6 impossible`; what is to do is counted once."""
    jobs = [job for job in plan.jobs if job.tuning is None]
    parts = [f"{plural(sum(len(job.seeds) for job in jobs), 'run')} to do in {plural(len(jobs), 'cell')}"]
    again = sum(len({*cell.stale}.intersection(cell.wanted)) for cell in plan.cells if not cell.obstacle)
    if again:
        parts.append(f"{again:,} of them stale")
    kept = [(cell, cell.kept) for cell in plan.cells]
    others = {
        "done": sum(len(seeds.intersection(cell.done)) for cell, seeds in kept),
        "failed": sum(len(seeds.intersection(cell.failed)) for cell, seeds in kept),
        "stale and kept": sum(len(seeds.intersection(cell.stale)) for cell, seeds in kept),
        "impossible": sum(len(cell.wanted) for cell in plan.of("impossible")),
    }
    told = ", ".join([*parts, *(f"{number:,} {state}" for state, number in others.items() if number)])
    return f"{_searches(plan)}; {told}" if plan.tunings else told


def _searches(plan: Plan) -> str:
    """`2 tunings to do, whose choices are run then, 1 done`."""
    number, states = len(plan.searches), Counter(each.state for each in plan.tunings)
    to_do = f"{plural(number, 'tuning')} to do{', whose choices are run then' if number and plan.seeds else ''}"
    others = (f"{states[state]:,} {state}" for state in ("done", "failed", "impossible") if states[state])
    return ", ".join([to_do, *others])


def about(estimate: Estimate) -> str:
    """`about 12 min (8 min to 18 min, from this journal)`: how long, how sure, and why."""
    if estimate.high < 1.0:
        return "less than a second"
    least = _WORTH_NAMING * sum(estimate.bases.values())
    most = [basis for basis in Basis if estimate.bases.get(basis, 0.0) >= least]
    origin = " and ".join(basis.text for basis in most)
    return f"about {duration(estimate.seconds)} ({duration(estimate.low)} to {duration(estimate.high)}, from {origin})"


def _plan(settings: Settings, cells: list[Cell], contents: Contents) -> Plan:
    """The cells, the searches for their hyperparameters, and what the searches that have been made have chosen."""
    compared = comparison()
    tunings = tunings_of(settings, cells)
    searched = with_tunings(Plan(()), tunings, contents.tunings, again=settings.again, why_stale=compared)
    if settings.tune_only:
        return searched
    chosen = (cell for record in searched.found if record["status"] == "ok" for cell in chosen_cells(record))
    every = {cell.id: cell for cell in (*cells, *(tuning.cell for tuning in tunings), *chosen)}
    plan = make_plan(every.values(), settings.seeds, contents.records, again=settings.again, why_stale=compared)
    runs = (contents.records.get(each.cell.run_id(seed)) for each in plan.cells for seed in each.wanted)
    _refuse_newer([*runs, *(each.record for each in searched.tunings if each.wanted)])
    return replace(plan, tunings=searched.tunings, seeds=settings.seeds)


def _refuse_newer(again: Iterable[Record | TuningRecord | None]) -> None:
    """Raise `LLPBenchError` if later code has made runs that would be repeated: the newest code counts, so every repeat
    would make it again."""
    for record in again:
        if record is not None and record["numerics"] > NUMERICS:
            raise LLPBenchError(
                f"the journal has results of {cell_spec(record)['method']} from a newer llpbench (numerics "
                f"{record['numerics']}, here {NUMERICS}). Install it, keep the results (--keep-stale), or choose "
                "another --out."
            )


def _known(settings: Settings, contents: Contents) -> Contents:
    """Contents of a journal; for a shard, together with those of the common journal.

    What today's code has made counts, wherever it is: of two journals only clocks say which is newer.
    """
    if settings.shard is None:
        return contents
    joined, why = join((read(settings.out / FILE), contents)), comparison()
    last = {run: records[-1] for run, records in joined.kept.items()}  # disputed ones, too: they have been made
    last |= _current(contents.records, last, why)
    return replace(contents, records=last, tunings=joined.tunings | _current(contents.tunings, joined.tunings, why))


def _current(
    own: Mapping[str, Kind], joined: Mapping[str, Kind], why: Callable[[Record | TuningRecord], str]
) -> dict[str, Kind]:
    """The records that are not stale, though those that count instead are."""
    return {name: record for name, record in own.items() if why(joined[name]) and not why(record)}


def _follow(settings: Settings, journal: Journal, record: TuningRecord) -> list[Job]:
    """Runs that follow from the result of a search."""
    if settings.tune_only or record["status"] != "ok":
        return []
    cells, known = chosen_cells(record), _known(settings, journal.contents)
    return make_plan(cells, settings.seeds, known.records, again=settings.again, why_stale=comparison()).jobs


def _estimator(settings: Settings, records: Mapping[str, Record], resources: Resources) -> Estimator:
    pretrained = (settings.out / PRETRAINED).is_dir()
    return make_estimator(records.values(), settings.environment, gpu=resources.gpus > 0, pretrained=pretrained)


def _kept(plan: Plan, contents: Contents) -> list[Record]:
    """The records of a plan that stay as they are."""
    return [contents.records[each.cell.run_id(seed)] for each in plan.cells for seed in each.kept]


def _without_predictions(settings: Settings, plan: Plan, contents: Contents) -> int:
    """Runs that are done and stay so, though what they predicted is wanted and was not kept."""
    if not settings.save_predictions:
        return 0
    folder = settings.out / PREDICTIONS
    kept = [record for record in _kept(plan, _known(settings, contents)) if record["status"] == "ok"]
    return sum(not (folder / f"{record['run']}.parquet").exists() for record in kept)


def _compiling(settings: Settings, jobs: Sequence[Job], resources: Resources) -> str:
    """A line on compiled steps on a CPU, which take their time before the first epoch; "" where there are none."""
    named = [(METHODS.get(job.cell.method), job.cell.encoder) for job in jobs]
    deep = [name for method, name in named if name and method.compiles and ENCODERS.get(name).compiles]
    if not deep or resources.gpus or settings.compile is not None:
        return ""
    from llpbench.training.compilation import compiler_exists  # torch

    if not compiler_exists():
        return f"no C++ compiler: steps of {deep[0]} run uncompiled, which takes longer. Install g++ to compile them."
    return (
        f"long trainings of {deep[0]} begin with one to three minutes of compilation, which is mostly cached afterwards"
    )


def _require_device(settings: Settings) -> None:
    """Raise here for a device, precision, threads or compiler that are not available, rather than in every cell."""
    cpus = usable_cpus()
    if settings.threads > cpus and settings.ray_address is None:
        raise LLPBenchError(f"--threads {settings.threads} is more than this machine's {cpus} CPU cores. Give fewer.")
    from llpbench.training.compilation import compiler_exists  # torch
    from llpbench.training.device import pick_device, pick_precision

    device = pick_device(settings.device)
    pick_precision(settings.precision, device)
    if settings.compile and device.type == "cpu" and not compiler_exists():
        raise LLPBenchError("--compile needs a C++ compiler on a CPU, and there is none. Install g++, or leave it out.")


def pick_executor(
    settings: Settings, jobs: Sequence[Job], resources: Resources, estimator: Estimator
) -> tuple[Executor, str]:
    """Return the executor that the settings ask for, and a line to show ("" mostly).

    `auto` is Ray where it is installed, several jobs can run at a time, and they are worth its start; cheap jobs are
    done before that. Raises `LLPBenchError` if the executor is unavailable.
    """
    request = Request(settings, jobs, resources, estimator)
    name = "ray" if settings.ray_address is not None else settings.executor
    if name != "auto":
        return make_executor(name, request), ""
    several = min(resources.cpus // settings.threads, len(jobs)) > 1 and not settings.device.startswith("cuda:")
    if not several or estimator.total(jobs).seconds <= _SECONDS_WORTH_RAY:
        return make_executor("inline", request), ""
    if importlib.util.find_spec("ray") is None:
        return make_executor("inline", request), "Ray is not installed: cells run one after the other."
    start = partial(make_executor, "ray", request)
    return HeadStart("ray", resources.slots(settings.threads), start, settings.environment), ""
