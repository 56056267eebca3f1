"""Stages and phases: what each starts from and updates, what becomes of regimes, warm-ups and buffers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from small import SMALL, population, together, weights
from torch import Tensor

from llpbench.core.bags import Bags, FloatArray, Schema
from llpbench.core.cell import Epoch
from llpbench.core.criteria import CRITERIA, GUIDES
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Member, Now, Phase, Stage
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.tables import Assignment
from llpbench.data.tasks import build_task
from llpbench.data.toy import permuted_within, toy_assignment, toy_table
from llpbench.methods.dllp import DLLP
from llpbench.training.selection import Selection
from llpbench.training.stack import AdamW
from llpbench.training.stage import StageRun
from llpbench.training.training_data import State


class TwoPlayers(DLLP):
    """Encoder and head as two players, the head's turn second."""

    phases = (Phase("encoder", ("encoder.",)), Phase("head", ("head.",)))

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        loss = super().loss(model, bags, now)
        return loss if now.phase == "encoder" else 0.0 * loss


def test_phase_updates_its_modules_only() -> None:
    pop = population(TwoPlayers(replace(SMALL, weight_decay=0.0)), [0], epochs=1)
    before = pop.stack.theta[0].clone()
    (outcome,) = pop.train()
    head = pop.stack.columns(["head."])
    assert torch.equal(weights(outcome)[head], before[head])  # its loss was 0
    assert not torch.equal(weights(outcome)[~head], before[~head])


class PseudoLabels(DLLP):
    """Two stages: bags, then rows with labels that `prepare` makes of the first stage's predictions."""

    stages = (Stage("bags"), Stage("rows", unit="rows", refresh=2))
    calls: list[tuple[str, str, float, float]]

    def prepare(self, member: Member, now: Now) -> FloatArray | None:
        proba = member.proba()
        assert member.encode().shape == (len(proba), 8)
        self.calls.append((now.stage, now.phase, float(now.epoch), float(now.step)))
        with torch.no_grad():
            member.network.get_parameter("head.4.bias").add_(1.0)
        return None if now.stage == "bags" else np.asarray(np.eye(2)[proba.argmax(axis=1)])


def test_stage_after_judged_stage_starts_from_best_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    method = PseudoLabels(SMALL)
    method.calls = []
    pop = population(method, [1], epochs=8)
    started: list[Tensor] = []
    first: dict[str, Tensor] = {}
    run = pop.run

    def watched(stage: Stage, state: State, *more: Any) -> None:
        started.append(state.weights[0].clone())
        run(stage, state, *more)
        if stage.name == "bags":
            first.update({name: choice.weights for name, choice in pop.outcomes[0].selected.items()})

    monkeypatch.setattr(pop, "run", watched)
    (outcome,) = pop.train()
    steps = pop.steps(method.stages[1])
    rows = [("rows", "", epoch, epoch * steps) for epoch in (0, 2, 4, 6)]
    assert method.calls == [("bags", "", 0, 0), *rows, *rows]
    assert torch.equal(started[1], first[GUIDES["fine"]])
    assert torch.equal(started[2], first[GUIDES["coarse"]])
    assert not torch.equal(started[1], started[2])
    assert outcome.epochs == 24
    assert set(pop.state.targets.values[0].unique().tolist()) == {0.0, 1.0}
    assert set(outcome.selected) == set(CRITERIA)


class TwoTurns(DLLP):
    """One player with two turns a step, another with one, at learning rates of their own."""

    phases = (Phase("body", ("encoder.",)), Phase("body", ("encoder.",)), Phase("head", ("head.",), rate=0.0))


def test_repeated_phase_keeps_optimiser_and_rate_factor() -> None:
    pop = population(TwoTurns(SMALL), [0], epochs=1)
    before = pop.stack.theta[0].clone()
    with patch.object(AdamW, "step", autospec=True, side_effect=AdamW.step) as step:
        (outcome,) = pop.train()
    steps = pop.steps(pop.method.stages[0])
    turns = Counter(call.args[0] for call in step.call_args_list)
    assert [*turns.values()] == [2 * steps, steps]
    head = pop.stack.columns(["head."])
    assert torch.equal(weights(outcome)[head], before[head])
    assert not torch.equal(weights(outcome)[~head], before[~head])


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"unit": "bag"}, "unit of stage 'train' must be bags or rows, got 'bag'"),
        ({"epochs": 0}, "epochs of stage 'train' must be at least 1, or None, got 0"),
        ({"refresh": 0}, "refresh of stage 'train' must be at least 1"),
        ({"ramp": 1.5}, "ramp of stage 'train' must be a share of its epochs from 0.0 to 1.0, or a number of epochs"),
        ({"ramp": -1}, "ramp of stage 'train' must be a share"),
    ],
)
def test_invalid_stages_are_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(LLPBenchError, match=message):
        Stage(**facts)


@pytest.mark.parametrize(("ramp", "last"), [(0, 2), (1, 2), (4, 5), (0.5, 6), (1.0, 9)])
def test_patience_counts_from_end_of_ramp(ramp: float, last: int) -> None:
    """The first epoch is the best of all; patience is 2."""
    epochs = 10
    selection = Selection(1, 2, torch.zeros(1, 3), ramp=Stage(ramp=ramp).ramp_epochs(epochs))
    for epoch in range(epochs):
        value = np.full(1, 1.0 / (epoch + 1))
        better = {name: value if each.maximise else -value for name, each in CRITERIA.items()}
        selection.observe(epoch, better, torch.full((1, 3), epoch + 1.0))
        if selection.done.all():
            break
    assert epoch == last
    assert {choice.epoch for choice in selection.selected(0, "train", {}).values()} == {0}


class WarmUp(DLLP):
    """Two epochs without validation, of another loss, then the usual."""

    stages = (Stage("warm-up", epochs=2, judged=False), Stage("main", rate=0.5))
    seen: list[str]

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        self.seen.append(f"{now.stage} {now.phase} {int(now.epochs)}")
        return super().loss(model, bags, now) * (3.0 if now.stage == "warm-up" else 1.0)


def test_warm_up_is_not_judged() -> None:
    method = WarmUp(SMALL)
    method.seen = []
    method.stackable = False  # type: ignore[misc]  # so that `now` can be looked at
    pop = population(method, [0], epochs=3)
    seen: list[Epoch] = []
    run = StageRun(pop, method.stages[0], pop.state)
    run.run(seen.append)
    assert [epoch.criterion for epoch in seen] == ["loss", "loss"]
    assert all(np.isfinite(epoch.value) for epoch in seen)
    assert pop.outcomes[0].selected == {}
    assert torch.equal(pop.state.weights[0], run.theta[0].detach())
    (outcome,) = population(method, [0], epochs=3).train()
    assert outcome.epochs == 5
    assert set(method.seen) == {"warm-up train 2", "main train 3"}
    assert outcome.selected["auc"].epoch < 3


class ThreeStages(DLLP):
    """Two judged stages before the last."""

    stages = (Stage("a"), Stage("b"), Stage("c"))


def test_stages_do_not_depend_on_label_patience() -> None:
    table, whole = toy_table(), toy_assignment()
    inside = type(whole.split)(whole.split.train, whole.validation.ravel(), whole.split.test)
    assignment = Assignment(inside, whole.train, whole.validation, whole.test)
    lasted, chosen = [], []
    for each in (table, permuted_within(table, assignment.validation)):
        (outcome,) = together(ThreeStages(SMALL), {0: build_task(each, assignment)}, epochs=30, patience=2).train()
        lasted.append(outcome.epochs)
        chosen.append({name: c.weights for name, c in outcome.selected.items() if CRITERIA[name].regime == "coarse"})
    assert lasted[0] != lasted[1]  # else this test shows nothing
    assert all(torch.equal(chosen[0][name], chosen[1][name]) for name in chosen[0])


def test_each_protocol_equals_running_alone() -> None:
    (both,) = population(ThreeStages(SMALL), [0], epochs=3).train()
    assert {tuple(choice.curves) for choice in both.selected.values()} == {("a", "b", "c")}
    for regime in GUIDES:
        (alone,) = population(ThreeStages(SMALL), [0], epochs=3).train(regimes=[regime])
        assert {CRITERIA[name].regime for name in alone.selected} == {regime}
        for name, choice in alone.selected.items():
            torch.testing.assert_close(choice.weights, both.selected[name].weights, rtol=1e-4, atol=1e-5)
            for stage, curve in choice.curves.items():
                np.testing.assert_allclose(both.selected[name].curves[stage], curve, rtol=1e-4)
    for name, choice in both.selected.items():
        last = choice.curves["c"]
        assert last[choice.epoch] == choice.value == (max if CRITERIA[name].maximise else min)(last)
        assert not np.array_equal(choice.curves["a"], choice.curves["b"])


class Remembering(PseudoLabels):
    """Counts in a buffer how often it was prepared in the second stage."""

    seen: list[float]

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        network = super().build(encoder, schema)
        network.register_buffer("count", torch.zeros(()))
        return network

    def prepare(self, member: Member, now: Now) -> FloatArray | None:
        if now.stage == "rows":
            self.seen.append(float(member.network.count))
            member.network.count.add_(1)
        return super().prepare(member, now)


def test_buffers_of_protocols_are_separate() -> None:
    method = Remembering(SMALL)
    method.calls, method.seen = [], []
    population(method, [0], epochs=4).train()
    assert method.seen == [0.0, 1.0, 0.0, 1.0]
