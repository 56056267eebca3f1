"""A few training steps of a method on toy data, and how far two such trainings are apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from benchmarks.gpu.timing import make_subject, synchronise
from llpbench.core.bags import Task
from llpbench.core.cell import Protocol
from llpbench.data.tasks import build_task
from llpbench.data.toy import permuted_within, toy_assignment, toy_table
from llpbench.training.cohort import Trainee, encoder_factory
from llpbench.training.device import Machine
from llpbench.training.population import Population
from llpbench.training.stage import StageRun

ROWS, SIZE = 960, 64
"""of the toy table, and of its bags"""


@dataclass(frozen=True)
class Trace:
    """What a few steps of every stage made of the members."""

    losses: Tensor
    """[members, steps] of all stages"""
    gradients: Tensor
    """[members, parameters] running mean of the clipped gradients after the first step"""
    weights: Tensor
    """[members, parameters] after the last step"""


@dataclass(frozen=True)
class Distance:
    """How far two trainings are apart."""

    loss: float
    """largest difference of the losses of one step, relative to the loss or, where that is below 1, absolute"""
    gradient: float
    """largest norm of a difference of first gradients, relative to their norm"""


class Subject:
    """A method with an encoder of published size, on toy data."""

    def __init__(self, name: str, encoder: str) -> None:
        self.cell, self.method = make_subject(name, encoder, SIZE)

    @property
    def sees_labels(self) -> bool:
        """Whether labels of rows are what it is trained on."""
        return self.method.supervision == "instances"

    def task(self, seed: int, *, permuted: bool = False) -> Task:
        """`permuted`: the labels of the rows of each training bag are permuted."""
        table, assignment = toy_table(rows=ROWS), toy_assignment(rows=ROWS, size=SIZE, seed=seed)
        if permuted:
            table = permuted_within(table, assignment.train)
        return build_task(table, assignment, supervision=self.method.supervision)

    def population(self, seeds: list[int], machine: Machine, *, permuted: bool = False) -> Population:
        """Untrained members."""
        members = [Trainee(seed, self.method, self.task(seed, permuted=permuted)) for seed in seeds]
        return Population(members, encoder_factory(self.cell, self.method.params.dropout), Protocol(), machine)

    def trace(self, seeds: list[int], machine: Machine, steps: int, *, permuted: bool = False) -> Trace:
        """Train some steps of every stage."""
        population = self.population(seeds, machine, permuted=permuted)
        losses, first = [], None
        for stage in self.method.stages:
            run = StageRun(population, replace(stage, epochs=stage.epochs or 10), population.state)
            run.prepare(0)
            plan = run.plan(0)
            few = min(steps, plan.drawn.shape[1])
            last = run.epochs * plan.drawn.shape[1]  # where weights that ramp up have done so
            progress = population.progress(run.stage, list(range(last - few, last)))
            for step in range(few):
                losses.append(run.step(plan, step, progress[step]))
                if first is None:
                    first = torch.cat([each.mean for each in dict.fromkeys(run.optimisers)], dim=1).clone()
            population.state.weights[run.slots] = run.theta.detach()
        synchronise(machine.device)
        assert first is not None
        return Trace(torch.stack(losses, dim=1).cpu(), first.cpu(), population.state.weights.cpu())


def distance(one: Trace, other: Trace) -> Distance:
    """Between the members of two traces, in their order."""
    scale = one.losses.abs().clamp(min=1.0)
    norms = one.gradients.norm(dim=1).clamp(min=1e-12)
    return Distance(
        loss=float(((one.losses - other.losses).abs() / scale).max()),
        gradient=float(((one.gradients - other.gradients).norm(dim=1) / norms).max()),
    )


def select(trace: Trace, member: int) -> Trace:
    """One member of a trace."""
    return Trace(*(part[member : member + 1] for part in vars(trace).values()))


def identical(one: Trace, other: Trace) -> bool:
    """Bit by bit, NaN included."""
    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return all(np.array_equal(first.numpy(), second.numpy(), equal_nan=True) for first, second in pairs)
