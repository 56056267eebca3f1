"""What a population consists of: members and their data, the machine they train on, and what becomes of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from llpbench.core.bags import Task
from llpbench.core.cell import Cell
from llpbench.core.method import Method
from llpbench.core.model import Encoder, NoEncoder
from llpbench.core.ranges import read_params
from llpbench.core.registry import ENCODERS
from llpbench.core.seeding import torch_seed
from llpbench.training.selection import Selected

EncoderFactory = Callable[[Task], Encoder]


@dataclass(frozen=True)
class Trainee:
    """What one member trains on."""

    seed: int
    method: Method
    task: Task
    learning_rate: float
    start: Mapping[str, Tensor] | None = None
    """parameters, by name, that training starts from (pretraining's); None: random ones"""


@dataclass(frozen=True)
class Machine:
    """Where a population trains; decides its speed alone."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    compiled: bool = False
    precision: torch.dtype = torch.float32


@dataclass
class Outcome:
    """What training made of one member."""

    failure: str = ""
    """why it failed, with the epoch; "" if it did not"""
    epochs: int = 0
    """epochs trained, over all stages; those that are run for each validation regime count for each"""
    selected: dict[str, Selected] = field(default_factory=dict)
    """by criterion, of the last stage"""


def encoder_factory(cell: Cell, dropout: float) -> EncoderFactory:
    """What builds the untrained encoders of a cell."""
    if cell.encoder is None:
        return lambda _: NoEncoder()
    declared = ENCODERS.get(cell.encoder)
    params = read_params(declared.Params, cell.encoder_params, owner=cell.encoder)

    def build(task: Task) -> Encoder:
        built: Encoder = declared(task.schema, params, dropout)
        return built

    return build


def shape_of(task: Task) -> tuple[Any, ...]:
    """Tasks of equal shape can train in one population."""
    holdout = task.validation
    return (
        replace(task.schema, prior=()),
        task.train.rows.numeric.shape,
        task.train.index.shape,
        holdout.rows.numeric.shape,
        holdout.index.shape,
    )


def build_network(member: Trainee, build_encoder: EncoderFactory, purpose: str) -> Any:
    """A member's untrained network; its random start depends on the seed alone, on CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(member.seed, purpose, "initial weights"))
        network: Any = member.method.build(build_encoder(member.task), member.task.schema)
    if member.start is not None:
        with torch.no_grad():
            for name, value in member.start.items():
                network.get_parameter(name).copy_(value)
    return network
