"""Estimates of the time and memory of jobs.

Timings of the run's journal are used first, then published timings. These are scaled by the speed of this machine if
the journal shows it. The time of work without timings is guessed from similar work.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any

from llpbench.core.record import Record
from llpbench.core.tuning_spec import Tuning
from llpbench.running.schedule import Job
from llpbench.running.timings import NEAR, SAME, SizeOf, Timings, Work, is_on_gpu

_EARLY_STOPPING = 3.0
"""Largest number of epochs divided by the epochs of a run; mean of the published runs with curves."""


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
    """An estimated time. The true time probably lies between `low` and `high`."""

    bases: Mapping[Basis, float] = field(default_factory=dict)
    """Seconds by basis."""

    @property
    def seconds(self) -> float:
        return sum(self.bases.values())

    @property
    def factor(self) -> float:
        """Geometric mean of the factors of the bases, weighted by seconds."""
        logs = sum(seconds * math.log(basis.factor) for basis, seconds in self.bases.items())
        return math.exp(logs / self.seconds) if self.seconds else 1.0

    @property
    def low(self) -> float:
        return self.seconds / self.factor

    @property
    def high(self) -> float:
        return self.seconds * self.factor

    def scaled(self, seconds: float) -> Estimate:
        """Return an estimate of so many seconds on the same bases."""
        return Estimate({basis: part * seconds / self.seconds for basis, part in self.bases.items() if part})

    @staticmethod
    def sum(parts: Iterable[tuple[Basis, float]]) -> Estimate:
        """Return the time of all parts, one after the other."""
        bases: defaultdict[Basis, float] = defaultdict(float)
        for basis, seconds in parts:
            bases[basis] += seconds
        return Estimate(bases)


class Estimator:
    """Estimator of jobs. It learns from each finished run."""

    def __init__(
        self,
        records: Iterable[Record],
        published: Callable[[], Timings],
        size_of: SizeOf,
        *,
        gpu: bool = False,
        pretrained: bool = True,
    ) -> None:
        """Learn from the records of a journal.

        - `published`: returns the published timings of CPUs; called only if the journal does not suffice
        - `size_of`: returns the size of a dataset
        - `gpu`: whether jobs use a GPU; timings of other devices are ignored
        - `pretrained`: whether the pretrained weights of the records still exist
        """
        self._published_timings = published
        self._gpu = gpu
        self._timings = Timings(size_of)
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
        work = self._timings.work(record["cell"], record["spec"], record["dataset"])
        on_gpu = is_on_gpu(record)
        if record["times"].get("pretraining") is not None:
            self._pretrained.add((work.weights, record["seed"]))
        if (memory := record["memory_mb"]) is not None:
            key, share = (on_gpu, *work.memory), memory / max(record["members"], 1) if on_gpu else memory
            self._megabytes[key] = max(share, self._megabytes.get(key, 0.0))
        if on_gpu == self._gpu or record["spec"]["protocol"] is None:  # direct methods always use the CPU
            self._timings.learn(record)

    def estimate(self, job: Job) -> Estimate:
        """Return the time of a job, including pretraining that has not been done."""
        return Estimate.sum(self._parts(job, set()))

    def total(self, jobs: Iterable[Job]) -> Estimate:
        """Return the time of all jobs, one after the other. Shared pretraining counts once."""
        counted: set[Any] = set()
        return Estimate.sum(part for job in jobs for part in self._parts(job, counted))

    def gpu_megabytes(self, job: Job) -> float | None:
        """Return the peak GPU memory of a job; None if no similar cell has run on a GPU."""
        share = self._megabytes.get((True, *self._timings.work(job.cell.id, job.cell.spec).memory))
        members = len(job.seeds) * job.cell.ensemble if job.tuning is None else job.tuning.together
        return None if share is None else share * members

    def megabytes(self, job: Job) -> float | None:
        """Return the peak memory of a job's process; None if no similar cell has run on a CPU."""
        return self._megabytes.get((False, *self._timings.work(job.cell.id, job.cell.spec).memory))

    def _parts(self, job: Job, counted: set[Any]) -> Iterator[tuple[Basis, float]]:
        """Yield the times of training and of pretraining. Pretrained weights in `counted` are skipped, others added."""
        work = self._timings.work(job.cell.id, job.cell.spec)
        runs = len(job.seeds) if job.tuning is None else _runs_of(job.tuning)
        yield self._estimate(work.training, runs)
        if work.pretraining is not None:
            new = {(work.weights, seed) for seed in job.seeds} - counted - self._pretrained
            counted |= new
            yield self._estimate(work.pretraining, len(new))

    def _estimate(self, work: Work, runs: float) -> tuple[Basis, float]:
        if (timing := self._timings.seconds(work, NEAR)) is not None:
            seconds, level = timing
            return (Basis.SAME if level == SAME else Basis.NEAR), seconds * runs
        timing = self._published.seconds(work)
        assert timing is not None, "work of each kind is published"
        seconds, level = timing
        fits = work.kind.kind == "fit"
        basis = Basis.GUESS if level > NEAR or (self._gpu and not fits) else Basis.PUBLISHED
        return basis, self._timings.relative_to(self._published, fits=fits) * seconds * runs

    @cached_property
    def _published(self) -> Timings:
        return self._published_timings()


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
