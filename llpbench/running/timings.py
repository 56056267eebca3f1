"""Timings of runs: how long training, fitting and pretraining took per unit of work."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from statistics import median, median_high
from typing import Any, Literal, NamedTuple

from llpbench.core.averaging import Average
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.data.loading import load_table
from llpbench.data.specs import dataset_spec
from llpbench.results.merging import SHIPPED, read_shipped

_TRAINING_SHARE = 0.8
"""Share of a dataset's rows that are used for training."""
_PATIENCES = 4.0
"""Epochs of a training, in multiples of its patience; median of the published runs."""


class Size(NamedTuple):
    """Size of a dataset's table."""

    rows: int
    columns: int


SizeOf = Callable[[str], Size]
_TYPICAL_SIZE = Size(30_000, 10)
"""Size of datasets that cannot be loaded. Their cells cannot run either."""


class WorkKind(NamedTuple):
    """Properties of work that decide its time per unit."""

    kind: Literal["training", "fit", "pretraining"]
    method: str
    """Name of the method, or of the pretraining."""
    encoder: str | None
    bag_size: int
    dataset: str


_LEVELS: tuple[Callable[[WorkKind], Any], ...] = (
    attrgetter("kind", "method", "encoder", "bag_size", "dataset"),
    attrgetter("kind", "method", "encoder", "bag_size"),
    attrgetter("kind", "method", "encoder"),
    attrgetter("kind", "encoder"),
    attrgetter("kind", "method"),
    attrgetter("kind"),
)
"""Properties that similar work has in common, the most similar first."""
SAME, NEAR = 0, 2
"""Levels of the same method on the same dataset, and of the same method on other data."""


class Work(NamedTuple):
    """Work of one seed of a cell."""

    kind: WorkKind
    units: float
    """Rows times columns times networks times epochs."""


class CellWork(NamedTuple):
    """Work of a cell, and what it shares with other cells."""

    training: Work
    """Training or fit of a seed."""
    pretraining: Work | None
    """Pretraining of a seed; None if there is none."""
    weights: str
    """Key of the pretrained weights: what decides them besides the seed (`training/pretrained.py`)."""
    memory: tuple[Any, ...]
    """Key of cells that need as much memory."""


class Timings:
    """Seconds per unit of work. Similar work is used where there are no timings of the same work."""

    def __init__(self, size_of: SizeOf) -> None:
        """`size_of` returns the size of a dataset."""
        self._size_of = size_of
        self._work: dict[str, CellWork] = {}
        """Work by the id of its cell: many runs are of one cell."""
        self._rates: defaultdict[WorkKind, list[float]] = defaultdict(list)
        self._medians: dict[int, dict[Any, float]] = {}
        """Median rates by the common properties of a level."""

    def work(self, cell: str, spec: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> CellWork:
        """Return the work of the cell with this id and specification. `facts`: those of its dataset in a record."""
        if cell not in self._work:
            rows, *columns = ((facts or {}).get(name) or 0 for name in ("rows", "numeric", "categorical"))
            size = Size(rows, sum(columns)) if rows and sum(columns) else self._size_of(spec["dataset"])
            self._work[cell] = _work_of(spec, size)
        return self._work[cell]

    def learn(self, record: Record) -> None:
        """Add the times of a finished run. Failed runs are ignored, since they may have ended early."""
        times = record["times"]
        if record["status"] != "ok" or not times.get("total"):
            return
        work = self.work(record["cell"], record["spec"], record["dataset"])
        self._rates[work.training.kind].append((times["total"] + (times.get("data") or 0.0)) / work.training.units)
        if work.pretraining is not None and times.get("pretraining"):
            self._rates[work.pretraining.kind].append(times["pretraining"] / work.pretraining.units)
        self._medians.clear()

    def seconds(self, work: Work, most: int = len(_LEVELS) - 1) -> tuple[float, int] | None:
        """Return the seconds of some work, and their level of similarity, at `most` this one; None if unknown."""
        for level, properties in enumerate(_LEVELS[: most + 1]):
            rate = self._level(level).get(properties(work.kind))
            if rate is not None:
                return rate * work.units, level
        return None

    def relative_to(self, other: Timings, *, fits: bool) -> float:
        """Return how many times the seconds of `other` this machine takes for fits or for networks; 1 if unknown."""
        pairs = (
            (median(rates), other.seconds(Work(kind, 1.0), NEAR))
            for kind, rates in self._rates.items()
            if (kind.kind == "fit") == fits
        )
        return median([rate / reference[0] for rate, reference in pairs if reference] or [1.0])

    def _level(self, level: int) -> dict[Any, float]:
        if level not in self._medians:
            groups: defaultdict[Any, list[float]] = defaultdict(list)
            for kind, rates in self._rates.items():
                groups[_LEVELS[level](kind)] += rates
            self._medians[level] = {properties: median_high(rates) for properties, rates in groups.items()}
        return self._medians[level]


@cache
def published_timings() -> Timings:
    """Return the published timings of CPUs. They are read once per process."""
    fields = ("spec", "status", "times", "dataset", "hardware")
    return timings_of(record for name in SHIPPED for record in read_shipped(name, fields=fields).records.values())


def timings_of(records: Iterable[Record]) -> Timings:
    """Return the timings of records that were made on CPUs."""
    timings = Timings(table_sizes(None))
    for record in records:
        if not is_on_gpu(record):
            timings.learn(record)
    return timings


def is_on_gpu(record: Record) -> bool:
    """Return whether a run used a GPU. Methods without epochs never do, whatever older records say."""
    return record["spec"]["protocol"] is not None and str(record["hardware"].get("device", "cpu")).startswith("cuda")


def _work_of(spec: Mapping[str, Any], size: Size) -> CellWork:
    """Return the work of a cell of a dataset of this size."""
    protocol, encoder, pretraining = spec["protocol"], spec["encoder"], spec["pretraining"]
    data = encoder, spec["bag_size"], spec["dataset"]
    rows = float(size.rows)
    if spec.get("max_bags") and spec["bag_size"]:
        rows = min(rows, spec["max_bags"] * spec["bag_size"] / _TRAINING_SHARE)
    values = rows * size.columns
    epochs = min(protocol["epochs"], _PATIENCES * protocol["patience"]) if protocol else 1.0
    if spec.get("average"):
        epochs = Average.of(spec["average"]).epochs
    kind = WorkKind("training" if protocol else "fit", spec["method"], *data)
    training = Work(kind, values * spec.get("ensemble", 1) * epochs)
    same_memory = ("encoder", "method", "dataset", "bag_size", "max_bags", "ensemble")
    memory = (protocol is None, *(spec.get(name) for name in same_memory))
    epochs = spec.get("pretraining_params", {}).get("epochs")
    if pretraining == "none" or not isinstance(epochs, int) or epochs < 1:  # as in records of other versions
        return CellWork(training, None, "", memory)
    shared = ("dataset", "bagging", "bag_size", "max_bags", "encoder", "encoder_params", "pretraining")
    parts = [spec.get(name) for name in (*shared, "pretraining_params", "precision", "numbers")]
    weights = json.dumps([*parts, (protocol or {}).get("bags_per_step")], sort_keys=True)
    return CellWork(training, Work(WorkKind("pretraining", pretraining, *data), values * epochs), weights, memory)


def table_sizes(data_dir: str | None) -> SizeOf:
    """Return a function that returns the size of a dataset, as declared or as loaded from this machine."""

    @cache
    def size(name: str) -> Size:
        try:
            spec = dataset_spec(name)
            if spec.rows is not None and spec.numeric is not None and spec.categorical is not None:
                return Size(spec.rows, spec.numeric + spec.categorical)
            table = load_table(name, data_dir, download=False)
        except LLPBenchError:
            return _TYPICAL_SIZE
        return Size(len(table), len(table.numeric_names) + len(table.categorical_names))

    return size
