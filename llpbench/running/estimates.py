"""Estimates of the time and memory of jobs.

Timings of the run's journal are used first, then published timings. These are scaled by the speed of this machine if
the journal shows it. The time of work without timings is guessed from similar work.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

from llpbench.core.cell import Cell, Environment
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record
from llpbench.core.registry import ENCODERS
from llpbench.core.source_hash import entry_hash
from llpbench.core.tuning_spec import Tuning
from llpbench.results.merging import SHIPPED, read_shipped
from llpbench.running.schedule import Job
from llpbench.running.timings import (
    NEAR,
    SAME,
    TRAINING_SHARE,
    SizeOf,
    Timings,
    Work,
    pretraining_of,
    speed_of,
    table_sizes,
    timed,
    work_of,
)

_EARLY_STOPPING = 3.0
"""Largest number of epochs divided by the epochs of a run; mean of the published runs with curves."""
_CORRELATION = 0.25
"""Correlation of the errors of two jobs: a busy machine slows all of them."""


class Basis(Enum):
    """Origin of an estimate, the most accurate first, with the factor that includes four of five jobs."""

    SAME = "this journal", 1.5
    NEAR = "other cells of this journal", 2.0
    PUBLISHED = "published timings", 3.0
    GUESS = "a rough guess", 4.0

    def __init__(self, text: str, factor: float) -> None:
        self.text = text
        self.factor = factor


@dataclass(frozen=True)
class Estimate:
    """An estimated time."""

    seconds: float = 0.0
    factor: float = 1.0
    """The true time probably lies between `seconds / factor` and `seconds * factor`."""
    bases: Mapping[Basis, float] = field(default_factory=dict)
    """Seconds by basis."""

    @property
    def low(self) -> float:
        return self.seconds / self.factor

    @property
    def high(self) -> float:
        return self.seconds * self.factor

    @staticmethod
    def of(seconds: float, basis: Basis) -> Estimate:
        """Return an estimate on one basis."""
        return Estimate(seconds, basis.factor, {basis: seconds})

    @staticmethod
    def sum(parts: Iterable[Estimate]) -> Estimate:
        """Return the time of all parts, one after the other. Their errors partly cancel."""
        total, squares, errors = 0.0, 0.0, 0.0
        bases: defaultdict[Basis, float] = defaultdict(float)
        for part in parts:
            error = part.seconds * math.log(part.factor)
            total, squares, errors = total + part.seconds, squares + error**2, errors + error
            for basis, seconds in part.bases.items():
                bases[basis] += seconds
        if total == 0.0:
            return Estimate()
        deviation = math.sqrt((1 - _CORRELATION) * squares + _CORRELATION * errors**2)
        return Estimate(total, math.exp(deviation / total), dict(bases))


class Estimator:
    """Estimator of jobs. It learns from each finished run."""

    def __init__(
        self,
        records: Iterable[Record],
        published: Callable[[], Timings],
        size_of: SizeOf,
        *,
        speed_of_cell: Callable[[Cell], float] = lambda _: 1.0,
        gpu: bool = False,
        pretrained: bool = True,
    ) -> None:
        """Learn from the records of a journal.

        - `published`: returns the published timings of CPUs; called only if the journal does not suffice
        - `size_of`: returns the size of a dataset
        - `speed_of_cell`: returns the speed at which a cell trains (`timings.speed_of`)
        - `gpu`: whether jobs use a GPU; timings of other devices are ignored
        - `pretrained`: whether the pretrained weights of the records still exist
        """
        self._published_timings = published
        self._size_of = size_of
        self._speed_of_cell = speed_of_cell
        self._gpu = gpu
        self._timings = Timings()
        self._pretrained: set[Any] = set()
        self._megabytes: dict[tuple[Any, ...], float] = {}
        for record in records:
            self.learn(record)
        if not pretrained:
            self._pretrained.clear()

    def learn(self, record: Record) -> None:
        """Learn from a finished run. Failed runs are ignored, since they may have ended early."""
        if record["status"] != "ok":
            return
        spec, on_gpu = record["spec"], is_on_gpu(record)
        if record["times"].get("pretraining") is not None:
            weights = _weights(spec, record["numerics"], record["sources"].get("encoder"))
            self._pretrained.add((weights, record["seed"]))
        if (memory := record["memory_mb"]) is not None:
            key, share = (on_gpu, *_memory_key(spec)), memory / max(record["members"], 1) if on_gpu else memory
            self._megabytes[key] = max(share, self._megabytes.get(key, 0.0))
        if on_gpu == self._gpu or spec["protocol"] is None:  # direct methods always use the CPU
            for work, seconds in timed(record, self._size_of):
                self._timings.add(work, seconds)

    def estimate(self, job: Job) -> Estimate:
        """Return the time of a job, including pretraining that has not been done."""
        return Estimate.sum(self._parts(job, set()))

    def total(self, jobs: Iterable[Job]) -> Estimate:
        """Return the time of all jobs, one after the other. Shared pretraining counts once."""
        counted: set[Any] = set()
        return Estimate.sum(part for job in jobs for part in self._parts(job, counted))

    def gpu_megabytes(self, job: Job) -> float | None:
        """Return the peak GPU memory of a job; None if no similar cell has run on a GPU."""
        share = self._megabytes.get((True, *_memory_key(job.cell.spec)))
        members = len(job.seeds) * job.cell.ensemble if job.tuning is None else job.tuning.together
        return None if share is None else share * members

    def megabytes(self, job: Job) -> float | None:
        """Return the peak memory of a job's process; None if no similar cell has run on a CPU."""
        return self._megabytes.get((False, *_memory_key(job.cell.spec)))

    def _parts(self, job: Job, counted: set[Any]) -> Iterator[Estimate]:
        """Yield the times of training and of pretraining. Pretrained weights in `counted` are skipped, others added."""
        spec = job.cell.spec
        size, speed = self._size_of(spec["dataset"]), self._speed_of_cell(job.cell)
        runs = len(job.seeds) if job.tuning is None else _runs_of(job.tuning)
        yield self._estimate(work_of(spec, size, speed), runs)
        pretraining = pretraining_of(spec, size, speed)
        if pretraining is not None:
            weights = _weights(spec, NUMERICS, entry_hash(ENCODERS.entry(spec["encoder"])))
            new = {(weights, seed) for seed in job.seeds} - counted - self._pretrained
            counted |= new
            yield self._estimate(pretraining, len(new))

    def _estimate(self, work: Work, runs: float) -> Estimate:
        if (timing := self._timings.seconds(work, NEAR)) is not None:
            seconds, level = timing
            return Estimate.of(seconds * runs, Basis.SAME if level == SAME else Basis.NEAR)
        timing = self._published.seconds(work)
        assert timing is not None, "work of each kind is published"
        seconds, level = timing
        fits = work.kind.kind == "fit"
        basis = Basis.GUESS if level > NEAR or (self._gpu and not fits) else Basis.PUBLISHED
        return Estimate.of(self._timings.relative_to(self._published, fits=fits) * seconds * runs, basis)

    @cached_property
    def _published(self) -> Timings:
        return self._published_timings()


def make_estimator(records: Iterable[Record], environment: Environment, *, gpu: bool, pretrained: bool) -> Estimator:
    """Return an estimator for this machine, from the records of a journal and the published timings."""
    size_of = table_sizes(environment.data_dir)

    def speed_of_cell(cell: Cell) -> float:
        if gpu or cell.encoder is None:
            return 1.0
        from llpbench.training.compilation import compiles_on_cpu  # torch

        rows = int(TRAINING_SHARE * size_of(cell.dataset).rows)
        used = rows if cell.max_bags is None else min(rows, cell.max_bags * cell.bag_size)
        return speed_of(cell.encoder, compiles_on_cpu(cell, environment, used), cell.precision)

    return Estimator(records, published_timings, size_of, speed_of_cell=speed_of_cell, gpu=gpu, pretrained=pretrained)


@cache
def published_timings() -> Timings:
    """Return the published timings of CPUs. They are read once per process."""
    return timings_of(record for name in SHIPPED for record in read_shipped(name, judged=False).records.values())


def timings_of(records: Iterable[Record]) -> Timings:
    """Return the timings of records that were made on CPUs."""
    timings, size_of = Timings(), table_sizes(None)
    for record in records:
        if not is_on_gpu(record):
            for work, seconds in timed(record, size_of):
                timings.add(work, seconds)
    return timings


def is_on_gpu(record: Record) -> bool:
    """Return whether a run used a GPU. Methods without epochs never do, whatever older records say."""
    return record["spec"]["protocol"] is not None and str(record["hardware"].get("device", "cpu")).startswith("cuda")


def _runs_of(tuning: Tuning) -> float:
    """Return the number of runs that take as long as a search. Most of its trials stop at one of the rungs."""
    rungs, share = (0, *tuning.rungs), 1.0
    if len(rungs) == 1 or tuning.cell.protocol is None:
        return tuning.trials
    epochs = 0.0
    for before, rung in pairwise(rungs):
        epochs += share * (rung - before)
        share /= tuning.eta
    return tuning.trials * min(epochs / tuning.cell.protocol.epochs * _EARLY_STOPPING + share, 1.0)


def _memory_key(spec: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts of a specification that determine the memory of a cell."""
    names = ("encoder", "method", "dataset", "bag_size", "max_bags", "ensemble")
    return (spec["protocol"] is None, *(spec.get(name) for name in names))


def _weights(spec: Mapping[str, Any], numerics: int, encoder_source: str | None) -> str:
    """Return a key of pretrained weights: all that determines them, except the seed (`training/pretrained.py`)."""
    names = ("dataset", "bagging", "bag_size", "max_bags", "encoder", "encoder_params", "pretraining")
    more = ("pretraining_params", "precision", "numbers")
    parts = [spec.get(name) for name in (*names, *more)]
    bags_per_step = (spec["protocol"] or {}).get("bags_per_step")
    return json.dumps([*parts, bags_per_step, numerics, encoder_source], sort_keys=True)
