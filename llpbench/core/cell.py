"""Cells and tunings: specifications with a content hash. `training/specification.py` creates cells.

A cell is a specification without a seed, a tuning a search for its hyperparameters. The id of either is the hash of its
canonical specification. Order, paths, hardware, device, threads and executor do not affect it, because they belong to
the `Environment`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Self

from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA, GUIDES, Criterion, Regime
from llpbench.core.errors import LLPBenchError

NUMBERS = ("z", "scores", "robust")
"""Representations of numbers for methods: z-scores (the paper's), normal scores, robust scores (`core/numbers.py`)."""

GIVEN = "given"
"""bagging of datasets that have published counts of bags and no labels"""

NATURAL = "natural"
"""bags of single keys, whatever the keys are, as one bagging of reports"""


@dataclass(frozen=True)
class Protocol:
    """Length and batch size of training; the defaults are the paper's."""

    epochs: int = 300
    """largest number of epochs of a stage"""
    patience: int = 20
    """epochs without improvement after which a criterion stops"""
    bags_per_step: int = 2
    """bags drawn for one gradient step"""


@dataclass(frozen=True)
class Cell:
    """Everything that determines a result, except the seed. `params` holds every hyperparameter, including defaults."""

    method: str
    dataset: str
    bagging: str
    bag_size: int | None
    """rows per bag; None if the bagging decides the sizes of its bags"""
    encoder: str | None
    """name of the encoder; None for methods with their own network, and for direct methods"""
    params: Mapping[str, Any] = field(default_factory=dict)
    encoder_params: Mapping[str, Any] = field(default_factory=dict)
    pretraining: str = "none"
    pretraining_params: Mapping[str, Any] = field(default_factory=dict)
    """every hyperparameter of the pretraining; empty without pretraining"""
    protocol: Protocol | None = Protocol()
    """length of training; None for direct methods, which have no epochs"""
    max_bags: int | None = None
    """number of training bags, chosen at random; None for all bags"""
    ensemble: int = 1
    """number of members trained for each seed with different random numbers; their predictions are averaged"""
    precision: str = "float32"
    """precision of the networks: `float32`, or `bfloat16` for autocast; direct methods support only float32"""
    numbers: str = "z"
    """representation of numbers for the method, one of `NUMBERS`"""
    average: str = ""
    """average in place of a chosen epoch, such as `half:30` (`Average`); empty to choose an epoch"""

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The canonical specification, of JSON types only.

        `precision`, `max_bags`, `ensemble`, `numbers` and `average` are left out at their defaults, and no bag size is
        0: existing ids must stay the same.
        """
        later = ("precision", "max_bags", "ensemble", "numbers", "average")
        values = ((each, getattr(self, each.name)) for each in fields(self))
        spec = {each.name: value for each, value in values if each.name not in later or value != each.default}
        spec |= {"bag_size": self.bag_size or 0, "protocol": self.protocol and asdict(self.protocol)}
        return json.loads(json.dumps(spec, sort_keys=True))

    @staticmethod
    def of(spec: Mapping[str, Any]) -> Cell:
        """Return the cell with this `spec`. Raises `TypeError` if the fields are not those of this version."""
        protocol = None if spec["protocol"] is None else Protocol(**spec["protocol"])
        return Cell(**{**spec, "bag_size": spec["bag_size"] or None, "protocol": protocol})

    @cached_property
    def id(self) -> str:
        """Content hash of `spec`, 16 hexadecimal digits."""
        return _hash(self.spec)

    def run_id(self, seed: int) -> str:
        """Return the name of one seed of this cell in the journal."""
        return f"{self.id}-{seed}"

    def __str__(self) -> str:
        encoder = f" {self.encoder}" if self.encoder else ""
        encoder += f" {self.pretraining}" if self.pretraining != "none" else ""
        encoder += f" x {self.ensemble}" if self.ensemble > 1 else ""
        encoder += f" {self.precision}" if self.precision != "float32" else ""
        encoder += f" numbers={self.numbers}" if self.numbers != "z" else ""
        encoder += f" average={self.average}" if self.average else ""
        size = f" {self.bag_size}" if self.bag_size else ""
        return f"{self.method}{encoder} on {self.dataset} {bagging_text(self.bagging, self.max_bags)}{size}"


def _hash(spec: Mapping[str, Any]) -> str:
    """Return the hash of a specification, 16 hexadecimal digits."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_without_labels(bagging: str) -> bool:
    """Return whether a bagging uses published counts of bags, so that labels are unknown."""
    return bagging.split(":")[0].strip() == GIVEN


def bagging_text(bagging: str, max_bags: int | None) -> str:
    """Return the bagging as text; a limited number of training bags comes first: `ordered`, `13 ordered`."""
    return bagging if max_bags is None else f"{max_bags:,} {bagging}"


TUNING_SEED = 1000
"""default seed of the split and the random streams of every trial"""
SAMPLERS = ("tpe", "random")
TOGETHER = 5
"""trials of one architecture that are proposed together; more would train faster but learn less from each other"""


@dataclass(frozen=True)
class Tuning:
    """Everything that determines the outcome of a search for the best hyperparameters of a cell in a validation regime.

    A search trains on its own seed, not on the seeds of reported results, and never predicts a test row. Coarse-grained
    tuning does not use labels of validation rows: neither its proposals, nor its early stopping, nor its choice.
    """

    cell: Cell
    """initial configuration: the first trial, and the value of every hyperparameter that is not searched"""
    regime: Regime
    trials: int
    space: Mapping[str, Mapping[str, Any]]
    """search space by hyperparameter: `low` and `high` (and `log`), or `choices`

    `when` has the values of other hyperparameters, by name, for which this one matters.
    """
    sampler: str = "tpe"
    seed: int = TUNING_SEED
    together: int = TOGETHER
    """number of trials of one architecture that are proposed and trained together"""
    eta: int = 3
    """at each rung, one in `eta` trials continues; 0: no trial is stopped early"""

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The canonical specification, of JSON types only."""
        return self.search | {"trials": self.trials}

    @cached_property
    def search(self) -> dict[str, Any]:
        """The specification without the number of trials, so that a longer search continues a shorter one."""
        parts = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "trials"}
        return json.loads(json.dumps({**parts, "cell": self.cell.spec}, sort_keys=True))

    @staticmethod
    def of(spec: Mapping[str, Any]) -> Tuning:
        """Return the tuning with this `spec`. Raises `TypeError` if the fields are not those of this version."""
        return Tuning(**{**spec, "cell": Cell.of(spec["cell"])})

    @cached_property
    def id(self) -> str:
        """Content hash of `spec`, 16 hexadecimal digits."""
        return _hash(self.spec)

    @cached_property
    def search_id(self) -> str:
        """Content hash of `search`, 16 hexadecimal digits."""
        return _hash(self.search)

    @property
    def guide(self) -> Criterion:
        """Criterion that guides the search and decides which trials are stopped early."""
        return CRITERIA[GUIDES[self.regime]]

    @property
    def criteria(self) -> tuple[str, ...]:
        """Criteria of the regime. Each selects its own configuration."""
        return tuple(name for name, each in CRITERIA.items() if each.regime == self.regime)

    @property
    def boards(self) -> tuple[str, ...]:
        """Criteria shown on leaderboards."""
        return tuple(name for name in BOARD_CRITERIA if name in self.criteria)

    @property
    def rungs(self) -> tuple[int, ...]:
        """Numbers of epochs, ascending, after which trials are compared and most of them stopped."""
        if self.cell.protocol is None or self.eta < 2:
            return ()
        epochs = self.cell.protocol.epochs
        found = (-(-epochs // self.eta**power) for power in (2, 1))
        return tuple(sorted({rung for rung in found if 1 < rung < epochs}))

    def __str__(self) -> str:
        return f"tuning {self.cell}, {self.regime}, {self.trials} trials"


@dataclass(frozen=True)
class Environment:
    """Device, threads and other settings that may change a cell's speed but not its specification."""

    device: str = "auto"
    """name of the device: `auto`, `cpu`, `cuda`, `cuda:1`"""
    threads: int = 1
    """CPU threads per cell; part of the environment, so every executor gives the same numbers"""
    compile: bool | None = None
    """whether to use `torch.compile`; None: only on a CPU, if the encoder declares it and training is long"""
    data_dir: str | None = None
    pretrained: str | None = None
    """folder of pretrained encoders; None: pretrain for each cell and discard the weights"""
    tuning: str | None = None
    """folder of hyperparameter searches; None: discard a search when it ends"""
    plugins: tuple[str, ...] = ()
    predictions: str | None = None
    """folder for one parquet file of predictions per run; None: evaluate and discard predictions"""


@dataclass(frozen=True)
class Epoch:
    """Progress of a running cell, reported once per epoch."""

    epoch: int
    """number of the epoch, zero-based"""
    epochs: int
    """largest possible number of epochs"""
    criterion: str
    value: float
    """mean of the criterion over the members still training"""
    members: int
    """number of members still training"""


@dataclass(frozen=True)
class Average:
    """An average in place of a chosen epoch: training of networks without validation.

    Choosing an epoch costs a tenth of the bags, and proportions choose little better than a fixed epoch. An averaged
    network trains for a fixed number of epochs on all bags, those of the validation part included.

    - `half`: the mean of the predictions after each epoch of the second half of training.
    - `ema`: the prediction at a moving average of the weights, with a horizon of 3 epochs.

    If a method has several stages, the average is of the last stage. The other stages hand over their last weights.
    """

    KINDS: ClassVar = ("half", "ema")
    kind: str
    epochs: int = 30
    """number of epochs in each stage that does not declare its own"""

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the average that a text names, such as `half` or `ema:50`.

        Raises `LLPBenchError` with the possible texts for any other.
        """
        kind, colon, number = text.partition(":")
        epochs = int(number) if number.isdecimal() else 0
        if kind not in cls.KINDS or (colon and epochs < 1):
            kinds = " or ".join(cls.KINDS)
            raise LLPBenchError(f"{kinds}, with a number of epochs if not {cls.epochs}, such as half:50")
        return cls(kind, epochs) if colon else cls(kind)

    def __str__(self) -> str:
        return f"{self.kind}:{self.epochs}"
