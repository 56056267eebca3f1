"""Stages and phases: what each starts from and updates, regimes, warm-ups, buffers, `after_step`."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from small import SMALL, mlp, population, together, toy_task, trained, weights
from torch import Tensor

from llpbench.core.bags import Bags, FloatArray, Schema
from llpbench.core.cell import Average, Epoch, Protocol
from llpbench.core.criteria import CRITERIA, GUIDES
from llpbench.core.errors import HookError, LLPBenchError
from llpbench.core.method import Member, MethodParams, Now, Phase, Stage
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.ranges import Uniform
from llpbench.core.tables import Assignment
from llpbench.data.tasks import build_task
from llpbench.data.toy import permuted_within, toy_assignment, toy_table
from llpbench.methods.dllp import DLLP
from llpbench.training.cohort import Trainee
from llpbench.training.device import Machine
from llpbench.training.population import Population
from llpbench.training.selection import Selection
from llpbench.training.stack import AdamW
from llpbench.training.stage import StageRun
from llpbench.training.training_data import State


class PseudoLabels(DLLP):
    """Two stages: bags, then rows with labels that `prepare` makes of the first stage's predictions.

    Counts in a buffer how often it was prepared in the second stage.
    """

    stages = (Stage("bags"), Stage("rows", unit="rows", refresh=2))
    calls: list[tuple[str, str, float, float, float]]

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        network = super().build(encoder, schema)
        network.register_buffer("count", torch.zeros(()))
        return network

    def prepare(self, member: Member, now: Now) -> FloatArray | None:
        network, proba = member.network, member.proba()
        assert member.encode().shape == (len(proba), 8)
        self.calls.append((now.stage, now.phase, float(now.epoch), float(now.step), float(network.count)))
        with torch.no_grad():
            network.get_parameter("head.4.bias").add_(1.0)
        if now.stage == "bags":
            return None
        network.count.add_(1)
        return np.asarray(np.eye(2)[proba.argmax(axis=1)])


def test_stage_after_judged_stage_starts_from_best_weights_for_each_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
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
    rows = [("rows", "", 2 * times, 2 * times * steps, times) for times in range(4)]
    assert method.calls == [("bags", "", 0, 0, 0), *rows, *rows], "each protocol has its own buffers"
    assert torch.equal(started[1], first[GUIDES["fine"]])
    assert torch.equal(started[2], first[GUIDES["coarse"]])
    assert not torch.equal(started[1], started[2])
    assert outcome.epochs == 24
    assert set(pop.state.targets.values[0].unique().tolist()) == {0.0, 1.0}
    assert set(outcome.selected) == set(CRITERIA)


def test_stage_that_fails_for_labels_keeps_results_by_proportions() -> None:
    class Breaking(PseudoLabels):
        def prepare(self, member: Member, now: Now) -> FloatArray | None:
            found = super().prepare(member, now)
            if len(self.calls) == 2:  # the first one after the judged stage, with labels
                member.network.get_parameter("head.4.bias").data.fill_(torch.nan)
            return found

    method = Breaking(SMALL)
    method.calls = []
    (outcome,) = population(method, [1], epochs=3).train()
    assert outcome.failure == ""
    assert {CRITERIA[name].regime for name in outcome.selected} == {"coarse"}


@pytest.mark.parametrize("hook", ["build", "prepare"])
def test_seeds_do_not_share_attributes(hook: str) -> None:
    class Anchored(DLLP):
        anchor = 0.0

        def build(self, encoder: Encoder, schema: Schema) -> Network:
            self.anchor = float(torch.rand(())) * (hook == "build")
            return super().build(encoder, schema)

        def prepare(self, member: Member, now: Now) -> None:
            self.anchor += member.rng.random() * (hook == "prepare")

    assert not population(Anchored(SMALL), [0], epochs=1).train()[0].failure
    with pytest.raises(ValueError, match="anchor"):
        population(Anchored(SMALL), [0, 1], epochs=1).train()


def test_stages_may_be_a_property() -> None:
    class Made(DLLP):
        stages = property(lambda _: (Stage(),))  # type: ignore[assignment]

    members = [Trainee(0, Made(SMALL), toy_task(0))]
    (outcome,) = Population(members, mlp, Protocol(epochs=2), Machine(), average=Average("half", 2)).train()
    assert outcome.averaged is not None


class TwoTurns(DLLP):
    """One player with two turns a step, another with one, at learning rates of their own."""

    phases = (Phase("body", ("encoder.",)), Phase("body", ("encoder.",)), Phase("head", ("head.",), rate=0.0))


def test_phase_updates_its_modules_only_with_one_optimiser_and_its_rate() -> None:
    pop = population(TwoTurns(SMALL), [0], epochs=1)
    before = pop.stack.theta[0].clone()
    with patch.object(AdamW, "step", autospec=True, side_effect=AdamW.step) as step:
        (outcome,) = pop.train()
    steps = pop.steps(pop.method.stages[0])
    turns = Counter(call.args[0] for call in step.call_args_list)
    assert [*turns.values()] == [2 * steps, steps]
    head = pop.stack.columns(("head.",))
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
    assert {choice.epoch for choice in selection.selected(0).values()} == {0}


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


class LeftTargets(DLLP):
    """Its first stage leaves targets from its last epoch, which depends on the labels of validation rows."""

    stages = (Stage("a", unit="rows", refresh=1), Stage("b", unit="rows"))

    def prepare(self, member: Member, now: Now) -> FloatArray | None:
        return member.proba() if now.stage == "a" else None


@pytest.mark.parametrize("method", [ThreeStages(SMALL), LeftTargets(SMALL)])
def test_stages_do_not_depend_on_label_patience(method: DLLP) -> None:
    table, whole = toy_table(), toy_assignment()
    inside = type(whole.split)(whole.split.train, whole.validation.ravel(), whole.split.test)
    assignment = Assignment(inside, whole.train, whole.validation, whole.test)
    lasted, chosen = [], []
    for each in (table, permuted_within(table, assignment.validation)):
        (outcome,) = together(method, {0: build_task(each, assignment)}, epochs=30, patience=4).train()
        lasted.append(outcome.epochs)
        chosen.append({name: c.weights for name, c in outcome.selected.items() if CRITERIA[name].regime == "coarse"})
    assert lasted[0] != lasted[1]  # else this test shows nothing
    assert all(torch.equal(chosen[0][name], chosen[1][name]) for name in chosen[0])


def test_each_protocol_equals_running_alone() -> None:
    (both,) = population(ThreeStages(SMALL), [0], epochs=3).train()
    for regime in GUIDES:
        (alone,) = population(ThreeStages(SMALL), [0], epochs=3).train(regimes=[regime])
        assert {CRITERIA[name].regime for name in alone.selected} == {regime}
        for name, choice in alone.selected.items():
            torch.testing.assert_close(choice.weights, both.selected[name].weights, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(both.selected[name].curve, choice.curve, rtol=1e-4)
    for name, choice in both.selected.items():
        assert len(choice.curve) == 3
        assert choice.curve[choice.epoch] == choice.value == (max if CRITERIA[name].maximise else min)(choice.curve)


@dataclass(frozen=True)
class TeacherParams(MethodParams):
    decay: Annotated[float, Uniform(0.0, 1.0)] = 0.9


class MeanTeacher(DLLP):
    """A student that learns, and a teacher that is its moving average, and predicts."""

    Params = TeacherParams
    params: TeacherParams
    phases = (Phase("student", ("encoder.", "head.")),)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        network = super().build(encoder, schema)
        network.register_buffer("steps", torch.zeros(()))
        network.register_buffer("moments", torch.zeros(2))
        return network.add(teacher=Network(copy.deepcopy(encoder), copy.deepcopy(network.head)))

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        return Model(model.network.teacher).log_proba(bags)

    def after_step(self, weights: Mapping[str, Tensor], now: Now) -> Mapping[str, Tensor]:
        assert (now.stage, now.phase) == ("train", "")
        decay = self.params.decay
        teacher = {
            f"teacher.{name}": decay * weights[f"teacher.{name}"] + (1 - decay) * value
            for name, value in weights.items()
            if name.startswith(("encoder.", "head.")) and value.is_floating_point()  # not buffers that hold codes
        }
        moments = torch.stack([now.epoch, now.step])
        return {**teacher, "steps": weights["steps"] + 1, "moments": moments.to(weights["moments"].dtype)}


PARAMS = TeacherParams(hidden=16, learning_rate=0.01)


def test_teacher_is_moving_average_of_student(monkeypatch: pytest.MonkeyPatch) -> None:
    pop = population(MeanTeacher(PARAMS), [0, 1], epochs=2)
    teacher = pop.stack.columns(("teacher.",))
    student = pop.stack.columns(("encoder.", "head."))
    assert bool((teacher ^ student).all())
    taught: list[Tensor] = []
    step = AdamW.step

    def recording(self: AdamW, theta: Tensor, gradient: Tensor) -> None:
        assert not bool(gradient[:, teacher].any())
        step(self, theta, gradient)
        taught.append(theta.detach()[:, student].clone())

    monkeypatch.setattr(AdamW, "step", recording)
    stage = pop.method.stages[0]
    run = StageRun(pop, stage, pop.state)
    run.run()
    assert len(taught) == 2 * pop.steps(stage) == 16
    expected = pop.stack.theta[:, teacher].double()
    assert torch.equal(expected, pop.stack.theta[:, student].double())  # they start as one
    for student_weights in taught:
        expected = 0.9 * expected + 0.1 * student_weights.double()
    found = run.theta.detach()
    assert torch.allclose(found[:, teacher].double(), expected, atol=1e-6)
    assert not torch.allclose(found[:, teacher], found[:, student], atol=1e-3)
    assert run.state.buffers["steps"].tolist() == [16, 16]
    assert run.state.buffers["moments"].tolist() == [[1, 15], [1, 15]]


def test_leaving_members_keep_their_buffers() -> None:
    """When one member has settled, the steps of the others are not counted as its own."""
    pop = population(MeanTeacher(PARAMS), [0, 1, 2], epochs=60, patience=2)
    outcomes = pop.train()
    steps = pop.steps(pop.method.stages[0])
    assert len({outcome.epochs for outcome in outcomes}) > 1  # else this test shows nothing
    assert pop.state.buffers["steps"].tolist() == [outcome.epochs * steps for outcome in outcomes]


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (
            {"after_step": lambda _, weights, __: {"haed.0.bias": weights["head.0.bias"]}},
            r"after_step \(test_stages\.py:\d+\) must name .*'haed\.0\.bias'\. Did .*head\.0\.bias",
        ),
        *(
            ({"after_step": lambda _, weights, __, to=to: {"head.0.bias": to(weights["head.0.bias"])}}, told)
            for to, told in (
                (torch.mean, r"after_step \(test_stages\.py:\d+\) .*'head\.0\.bias' .* \[\d+\], got \[\]"),
                (lambda _: 0.0, r"after_step \(test_stages\.py:\d+\) .*'head\.0\.bias' .* \[\d+\], got float"),
            )
        ),
        ({"after_step": lambda *_: None}, r"after_step \(test_stages\.py:\d+\) must return .*got NoneType"),
        ({"phases": (Phase("train", modules=("haed.",)),)}, r"phases .*'haed\.'\. Available: encoder, head\."),
    ],
)
def test_unknown_names_and_wrong_results_are_refused(own: dict[str, Any], told: str) -> None:
    with pytest.raises(HookError, match=told):
        trained(type("Mistaken", (DLLP,), own)(SMALL), [0])


def test_integer_buffers_are_not_averaged() -> None:
    class Careless(DLLP):
        """Averages a buffer of whole numbers, which it does not see."""

        def build(self, encoder: Encoder, schema: Schema) -> Network:
            network = super().build(encoder, schema)
            network.register_buffer("codes", torch.tensor([3, 5]))
            return network

        def after_step(self, weights: Mapping[str, Tensor], now: Now) -> Mapping[str, Tensor]:
            assert "codes" not in weights
            return {"codes": torch.tensor([0.3, 0.5])}

    with pytest.raises(ValueError, match="codes"):
        trained(Careless(SMALL), [0])


def test_gradient_of_each_member_is_clipped() -> None:
    """As torch's AdamW after `clip_grad_norm_`, member by member."""
    gradients = torch.tensor([[[3.0, 4.0], [0.3, 0.4]], [[0.3, 0.4], [3.0, 4.0]]])
    theta = torch.ones(2, 2)
    ours = AdamW(theta, torch.tensor([0.1, 0.2]), torch.tensor([0.0, 0.5]), 1.0)
    rows = [row.clone().requires_grad_() for row in theta.unbind()]
    others = [torch.optim.AdamW([rows[0]], 0.1, weight_decay=0.0), torch.optim.AdamW([rows[1]], 0.2, weight_decay=0.5)]
    for gradient in gradients:
        ours.step(theta, gradient)
        for row, own, other in zip(rows, gradient, others, strict=True):
            row.grad = own.clone()
            torch.nn.utils.clip_grad_norm_([row], 1.0)
            other.step()
    torch.testing.assert_close(theta, torch.stack(rows).detach())
