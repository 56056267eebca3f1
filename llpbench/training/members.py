"""What a population consists of: members with their data, and what becomes of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from llpbench.core.bags import Schema, Task
from llpbench.core.cell import Cell
from llpbench.core.criteria import Criterion
from llpbench.core.method import Method
from llpbench.core.model import Encoder, Network, NoEncoder
from llpbench.core.ranges import read_params
from llpbench.core.registry import ENCODERS
from llpbench.core.seeding import torch_seed
from llpbench.training import copies
from llpbench.training.selection import Selected
from llpbench.training.training_data import profile

EncoderFactory = Callable[[Task], Encoder]


@dataclass(frozen=True)
class Trainee:
    """What one member trains on."""

    seed: int
    method: Method
    task: Task
    start: Mapping[str, Tensor] | None = None
    """parameters, by name, that training starts from (pretraining's); None: random ones"""
    copy: int = 0
    """place in the ensemble of its seed: each has random numbers of its own"""

    @property
    def stream(self) -> tuple[str, ...]:
        """What tells its random numbers from those of others of its seed."""
        return (f"copy {self.copy}",) if self.copy else ()


@dataclass
class Outcome:
    """What training made of one member."""

    failure: str = ""
    """why it failed, with the epoch; "" if it did not"""
    stopped: bool = False
    """whether it had to leave at a rung (`Rungs`); it then takes no part in later stages"""
    epochs: int = 0
    """epochs trained, over all stages; those that are run for each validation regime count for each"""
    selected: dict[str, Selected] = field(default_factory=dict)
    """by criterion, of the last stage"""


def chosen_by_all(outcomes: Sequence[Outcome]) -> list[str]:
    """The criteria that were ever a number for each of some members: others have chosen nothing that can be judged."""
    first, *_ = outcomes
    return [name for name in first.selected if not any(math.isnan(each.selected[name].value) for each in outcomes)]


class Rungs(Protocol):
    """Decides, after some epochs of the first judged stage, which members go on."""

    @property
    def criterion(self) -> Criterion:
        """By which they are compared."""
        ...

    def leaving(self, epochs: int, values: Mapping[int, float]) -> set[int]:
        """The members that leave, given each one's best value of the criterion after so many epochs."""
        ...


def encoder_factory(cell: Cell, dropout: float) -> EncoderFactory:
    """What builds the untrained encoders of a cell."""
    return lambda task: make_encoder(cell, task.schema, dropout)


def make_encoder(cell: Cell, schema: Schema, dropout: float) -> Encoder:
    """An untrained encoder of a cell."""
    if cell.encoder is None:
        return NoEncoder()
    declared = ENCODERS.get(cell.encoder)
    built: Encoder = declared(schema, read_params(declared.Params, cell.encoder_params, owner=cell.encoder), dropout)
    return built


def shape_of(task: Task, bags_per_step: int) -> tuple[Any, ...]:
    """Tasks of equal shape can train in one population."""
    holdout = task.validation
    return (
        replace(task.schema, prior=()),
        task.train.rows.numeric.shape,
        profile(task.train, bags_per_step),
        holdout.rows.numeric.shape,
        holdout.index.shape,
        holdout.labels is None,
    )


def build_network(member: Trainee, build_encoder: EncoderFactory, purpose: str) -> Network:
    """A member's untrained network; its random start depends on the seed alone, on CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(member.seed, purpose, "initial weights", *member.stream))
        network = copies.build(member.method, build_encoder(member.task), member.task.schema)
    if member.start is not None:
        with torch.no_grad():
            for name, value in member.start.items():
                network.get_parameter(name).copy_(value)
    return network
