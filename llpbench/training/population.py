"""Training: many members (seeds, in tuning also hyperparameter settings) as one stacked model.

`vmap` maps a method's loss, written for one model, over the members; ordinary autograd runs outside; one AdamW updates
the stacked parameters. Everything stays on the device, and within an epoch the host never waits for it: the batches of
a whole epoch are drawn beforehand, NaN is looked for at its end. Every member has its own split, bags, normalisation
and random streams, so that it gets the same numbers alone as among ten (up to rounding).

Members leave the stack when all their criteria have settled (`selection.py`).
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from llpbench.core.bags import BaggedRows, Bags, FloatArray, Holdout, Rows
from llpbench.core.cell import Epoch, Protocol
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Method, Pairs, Progress, Stage
from llpbench.core.metrics import validation_criteria
from llpbench.core.model import Model
from llpbench.core.ranges import continuous
from llpbench.core.seeding import generator
from llpbench.training.members import EncoderFactory, Machine, Outcome, Trainee, build_network, shape_of
from llpbench.training.objective import Objective, Output, compiled, map_members
from llpbench.training.selection import HANDOVER, Selected, Selection
from llpbench.training.stack import AdamW, Stack
from llpbench.training.training_data import TrainingData, stacked, stacked_rows

CLIP = 1.0
"""largest norm of a member's gradient"""
PREDICT_ROWS = 2048
"""rows predicted at once"""


class Population:
    """Members trained together: their data and parameters on the device, and what became of each."""

    def __init__(
        self,
        members: Sequence[Trainee],
        build_encoder: EncoderFactory,
        protocol: Protocol,
        machine: Machine,
        purpose: str = "training",
    ) -> None:
        """`build_encoder` makes an untrained encoder for a task; `purpose` names the random streams.

        Raises if the members' tasks differ in shape.
        """
        tasks = [member.task for member in members]
        if len({shape_of(task) for task in tasks}) > 1:
            raise LLPBenchError("members of one population must have tasks of the same shape")
        self.members, self.protocol, self.machine, self.purpose = list(members), protocol, machine, purpose
        self.method, self.schema = members[0].method, tasks[0].schema
        networks = [build_network(member, build_encoder, purpose) for member in members]
        self.stack = Stack(networks, machine.device)
        self.outcomes = [Outcome() for _ in members]
        device = machine.device
        self.rngs = [generator(member.seed, purpose) for member in members]
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
        interaction = self.method.takes_encoder and networks[0].encoder.row_interaction
        self.predict_rows = self.schema.rows_per_step if interaction else PREDICT_ROWS
        self.slots = torch.arange(len(members), device=device)
        """the members still in the stack, by number; everything else is indexed by it"""
        self.theta = self.stack.theta
        self.weights = self.stack.theta.clone()
        """[all members, parameters] what the next stage starts from"""
        self.seconds = dict.fromkeys(("warm-up", "train", "evaluate", "predict"), 0.0)
        self.seconds |= {f"stage {stage.name}": 0.0 for stage in self.method.stages}
        self._cold = True
        """whether the next step is the first of its kind, in which compilation and the like take place"""
        self._objective = Objective(self.stack.template, self.method)
        self._losses = compiled(self._stacked_loss) if machine.compiled else self._stacked_loss

    def train(self, on_epoch: Callable[[Epoch], None] | None = None) -> list[Outcome]:
        """Run every stage of the method; what became of each member, in order.

        What comes after a judged stage starts from its best weights, which depend on the validation regime: it is run
        once for each, and gives the results of that regime's criteria.
        """
        stages = self.method.stages
        judged = next((n for n, stage in enumerate(stages) if stage.judged), len(stages))
        for stage in stages[: judged + 1]:
            self._run_stage(stage, on_epoch)
        if later := stages[judged + 1 :]:
            self._run_for_each_regime(later, on_epoch)
        return self.outcomes

    def _run_for_each_regime(self, stages: Sequence[Stage], on_epoch: Callable[[Epoch], None] | None) -> None:
        before, seconds = [outcome.selected for outcome in self.outcomes], dict(self.seconds)
        targets, buffers = self.data.targets, self.stack.buffers
        results: list[dict[str, Selected]] = [{} for _ in self.members]
        for regime, handover in HANDOVER.items():
            for outcome, selected in zip(self.outcomes, before, strict=True):  # nothing of the other regime is left
                outcome.selected = selected
            self.data.targets = targets.clone()
            self.stack.buffers = {name: value.clone() for name, value in buffers.items()}
            streams = [generator(member.seed, self.purpose, "later stages") for member in self.members]
            judged = True
            for stage in stages:
                # every stage has streams of its own: else they would depend on how long the judged one before it took,
                # which labels of validation rows decide
                self.rngs, streams = streams, [stream.spawn(1)[0] for stream in streams]
                if judged:
                    self._hand_over(handover)
                self._run_stage(stage, on_epoch)
                judged = stage.judged
            for result, outcome in zip(results, self.outcomes, strict=True):
                own = {name: s for name, s in outcome.selected.items() if CRITERIA[name].regime == regime}
                result |= {name: dataclasses.replace(choice, training=regime) for name, choice in own.items()}
        for outcome, result in zip(self.outcomes, results, strict=True):
            outcome.selected = result
        for name, start in seconds.items():  # of one regime: nobody needs both
            self.seconds[name] = start + (self.seconds[name] - start) / len(HANDOVER)

    def predict(self, number: int, weights: Tensor, holdout: Holdout) -> tuple[FloatArray, FloatArray]:
        """What a member with parameters `weights` [n, parameters] makes of rows.

        Probabilities [n, rows, classes] and representations [n, rows, dim].
        """
        device, clock = self.machine.device, time.perf_counter()
        rows = stacked_rows([holdout.rows], device)
        slots = torch.full((len(weights),), number, device=device)
        where = torch.zeros_like(slots)
        log_proba = self._outputs("predict", weights.to(device), slots, rows, where).double()
        proba = np.asarray(log_proba.exp().cpu())
        self.seconds["predict"] += (time.perf_counter() - clock) / len(weights)
        representation = self._outputs("represent", weights.to(device), slots, rows, where)
        return proba, np.asarray(representation.cpu())

    def pseudo_pairs(self, number: int, weights: Tensor, drawn: Tensor) -> Pairs:
        """The pairs that a member with `weights` [n, parameters] forms in its bags `drawn` [bags]: each [n, size]."""
        slots = torch.full((len(weights),), number, device=self.machine.device)
        bags = self.data.take("bags", slots, drawn.to(self.machine.device).expand(len(weights), -1))
        with torch.no_grad():
            members = self._members(weights.to(self.machine.device), slots)
            return Pairs(*map_members(Output(self._objective, "pseudo_pairs"), self.method.stackable, *members, bags))

    def schedules(self, number: int, epoch: int) -> dict[str, float]:
        """The weights that a member's method changes, at the start of an epoch of the last stage."""
        stage = self.method.stages[-1]
        steps = self.steps(stage)
        now = Progress(*self._progress(stage, [epoch * steps])[0].cpu().unbind())
        return {name: float(value) for name, value in self.members[number].method.schedules(now).items()}

    # -- a stage ----------------------------------------------------------------------------------------------------

    def _run_stage(self, stage: Stage, on_epoch: Callable[[Epoch], None] | None) -> None:
        active = [number for number, outcome in enumerate(self.outcomes) if not outcome.failure]
        if not active:
            return
        start = time.perf_counter()
        self._objective.stage, self._cold = stage.name, True
        self.slots = torch.tensor(active, device=self.machine.device)
        self.theta = self.weights[self.slots].clone().requires_grad_()
        players = {turn: self._optimiser(stage, turn) for turn in self._turns}
        optimisers = [players[turn] for turn in self._turns]
        selection = Selection(len(active), self.protocol.patience, self.theta)
        epochs = stage.epochs or self.protocol.epochs
        for epoch in range(epochs):
            if epoch == 0 or (stage.refresh is not None and epoch % stage.refresh == 0):
                self._prepare(stage, epoch)
            losses = self._run_epoch(stage, epoch, optimisers)
            self._count_epoch(selection, stage, epoch, losses)
            if stage.judged:
                clock = time.perf_counter()
                criteria = self._validate()
                self.seconds["evaluate"] += time.perf_counter() - clock
                selection.observe(epoch, criteria, self.theta)
                name, values = "auc", criteria["auc"]
            else:
                name, values = "loss", losses
            if on_epoch is not None:
                value = float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
                on_epoch(Epoch(epoch, epochs, name, value, int((~selection.done).sum())))
            if selection.done.all():
                break
            if stage.judged:
                self._drop_finished(selection, optimisers)
        if stage.judged:
            self._collect(selection, range(len(self.slots)))
        else:
            self.weights[self.slots] = self.theta.detach()
        self.seconds[f"stage {stage.name}"] += time.perf_counter() - start

    @property
    def _turns(self) -> list[int]:
        """For each phase of a step, the first phase of the same player: they share an optimiser."""
        names = [phase.name for phase in self.method.phases]
        return [names.index(name) for name in names]

    def _optimiser(self, stage: Stage, turn: int) -> AdamW:
        members = [self.members[number] for number in self.slots.tolist()]
        rates = [m.learning_rate * stage.rate * m.method.phases[turn].rate for m in members]
        decays = [m.method.params.weight_decay for m in members]
        rate, decay = (torch.tensor(each, device=self.machine.device) for each in (rates, decays))
        phase = self.method.phases[turn]
        columns = None if "" in phase.modules else self.stack.columns(phase.modules)
        return AdamW(self.theta, rate, decay, CLIP, columns, phase.beta1, self.machine.compiled)

    def _run_epoch(self, stage: Stage, epoch: int, optimisers: Sequence[AdamW]) -> FloatArray:
        """One epoch of all members; the mean loss of each [members], not finite if any of its losses was not."""
        clock = time.perf_counter()
        rngs = [self.rngs[number] for number in self.slots.tolist()]
        plan, keys = self.data.plan_epoch(stage.unit, self._per_step(stage), len(self.method.phases), rngs)
        steps = plan.shape[1]
        total = torch.zeros(len(self.slots), device=self.machine.device)
        now = self._progress(stage, [epoch * steps + step for step in range(steps)])
        for step in range(steps):
            bags = self.data.take(stage.unit, self.slots, plan[:, step])
            for turn, phase in enumerate(self.method.phases):
                losses = self._losses(phase.name, self.theta, self.slots, bags, keys[:, step, turn], now[step])
                if losses.dim() != 1:
                    raise ValueError(f"a loss must be a single number, however: shape {tuple(losses.shape[1:])}")
                (gradient,) = torch.autograd.grad(losses.sum(), self.theta)
                optimisers[turn].step(self.theta, gradient)
                total += losses.detach()
            if self._cold:
                total.cpu()
                self._cold, clock = False, self._spent("warm-up", clock)
        mean_losses = np.asarray((total / steps).cpu())  # the only wait of the epoch, but for a first step
        self._spent("train", clock)
        return mean_losses

    def _spent(self, on: str, since: float) -> float:
        """Book the time since a moment; returns the present one."""
        now = time.perf_counter()
        self.seconds[on] += now - since
        return now

    def _per_step(self, stage: Stage) -> int:
        """Bags or rows of a step."""
        return self.protocol.bags_per_step if stage.unit == "bags" else self.schema.rows_per_step

    def steps(self, stage: Stage) -> int:
        """Steps of an epoch."""
        return self.data.steps(stage.unit, self._per_step(stage))

    def _progress(self, stage: Stage, at: Sequence[int]) -> Tensor:
        """[len(at), 4] what `Progress` holds at some steps, counted over all epochs of the stage."""
        epochs = stage.epochs or self.protocol.epochs
        steps = self.steps(stage)
        rows = [[step // steps, epochs, step, epochs * steps] for step in at]
        return torch.tensor(rows, dtype=torch.float32, device=self.machine.device)

    def _stacked_loss(
        self, phase: str, theta: Tensor, slots: Tensor, bags: Bags, keys: Tensor, progress: Tensor
    ) -> Tensor:
        """The loss of every member: [members]."""

        def loss(parameters: Any, buffers: Any, values: Any, bags: Bags, key: Tensor) -> Any:
            now = Progress(*progress.unbind())
            return functional_call(self._objective, (parameters, buffers), (phase, values, bags, key, now))

        reduced = self.machine.precision != torch.float32
        with torch.autocast(theta.device.type, self.machine.precision, enabled=reduced):
            losses: Tensor = map_members(loss, self.method.stackable, *self._members(theta, slots), bags, keys)
        return losses

    def _members(self, theta: Tensor, slots: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
        """Parameters, buffers and hyperparameters of the members in `slots`, each with a leading [members]."""
        return (
            {f"network.{name}": value for name, value in self.stack.parameters(theta).items()},
            {f"network.{name}": value[slots] for name, value in self.stack.buffers.items()},
            {name: value[slots] for name, value in self.hyperparameters.items()},
        )

    def _count_epoch(self, selection: Selection, stage: Stage, epoch: int, losses: FloatArray) -> None:
        training = ~selection.done
        for position, number in enumerate(self.slots.tolist()):
            if not training[position]:
                continue
            self.outcomes[number].epochs += 1
            if not np.isfinite(losses[position]):
                self.outcomes[number].failure = f"the loss was not finite in epoch {epoch} of stage {stage.name!r}"
                selection.give_up(position)

    def _drop_finished(self, selection: Selection, optimisers: Sequence[AdamW]) -> None:
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
        for optimiser in {id(optimiser): optimiser for optimiser in optimisers}.values():
            optimiser.keep(positions)
        self._cold = True

    def _collect(self, selection: Selection, positions: Sequence[int]) -> None:
        """Write down what a judged stage made of members."""
        numbers = self.slots.tolist()
        for position in positions:
            self.outcomes[numbers[position]].selected = selection.selected(position)

    def _hand_over(self, criterion: str) -> None:
        """Let the next stage start from the weights that a criterion has selected, where it has."""
        for number, outcome in enumerate(self.outcomes):
            if outcome.selected:
                self.weights[number] = outcome.selected[criterion].weights

    def _prepare(self, stage: Stage, epoch: int) -> None:
        """Let the method work on the whole training set, member by member."""
        if type(self.method).prepare is Method.prepare:
            return
        for position, number in enumerate(self.slots.tolist()):
            view = _MemberView(self, position, number, epoch)
            targets = self.members[number].method.prepare(stage.name, view)
            with torch.no_grad():
                self.theta[position] = self.stack.read_back(number)
            if targets is not None:
                self.data.set_targets(number, targets)

    # -- prediction -------------------------------------------------------------------------------------------------

    def _outputs(self, what: str, theta: Tensor, slots: Tensor, rows: Rows, where: Tensor) -> Tensor:
        """[n, rows, ...]: `theta` [n, parameters] of members `slots` [n] on the rows `where` [n]."""
        with torch.no_grad():
            members = self._members(theta, slots)
            chunks = [
                map_members(
                    Output(self._objective, what),
                    self.method.stackable,
                    *members,
                    self._unlabelled(_chunk(rows, where, start, self.predict_rows)),
                )
                for start in range(0, rows.numeric.shape[1], self.predict_rows)
            ]
        return torch.cat(chunks, dim=-2).squeeze(1)

    def _unlabelled(self, rows: Rows) -> Bags:
        """Rows [members, 1, size] as one bag of which nothing is known."""
        shape = rows.numeric.shape[:-1]
        nothing = torch.zeros(*shape[:-1], self.schema.classes, device=rows.numeric.device)
        return Bags(rows, torch.ones(shape, dtype=torch.bool, device=rows.numeric.device), nothing.long(), nothing)

    def _validate(self) -> dict[str, FloatArray]:
        """Every validation criterion: name: [members]."""
        log_proba = self._outputs("predict", self.theta.detach(), self.slots, self.validation_rows, self.slots)
        proba = log_proba.double().exp()
        criteria = validation_criteria(proba, *(part[self.slots] for part in self.validation_truth))
        return {name: np.asarray(value.cpu()) for name, value in criteria.items()}


class _MemberView:
    """One member as `Method.prepare` sees it (`method.Trainee`)."""

    def __init__(self, population: Population, position: int, number: int, epoch: int) -> None:
        self._population, self._number, self.epoch = population, number, epoch
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


def _chunk(rows: Rows, members: Tensor, start: int, size: int) -> Rows:
    """Rows of some members as [members, 1, size, features]."""
    return Rows(*(value[members, None, start : start + size] for value in rows))
