"""Training: many members (seeds, in tuning also hyperparameter settings) as one stacked model (DESIGN, idea 3).

`vmap` maps a method's loss, written for one model, over the members; ordinary autograd runs outside; one AdamW updates
the stacked parameters. Everything stays on the device, and within an epoch the host never waits for it: the batches of
a whole epoch are drawn beforehand, NaN is looked for at its end. Every member has its own split, bags, normalisation
and random streams, so that it gets the same numbers alone as among ten (up to rounding).

Members leave the stack when all their criteria have settled (`selection.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from llpbench.bags import BaggedRows, Bags, FloatArray, Holdout, Rows, Task
from llpbench.cell import Epoch, Protocol
from llpbench.errors import LLPBenchError
from llpbench.method import Method, Phase, Progress, Stage
from llpbench.metrics import validation_criteria
from llpbench.model import Encoder, Model, Random
from llpbench.ranges import continuous
from llpbench.seeding import generator, torch_seed
from llpbench.selection import HANDOVER, Selected, Selection
from llpbench.stack import AdamW, Stack
from llpbench.training_data import TrainingData, stacked, stacked_rows

CLIP = 1.0
"""largest norm of a member's gradient (spec 0)"""
PREDICT_ROWS = 2048
"""rows predicted at once"""

EncoderFactory = Callable[[Task], Encoder]


@dataclass(frozen=True)
class Member:
    """What one member trains on."""

    seed: int
    method: Method
    task: Task
    learning_rate: float


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
    """epochs trained, over all stages"""
    selected: dict[str, Selected] = field(default_factory=dict)
    """by criterion, of the last stage"""


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


class Population:
    """Members trained together: their data and parameters on the device, and what became of each."""

    def __init__(
        self, members: Sequence[Member], build_encoder: EncoderFactory, protocol: Protocol, machine: Machine
    ) -> None:
        """`build_encoder` makes an untrained encoder for a task. Raises if the members' tasks differ in shape."""
        tasks = [member.task for member in members]
        if len({shape_of(task) for task in tasks}) > 1:
            raise LLPBenchError("members of one population must have tasks of the same shape")
        self.members, self.protocol, self.machine = list(members), protocol, machine
        self.method, self.schema = members[0].method, tasks[0].schema
        networks = [_build(member, build_encoder) for member in members]
        self.stack = Stack(networks, machine.device)
        self.outcomes = [Outcome() for _ in members]
        device = machine.device
        self.rngs = [generator(member.seed, "training") for member in members]
        self.data = TrainingData([task.train for task in tasks], device)
        self.hyperparameters = {
            name: torch.tensor([float(getattr(m.method.params, name)) for m in members], device=device)
            for name in continuous(type(self.method.params))
            if name not in ("learning_rate", "weight_decay")  # the optimiser's
        }
        self.validation_rows = stacked_rows([task.validation.rows for task in tasks], device)
        self.validation_truth = [
            stacked([getattr(task.validation, part) for task in tasks], device)
            for part in ("labels", "index", "counts")
        ]
        # an encoder whose rows see each other is always given as many rows as it was trained on
        self.predict_rows = self.schema.rows_per_step if networks[0].encoder.row_interaction else PREDICT_ROWS
        self.slots = torch.arange(len(members), device=device)
        """the members still in the stack, by number; everything else is indexed by it"""
        self.theta = self.stack.theta
        self.seconds = {"train": 0.0, "evaluate": 0.0}
        self._objective = _Objective(self.stack.template, self.method)
        self._losses = torch.compile(self._stacked_loss) if machine.compiled else self._stacked_loss

    def train(self, on_epoch: Callable[[Epoch], None] | None = None) -> list[Outcome]:
        """Run every stage of the method; what became of each member, in order."""
        for stage in self.method.stages:
            self._run_stage(stage, on_epoch)
        return self.outcomes

    def predict(self, number: int, weights: Tensor, holdout: Holdout) -> FloatArray:
        """Probabilities [n, rows, classes] that a member with parameters `weights` [n, parameters] gives."""
        device = self.machine.device
        rows = stacked_rows([holdout.rows], device)
        slots = torch.full((len(weights),), number, device=device)
        proba = self._log_proba(weights.to(device), slots, rows, torch.zeros_like(slots)).exp()
        return np.asarray(proba.cpu())

    # -- a stage ----------------------------------------------------------------------------------------------------

    def _run_stage(self, stage: Stage, on_epoch: Callable[[Epoch], None] | None) -> None:
        active = [number for number, outcome in enumerate(self.outcomes) if not outcome.failure]
        if not active:
            return
        self.slots = torch.tensor(active, device=self.machine.device)
        start = [self.outcomes[n].selected[HANDOVER].weights if self.outcomes[n].selected else None for n in active]
        rows = [self.stack.theta[n] if weights is None else weights for n, weights in zip(active, start, strict=True)]
        self.theta = torch.stack(rows).detach().requires_grad_()
        optimisers = {phase.name: self._optimiser(phase) for phase in self.method.phases}
        selection = Selection(len(active), self.protocol.patience, self.theta)
        for epoch in range(self.protocol.epochs):
            if epoch == 0 or (stage.refresh is not None and epoch % stage.refresh == 0):
                self._prepare(stage)
            clock = time.perf_counter()
            finite = self._run_epoch(stage, epoch, optimisers)
            self.seconds["train"] += time.perf_counter() - clock
            clock = time.perf_counter()
            criteria = self._validate()
            self.seconds["evaluate"] += time.perf_counter() - clock
            self._observe(selection, stage, epoch, finite, criteria)
            if on_epoch is not None:
                value = float(np.nanmean(criteria["auc"])) if np.isfinite(criteria["auc"]).any() else math.nan
                on_epoch(Epoch(epoch, self.protocol.epochs, "auc", value, int((~selection.done).sum())))
            if selection.done.all():
                break
            self._drop_finished(selection, optimisers)
        self._collect(selection, range(len(self.slots)))

    def _optimiser(self, phase: Phase) -> AdamW:
        numbers = self.slots.tolist()
        rate = torch.tensor([self.members[n].learning_rate for n in numbers], device=self.machine.device)
        decay = torch.tensor([self.members[n].method.params.weight_decay for n in numbers], device=self.machine.device)
        columns = None if "" in phase.modules else self.stack.columns(phase.modules)
        return AdamW(self.theta, rate, decay, CLIP, columns, self.machine.compiled)

    def _run_epoch(self, stage: Stage, epoch: int, optimisers: dict[str, AdamW]) -> FloatArray:
        """One epoch of all members; [members] whether every loss of each was finite."""
        per_step = self.protocol.bags_per_step if stage.unit == "bags" else self.schema.rows_per_step
        rngs = [self.rngs[number] for number in self.slots.tolist()]
        plan, keys = self.data.plan_epoch(stage.unit, per_step, len(self.method.phases), rngs)
        steps = plan.shape[1]
        finite = torch.ones(len(self.slots), dtype=torch.bool, device=self.machine.device)
        most = self.protocol.epochs
        progress = torch.tensor(
            [[epoch, most, epoch * steps + step, most * steps] for step in range(steps)],
            dtype=torch.float32,
            device=self.machine.device,
        )
        for step in range(steps):
            bags = self.data.take(stage.unit, self.slots, plan[:, step])
            for turn, phase in enumerate(self.method.phases):
                losses = self._losses(phase.name, self.theta, self.slots, bags, keys[:, step, turn], progress[step])
                if losses.dim() != 1:
                    raise ValueError(f"a loss must be a single number, however: shape {tuple(losses.shape[1:])}")
                (gradient,) = torch.autograd.grad(losses.sum(), self.theta)
                optimisers[phase.name].step(self.theta, gradient)
                finite &= losses.detach().isfinite()
        return np.asarray(finite.cpu())  # the only wait of the epoch

    def _stacked_loss(
        self, phase: str, theta: Tensor, slots: Tensor, bags: Bags, keys: Tensor, progress: Tensor
    ) -> Tensor:
        """The loss of every member: [members]."""

        def loss(parameters: Any, buffers: Any, values: Any, bags: Bags, key: Tensor) -> Any:
            now = Progress(*progress.unbind())
            return functional_call(self._objective, (parameters, buffers), (phase, values, bags, key, now))

        reduced = self.machine.precision != torch.float32
        with torch.autocast(theta.device.type, self.machine.precision, enabled=reduced):
            losses: Tensor = vmap(loss, randomness="error")(*self._members(theta, slots), bags, keys)
        return losses

    def _members(self, theta: Tensor, slots: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
        """Parameters, buffers and hyperparameters of the members in `slots`, each with a leading [members]."""
        return (
            {f"network.{name}": value for name, value in self.stack.parameters(theta).items()},
            {f"network.{name}": value[slots] for name, value in self.stack.buffers.items()},
            {name: value[slots] for name, value in self.hyperparameters.items()},
        )

    def _observe(
        self, selection: Selection, stage: Stage, epoch: int, finite: FloatArray, criteria: dict[str, FloatArray]
    ) -> None:
        training = ~selection.done
        for position, number in enumerate(self.slots.tolist()):
            if not training[position]:
                continue
            self.outcomes[number].epochs += 1
            if not finite[position]:
                self.outcomes[number].failure = f"the loss was not finite in epoch {epoch} of stage {stage.name!r}"
                selection.give_up(position)
        selection.observe(epoch, criteria, self.theta)

    def _drop_finished(self, selection: Selection, optimisers: dict[str, AdamW]) -> None:
        """Take finished members out of the stack: at once, or by halves where a new size must be compiled."""
        done = selection.done
        if not done.any() or (self.machine.compiled and 2 * (~done).sum() > len(done)):
            return
        self._collect(selection, np.flatnonzero(done).tolist())
        stay = np.flatnonzero(~done).tolist()
        selection.keep(stay)
        positions = torch.tensor(stay, device=self.machine.device)
        self.slots = self.slots[positions]
        self.theta = self.theta.detach()[positions].requires_grad_()
        for optimiser in optimisers.values():
            optimiser.keep(positions)

    def _collect(self, selection: Selection, positions: Sequence[int]) -> None:
        numbers = self.slots.tolist()
        for position in positions:
            self.outcomes[numbers[position]].selected = selection.selected(position)

    def _prepare(self, stage: Stage) -> None:
        """Let the method work on the whole training set, member by member."""
        if type(self.method).prepare is Method.prepare:
            return
        for position, number in enumerate(self.slots.tolist()):
            view = _MemberView(self, position, number)
            targets = self.members[number].method.prepare(stage.name, view)
            with torch.no_grad():
                self.theta[position] = self.stack.read_back(number)
            if targets is not None:
                self.data.set_targets(number, targets)

    # -- prediction -------------------------------------------------------------------------------------------------

    def _log_proba(self, theta: Tensor, slots: Tensor, rows: Rows, where: Tensor) -> Tensor:
        """[n, rows, classes] float64: `theta` [n, parameters] of members `slots` [n] on the rows `where` [n]."""

        def predict(parameters: Any, buffers: Any, values: Any, bags: Bags) -> Any:
            return functional_call(self._objective, (parameters, buffers), (None, values, bags, None, None))

        with torch.no_grad():
            members = self._members(theta, slots)
            chunks = [
                vmap(predict)(*members, self._unlabelled(_chunk(rows, where, start, self.predict_rows)))
                for start in range(0, rows.numeric.shape[1], self.predict_rows)
            ]
        return torch.cat(chunks, dim=-2).squeeze(1).double()

    def _unlabelled(self, rows: Rows) -> Bags:
        """Rows [members, 1, size] as one bag of which nothing is known."""
        shape = rows.numeric.shape[:-1]
        nothing = torch.zeros(*shape[:-1], self.schema.classes, device=rows.numeric.device)
        return Bags(rows, torch.ones(shape, dtype=torch.bool, device=rows.numeric.device), nothing.long(), nothing)

    def _validate(self) -> dict[str, FloatArray]:
        """Every validation criterion: name: [members]."""
        proba = self._log_proba(self.theta.detach(), self.slots, self.validation_rows, self.slots).exp()
        criteria = validation_criteria(proba, *(part[self.slots] for part in self.validation_truth))
        return {name: np.asarray(value.cpu()) for name, value in criteria.items()}


class _Objective(nn.Module):
    """A method around its network, so that `functional_call` can put a member's parameters in place."""

    def __init__(self, network: nn.Module, method: Method) -> None:
        super().__init__()
        self.network = network
        self.method = method

    def forward(
        self, phase: str | None, values: dict[str, Tensor], bags: Bags, key: Tensor | None, progress: Progress | None
    ) -> Tensor:
        """The loss of a phase, or (phase None) the prediction."""
        method = self.method.bind(values)
        if phase is None or key is None or progress is None:
            return method.log_proba(Model(self.network), bags)
        return method.phase_loss(phase, Model(self.network, Random(key)), bags, progress)


class _MemberView:
    """One member as `Method.prepare` sees it (`method.Member`)."""

    def __init__(self, population: Population, position: int, number: int) -> None:
        self._population, self._number = population, number
        self.network = population.stack.write_out(number, population.theta[position])
        self.train: BaggedRows = population.members[number].task.train
        self.rng = population.rngs[number]

    def _apply(self, function: Callable[[Model, Bags], Tensor]) -> FloatArray:
        population = self._population
        where = torch.tensor([self._number], device=population.machine.device)
        total = len(self.train.rows.numeric)
        with torch.no_grad():
            chunks = []
            for start in range(0, total, population.predict_rows):
                rows = Rows(*(v[0] for v in _chunk(population.data.rows, where, start, population.predict_rows)))
                chunks.append(function(Model(self.network), population._unlabelled(rows))[0])
        return np.asarray(torch.cat(chunks).float().cpu())

    def encode(self) -> FloatArray:
        """[rows, dim]"""
        return self._apply(lambda model, bags: model.encode(bags).z)

    def proba(self) -> FloatArray:
        """[rows, classes]"""
        method = self._population.members[self._number].method
        return self._apply(lambda model, bags: method.log_proba(model, bags).exp())


def _build(member: Member, build_encoder: EncoderFactory) -> Any:
    """A member's untrained network; its random start depends on the seed alone, on CPU whatever the device."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(member.seed, "initial weights"))
        return member.method.build(build_encoder(member.task), member.task.schema)


def _chunk(rows: Rows, members: Tensor, start: int, size: int) -> Rows:
    """Rows of some members as [members, 1, size, features]."""
    return Rows(*(value[members, None, start : start + size] for value in rows))
