"""Small encoders, bags and populations, for the tests of what trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from llpbench.core.bags import BaggedRows, Bags, Rows, Schema, Task
from llpbench.core.cell import Protocol
from llpbench.core.method import Method, MethodParams, Now
from llpbench.core.model import Encoder, Random
from llpbench.data.tasks import build_task
from llpbench.data.toy import toy_assignment, toy_table
from llpbench.encoders.mlp import MLPEncoder, MLPParams
from llpbench.encoders.saint import _Saint, _SaintParams
from llpbench.training.cohort import EncoderFactory, Outcome, Trainee
from llpbench.training.device import Machine
from llpbench.training.population import Population


def toy_task(
    seed: int = 0, classes: int = 2, supervision: str = "bags", size: int = 16, unequal: bool = False, rows: int = 400
) -> Task:
    """Return a task on the toy table, with bags drawn by `seed`."""
    table = toy_table(rows=rows, classes=classes)
    return build_task(table, toy_assignment(rows, size, seed, unequal), supervision=supervision)


SCHEMA = toy_task(0).schema
SMALL = MethodParams(hidden=16, learning_rate=0.01)


def stream(key: int = 0) -> Random:
    """The random stream of a key."""
    return Random(torch.tensor(key))


def moment(stage: str = "train", phase: str = "train", **at: float) -> Now:
    """A moment of training; `at`: epoch, epochs, step and steps."""
    usual = {"epoch": 0.0, "epochs": 10.0, "step": 0.0, "steps": 100.0}
    assert at.keys() <= usual.keys()
    return Now(stage, phase, *(torch.tensor(float(value)) for value in (usual | at).values()))


def make_bags(
    rows: Rows,
    mask: Tensor,
    proportions: Sequence[Sequence[float]],
    *,
    counts: Sequence[Sequence[float]] | None = None,
    known: Sequence[bool] | None = None,
) -> Bags:
    """Bags with given proportions; counts are sizes times proportions unless they are given, too."""
    target = torch.tensor(proportions)
    given = target * mask.sum(dim=1, keepdim=True) if counts is None else torch.tensor(counts)
    told = torch.ones(len(mask), dtype=torch.bool) if known is None else torch.tensor(known)
    return Bags(rows, mask, given, target, told, target.mean(dim=0))


def everything(n: int) -> Tensor:
    """A mask of `n` rows without padding."""
    return torch.ones(n, dtype=torch.bool)


def no_features(*shape: int) -> Rows:
    """Rows whose values do not matter."""
    return Rows(torch.zeros(*shape, 1), torch.zeros(*shape, 0).long(), torch.zeros(*shape, 1, dtype=torch.bool))


def bags_of(train: BaggedRows, *numbers: int) -> Bags:
    """Some bags of a training set, padded to its longest."""
    index = torch.from_numpy(train.index[list(numbers)])
    rows = Rows(*(torch.from_numpy(part)[index.clamp(min=0)] for part in train.rows))
    parts = (np.nan_to_num(train.counts), train.proportions, train.known)
    counts, proportions, known = (torch.from_numpy(part[list(numbers)]) for part in parts)
    return Bags(rows, index >= 0, counts.float(), proportions.float(), known, torch.from_numpy(train.prior).float())


def some_bags(unequal: bool = False) -> Bags:
    """The first two bags of the toy task; `unequal`: the first is half as long as the second."""
    return bags_of(toy_task(0, unequal=unequal).train, 0, 1)


def select(bags: Bags, *numbers: int) -> Bags:
    """Some of the bags, also several times."""
    chosen = list(numbers)
    rows = Rows(*(part[chosen] for part in bags.rows))
    mask, counts, proportions, known = (part[chosen] for part in (bags.mask, bags.counts, bags.proportions, bags.known))
    return Bags(rows, mask, counts, proportions, known, bags.prior)


def small_encoder(kind: str = "mlp", dropout: float = 0.0) -> Encoder:
    """An encoder of the toy table's rows, always the same."""
    torch.manual_seed(0)
    if kind == "mlp":
        return mlp(SCHEMA, dropout)
    return _Saint(SCHEMA, _SaintParams(dim=8, depth=1, heads=2, head_dim=4, numeric_hidden=8), dropout)


def mlp(schema: Schema, dropout: float = 0.1) -> Encoder:
    """A small encoder for a population."""
    return MLPEncoder(schema, MLPParams(token_dim=4, numeric_hidden=4, hidden=16, dim=8), dropout)


def together(
    method: Method,
    tasks: Mapping[int, Task],
    *,
    encoder: EncoderFactory = mlp,
    epochs: int = 3,
    patience: int = 100,
    machine: Machine | None = None,
    rates: Mapping[int, float] | None = None,
) -> Population:
    """Members by seed, untrained; `rates`: learning rates of some of them."""

    def own(seed: int) -> Method:
        if seed not in (rates or {}):
            return method
        return type(method)(replace(method.params, learning_rate=(rates or {})[seed]))

    members = [Trainee(seed, own(seed), task) for seed, task in tasks.items()]
    return Population(members, encoder, Protocol(epochs=epochs, patience=patience), machine or Machine())


def population(method: Method, seeds: Sequence[int], **options: Any) -> Population:
    """As `together`, on the toy task; options that are not `together`'s are those of `toy_task`."""
    names = ("encoder", "epochs", "patience", "machine", "rates")
    how = {name: options.pop(name) for name in names if name in options}
    tasks = {seed: toy_task(seed, supervision=method.supervision, **options) for seed in seeds}
    return together(method, tasks, **how)


def trained(method: Method, seeds: Sequence[int], **options: Any) -> list[Outcome]:
    """What becomes of a `population`."""
    return population(method, seeds, **options).train()


def assert_same(one: Outcome, other: Outcome, tolerance: float = 1e-4) -> None:
    """Every criterion has selected the same epoch, and weights that differ by no more than rounding."""
    assert set(one.selected) == set(other.selected) != set()
    for name, choice in one.selected.items():
        assert choice.epoch == other.selected[name].epoch, name
        assert torch.allclose(choice.weights, other.selected[name].weights, atol=tolerance), name


def weights(outcome: Outcome) -> Tensor:
    """The weights that AUC has selected."""
    return outcome.selected["auc"].weights
