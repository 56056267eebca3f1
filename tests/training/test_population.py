"""Populations: members together as alone, early stopping, failures, steps. Stages and phases: `test_stages.py`."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Annotated

import pytest
import torch
from small import SMALL, assert_same, bags_of, mlp, population, together, toy_task, trained, weights
from torch import Tensor, nn

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import Bags, Rows, Task
from llpbench.core.cell import Epoch, Protocol
from llpbench.core.criteria import CRITERIA
from llpbench.core.method import MethodParams, Now
from llpbench.core.model import Encoder, Encoding, Model, Random
from llpbench.core.ranges import Uniform
from llpbench.encoders.mlp import MLPEncoder, MLPParams
from llpbench.encoders.saint import Saint, SaintRow, _SaintParams, _SaintRowParams
from llpbench.methods.dllp import DLLP
from llpbench.training.cohort import EncoderFactory, Trainee
from llpbench.training.device import Machine, compiler_exists
from llpbench.training.population import Population
from llpbench.training.stage import StageRun


def saint(task: Task) -> Encoder:
    return Saint(task.schema, _SaintParams(dim=8, depth=2, heads=2, head_dim=4, numeric_hidden=8), 0.1)


def saint_row(task: Task) -> Encoder:
    return SaintRow(task.schema, _SaintRowParams(dim=4, heads=2, head_dim=4, numeric_hidden=8, row_head_dim=4), 0.1)


@pytest.mark.parametrize(
    ("encoder", "unequal"), [(mlp, True), (saint, False), (saint_row, True)], ids=["mlp", "saint", "saint-row"]
)
def test_joint_training_equals_single_training(encoder: EncoderFactory, unequal: bool) -> None:
    """Tolerance: rounding only, 1e-4 of the weights after two epochs (in float32; batched products round apart).

    Every method, at equal rates: `test_conformance.py`.
    """
    rates = {0: 0.01, 1: 0.003, 2: 0.02}
    three = trained(DLLP(SMALL), [0, 1, 2], encoder=encoder, rates=rates, unequal=unequal, epochs=2)
    for seed in (0, 2) if encoder is mlp else (2,):
        (alone,) = trained(DLLP(SMALL), [seed], encoder=encoder, rates=rates, unequal=unequal, epochs=2)
        assert_same(alone, three[seed])
        for name, choice in alone.selected.items():
            assert choice.value == pytest.approx(three[seed].selected[name].value, abs=1e-4)


def test_stacked_update_equals_torch_adamw() -> None:
    """Against an independent loop: one model, torch.optim.AdamW, the same bags (dropout off)."""
    method = DLLP(replace(SMALL, weight_decay=0.1))
    task = toy_task(0)

    def encoder(task: Task) -> Encoder:
        return MLPEncoder(task.schema, MLPParams(token_dim=4, numeric_hidden=4, hidden=16, dim=8), 0.0)

    ours = together(method, {0: task}, encoder=encoder, epochs=1)
    plan = StageRun(ours, method.stages[0], ours.state).plan(0)
    network = copy.deepcopy(ours.stack.write_out(ours.stack.theta[0], ours.stack.buffers, 0))
    optimiser = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.1)
    for drawn in plan.drawn[0].tolist():
        single = bags_of(task.train, *drawn)
        optimiser.zero_grad()
        proportion_loss(Model(network).log_proba(single), single).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
    (outcome,) = together(method, {0: task}, encoder=encoder, epochs=1).train()
    expected = torch.cat([p.detach().reshape(-1) for p in network.parameters()])
    assert torch.allclose(weights(outcome), expected, atol=1e-4)


class Exploding(DLLP):
    """Its loss is NaN for the member with the high learning rate, from the second epoch on."""

    @dataclass(frozen=True)
    class Params(MethodParams):
        limit: Annotated[float, Uniform(0, 10)] = 10.0

    params: Params

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        wrong = torch.where(now.epoch >= self.params.limit, torch.nan, 0.0)
        return super().loss(model, bags, now) + wrong


def test_nan_fails_one_member_only() -> None:
    good, bad = (Exploding(Exploding.Params(hidden=16, learning_rate=0.01, limit=limit)) for limit in (10.0, 2.0))
    members = [Trainee(s, m, toy_task(s)) for s, m in enumerate((good, bad, good))]
    outcomes = Population(members, mlp, Protocol(epochs=4), Machine()).train()
    assert outcomes[1].failure == "the loss was not finite in epoch 2 of stage 'train'"
    assert outcomes[1].epochs == 3
    assert [outcomes[0].failure, outcomes[2].failure] == ["", ""]
    assert [outcomes[0].epochs, outcomes[2].epochs] == [4, 4]
    (alone,) = Population(members[2:], mlp, Protocol(epochs=4), Machine()).train()
    assert torch.allclose(weights(outcomes[2]), weights(alone), atol=1e-4)


def test_each_criterion_has_its_own_patience() -> None:
    seen: list[Epoch] = []
    many = population(DLLP(SMALL), [0, 1, 2], epochs=200, patience=3)
    outcomes = many.train(seen.append)
    lasts = [
        max(choice.epoch for name, choice in outcome.selected.items() if CRITERIA[name].prolongs)
        for outcome in outcomes
    ]
    assert [outcome.epochs for outcome in outcomes] == [last + 3 + 1 for last in lasts]
    assert len(seen) == max(outcome.epochs for outcome in outcomes)
    assert len({choice.epoch for outcome in outcomes for choice in outcome.selected.values()}) > 1
    assert len({outcome.epochs for outcome in outcomes}) > 1  # they did leave at different times
    for seed, outcome in enumerate(outcomes):  # and leaving changed nothing for those that stayed
        (alone,) = trained(DLLP(SMALL), [seed], epochs=200, patience=3)
        assert alone.epochs == outcome.epochs


@pytest.mark.parametrize("unit", ["bags", "rows"])
def test_epoch_draws_every_bag_once_and_fills_last_step(unit: str) -> None:
    pop = population(DLLP(SMALL), [0, 1], size=16)  # 15 bags, two a step: the last step lacks one
    per_step = {"bags": 2, "rows": 32}[unit]
    plan = pop.data.plan_epoch(unit, per_step, 1, dict(enumerate(pop.state.rngs)))  # type: ignore[arg-type]
    units = {"bags": 15, "rows": 240}[unit]
    assert plan.drawn.shape == (2, 8, per_step)
    assert plan.keys.shape == (2, 8, 1)
    assert plan.widths == ({"bags": 16, "rows": 1}[unit],) * 8
    for drawn in plan.drawn.reshape(2, -1):
        assert sorted(drawn[:units].tolist()) == list(range(units))
        assert set(drawn[units:].tolist()) <= set(drawn[: 7 * per_step].tolist())
    assert not torch.equal(plan.drawn[0], plan.drawn[1])


class Numbers(Encoder):
    """A single layer on the numeric features: of a larger encoder nothing but more code would be compiled."""

    contextual = False

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.dim, self.token_dim = 4, 1
        self.layer = nn.Linear(task.schema.numeric, self.dim)

    def embed(self, rows: Rows) -> Tensor:
        tokens: Tensor = rows.numeric[..., None]
        return tokens

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        del mask, random
        return Encoding(self.layer(embeddings.squeeze(-1)).relu(), embeddings)


@pytest.mark.slow
def test_compiled_population_equals_eager() -> None:
    """The layers of SAINT in the layout for compilers are compared in `test_encoders.py`, uncompiled."""
    if not compiler_exists():  # asked here alone: the answer takes seconds
        pytest.skip("no C++ compiler")
    method = DLLP(SMALL)
    eager = trained(method, [0, 1], encoder=Numbers, epochs=2)
    compiled = trained(method, [0, 1], encoder=Numbers, epochs=2, machine=Machine(compiled=True))
    for one, other in zip(eager, compiled, strict=True):
        assert torch.allclose(weights(one), weights(other), atol=1e-4)
