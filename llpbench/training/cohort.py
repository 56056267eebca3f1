"""Members of a population, and the state that they share: data, networks and hyperparameters on the device."""

from __future__ import annotations

import copyreg
import math
import pickle
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from llpbench.core.bags import Bags, FloatArray, Holdout, Rows, Schema, Task
from llpbench.core.cell import Average, Cell, Protocol
from llpbench.core.criteria import Criterion, Regime
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Method, Now, Stage
from llpbench.core.metrics import validation_criteria
from llpbench.core.model import Encoder, Network, NoEncoder
from llpbench.core.ranges import continuous, read_params
from llpbench.core.record import CPU_TRAIN
from llpbench.core.registry import ENCODERS
from llpbench.core.seeding import generator, sequence
from llpbench.training.device import Machine
from llpbench.training.objective import MemberMap, OfMember, Weights, build_copies, explained, log_proba, loss_at
from llpbench.training.selection import Selected
from llpbench.training.stack import Stack
from llpbench.training.training_data import State, TrainingData, profile, stacked, stacked_rows

PREDICT_ROWS, _PREDICT_ROWS_COMPILED = 2048, 512
"""rows predicted at once, and by code compiled for a CPU; smaller, so that the last chunk needs little padding"""

EncoderFactory = Callable[[Schema], Encoder]


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
    common = (name for name in first.selected if all(name in each.selected for each in outcomes))
    return [name for name in common if not any(math.isnan(each.selected[name].value) for each in outcomes)]


class Rungs(typing.Protocol):
    """A rule that stops members after some epochs of the first judged stage."""

    criterion: Criterion
    """criterion that compares members"""

    def leaving(self, epochs: int, values: Mapping[int, float]) -> set[int]:
        """Return the members to stop after `epochs`, given each member's best value of the criterion."""


def encoder_factory(cell: Cell, dropout: float) -> EncoderFactory:
    """Return a function that builds untrained encoders of a cell."""
    if cell.encoder is None:
        return lambda _: NoEncoder()
    declared = ENCODERS.get(cell.encoder)
    params = read_params(declared.Params, cell.encoder_params, owner=cell.encoder)
    return lambda schema: declared(schema, params, dropout)


def _shape_of(task: Task, bags_per_step: int) -> tuple[Any, ...]:
    """Return a task's shape; tasks of equal shape can train in one population."""
    train, holdout = task.train, task.validation
    of_train = replace(task.schema, prior=()), train.rows.numeric.shape, profile(train, bags_per_step)
    return *of_train, holdout.rows.numeric.shape, holdout.index.shape, holdout.labels is None


def populations(tasks: dict[int, Task], bags_per_step: int, most: int | None = None) -> list[dict[int, Task]]:
    """Group seeds that can train together: seeds with tasks of equal shape, at most `most` in a group."""
    shapes: dict[Any, list[int]] = {}
    for seed, task in tasks.items():
        shapes.setdefault(_shape_of(task, bags_per_step), []).append(seed)
    size = most or len(tasks)
    groups = [seeds[i : i + size] for seeds in shapes.values() for i in range(0, len(seeds), size)]
    return [{seed: tasks[seed] for seed in group} for group in groups]


def _build_network(member: Trainee, build_encoder: EncoderFactory, purpose: str) -> Network:
    """Return a member's untrained network; its random weights depend on the seed alone, not on the device."""
    with torch.random.fork_rng(devices=[]):
        words = sequence(member.seed, purpose, "initial weights", *member.stream).generate_state(1, np.uint64)
        torch.manual_seed(int(words[0] >> np.uint64(1)))  # of 63 bits
        network = build_copies(member.method, build_encoder(member.task.schema), member.task.schema)
    if member.start is not None:
        with torch.no_grad():
            for name, value in member.start.items():
                network.get_parameter(name).copy_(value)
    return network


class _Values(pickle.Pickler):
    """Writes equal values as equal bytes: functions by their code and what they capture, classes by their names.

    Values of `known`, such as the parts of a network, are written by their names there. Locks and others that cannot be
    written count as equal.
    """

    known: dict[int, tuple[Any, ...]]

    def persistent_id(self, value: Any) -> Any:
        return self.known.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        if value is tuple:
            return NotImplemented
        name = type(value).__qualname__
        self.known[id(value)] = name, len(self.known)  # it may contain itself
        try:
            return tuple, ((name, *_parts(value)),)
        except Exception:
            return tuple, ((name,),)


def _parts(value: Any) -> tuple[Any, ...]:
    """Return what distinguishes a value from others of its type. Raises any error if it does not tell."""
    if isinstance(value, FunctionType):
        captured = [cell.cell_contents for cell in value.__closure__ or ()]
        return value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__, captured
    if isinstance(value, CodeType):
        return value.co_code, value.co_consts, value.co_names
    if isinstance(value, BuiltinFunctionType):
        return value.__qualname__, value.__self__
    if isinstance(value, type | ModuleType):
        return getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__)
    if isinstance(value, Tensor):
        return f"{value.dtype}", value.tolist()
    reduce = copyreg.dispatch_table.get(type(value))
    reduced = reduce(value) if reduce else value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
    return reduced, getattr(value, "__wrapped__", None) if isinstance(reduced, str) else None


def _fixed(method: Method, network: nn.Module) -> dict[str, bytes]:
    """Return the attributes of a method and its modules that must be equal for all members of a population.

    These are hyperparameters except continuous ones, what `__init__` sets except rates of phases, and what modules have
    beside parameters and buffers.
    """
    free = {*continuous(type(method.params))} - {"dropout"}  # which the modules of the first member have
    params = {name: value for name, value in asdict(method.params).items() if name not in free}
    others = {name: value for name, value in vars(method).items() if name not in ("params", "phases")}
    of_all = {*vars(nn.Module())}
    placed = ((f"{place}.{name}", each) for place, one in network.named_modules() for name, each in vars(one).items())
    modules = {name: value for name, value in placed if name.rpartition(".")[2] not in of_all}
    phases = [replace(phase, rate=1.0) for phase in method.phases]
    parts, found = (network.named_modules(), network.named_parameters(), network.named_buffers()), {}
    registered = {id(part): (kind, name) for kind, named in enumerate(parts) for name, part in named}
    for name, value in {**params, **others, **modules, "phases": phases}.items():
        writer = _Values(file := BytesIO())
        writer.known = {**registered}
        with suppress(Exception):  # too deep
            writer.dump(value)
        found[name] = file.getvalue()
    return found


class Cohort:
    """Members that train together, with their outcomes so far."""

    def __init__(
        self,
        members: Sequence[Trainee],
        build_encoder: EncoderFactory,
        protocol: Protocol,
        machine: Machine,
        purpose: str = "training",
        average: Average | None = None,
    ) -> None:
        """`build_encoder` makes an untrained encoder for a schema; `purpose` names the random streams.

        With an `average`, training has no validation. Raises `LLPBenchError` if the members' tasks differ in shape, and
        `ValueError` if methods or modules differ in more than numbers: all members use those of the first.
        """
        tasks, device = [member.task for member in members], machine.device
        if len({_shape_of(task, protocol.bags_per_step) for task in tasks}) > 1:
            raise LLPBenchError("members of one population must have tasks of the same shape")
        if average is not None:
            protocol = replace(protocol, epochs=average.epochs)
        # own objects, since `build` and `prepare` may set attributes
        self.members = [replace(member, method=copy(member.method)) for member in members]
        self.protocol, self.machine, self.purpose, self.average = protocol, machine, purpose, average
        self.method: Method = self.members[0].method
        self.schema = tasks[0].schema
        networks = [_build_network(member, build_encoder, purpose) for member in self.members]
        self.require_equal((member.method for member in self.members), networks)
        self.stack = Stack(networks, device)
        self.map = MemberMap(self.stack.template, self.method)
        self.outcomes = [Outcome() for _ in members]
        self.data = TrainingData([task.train for task in tasks], device)
        interaction = self.method.takes_encoder and networks[0].encoder.row_interaction
        together = self.schema.rows_per_step if interaction else None
        self.prediction = Prediction(self.map, self.data.prior, together or PREDICT_ROWS)
        self.validation = _Validation([task.validation for task in tasks], device)
        fine: tuple[Regime, ...] = ("fine",) if self.validation.labelled else ()
        self.regimes: tuple[Regime, ...] = (*fine, "coarse")
        """validation regimes whose criteria are computed in training; "fine" needs labels of validation rows"""
        if machine.compiled:
            machine.forget_compiled()
        self.losses = machine.compile(self._losses) if machine.compiled else self._losses
        """`_losses`, compiled if the machine compiles"""
        self._mapped: set[tuple[str, str]] = set()
        """stages and phases whose loss was mapped over members by vmap"""
        self.judging = self.prediction
        """prediction of the validation rows, once in each epoch"""
        if machine.compiled and device.type == "cpu":
            mapped = machine.compile(self.map)
            self.judging = Prediction(mapped, self.data.prior, together or _PREDICT_ROWS_COMPILED, filled=True)
        self.state = State(
            self.stack.theta.clone(),
            self.stack.buffers,
            self.data.targets(),
            [generator(member.seed, purpose, *member.stream) for member in members],
        )
        """everything that training has changed so far"""
        self.seconds = dict.fromkeys(("warm-up", "train", "evaluate", CPU_TRAIN), 0.0)
        self._values = {
            name: torch.tensor([*map(float, values)], device=device)
            for name in continuous(type(self.method.params))
            if len({*(values := [getattr(member.method.params, name) for member in members])}) > 1
            or name not in ("learning_rate", "weight_decay")  # mostly for the optimiser alone
        }

    @staticmethod
    def require_equal(methods: Iterable[Method], networks: Iterable[nn.Module]) -> None:
        """Raise `ValueError` unless all have the method and modules of the first, with which they train."""
        first, *others = map(_fixed, methods, networks)
        if apart := sorted({name for each in others for name, _ in each.items() ^ first.items()}):
            raise ValueError(f"members that train together must agree in {', '.join(apart)}. Use buffers for these.")

    def weights(
        self, theta: Tensor, slots: Tensor, buffers: dict[str, Tensor], modules: tuple[str, ...] = ("",)
    ) -> Weights:
        """Return parameters `theta` [n, parameters] of the members `slots` [n], with their buffers and hyperparameters.

        `modules` are name prefixes of the parameters that need gradients.
        """
        return Weights(
            self.stack.parameters(theta, modules),
            {name: value[slots] for name, value in buffers.items()},
            {name: value[slots] for name, value in self._values.items()},
        )

    def per_step(self, stage: Stage) -> int:
        """Return the number of bags or rows in a step."""
        return self.protocol.bags_per_step if stage.unit == "bags" else self.schema.rows_per_step

    def steps(self, stage: Stage) -> int:
        """Return the number of steps in an epoch."""
        return self.data.steps(stage.unit, self.per_step(stage))

    def progress(self, stage: Stage, at: Sequence[int]) -> Tensor:
        """Return the numbers in `Now` at some steps of a stage [len(at), 4]; steps are counted over all its epochs."""
        epochs, steps = stage.epochs or self.protocol.epochs, self.steps(stage)
        rows = [[step // steps, epochs, step, epochs * steps] for step in at]
        return torch.tensor(rows, dtype=torch.float32, device=self.machine.device)

    def now(self, stage: Stage, step: int) -> Now:
        """Return `Now` at a step of a stage (counted over all its epochs), without a phase and on the CPU."""
        return Now(stage.name, "", *self.progress(stage, [step])[0].cpu().unbind())

    def _losses(
        self,
        names: tuple[str, str],
        theta: Tensor,
        slots: Tensor,
        buffers: dict[str, Tensor],
        bags: Bags,
        keys: Tensor,
        progress: Tensor,
    ) -> Tensor:
        """Return the loss of every member [n] in the stage and phase `names`."""
        now, precision = Now(*names, *progress.unbind()), self.machine.precision
        modules = next(phase.modules for phase in self.method.phases if phase.name == names[1])
        plain = precision == torch.float32  # entering a disabled autocast takes time in each step
        # vmap takes a fifth of a step of one member. The first step has it, so that it refuses the same methods.
        alone = len(self.members) == 1 and names in self._mapped and not self.machine.compiled
        with nullcontext() if plain else torch.autocast(theta.device.type, precision):
            weights = self.weights(theta, slots, buffers, modules)
            losses: Tensor = self.map(loss_at(now), weights, bags, keys, in_turn=alone)
        self._mapped.add(names)
        return losses


class Prediction:
    """Evaluation of functions of rows, a chunk at a time, without gradients or randomness."""

    def __init__(self, members: Callable[..., Any], prior: Tensor, rows_at_once: int, filled: bool = False) -> None:
        """`members` maps a function over members (`MemberMap`); `prior` [members, classes].

        `rows_at_once`: size of a chunk; an encoder with row interaction gets as many rows as in training. `filled`: all
        chunks have this size, as compiled code requires; the last one is padded and masked.
        """
        self._members, self._prior, self._rows_at_once, self._filled = members, prior, rows_at_once, filled

    def __call__(self, function: OfMember, weights: Weights, slots: Tensor, rows: Rows, where: Tensor) -> Tensor:
        """Return `function` [n, rows, ...] of members `slots` [n] with `weights` [n], on rows `where` [n] of `rows`."""
        with torch.no_grad(), explained():
            chunks = [self._members(function, weights, bags) for bags in self.chunks(rows, slots, where)]
        return torch.cat(chunks, dim=-2).squeeze(1)[:, : rows.numeric.shape[1]]

    def chunks(self, rows: Rows, slots: Tensor, where: Tensor) -> Iterator[Bags]:
        """Yield chunks of each member's rows, each as one bag [n, 1, size] without known counts."""
        prior, number = self._prior[slots], rows.numeric.shape[1]
        for start in range(0, number, self._rows_at_once):
            end = start + self._rows_at_once
            at = torch.arange(start, end if self._filled else min(end, number), device=prior.device)
            part = Rows(*(value[where[:, None], at.clamp(max=number - 1)].unsqueeze(1) for value in rows))
            mask = (at < number).expand(part.numeric.shape[:-1])
            known = torch.zeros(mask.shape[:-1], dtype=torch.bool, device=prior.device)
            yield Bags(part, mask, torch.zeros_like(prior[:, None]), prior[:, None], known, prior)


class _Validation:
    """The validation splits of all members, on the device."""

    def __init__(self, holdouts: Sequence[Holdout], device: torch.device) -> None:
        self._rows = stacked_rows([holdout.rows for holdout in holdouts], device)
        labels = [holdout.labels for holdout in holdouts if holdout.labels is not None]
        self.labelled = len(labels) == len(holdouts)
        """whether fine-grained criteria are available"""
        self._labels = stacked(labels, device) if self.labelled else None
        parts = ("index", "proportions", "known")
        self._bags = [stacked([getattr(holdout, part) for holdout in holdouts], device) for part in parts]

    def criteria(self, predict: Prediction, weights: Weights, slots: Tensor) -> dict[str, FloatArray]:
        """Return every validation criterion that the splits allow, by name: [members]."""
        proba = predict(log_proba, weights, slots, self._rows, slots).double().exp()
        labels = None if self._labels is None else self._labels[slots]
        values = validation_criteria(proba, labels, *(part[slots] for part in self._bags))
        return {name: np.asarray(value.cpu()) for name, value in values.items()}
