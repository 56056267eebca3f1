"""Members of a population: their data, networks and outcomes."""

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
    """A member's seed, method, data and start."""

    seed: int
    method: Method
    task: Task
    start: Mapping[str, Tensor] | None = None
    """initial parameters by name, from pretraining; None: random parameters"""
    copy: int = 0
    """index in the ensemble of the seed; each copy has its own random numbers"""

    @property
    def stream(self) -> tuple[str, ...]:
        """Names of the member's random streams, which differ from those of other members of its seed."""
        return (f"copy {self.copy}",) if self.copy else ()


@dataclass
class Outcome:
    """The result of training one member."""

    failure: str = ""
    """reason and epoch of a failure; "" if training succeeded"""
    stopped: bool = False
    """whether a rung (`Rungs`) stopped the member; it then skips later stages"""
    epochs: int = 0
    """trained epochs in all stages; if a stage is repeated for each validation regime, each time counts"""
    selected: dict[str, Selected] = field(default_factory=dict)
    """selections of the last stage, by criterion"""
    averaged: Tensor | None = None
    """[n, parameters] weights whose predictions are averaged; None if criteria select weights"""


def chosen_by_all(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the criteria that were a number at some epoch of every member; no other criterion can be judged."""
    first, *_ = outcomes
    return [name for name in first.selected if not any(math.isnan(each.selected[name].value) for each in outcomes)]


class Rungs(Protocol):
    """A rule that stops members after some epochs of the first judged stage."""

    @property
    def criterion(self) -> Criterion:
        """The criterion that compares members."""
        ...

    def leaving(self, epochs: int, values: Mapping[int, float]) -> set[int]:
        """Return the members to stop after `epochs`, given each member's best value of the criterion."""
        ...


def encoder_factory(cell: Cell, dropout: float) -> EncoderFactory:
    """Return a function that builds untrained encoders of a cell."""
    return lambda task: make_encoder(cell, task.schema, dropout)


def make_encoder(cell: Cell, schema: Schema, dropout: float) -> Encoder:
    """Return an untrained encoder of a cell."""
    if cell.encoder is None:
        return NoEncoder()
    declared = ENCODERS.get(cell.encoder)
    built: Encoder = declared(schema, read_params(declared.Params, cell.encoder_params, owner=cell.encoder), dropout)
    return built


def shape_of(task: Task, bags_per_step: int) -> tuple[Any, ...]:
    """Return a task's shape; tasks of equal shape can train in one population."""
    holdout = task.validation
    return (
        replace(task.schema, prior=()),
        task.train.rows.numeric.shape,
        profile(task.train, bags_per_step),
        holdout.rows.numeric.shape,
        holdout.index.shape,
        holdout.labels is None,
    )


def populations(tasks: dict[int, Task], bags_per_step: int, most: int | None = None) -> list[dict[int, Task]]:
    """Group seeds that can train together: seeds with tasks of equal shape, at most `most` in a group."""
    shapes: dict[Any, list[int]] = {}
    for seed, task in tasks.items():
        shapes.setdefault(shape_of(task, bags_per_step), []).append(seed)
    size = most or len(tasks)
    groups = [seeds[i : i + size] for seeds in shapes.values() for i in range(0, len(seeds), size)]
    return [{seed: tasks[seed] for seed in group} for group in groups]


def build_network(member: Trainee, build_encoder: EncoderFactory, purpose: str) -> Network:
    """Return a member's untrained network; its random weights depend on the seed alone, not on the device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(member.seed, purpose, "initial weights", *member.stream))
        network = copies.build(member.method, build_encoder(member.task), member.task.schema)
    if member.start is not None:
        with torch.no_grad():
            for name, value in member.start.items():
                network.get_parameter(name).copy_(value)
    return network
