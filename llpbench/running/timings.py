"""Timings of runs: how long training, fitting and pretraining took per unit of work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from statistics import median, median_high
from typing import Any, Literal, NamedTuple

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.core.registry import ENCODERS
from llpbench.data.loading import load_table
from llpbench.data.specs import dataset_spec

TRAINING_SHARE = 0.8
"""Share of a dataset's rows that are used for training."""

SPEED: Mapping[str, float] = {"float32": 3.0, "bfloat16": 3.5}
"""Speed of a compiled deep encoder on a CPU, by precision, relative to an uncompiled one in float32.

SAINT on one core has 2.3 to 3.4 in float32 and 3.0 to 4.2 in bfloat16 (`benchmarks/population.py`).
"""
SPEED_SHALLOW = 2.0
"""The same for other encoders. The MLP has from 1.2 (`tabllp-self`) to 2.8 (`llp-vat`)."""

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


@dataclass(frozen=True)
class Work:
    """Work of one seed of a cell."""

    kind: WorkKind
    units: float
    """Rows times columns times networks times epochs, divided by the speed of a compiled encoder."""


class Timings:
    """Seconds per unit of work. Similar work is used where there are no timings of the same work."""

    def __init__(self) -> None:
        self._rates: defaultdict[WorkKind, list[float]] = defaultdict(list)
        self._medians: dict[int, dict[Any, float]] = {}
        """Median rates by the common properties of a level."""

    def add(self, work: Work, seconds: float) -> None:
        """Add the time of one seed."""
        self._rates[work.kind].append(seconds / work.units)
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


def work_of(spec: Mapping[str, Any], size: Size, speed: float = 1.0) -> Work:
    """Return the training or fit of a seed of the cell with this `spec`."""
    protocol = spec["protocol"]
    epochs = min(protocol["epochs"], _PATIENCES * protocol["patience"]) / speed if protocol else 1.0
    kind = WorkKind(
        "training" if protocol else "fit", spec["method"], spec["encoder"], spec["bag_size"], spec["dataset"]
    )
    return Work(kind, _values(spec, size) * spec.get("ensemble", 1) * epochs)


def pretraining_of(spec: Mapping[str, Any], size: Size, speed: float = 1.0) -> Work | None:
    """Return the pretraining of a seed of the cell with this `spec`; None if there is none."""
    epochs = spec.get("pretraining_params", {}).get("epochs")
    if spec["pretraining"] == "none" or not isinstance(epochs, int) or epochs < 1:  # as in records of other versions
        return None
    kind = WorkKind("pretraining", spec["pretraining"], spec["encoder"], spec["bag_size"], spec["dataset"])
    return Work(kind, _values(spec, size) * epochs / speed)


def _values(spec: Mapping[str, Any], size: Size) -> float:
    """Return rows times columns of the data that a cell uses."""
    rows = float(size.rows)
    if spec.get("max_bags") and spec["bag_size"]:
        rows = min(rows, spec["max_bags"] * spec["bag_size"] / TRAINING_SHARE)
    return rows * size.columns


def timed(record: Record, size_of: SizeOf) -> Iterator[tuple[Work, float]]:
    """Yield the work of a run with its seconds; nothing for a failed run, which may have ended early."""
    spec, times = record["spec"], record["times"]
    if record["status"] != "ok" or not times.get("total"):
        return
    facts, hardware = record["dataset"], record["hardware"]
    columns = (facts.get("numeric") or 0) + (facts.get("categorical") or 0)
    size = Size(facts["rows"], columns) if facts.get("rows") and columns else size_of(spec["dataset"])
    compiled = bool(hardware.get("compiled")) and hardware.get("device", "cpu") == "cpu"
    speed = speed_of(spec["encoder"], compiled, spec.get("precision", "float32"))
    yield work_of(spec, size, speed), times["total"] + (times.get("data") or 0.0)
    pretraining = pretraining_of(spec, size, speed)
    if pretraining is not None and times.get("pretraining"):
        yield pretraining, times["pretraining"]


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


def speed_of(encoder: str | None, compiled: bool, precision: str) -> float:
    """Return the speed of training on a CPU, relative to an uncompiled encoder in float32."""
    if not compiled or encoder not in ENCODERS.names():
        return 1.0
    return SPEED[precision] if ENCODERS.get(encoder).compiles else SPEED_SHALLOW
