"""One benchmark cell: a specification without a seed, and its content hash. What computes it: `compute.py`.

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

from llpbench.errors import LLPBenchError
from llpbench.method import DirectMethod, hyperparameters
from llpbench.ranges import read_params
from llpbench.registry import ENCODERS, METHODS


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
    encoder: str | None
    """None for methods that bring their own network, and for direct methods, which have none"""
    params: Mapping[str, Any] = field(default_factory=dict)
    encoder_params: Mapping[str, Any] = field(default_factory=dict)
    pretraining: str = "none"
    pretraining_params: Mapping[str, Any] = field(default_factory=dict)
    """every hyperparameter of the pretraining; empty where there is none"""
    protocol: Protocol | None = Protocol()
    """None for direct methods, which have no epochs"""

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The canonical specification, of JSON types only."""
        spec = asdict(self)
        return json.loads(json.dumps(spec, sort_keys=True))  # type: ignore[no-any-return]

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
        return f"{self.method}{encoder} on {self.dataset} {self.bagging} {self.bag_size}"


@dataclass(frozen=True)
class Environment:
    """Where and how a cell is computed: may change its speed, never its specification."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda`, `cuda:1`"""
    threads: int = 1
    """CPU threads of one cell; part of the environment, so every executor gives the same numbers"""
    compile: bool | None = None
    """`torch.compile`; None: on a GPU only"""
    precision: str = "float32"
    """`float32`, or `bfloat16` for autocast on a GPU"""
    members: int | None = None
    """most members trained together; None: all seeds of a cell"""
    data_dir: str | None = None
    pretrained: str | None = None
    """folder where pretrained encoders are kept; None: they are computed for each cell and forgotten"""
    plugins: tuple[str, ...] = ()


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


def make_cell(
    method: str,
    dataset: str,
    *,
    bag_size: int,
    bagging: str = "ordered",
    encoder: str = "saint",
    protocol: Protocol | None = None,
    params: Mapping[str, Any] | None = None,
    pretraining: str = "none",
    pretraining_params: Mapping[str, Any] | None = None,
) -> Cell:
    """A cell with every hyperparameter filled in from the method's and the encoder's declarations.

    `params`: hyperparameters that differ from the defaults, as values or texts; raises `LLPBenchError` on unknown names
    and impossible values; `pretraining_params` likewise. Direct methods ignore `protocol`, and they and methods that
    bring their own network ignore `encoder` and pretraining.
    """
    entry = METHODS.entry(method)
    declared = entry.load()
    values = hyperparameters(read_params(declared.Params, params or {}, owner=entry.name))
    direct = issubclass(declared, DirectMethod)
    if direct != (entry.facts["kind"] == "direct"):
        kinds = ("a DirectMethod", "direct") if direct else ("a Method", "neural")
        raise LLPBenchError(
            f"method {entry.name!r} is {kinds[0]}, but registered as {entry.facts['kind']!r} ({entry.where}). "
            f'Register it with kind="{kinds[1]}".'
        )
    if direct:
        return Cell(entry.name, dataset, bagging, bag_size, None, values, protocol=None)
    if not declared.takes_encoder:
        protocol = protocol or Protocol()
        return Cell(entry.name, dataset, bagging, bag_size, None, values, protocol=protocol)
    network = ENCODERS.entry(encoder)
    own = {name: network.facts[name] for name, value in values.items() if value is None and name in network.facts}
    return Cell(
        method=entry.name,
        dataset=dataset,
        bagging=bagging,
        bag_size=bag_size,
        encoder=network.name,
        params=values | own,
        encoder_params=asdict(network.load().Params()),
        pretraining=pretraining,
        pretraining_params={}
        if pretraining == "none"
        else _pretraining_params(pretraining_params or {}, network.facts),
        protocol=protocol or Protocol(),
    )


def _pretraining_params(values: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Every hyperparameter of a pretraining; those that are the encoder's own from its `facts`."""
    from llpbench.pretraining import PretrainingParams

    params = hyperparameters(read_params(PretrainingParams, values, owner="pretraining"))
    return {name: facts.get(name) if value is None else value for name, value in params.items()}


def changed(cell: Cell) -> dict[str, Any]:
    """The hyperparameters in which a cell differs from its default configuration, by name.

    Those of pretraining and encoder as `pretraining.NAME` and `encoder.NAME`.
    """
    usual = make_cell(
        cell.method,
        cell.dataset,
        bag_size=cell.bag_size,
        bagging=cell.bagging,
        encoder=cell.encoder or "mlp",
        pretraining=cell.pretraining,
    )
    parts = {"": "params", "pretraining.": "pretraining_params", "encoder.": "encoder_params"}
    return {
        prefix + name: value
        for prefix, part in parts.items()
        for name, value in cell.spec[part].items()
        if value != usual.spec[part].get(name)
    }
