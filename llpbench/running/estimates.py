"""Estimates: how long a run will take and how sure that is, and how much GPU memory a cell will want.

What this journal has timed counts first. What it has not is estimated from the published timings, times the speed of
this machine: as this journal shows it, else as a few steps do that are measured now (`calibration.py`). What nobody has
timed is guessed from all that was.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, cached_property
from itertools import pairwise
from statistics import median
from typing import Any

from llpbench.core.cell import Cell, Environment
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record
from llpbench.core.registry import ENCODERS
from llpbench.core.source import entry_hash
from llpbench.core.tunings import Tuning
from llpbench.results.merging import read_published
from llpbench.running.calibration import BAG_SIZE, DATASET, ENCODER, METHOD, TRAINED, Calibration
from llpbench.running.schedule import Job
from llpbench.running.timings import (
    SizeOf,
    Timed,
    Timing,
    Timings,
    Work,
    pace_of,
    pretraining_of,
    table_sizes,
    timed,
    work_of,
)

Measure = Callable[[str], float | None]
"""seconds per value and epoch that the calibration takes on this machine with an encoder"""

_SETTLED = 3.0
"""times as many epochs as a run takes there may be at most: the mean of the published runs whose curves are known"""
_CORRELATION = 0.25
"""between the errors of two jobs: a busy machine slows all of them, but how long one trains is its own affair"""


class Basis(Enum):
    """What an estimate rests on, the surest first."""

    SAME = "this journal"
    NEAR = "other cells of this journal"
    PUBLISHED = "published timings scaled to this machine"
    ELSEWHERE = "published timings of another machine"
    GUESS = "a rough guess for what nobody has timed"


_FACTORS = {Basis.SAME: 1.3, Basis.NEAR: 2.0, Basis.PUBLISHED: 2.3, Basis.ELSEWHERE: 3.0, Basis.GUESS: 4.0}
"""Within which factor of its estimate the time of a job lies in four of five cases. Of the published runs, made on
machines that others used too, 80 % lie between 0.5 and 2.3 times what those of the other datasets let expect."""


@dataclass(frozen=True)
class Estimate:
    """Seconds that something will take."""

    seconds: float = 0.0
    factor: float = 1.0
    """it will most likely lie between `seconds` divided by it and `seconds` times it"""
    bases: Mapping[Basis, float] = field(default_factory=dict)
    """the seconds that rest on each basis"""

    @property
    def low(self) -> float:
        return self.seconds / self.factor

    @property
    def high(self) -> float:
        return self.seconds * self.factor

    @staticmethod
    def of(seconds: float, basis: Basis) -> Estimate:
        """An estimate on one basis."""
        return Estimate(seconds, _FACTORS[basis], {basis: seconds})

    @staticmethod
    def sum(parts: Iterable[Estimate]) -> Estimate:
        """One thing after the other: errors partly cancel."""
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
    """How long jobs take. It learns from every run that is finished."""

    def __init__(
        self,
        records: Iterable[Record],
        published: Callable[[], Timings],
        measure: Measure,
        size_of: SizeOf,
        *,
        pace: Callable[[Cell], float] = lambda _: 1.0,
        gpu: bool = False,
        kept: bool = True,
    ) -> None:
        """`records`: of this journal; those that were not computed as this run will be, on a GPU or not, are left out.

        `published` (timings of CPUs) and `measure` are called only if jobs ask for what this journal does not know.
        `pace`: how many times as fast as uncompiled in float32 a cell will train. `kept`: what these records have
        pretrained is still there.
        """
        self._published = published
        self._measure = measure
        self._size_of = size_of
        self._pace = pace
        self._gpu = gpu
        self._own = Timings()
        self._timed: dict[tuple[bool, str | None], list[Timed]] = defaultdict(list)
        self._speeds: dict[tuple[bool, str | None], float] = {}
        self._measured: dict[str, float | None] = {}
        self._pretrained: set[Any] = set()
        self._gpu_megabytes: dict[Any, float] = {}
        """of a member"""
        self._megabytes: dict[Any, float] = {}
        for record in records:
            self.learn(record)
        if not kept:
            self._pretrained.clear()

    def learn(self, record: Record) -> None:
        """Take one more record into account; failed ones say nothing, they may have ended early."""
        spec = record["spec"]
        on_gpu = _on_gpu(record)
        if record["status"] != "ok":
            return
        if record["times"].get("pretraining") is not None:
            self._pretrained.add((_shared(spec, record["numerics"], record["sources"].get("encoder")), record["seed"]))
        if (memory := record["memory_mb"]) is not None:
            known = self._gpu_megabytes if on_gpu else self._megabytes
            each = memory / max(record["members"], 1) if on_gpu else memory
            known[_shape(spec)] = max(each, known.get(_shape(spec), 0.0))
        if on_gpu == self._gpu or spec["protocol"] is None:  # direct methods run on the CPU anyway
            for each_timed in timed(record, self._size_of):
                self._own.add(each_timed)
                self._timed[_machinery(each_timed.work)].append(each_timed)
                self._speeds.pop(_machinery(each_timed.work), None)

    def estimate(self, job: Job) -> Estimate:
        """How long a job takes, with the pretraining that it starts from unless that was computed before."""
        return Estimate.sum(self._parts(job, set()))

    def total(self, jobs: Iterable[Job]) -> Estimate:
        """How long all jobs take, one after the other; what they share is pretrained once."""
        paid: set[Any] = set()
        return Estimate.sum(part for job in jobs for part in self._parts(job, paid))

    def gpu_megabytes(self, job: Job) -> float | None:
        """Peak GPU memory that a job will want, None if its cell's shape was never run on a GPU."""
        each = self._gpu_megabytes.get(_shape(job.cell.spec))
        members = len(job.seeds) * job.cell.ensemble if job.tuning is None else job.tuning.together
        return None if each is None else each * members

    def megabytes(self, job: Job) -> float | None:
        """Peak memory of a process that does it, None if its cell's shape was never run on a CPU."""
        return self._megabytes.get(_shape(job.cell.spec))

    def _parts(self, job: Job, paid: set[Any]) -> Iterator[Estimate]:
        """Training, and the pretraining of those seeds that have none yet and are not `paid` for; they then are."""
        spec = job.cell.spec
        values, pace = self._size_of(spec["dataset"]).values, self._pace(job.cell)
        yield self._of(work_of(spec, values, pace), len(job.seeds) if job.tuning is None else _runs_of(job.tuning))
        pretraining = pretraining_of(spec, values, pace)
        if pretraining is not None:
            weights = _shared(spec, NUMERICS, entry_hash(ENCODERS.entry(spec["encoder"])))
            each = ((weights, seed) for seed in job.seeds)
            new = {one for one in each if one not in paid and one not in self._pretrained}
            paid |= new
            if new:
                yield self._of(pretraining, len(new))

    def _of(self, work: Work, seeds: float) -> Estimate:
        if own := self._own.find(work):
            return Estimate.of(own.seconds(work) * seeds, Basis.SAME if own.same else Basis.NEAR)
        timing, known = self._reference(work)
        speed = self._speed(work)
        basis = Basis.GUESS if self._gpu or not known else Basis.ELSEWHERE if speed is None else Basis.PUBLISHED
        return Estimate.of((speed or 1.0) * timing.seconds(work) * seeds, basis)

    @cached_property
    def _others(self) -> Timings:
        """The published timings."""
        return self._published()

    def _reference(self, work: Work) -> tuple[Timing, bool]:
        """What is published of some work, and whether just that was timed; else what is nearest."""
        if known := self._others.find(work):
            return known, True
        usual = replace(work, encoder=ENCODER) if work.encoder else work
        nearest = self._others.find(usual) or self._others.typical(work)
        assert nearest is not None, "something of each kind is published"
        if work.encoder is None or self._others.find(_yardstick(work.encoder)):
            return nearest, False
        # Some of what a method costs beyond the yardstick is passes through the encoder, as dear as that is, and some
        # is its own, whatever the encoder: hence the geometric mean of both extremes.
        yardstick = self._others.find(_yardstick(ENCODER))
        assert yardstick is not None, "the yardstick is published"
        return replace(nearest, rate=math.sqrt(nearest.rate * yardstick.rate)), False

    def _speed(self, work: Work) -> float | None:
        """Times as long as published that this machine takes for work on the same encoder, None if nothing tells.

        Of fits that is known from fits alone: the calibration trains a network.
        """
        kind = _machinery(work)
        if kind not in self._speeds and kind in self._timed:
            self._speeds[kind] = median(each.rate / self._reference(each.work)[0].rate for each in self._timed[kind])
        if kind in self._speeds or work.kind == "fit":
            return self._speeds.get(kind)
        return self._speed(_yardstick(ENCODER)) if work.encoder is None else self._calibrated(work.encoder)

    def _calibrated(self, encoder: str) -> float | None:
        if encoder not in self._measured:
            rate = self._measure(encoder)
            if rate is not None:
                self._measured[encoder] = rate / self._reference(_yardstick(encoder))[0].rate
            else:  # its cells will say why it cannot be trained
                self._measured[encoder] = None if encoder == ENCODER else self._speed(_yardstick(ENCODER))
        return self._measured[encoder]


def make_estimator(
    records: Iterable[Record], environment: Environment, say: Callable[[str], None], *, gpu: bool, kept: bool
) -> Estimator:
    """An `Estimator` from the published journal and this machine. `say` is told what somebody has to wait for."""
    size_of = table_sizes(environment.data_dir)

    def pace(cell: Cell) -> float:
        if gpu or cell.encoder is None:
            return 1.0
        from llpbench.training.compilation import compiles_on_cpu  # torch

        rows = int(TRAINED * size_of(cell.dataset).rows)
        trained = rows if cell.max_bags is None else min(rows, cell.max_bags * cell.bag_size)
        return pace_of(cell.encoder, compiles_on_cpu(cell, environment, trained), cell.precision)

    return Estimator(records, published_timings, Calibration(environment, say), size_of, pace=pace, gpu=gpu, kept=kept)


@cache
def published_timings() -> Timings:
    """The published timings of CPUs, read once by a process."""
    return timings_of(read_published().records.values())


def timings_of(records: Iterable[Record]) -> Timings:
    """What runs on CPUs have timed, for other machines."""
    timings, size_of = Timings(pooled=True), table_sizes(None)
    for record in records:
        if not _on_gpu(record):
            for each in timed(record, size_of):
                timings.add(each)
    return timings


def _runs_of(tuning: Tuning) -> float:
    """To about how many runs a search amounts: most of its trials leave at one of the rungs."""
    rungs, share = (0, *tuning.rungs), 1.0
    if len(rungs) == 1 or tuning.cell.protocol is None:
        return tuning.trials
    epochs = 0.0
    for before, rung in pairwise(rungs):
        epochs += share * (rung - before)
        share /= tuning.eta
    # those that are left stop when their criteria have settled, as runs do
    return tuning.trials * min(epochs / tuning.cell.protocol.epochs * _SETTLED + share, 1.0)


def _on_gpu(record: Record) -> bool:
    """Whether it was computed on one: methods without epochs never are, whatever earlier records say."""
    return record["spec"]["protocol"] is not None and str(record["hardware"].get("device", "cpu")).startswith("cuda")


def _yardstick(encoder: str) -> Work:
    """What the calibration trains with an encoder."""
    return Work("training", METHOD, encoder, DATASET, BAG_SIZE, values=1.0, epochs=1, patience=1)


def _machinery(work: Work) -> tuple[bool, str | None]:
    """What work of the same speed has in common: fits, or the encoder of a network."""
    return work.kind == "fit", work.encoder


def _shape(spec: Mapping[str, Any]) -> tuple[Any, ...]:
    """What cells that want as much memory have in common."""
    return (
        spec["protocol"] is None,
        *(spec.get(name) for name in ("encoder", "method", "dataset", "bag_size", "max_bags", "ensemble")),
    )


def _shared(spec: Mapping[str, Any], numerics: int, encoder_source: str | None) -> str:
    """What pretrained weights depend on besides the seed (`training/pretrained.py`): equal texts share them."""
    names = (
        "dataset",
        "bagging",
        "bag_size",
        "encoder",
        "encoder_params",
        "pretraining",
        "pretraining_params",
        "max_bags",
    )
    parts = [spec.get(name) for name in names]
    more = (
        (spec["protocol"] or {}).get("bags_per_step"),
        spec.get("precision"),
        spec.get("numbers"),
        numerics,
        encoder_source,
    )
    return json.dumps([*parts, *more], sort_keys=True)
