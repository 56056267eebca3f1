"""What has been timed: seconds per value and epoch of trainings, fits and pretrainings, and how many epochs it took."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import median_high
from typing import Any, Literal, NamedTuple

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.core.registry import ENCODERS
from llpbench.data.loading import load_table
from llpbench.data.specs import dataset_spec

Kind = Literal["training", "fit", "pretraining"]
Key = tuple[Any, ...]


class Size(NamedTuple):
    """Of a dataset's table."""

    rows: int
    columns: int

    @property
    def values(self) -> float:
        return float(self.rows * self.columns)


SizeOf = Callable[[str], Size]
"""of a dataset, by its name"""

_TYPICAL = Size(30_000, 10)
"""of a dataset that cannot be had: its cells are not run either"""

PACE: Mapping[str, float] = {"float32": 3.0, "bfloat16": 3.5}
"""how many times as fast as uncompiled in float32 a deep encoder trains compiled on a CPU, by precision: SAINT on one
core has 2.3 to 3.4 and 3.0 to 4.2 (`benchmarks/population.py`)"""

PACE_SHALLOW = 2.0
"""likewise another encoder, in either precision: the MLP, from 1.2 (`tabllp-self`) to 2.8 (`llp-vat`)"""


@dataclass(frozen=True)
class Work:
    """What one seed of a cell has to do: a training, the fit of a direct method, or a pretraining."""

    kind: Kind
    method: str
    """of a pretraining, its tasks"""
    encoder: str | None
    dataset: str
    bag_size: int
    values: float
    """rows x columns of the dataset"""
    epochs: int
    """most epochs of a stage; 1 for a fit"""
    patience: int
    """as many as `epochs` where all of them are trained"""
    max_bags: int | None = None
    """training bags; None: all that there are"""
    pace: float = field(default=1.0, compare=False)
    """how many times as fast as uncompiled in float32 it is done"""


class Timed(NamedTuple):
    """What a run tells of some work."""

    work: Work
    seconds: float
    epochs: int
    """that were trained"""

    @property
    def rate(self) -> float:
        """Seconds per value and epoch, uncompiled in float32."""
        return self.work.pace * self.seconds / (self.work.values * self.epochs)


@dataclass(frozen=True)
class Timing:
    """How long some work takes."""

    rate: float
    """seconds per value and epoch, uncompiled in float32"""
    epochs: float
    """that are trained, over all stages"""
    same: bool
    """work on the same dataset in bags of the same size, for at most as many epochs, was timed"""

    def seconds(self, work: Work) -> float:
        """That the work takes."""
        return self.rate * work.values * self.epochs / work.pace


class Timings:
    """Medians of what was timed: of the same method, encoder, bag size and dataset if there are any, else of ever more.

    Times are taken to grow with rows, columns and epochs, and epochs with the patience, up to the most there may be.
    """

    def __init__(self, *, pooled: bool = False) -> None:
        """`pooled`: epochs are those of a dataset, but its rates those of all. On machines that others use, too, one
        dataset's few runs tell more of the load in that hour than of the dataset.
        """
        self._pooled = pooled
        self._timed: defaultdict[Key, list[Timed]] = defaultdict(list)
        self._medians: dict[Key, _Medians] = {}

    def add(self, timed: Timed) -> None:
        """Take the work of one more seed into account."""
        keys = [*_keys(timed.work)]
        for key in [*keys, _typical(timed.work)] if timed.work.max_bags is None else keys:
            self._timed[key].append(timed)
        self._medians.clear()

    def find(self, work: Work) -> Timing | None:
        """That of the nearest work of the same method with the same encoder; None if there is none."""
        keys = [*_keys(work), *_keys(replace(work, max_bags=None))]  # all bags take longer than some of them
        return next((self._timing(key, work) for key in keys if key in self._timed), None)

    def typical(self, work: Work) -> Timing | None:
        """That of any work of its kind."""
        key = _typical(work)
        return self._timing(key, work) if key in self._timed else None

    def _timing(self, key: Key, work: Work) -> Timing:
        own = self._median(key)
        rate = self._median((*key[:4], None, *key[5:])).rate if self._pooled else own.rate
        epochs = min(own.length * work.patience, work.epochs * own.stages)
        return Timing(rate, epochs, same=any(each.work == work for each in self._timed.get(next(_keys(work)), ())))

    def _median(self, key: Key) -> _Medians:
        if key not in self._medians:
            timed = self._timed[key]
            self._medians[key] = _Medians(
                rate=median_high(each.rate for each in timed),
                length=median_high(each.epochs / each.work.patience for each in timed),
                stages=max(math.ceil(each.epochs / each.work.epochs) for each in timed),
            )
        return self._medians[key]


class _Medians(NamedTuple):
    rate: float
    length: float
    """epochs for each of patience"""
    stages: int
    """that are trained one after the other, as far as epochs tell"""


def _keys(work: Work) -> Iterator[Key]:
    """The groups that work belongs to, finest first."""
    method = work.kind, work.method, work.encoder
    yield *method, work.bag_size, work.dataset, work.max_bags
    yield *method, work.bag_size, None, work.max_bags
    if work.max_bags is None:  # else the work follows from both
        yield *method, None, work.dataset, None
        yield *method, None, None, None


def _typical(work: Work) -> Key:
    return work.kind, None, None, None, None, None


def work_of(spec: Mapping[str, Any], values: float, pace: float = 1.0) -> Work:
    """What a cell with this `spec` trains or fits, after any pretraining."""
    protocol = spec["protocol"]
    return Work(
        kind="fit" if protocol is None else "training",
        method=spec["method"],
        encoder=spec["encoder"],
        dataset=spec["dataset"],
        bag_size=spec["bag_size"],
        values=values * spec.get("ensemble", 1),
        epochs=1 if protocol is None else protocol["epochs"],
        patience=1 if protocol is None else protocol["patience"],
        max_bags=spec.get("max_bags"),
        pace=pace,
    )


def pretraining_of(spec: Mapping[str, Any], values: float, pace: float = 1.0) -> Work | None:
    """What a cell with this `spec` pretrains; None if it does not."""
    if spec.get("pretraining", "none") == "none":
        return None
    epochs = spec.get("pretraining_params", {}).get("epochs")
    if not isinstance(epochs, int) or epochs < 1:  # a specification of another version
        return None
    return Work(
        "pretraining",
        spec["pretraining"],
        spec["encoder"],
        spec["dataset"],
        spec["bag_size"],
        values,
        epochs,
        epochs,
        spec.get("max_bags"),
        pace,
    )


def timed(record: Record, size_of: SizeOf) -> Iterator[Timed]:
    """What a run tells: of its training or fit, and of its pretraining. Failed ones tell nothing: they ended early."""
    spec, times = record["spec"], record["times"]
    if record["status"] != "ok" or not times.get("total"):
        return
    values, pace = _values(record, size_of), _pace(record)
    yield Timed(work_of(spec, values, pace), times["total"] + (times.get("data") or 0.0), max(record["epochs"], 1))
    pretraining = pretraining_of(spec, values, pace)
    if pretraining is not None and times.get("pretraining"):
        yield Timed(pretraining, times["pretraining"], pretraining.epochs)


def table_sizes(data_dir: str | None) -> SizeOf:
    """The sizes of datasets, as they are declared or else as they are found on this machine."""

    @cache
    def size(name: str) -> Size:
        try:
            spec = dataset_spec(name)
            if spec.rows is not None and spec.numeric is not None and spec.categorical is not None:
                return Size(spec.rows, spec.numeric + spec.categorical)
            table = load_table(name, data_dir, download=False)
        except LLPBenchError:
            return _TYPICAL
        return Size(len(table), len(table.numeric_names) + len(table.categorical_names))

    return size


def pace_of(encoder: str | None, compiled: bool, precision: str) -> float:
    """`PACE` or `PACE_SHALLOW` on a CPU; 1 for what is not compiled, or has no encoder that is known."""
    if not compiled or encoder not in ENCODERS.names():
        return 1.0
    return PACE[precision] if ENCODERS.get(encoder).compiles else PACE_SHALLOW


def _pace(record: Record) -> float:
    spec, hardware = record["spec"], record["hardware"]
    if hardware.get("device", "cpu") != "cpu":
        return 1.0
    return pace_of(spec["encoder"], bool(hardware.get("compiled")), spec.get("precision", "float32"))


def _values(record: Record, size_of: SizeOf) -> float:
    """Rows x columns, as the record has them or else as the dataset is today."""
    facts = record["dataset"]
    rows, numeric, categorical = facts.get("rows"), facts.get("numeric"), facts.get("categorical")
    if not rows or numeric is None or categorical is None or not numeric + categorical:
        return size_of(record["spec"]["dataset"]).values
    return float(rows * (numeric + categorical))
