"""A method on toy data: its training there, and the checks of its predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from llpbench.core.bags import Bags, FloatArray, Rows, Schema, Task
from llpbench.core.cell import Protocol
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.global_state import restored
from llpbench.core.method import DirectMethod, Method, Predictor
from llpbench.core.model import Encoder, Network, NoEncoder
from llpbench.core.ranges import Choice, LogUniform, Range, ranges
from llpbench.core.registry import Entry
from llpbench.core.seeding import generator
from llpbench.core.tables import Assignment, Table
from llpbench.core.text import fault
from llpbench.data.tasks import build_task
from llpbench.data.toy import awkward_tables, toy_assignment, toy_table
from llpbench.encoders.mlp import MLPEncoder, MLPParams
from llpbench.training.cell_runs import probabilities
from llpbench.training.cohort import Trainee
from llpbench.training.declaration import course_faults
from llpbench.training.device import Machine
from llpbench.training.population import Population

ROWS = 400
"""size of the toy table"""
EPOCHS = 2
"""epochs of training that only has to run"""
_ENCODER = MLPParams(token_dim=4, numeric_hidden=8, hidden=32, dim=16)
USUAL = {"learning_rate": 3e-3, "hidden": 32}
"""hyperparameters for methods that leave them to the encoder"""


class FaultError(Exception):
    """A check found a fault."""


class InapplicableError(Exception):
    """A check does not apply to this method."""


@dataclass(frozen=True)
class _Learned:
    """Result of a method on a task."""

    kept: Mapping[str, Any]  # by criterion: weights [parameters] of a neural method, predictions of a direct method
    proba: FloatArray  # [rows, classes] predictions for the test rows
    source: Any  # population of a neural method, predictor of a direct one
    values: Mapping[str, float]  # by criterion of a neural method: its value for the weights that it selected

    def predict(self, rows: Rows) -> FloatArray:  # [rows, classes]
        neural = isinstance(self.source, Population)
        return np.asarray(self.source.predict(0, self.kept["l1"][None], rows)[0] if neural else self.source(rows))

    def step(self, task: Task) -> tuple[Network, Method, Bags]:
        """Return the network, its method, and a step of two bags, or of two rows if no stage draws bags."""
        population = self.source
        method: Method = population.members[0].method
        unit = "bags" if any(stage.unit == "bags" for stage in method.stages) else "rows"
        state = population.state
        network = population.stack.write_out(self.kept["l1"], state.buffers, 0)
        two, width = torch.tensor([[0, 1]]), int(task.train.sizes.max())
        bags: Bags = tree_map(itemgetter(0), population.data.take(unit, torch.tensor([0]), two, width, state.targets))
        return network, method, bags

    def ramps(self) -> str:
        """Return how much of its last value each rising loss weight had at the chosen epoch; "" if there is none."""
        if not isinstance(population := self.source, Population):
            return ""
        weights = population.schedules(0, epoch=population.outcomes[0].selected["l1"].epoch)
        shares = {name.removesuffix("-share"): share for name, share in weights.items() if name.endswith("-share")}
        where = "of its weight where training stopped"
        return "".join(f"; {name} had {share:.0%} {where}" for name, share in shares.items())


class Subject:
    """A method, and how to train it on toy data.

    `params`: hyperparameters that differ from its defaults. `rows`: size of the toy table.
    """

    def __init__(self, entry: Entry, params: Mapping[str, Any] | None = None, rows: int = ROWS) -> None:
        self.entry = entry
        self.params = dict(params or {})
        self.rows = rows
        self.name = entry.name
        self.declared: Any = entry.load()
        self.direct = isinstance(self.declared, type) and issubclass(self.declared, DirectMethod)
        self.most_classes = 2 if entry.facts["classes"] == "binary" else 3

    def varied(self) -> Subject:
        """Return the method with other values of the hyperparameters that a search varies."""
        default, params = self.declared.Params(**self.params), self.params
        for name, search in ranges(self.declared.Params).items():
            with suppress(LLPBenchError, ValueError):  # values may exclude each other
                other = {name: _other(search, getattr(default, name))} | params
                self.declared.Params(**other)
                params = other
        return Subject(self.entry, params, self.rows)

    def method(self, epochs: int = EPOCHS) -> Any:
        """Return the method for checks, with at most `epochs` epochs in each stage."""
        params = self.declared.Params(**self.params)
        if self.direct:
            return self.declared(params)
        usual = {name: value for name, value in USUAL.items() if getattr(params, name) is None}
        method = self.declared(replace(params, **usual))
        if not [*course_faults(method)]:
            method.stages = tuple(replace(s, epochs=min(s.epochs, epochs)) if s.epochs else s for s in method.stages)
        return method

    def task(self, table: Table, assignment: Assignment) -> Task:
        """Return the task of a table in bags, in the form that this method receives."""
        return build_task(table, assignment, supervision=self.declared.supervision)

    def toy(self, seed: int = 0, unequal: bool = False) -> Task:
        """Return the default task, with bags drawn by `seed`."""
        return self.task(toy_table(self.rows), toy_assignment(self.rows, seed=seed, unequal=unequal))

    def population(
        self,
        tasks: Mapping[int, Task],
        epochs: int = EPOCHS,
        start: Mapping[int, Mapping[str, Tensor]] | None = None,
        patience: int | None = None,
    ) -> Population:
        """Return untrained members by seed; `start`: parameters of some of them; `patience`: None to use all epochs."""
        method = self.method(epochs)
        members = [Trainee(seed, method, task, (start or {}).get(seed)) for seed, task in tasks.items()]

        def encoder(schema: Schema) -> Encoder:
            return self.build(schema, method.params.dropout) if method.takes_encoder else NoEncoder()

        return Population(members, encoder, Protocol(epochs=epochs, patience=patience or epochs), Machine())

    def trained(self, tasks: Mapping[int, Task], epochs: int = EPOCHS, patience: int | None = None) -> Population:
        """Return trained members by seed. Raises `FaultError` if a training failed."""
        population = self.population(tasks, epochs, patience=patience)
        for outcome in population.train():
            require(not outcome.failure, f"training failed: {outcome.failure}")
        return population

    def build(self, schema: Schema, dropout: float) -> Encoder:
        return MLPEncoder(schema, _ENCODER, dropout)

    def learn(self, task: Task, seed: int = 0, epochs: int = EPOCHS, patience: int | None = None) -> _Learned:
        """Train or fit, and predict the test rows. Raises `FaultError` unless the result is a valid prediction."""
        if self.direct:
            known = task.train.where_known()
            predictor: Predictor = self.method().fit(known, task.schema, generator(seed, "training"))
            proba = _valid(predictor(task.test.rows), task)
            return _Learned(dict.fromkeys(CRITERIA, proba), proba, predictor, {})
        population = self.trained({seed: task}, epochs, patience)
        (outcome,) = population.outcomes
        kept = {name: choice.weights for name, choice in outcome.selected.items()}
        values = {name: float(choice.value) for name, choice in outcome.selected.items()}
        proba = population.predict(0, kept["l1"][None], task.test.rows)
        z = population.represent(0, kept["l1"][None], task.test.rows)
        if z.ndim != 3 or z.shape[1] != len(task.test.rows.numeric) or not np.isfinite(z).all():
            raise FaultError(f"`represent` must give finite [rows, dim], got shape {z.shape[1:]}")
        require(np.allclose(proba[0].sum(axis=1), 1, atol=1e-4), "probabilities of a row must sum to 1")
        return _Learned(kept, _valid(proba[0], task), population, values)

    @cached_property
    def learned(self) -> _Learned:
        """Result on the default task."""
        return self.learn(self.toy())

    @cached_property
    def again(self) -> tuple[_Learned, list[str]]:
        """The same result, computed a second time, and what this changed in the global state of the process."""
        with restored():
            assert self.learned  # so that nothing is left to import
        with restored() as changed:
            learned = self.learn(self.toy())
        return learned, changed


def _other(search: Range, default: Any) -> Any:
    """Return the next choice, or the middle of a range of numbers, where training is least likely to diverge."""
    if isinstance(search, Choice):
        return search.values[(search.values.index(default) + 1 if default in search.values else 0) % len(search.values)]
    middle = math.sqrt(search.low * search.high) if isinstance(search, LogUniform) else (search.low + search.high) / 2
    return search.low if middle == default else middle


def require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise FaultError(otherwise)


def with_awkward(subject: Any, run: Callable[[Table, Assignment], object], rows: int = ROWS) -> str:
    """Return the tables with irregularities of real ones, by name. Raises `FaultError` if `run` fails with one."""
    tables = awkward_tables(rows)
    for what, (table, assignment) in tables.items():
        try:
            run(table, assignment)
        except Exception as error:
            is_told = isinstance(error, FaultError | LLPBenchError)
            raise FaultError(f"{what}: {error if is_told else fault(error, subject.entry.file)}") from error
    return "; ".join(tables)


def _valid(proba: FloatArray, task: Task) -> FloatArray:
    """Return predictions [rows, classes], if they are valid."""
    try:
        return probabilities(proba, len(task.test.rows.numeric), task.schema.classes)
    except ValueError as error:
        raise FaultError(str(error)) from None
