"""Estimates of the time and memory of jobs, from the timings of finished runs.

The time of a run is its work (rows x columns x networks x epochs) times the rate of similar runs: runs of the journal
first, then published runs, scaled by the speed of this machine if the journal shows it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from statistics import median, median_high
from typing import Any, NamedTuple, cast

from llpbench.core.cell import Average
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.core.text import duration
from llpbench.data.loading import load_table
from llpbench.data.specs import Facts, dataset_spec
from llpbench.results.merging import SHIPPED, shipped_cells
from llpbench.running.schedule import Job

_SEARCHED = 2 / 3
"""Work of a search whose trials stop at rungs, as a share of that of complete trials."""
_PATIENCES = 4.0
"""Epochs of a training, in multiples of its patience; median of the published runs."""
_TRAINING_SHARE = 0.8
"""Share of a dataset's rows that are used for training."""
FACTOR = 3.0
"""Four of five jobs take at most this many times as long as estimated, or as short."""


def estimate_text(seconds: float) -> str:
    """Return an estimated time with its range: `about 12 min (4 min to 36 min)`."""
    if seconds * FACTOR < 1.0:
        return "less than a second"
    return f"about {duration(seconds)} ({duration(seconds / FACTOR)} to {duration(seconds * FACTOR)})"


_SizeOf = Callable[[str], tuple[int, int]]
"""Function that returns the rows and columns of a dataset."""
_TYPICAL_SIZE = 30_000, 10
"""Size of datasets that cannot be loaded. Their cells cannot run either."""
_LEVELS = ((0, 1, 2, 3, 4), (0, 1, 2, 3), (0, 1, 2), (0, 2), (0, 1), (0,))
"""Places of the properties in `_Work.kind` that similar work has in common, the most similar first."""
_NEAR = 2
"""Level of the same method on other data."""


class _Work(NamedTuple):
    """Training, fit or pretraining of one seed of a cell."""

    kind: tuple[Any, ...]
    """Training, fit or pretraining; name of the method or pretraining; encoder, bag size and dataset."""
    units: float
    """Rows times columns times networks times epochs."""
    weights: str | None = None
    """Key of pretrained weights: what decides them besides the seed (`training/pretrained.py`)."""


class _Timings:
    """Seconds per unit of work. Similar work is used where there are no timings of the same work."""

    def __init__(self, size_of: _SizeOf) -> None:
        self._size_of = size_of
        self._works: dict[str, list[_Work]] = {}
        """Work by the id of its cell: many runs are of one cell."""
        self._rates: defaultdict[tuple[Any, ...], list[float]] = defaultdict(list)
        self._medians: dict[int, dict[Any, float]] = {}
        """Median rates by the common properties of a level."""

    def works(self, cell: str, spec: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> list[_Work]:
        """Return the works of the cell with this id and specification. `facts`: those of its dataset in a record."""
        if cell not in self._works:
            rows, *columns = ((facts or {}).get(name) or 0 for name in ("rows", "numeric", "categorical"))
            size = (rows, sum(columns)) if rows and sum(columns) else self._size_of(spec["dataset"])
            self._works[cell] = [*_works_of(spec, *size)]
        return self._works[cell]

    def learn(self, record: Record) -> None:
        """Add the times of a run that succeeded."""
        times = record["times"]
        if not times.get("total"):
            return
        for work in self.works(record["cell"], record["spec"], record["dataset"]):
            seconds = times["total"] + (times.get("data") or 0.0) if work.weights is None else times.get("pretraining")
            if seconds:
                self._rates[work.kind].append(seconds / work.units)
        self._medians.clear()

    def seconds(self, work: _Work, most: int = len(_LEVELS) - 1) -> float | None:
        """Return the seconds of some work, estimated from similar work up to level `most`; None if unknown."""
        for level, places in enumerate(_LEVELS[: most + 1]):
            rate = self._level(level).get(tuple(work.kind[place] for place in places))
            if rate is not None:
                return rate * work.units
        return None

    def relative_to(self, other: _Timings, kind: str) -> float:
        """Return how many times the seconds of `other` this machine takes, for fits or for networks; 1 if unknown."""
        pairs = (
            (median(rates), other.seconds(_Work(properties, 1.0), _NEAR))
            for properties, rates in self._rates.items()
            if (properties[0] == "fit") == (kind == "fit")
        )
        return median([rate / reference for rate, reference in pairs if reference] or [1.0])

    def _level(self, level: int) -> dict[Any, float]:
        if level not in self._medians:
            groups: defaultdict[Any, list[float]] = defaultdict(list)
            for kind, rates in self._rates.items():
                groups[tuple(kind[place] for place in _LEVELS[level])] += rates
            self._medians[level] = {properties: median_high(rates) for properties, rates in groups.items()}
        return self._medians[level]


class Estimator:
    """Estimator of jobs. It learns from each finished run."""

    def __init__(
        self,
        records: Iterable[Record],
        data_dir: str | None = None,
        *,
        published: Callable[[], _Timings] | None = None,
        gpu: bool = False,
        pretrained: bool = True,
    ) -> None:
        """Learn from the records of a journal.

        - `data_dir`: folder with datasets, whose sizes count
        - `published`: returns the published timings of CPUs; called only if the journal does not suffice
        - `gpu`: whether jobs use a GPU; timings of other devices are ignored
        - `pretrained`: whether the pretrained weights of the records still exist
        """
        self._published = published or _published_timings
        self._gpu = gpu
        self._timings = _Timings(_table_sizes(data_dir))
        self._pretrained: set[Any] = set()
        self._memory: dict[tuple[Any, ...], float] = {}
        for record in records:
            self.learn(record)
        if not pretrained:
            self._pretrained.clear()

    def learn(self, record: Record) -> None:
        """Learn from a finished run. Failed runs are ignored, since they may have ended early."""
        if record["status"] != "ok":
            return
        on_gpu, spec = _is_on_gpu(record), record["spec"]
        works = self._timings.works(record["cell"], spec, record["dataset"])
        if record["times"].get("pretraining") is not None:
            self._pretrained |= {(work.weights, record["seed"]) for work in works}
        if (memory := record["memory_mb"]) is not None:
            key, share = _memory_key(on_gpu, spec), memory / max(record["members"], 1) if on_gpu else memory
            self._memory[key] = max(share, self._memory.get(key, 0.0))
        if on_gpu == self._gpu or spec["protocol"] is None:  # direct methods always use the CPU
            self._timings.learn(record)

    def seconds(self, *jobs: Job) -> float:
        """Return the seconds of jobs, one after the other, with pretraining to do. Shared pretraining counts once."""
        total, known = 0.0, set(self._pretrained)
        for job in jobs:
            for work in self._timings.works(job.cell.id, job.cell.spec):
                if work.weights is None:
                    trials = job.tuning and job.tuning.trials * (_SEARCHED if job.tuning.rungs else 1)
                    total += self._seconds(work) * (trials or len(job.seeds))
                else:
                    new = {(work.weights, seed) for seed in job.seeds} - known
                    known |= new
                    total += self._seconds(work) * len(new)
        return total

    def gpu_megabytes(self, job: Job) -> float | None:
        """Return the peak GPU memory of a job; None if no similar cell has run on a GPU."""
        share = self._memory.get(_memory_key(True, job.cell.spec))
        members = len(job.seeds) * job.cell.ensemble if job.tuning is None else job.tuning.together
        return None if share is None else share * members

    def megabytes(self, job: Job) -> float | None:
        """Return the peak memory of a job's process; None if no similar cell has run on a CPU."""
        return self._memory.get(_memory_key(False, job.cell.spec))

    def _seconds(self, work: _Work) -> float:
        seconds = self._timings.seconds(work, _NEAR)
        if seconds is None:
            published = self._published()
            known = published.seconds(work)
            assert known is not None, "work of each kind is published"
            seconds = self._timings.relative_to(published, work.kind[0]) * known
        return seconds


@cache
def _published_timings() -> _Timings:
    """Return the published timings of CPUs, of one run per cell. They are read once per process."""
    return _timings_of(cast(Record, run) for name in SHIPPED for run in shipped_cells(name))


def _timings_of(records: Iterable[Record]) -> _Timings:
    """Return the timings of records that were made on CPUs."""
    timings = _Timings(_table_sizes(None))
    for record in records:
        if record["status"] == "ok" and not _is_on_gpu(record):
            timings.learn(record)
    return timings


def _table_sizes(data_dir: str | None) -> _SizeOf:
    """Return a function that returns the size of a dataset, as known or as loaded from this machine."""

    @cache
    def size(name: str) -> tuple[int, int]:
        try:
            facts = dataset_spec(name).facts or Facts.of(load_table(name, data_dir, download=False))
        except LLPBenchError:
            return _TYPICAL_SIZE
        return facts.rows, len(facts.columns)

    return size


def _is_on_gpu(record: Record) -> bool:
    """Return whether a run used a GPU. Methods without epochs never do, whatever older records say."""
    return record["spec"]["protocol"] is not None and str(record["hardware"].get("device", "cpu")).startswith("cuda")


def _memory_key(on_gpu: bool, spec: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what cells that need as much memory have in common."""
    names = ("encoder", "method", "dataset", "bag_size", "max_bags", "ensemble")
    return (on_gpu, spec["protocol"] is None, *(spec.get(name) for name in names))


def _works_of(spec: Mapping[str, Any], rows: float, columns: int) -> Iterator[_Work]:
    """Yield the works of a cell of a dataset of this size."""
    protocol, bags = spec["protocol"], spec.get("max_bags") or 0
    if bags and spec["bag_size"]:
        rows = min(rows, bags * spec["bag_size"] / _TRAINING_SHARE)
    values, data = rows * columns, (spec["encoder"], spec["bag_size"], spec["dataset"])
    epochs = min(protocol["epochs"], _PATIENCES * protocol["patience"]) if protocol else 1.0
    if spec.get("average"):
        epochs = Average.of(spec["average"]).epochs
    kind = "training" if protocol else "fit"
    yield _Work((kind, spec["method"], *data), values * spec.get("ensemble", 1) * epochs)
    epochs = spec.get("pretraining_params", {}).get("epochs")
    if spec["pretraining"] != "none" and isinstance(epochs, int) and epochs > 0:  # unlike records of other versions
        shared = ("dataset", "bagging", "bag_size", "max_bags", "encoder", "encoder_params", "pretraining")
        parts = [spec.get(name) for name in (*shared, "pretraining_params", "precision", "numbers")]
        weights = json.dumps([*parts, (protocol or {}).get("bags_per_step")], sort_keys=True)
        yield _Work(("pretraining", spec["pretraining"], *data), values * epochs, weights)
