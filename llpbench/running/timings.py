"""Timings: what runs have taken, as seconds per value of the table and epoch, and how many epochs they trained."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import median_high
from typing import Any, Literal, NamedTuple

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.core.registry import ENCODERS
from llpbench.data.loading import load_table
from llpbench.data.specs import dataset_spec

TRAINED = 0.8
"""Share of a dataset's rows that are trained on."""

PACE: Mapping[str, float] = {"float32": 3.0, "bfloat16": 3.5}
"""Speed of a compiled deep encoder on a CPU, by precision; 1: uncompiled in float32. SAINT on one core has 2.3 to 3.4
and 3.0 to 4.2 (`benchmarks/population.py`)."""
PACE_SHALLOW = 2.0
"""The same of other encoders; the MLP has from 1.2 (`tabllp-self`) to 2.8 (`llp-vat`)."""


class Size(NamedTuple):
    """Size of a dataset's table."""

    rows: int
    columns: int


SizeOf = Callable[[str], Size]
_TYPICAL_SIZE = Size(30_000, 10)
"""Size of a dataset that is not there; its cells cannot run either."""


@dataclass(frozen=True)
class Work:
    """Work of one seed of a cell: train, fit (methods without epochs) or pretrain."""

    kind: Literal["training", "fit", "pretraining"]
    method: str
    """Name of the method, or of the pretraining tasks."""
    encoder: str | None
    dataset: str
    bag_size: int
    values: float
    """Rows that are used, times columns, times networks."""
    epochs: int = 1
    """Maximum number of epochs of a stage; 1 for a fit."""
    patience: int = 1
    pace: float = 1.0
    """Speed; 1: uncompiled in float32."""


class Timed(NamedTuple):
    """Work that a run has done."""

    work: Work
    seconds: float
    epochs: int


class _Medians(NamedTuple):
    rate: float
    """Seconds per value and epoch at pace 1."""
    length: float
    """Epochs for each epoch of patience."""
    most: float
    """Largest number of epochs, as a multiple of the maximum for one stage; at least 1."""


class Timings:
    """Medians of timed work, by method and encoder, and where there are enough by dataset and bag size.

    Seconds grow with values and epochs, and epochs with the patience up to the maximum.
    """

    def __init__(self) -> None:
        self._timed: defaultdict[tuple[Any, ...], list[Timed]] = defaultdict(list)
        self._medians: dict[tuple[Any, ...], _Medians] = {}

    def add(self, timed: Timed) -> None:
        """Add the work of one seed."""
        for key in (*_near(timed.work), *_far(timed.work)):
            self._timed[key].append(timed)
            self._medians.pop(key, None)

    def same(self, work: Work) -> bool:
        """Return whether the same method was timed on the same dataset in bags of the same size."""
        return next(_near(work)) in self._timed

    def near(self, work: Work) -> float | None:
        """Return the seconds of some work, from runs of the same method and encoder; None if there are none."""
        return self._seconds(work, _near(work))

    def far(self, work: Work) -> float | None:
        """Return the seconds of some work, from runs of its encoder or method or of any; None if there are none."""
        return self._seconds(work, _far(work))

    def _seconds(self, work: Work, keys: Iterator[tuple[Any, ...]]) -> float | None:
        key = next((key for key in keys if key in self._timed), None)
        if key is None:
            return None
        known = self._median(key)
        epochs = min(known.length * work.patience, known.most * work.epochs)
        return known.rate * work.values * epochs / work.pace

    def _median(self, key: tuple[Any, ...]) -> _Medians:
        if key not in self._medians:
            timed = self._timed[key]
            self._medians[key] = _Medians(
                median_high(each.work.pace * each.seconds / (each.work.values * each.epochs) for each in timed),
                median_high(each.epochs / each.work.patience for each in timed),
                max(math.ceil(each.epochs / each.work.epochs) for each in timed),
            )
        return self._medians[key]


def _near(work: Work) -> Iterator[tuple[Any, ...]]:
    """Groups of similar work, the most similar first."""
    method = work.kind, work.method, work.encoder
    yield *method, work.bag_size, work.dataset
    yield *method, work.bag_size
    yield method


def _far(work: Work) -> Iterator[tuple[Any, ...]]:
    """Groups of less similar work."""
    yield work.kind, "encoder", work.encoder, None, None, None
    yield work.kind, "method", work.method, None, None, None
    yield (work.kind,)


def work_of(spec: Mapping[str, Any], size: Size, pace: float = 1.0) -> Work:
    """Return the training or fit of a seed of a cell with this `spec`."""
    protocol = spec["protocol"] or {"epochs": 1, "patience": 1}
    return Work(
        "training" if spec["protocol"] else "fit",
        spec["method"],
        spec["encoder"],
        spec["dataset"],
        spec["bag_size"],
        _values(spec, size) * spec.get("ensemble", 1),
        protocol["epochs"],
        protocol["patience"],
        pace,
    )


def pretraining_of(spec: Mapping[str, Any], size: Size, pace: float = 1.0) -> Work | None:
    """Return the pretraining of a seed of a cell with this `spec`; None if there is none."""
    epochs = spec.get("pretraining_params", {}).get("epochs")
    if spec.get("pretraining", "none") == "none" or not isinstance(epochs, int) or epochs < 1:  # another version's
        return None
    values, tasks = _values(spec, size), spec["pretraining"]
    return Work("pretraining", tasks, spec["encoder"], spec["dataset"], spec["bag_size"], values, epochs, epochs, pace)


def _values(spec: Mapping[str, Any], size: Size) -> float:
    """Return rows times columns of a dataset, or of the part of it that fills the bags of a cell."""
    rows = float(size.rows)
    if spec.get("max_bags") and spec["bag_size"]:
        rows = min(rows, spec["max_bags"] * spec["bag_size"] / TRAINED)
    return rows * size.columns


def timed(record: Record, size_of: SizeOf) -> Iterator[Timed]:
    """Yield the work that a run has done; nothing for a failed run, which may have ended early."""
    spec, times = record["spec"], record["times"]
    if record["status"] != "ok" or not times.get("total"):
        return
    facts, hardware = record["dataset"], record["hardware"]
    columns = (facts.get("numeric") or 0) + (facts.get("categorical") or 0)
    size = Size(facts["rows"], columns) if facts.get("rows") and columns else size_of(spec["dataset"])
    compiled = bool(hardware.get("compiled")) and hardware.get("device", "cpu") == "cpu"
    pace = pace_of(spec["encoder"], compiled, spec.get("precision", "float32"))
    yield Timed(work_of(spec, size, pace), times["total"] + (times.get("data") or 0.0), max(record["epochs"], 1))
    pretraining = pretraining_of(spec, size, pace)
    if pretraining is not None and times.get("pretraining"):
        yield Timed(pretraining, times["pretraining"], pretraining.epochs)


def table_sizes(data_dir: str | None) -> SizeOf:
    """Return a function that gives the size of a dataset: as declared, else as found on this machine."""

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


def pace_of(encoder: str | None, compiled: bool, precision: str) -> float:
    """Return the speed of training on a CPU: `PACE`, `PACE_SHALLOW`, or 1 where nothing is compiled."""
    if not compiled or encoder not in ENCODERS.names():
        return 1.0
    return PACE[precision] if ENCODERS.get(encoder).compiles else PACE_SHALLOW
