"""One benchmark cell: a specification without a seed, and its content hash. `training/specification.py` makes them.

A cell's id is the hash of its canonical specification alone. Order, paths, hardware, device, threads and executor
never enter it: they belong to the `Environment`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

NUMBERS = ("z", "scores", "robust")
"""What methods are given for a number: z-scores (the paper's), normal scores or robust scores (`core/numbers.py`)."""

GIVEN = "given"
"""the bagging of datasets that have counts of their own bags and no labels"""


@dataclass(frozen=True)
class Protocol:
    """How long and on what a method trains; the defaults are the paper's."""

    epochs: int = 300
    """most epochs of a stage"""
    patience: int = 20
    """epochs without improvement after which a criterion is settled"""
    bags_per_step: int = 2
    """bags drawn for one gradient step"""


@dataclass(frozen=True)
class Cell:
    """Everything that decides a result, but for the seed. `params` holds every hyperparameter, defaults included."""

    method: str
    dataset: str
    bagging: str
    bag_size: int
    """rows of a bag; 0 where the bagging has bags of its own sizes"""
    encoder: str | None
    """None for methods that bring their own network, and for direct methods, which have none"""
    params: Mapping[str, Any] = field(default_factory=dict)
    encoder_params: Mapping[str, Any] = field(default_factory=dict)
    pretraining: str = "none"
    pretraining_params: Mapping[str, Any] = field(default_factory=dict)
    """every hyperparameter of the pretraining; empty where there is none"""
    protocol: Protocol | None = Protocol()
    """None for direct methods, which have no epochs"""
    max_bags: int | None = None
    """training bags, a random part of them; None: all that there are"""
    ensemble: int = 1
    """members that are trained for each seed, from other random numbers, and whose predictions are averaged"""
    precision: str = "float32"
    """of the networks: `float32`, or `bfloat16` for autocast; direct methods have but float32"""
    numbers: str = "z"
    """what the method is given for a number (`NUMBERS`)"""

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The canonical specification, of JSON types only.

        `precision`, `max_bags`, `ensemble` and `numbers` are left out at their defaults: they came later, and no id was
        to change.
        """
        spec = asdict(self)
        if self.precision == "float32":
            del spec["precision"]
        if self.max_bags is None:
            del spec["max_bags"]
        if self.ensemble == 1:
            del spec["ensemble"]
        if self.numbers == "z":
            del spec["numbers"]
        return json.loads(json.dumps(spec, sort_keys=True))  # type: ignore[no-any-return]

    @staticmethod
    def of(spec: Mapping[str, Any]) -> Cell:
        """The cell with this `spec`. Raises `TypeError` if it is none of this version."""
        protocol = spec["protocol"]
        return Cell(**{**spec, "protocol": None if protocol is None else Protocol(**protocol)})

    @cached_property
    def id(self) -> str:
        """16 hexadecimal digits: the content hash of `spec`."""
        text = json.dumps(self.spec, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def run_id(self, seed: int) -> str:
        """The name of one seed of this cell in the journal."""
        return f"{self.id}-{seed}"

    def __str__(self) -> str:
        encoder = f" {self.encoder}" if self.encoder else ""
        encoder += f" {self.pretraining}" if self.pretraining != "none" else ""
        encoder += f" x {self.ensemble}" if self.ensemble > 1 else ""
        encoder += f" {self.precision}" if self.precision != "float32" else ""
        encoder += f" numbers={self.numbers}" if self.numbers != "z" else ""
        size = f" {self.bag_size}" if self.bag_size else ""
        return f"{self.method}{encoder} on {self.dataset} {bagging_text(self.bagging, self.max_bags)}{size}"


def is_without_labels(bagging: str) -> bool:
    """Whether the bags of a bagging were counted by somebody else, and nobody knows labels."""
    return bagging.split(":")[0].strip() == GIVEN


def bagging_text(bagging: str, max_bags: int | None) -> str:
    """How rows became bags, and how many there are to train on where not all are: `ordered`, `13 ordered`."""
    return bagging if max_bags is None else f"{max_bags:,} {bagging}"


@dataclass(frozen=True)
class Environment:
    """Where and how a cell is computed: may change its speed, never its specification."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda`, `cuda:1`"""
    threads: int = 1
    """CPU threads of one cell; part of the environment, so every executor gives the same numbers"""
    compile: bool | None = None
    """`torch.compile`; None: on a GPU, and on a CPU where an encoder declares it and long training repays it"""
    members: int | None = None
    """most members trained together; None: all seeds of a cell, or one where a deep encoder is compiled for a CPU"""
    data_dir: str | None = None
    pretrained: str | None = None
    """folder where pretrained encoders are kept; None: they are computed for each cell and forgotten"""
    tuning: str | None = None
    """folder where searches for hyperparameters are kept; None: they are forgotten when they end"""
    plugins: tuple[str, ...] = ()
    predictions: str | None = None
    """folder where a parquet file is kept of what each run predicts; None: predictions are judged and forgotten"""


@dataclass(frozen=True)
class Epoch:
    """Progress of a running cell, once an epoch."""

    epoch: int
    """zero-based"""
    epochs: int
    """most there can be"""
    criterion: str
    value: float
    """mean of the criterion over the members still training"""
    members: int
    """members still training"""
