"""Estimates: how long a run takes and how sure that is, and how much memory a cell needs.

Timings of this journal count first. Otherwise the published timings do, times the speed of this machine as far as the
journal shows it. Work that was never timed is guessed from similar work.
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
from statistics import median
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
    TRAINED,
    SizeOf,
    Timed,
    Timings,
    Work,
    pace_of,
    pretraining_of,
    table_sizes,
    timed,
    work_of,
)

_SETTLED = 3.0
"""Largest number of epochs divided by the epochs that a run trains; mean of the published runs with curves."""
_CORRELATION = 0.25
"""Correlation of the errors of two jobs: a busy machine slows all of them."""


class Basis(Enum):
    """Origin of an estimate, the surest first, with the factor that four of five jobs lie within."""

    SAME = "this journal", 1.5
    NEAR = "other cells of this journal", 2.0
    PUBLISHED = "published timings", 3.0
    GUESS = "a rough guess", 4.0

    def __init__(self, text: str, factor: float) -> None:
        self.text = text
        self.factor = factor


@dataclass(frozen=True)
class Estimate:
    """Seconds that something takes."""

    seconds: float = 0.0
    factor: float = 1.0
    """The true time most likely lies between `seconds` divided by this and `seconds` times this."""
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
        """Return the estimate of one part after the other; errors partly cancel."""
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
    """Estimates of jobs, which improve with every finished run."""

    def __init__(
        self,
        records: Iterable[Record],
        published: Callable[[], Timings],
        size_of: SizeOf,
        *,
        pace: Callable[[Cell], float] = lambda _: 1.0,
        gpu: bool = False,
        kept: bool = True,
    ) -> None:
        """`records`: of this journal. Times of another device than this run's are left out.

        `published` (timings of CPUs) is called when a job asks for more than the journal knows. `pace`: speed at which
        a cell trains (`Work.pace`). `kept`: weights that these records have pretrained are still there.
        """
        self._published = published
        self._size_of = size_of
        self._pace = pace
        self._gpu = gpu
        self._own = Timings()
        self._timed: list[Timed] = []
        self._speeds: dict[bool, float] = {}
        self._pretrained: set[Any] = set()
        self._megabytes: dict[tuple[Any, ...], float] = {}
        for record in records:
            self.learn(record)
        if not kept:
            self._pretrained.clear()

    def learn(self, record: Record) -> None:
        """Add a finished run; failed runs are ignored, since they may have ended early."""
        spec, on_gpu = record["spec"], is_on_gpu(record)
        if record["status"] != "ok":
            return
        if record["times"].get("pretraining") is not None:
            weights = _weights(spec, record["numerics"], record["sources"].get("encoder"))
            self._pretrained.add((weights, record["seed"]))
        if (memory := record["memory_mb"]) is not None:
            key, share = (on_gpu, *_shape(spec)), memory / max(record["members"], 1) if on_gpu else memory
            self._megabytes[key] = max(share, self._megabytes.get(key, 0.0))
        if on_gpu == self._gpu or spec["protocol"] is None:  # direct methods always use the CPU
            for each in timed(record, self._size_of):
                self._own.add(each)
                self._timed.append(each)
                self._speeds.clear()

    def estimate(self, job: Job) -> Estimate:
        """Return the time of a job, with the pretraining that it needs unless that was computed before."""
        return Estimate.sum(self._parts(job, set()))

    def total(self, jobs: Iterable[Job]) -> Estimate:
        """Return the time of all jobs, one after the other; shared pretraining counts once."""
        paid: set[Any] = set()
        return Estimate.sum(part for job in jobs for part in self._parts(job, paid))

    def gpu_megabytes(self, job: Job) -> float | None:
        """Return the peak GPU memory of a job; None if its shape of cell never ran on a GPU."""
        share = self._megabytes.get((True, *_shape(job.cell.spec)))
        members = len(job.seeds) * job.cell.ensemble if job.tuning is None else job.tuning.together
        return None if share is None else share * members

    def megabytes(self, job: Job) -> float | None:
        """Return the peak memory of a job's process; None if its shape of cell never ran on a CPU."""
        return self._megabytes.get((False, *_shape(job.cell.spec)))

    def _parts(self, job: Job, paid: set[Any]) -> Iterator[Estimate]:
        """Yield training, and the pretraining of seeds that are not `paid` for; they are afterwards."""
        spec = job.cell.spec
        size, pace = self._size_of(spec["dataset"]), self._pace(job.cell)
        yield self._of(work_of(spec, size, pace), len(job.seeds) if job.tuning is None else _runs_of(job.tuning))
        pretraining = pretraining_of(spec, size, pace)
        if pretraining is not None:
            weights = _weights(spec, NUMERICS, entry_hash(ENCODERS.entry(spec["encoder"])))
            new = {(weights, seed) for seed in job.seeds} - paid - self._pretrained
            paid |= new
            yield self._of(pretraining, len(new))

    def _of(self, work: Work, seeds: float) -> Estimate:
        if (seconds := self._own.near(work)) is not None:
            return Estimate.of(seconds * seeds, Basis.SAME if self._own.same(work) else Basis.NEAR)
        published = self._others.near(work)
        seconds = self._others.far(work) if published is None else published
        assert seconds is not None, "work of each kind is published"
        basis = Basis.GUESS if published is None or (self._gpu and work.kind != "fit") else Basis.PUBLISHED
        return Estimate.of(self._speed(work.kind == "fit") * seconds * seeds, basis)

    @cached_property
    def _others(self) -> Timings:
        return self._published()

    def _speed(self, fits: bool) -> float:
        """Return how many times the published seconds this machine takes for fits or for networks; 1 if unknown."""
        if fits not in self._speeds:
            own = (each for each in self._timed if (each.work.kind == "fit") == fits)
            pairs = ((each, self._others.near(each.work)) for each in own)
            self._speeds[fits] = median([each.seconds / other for each, other in pairs if other] or [1.0])
        return self._speeds[fits]


def make_estimator(records: Iterable[Record], environment: Environment, *, gpu: bool, kept: bool) -> Estimator:
    """Return an `Estimator` for a machine, from the records of a journal and the published timings."""
    size_of = table_sizes(environment.data_dir)

    def pace(cell: Cell) -> float:
        if gpu or cell.encoder is None:
            return 1.0
        from llpbench.training.compilation import compiles_on_cpu  # torch

        rows = int(TRAINED * size_of(cell.dataset).rows)
        trained = rows if cell.max_bags is None else min(rows, cell.max_bags * cell.bag_size)
        return pace_of(cell.encoder, compiles_on_cpu(cell, environment, trained), cell.precision)

    return Estimator(records, published_timings, size_of, pace=pace, gpu=gpu, kept=kept)


@cache
def published_timings() -> Timings:
    """Return the published timings of CPUs; a process reads them once."""
    return timings_of(record for name in SHIPPED for record in read_shipped(name, judged=False).records.values())


def timings_of(records: Iterable[Record]) -> Timings:
    """Return the timings of those records that were made on CPUs."""
    timings, size_of = Timings(), table_sizes(None)
    for record in records:
        if not is_on_gpu(record):
            for each in timed(record, size_of):
                timings.add(each)
    return timings


def is_on_gpu(record: Record) -> bool:
    """Return whether a run used a GPU; methods without epochs never do, whatever earlier records say."""
    return record["spec"]["protocol"] is not None and str(record["hardware"].get("device", "cpu")).startswith("cuda")


def _runs_of(tuning: Tuning) -> float:
    """Return about how many runs a search amounts to; most of its trials leave at one of the rungs."""
    rungs, share = (0, *tuning.rungs), 1.0
    if len(rungs) == 1 or tuning.cell.protocol is None:
        return tuning.trials
    epochs = 0.0
    for before, rung in pairwise(rungs):
        epochs += share * (rung - before)
        share /= tuning.eta
    # the remaining trials stop when their criteria have settled, as runs do
    return tuning.trials * min(epochs / tuning.cell.protocol.epochs * _SETTLED + share, 1.0)


def _shape(spec: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what decides the memory of a cell."""
    names = ("encoder", "method", "dataset", "bag_size", "max_bags", "ensemble")
    return (spec["protocol"] is None, *(spec.get(name) for name in names))


def _weights(spec: Mapping[str, Any], numerics: int, encoder_source: str | None) -> str:
    """Return what pretrained weights depend on besides the seed (`training/pretrained.py`); equal texts share them."""
    names = ("dataset", "bagging", "bag_size", "max_bags", "encoder", "encoder_params", "pretraining")
    more = ("pretraining_params", "precision", "numbers")
    parts = [spec.get(name) for name in (*names, *more)]
    bags_per_step = (spec["protocol"] or {}).get("bags_per_step")
    return json.dumps([*parts, bags_per_step, numerics, encoder_source], sort_keys=True)
