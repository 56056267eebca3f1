"""Populations: members together as alone, stages, phases, early stopping, failures."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import Bags, FloatArray, Schema, Task
from llpbench.core.cell import Epoch, Protocol
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Member as MemberView
from llpbench.core.method import Method, MethodParams, Now, Phase, Stage
from llpbench.core.model import Encoder, Model
from llpbench.core.ranges import Uniform
from llpbench.core.tables import Assignment
from llpbench.data.tasks import build_task
from llpbench.data.toy import permuted_within, toy_assignment, toy_table, toy_task
from llpbench.encoders.mlp import MLPEncoder, MLPParams
from llpbench.encoders.saint import Saint, SaintParams, SaintRow, SaintRowParams
from llpbench.methods.bag_soft_label import BagSoftLabel
from llpbench.methods.dllp import DLLP
from llpbench.methods.supervised import Supervised
from llpbench.training.device import Machine
from llpbench.training.members import Outcome, Trainee
from llpbench.training.population import Population
from llpbench.training.selection import HANDOVER
from llpbench.training.stack import AdamW

SMALL = MethodParams(hidden=16)


def mlp(task: Task) -> Encoder:
    return MLPEncoder(task.schema, MLPParams(token_dim=4, numeric_hidden=4, hidden=16, dim=8), 0.1)


def saint(task: Task) -> Encoder:
    return Saint(task.schema, SaintParams(dim=8, depth=2, heads=2, head_dim=4, numeric_hidden=8), 0.1)


def saint_row(task: Task) -> Encoder:
    return SaintRow(task.schema, SaintRowParams(dim=4, heads=2, head_dim=4, numeric_hidden=8, row_head_dim=4), 0.1)


def population(
    method: Method, seeds: list[int], *, encoder=mlp, epochs=3, patience=100, machine=None, rates=None, **task
) -> Population:  # type: ignore[no-untyped-def]
    supervision = method.supervision
    members = [
        Trainee(seed, method, toy_task(seed, supervision=supervision, **task), (rates or {}).get(seed, 0.01))
        for seed in seeds
    ]
    return Population(members, encoder, Protocol(epochs=epochs, patience=patience), machine or Machine())


def trained(*args, **kwargs) -> list[Outcome]:  # type: ignore[no-untyped-def]
    return population(*args, **kwargs).train()


def weights(outcome: Outcome) -> Tensor:
    return outcome.selected["auc"].weights


@pytest.mark.parametrize(
    ("encoder", "method", "unequal"),
    [
        (mlp, DLLP, True),
        (mlp, BagSoftLabel, True),
        (mlp, Supervised, False),
        (saint, DLLP, False),
        (saint_row, DLLP, True),
    ],
)
def test_members_together_are_members_alone(encoder, method: type[Method], unequal: bool) -> None:  # type: ignore[no-untyped-def]
    """Tolerance: rounding only, 1e-4 of the weights after two epochs (in float32; batched products round apart)."""
    rates = {0: 0.01, 1: 0.003, 2: 0.02}
    together = trained(method(SMALL), [0, 1, 2], encoder=encoder, rates=rates, unequal=unequal, epochs=2)
    for seed in (0, 2):
        (alone,) = trained(method(SMALL), [seed], encoder=encoder, rates=rates, unequal=unequal, epochs=2)
        for name, choice in alone.selected.items():
            other = together[seed].selected[name]
            assert torch.allclose(choice.weights, other.weights, atol=1e-4), name
            assert choice.epoch == other.epoch
            assert choice.value == pytest.approx(other.value, abs=1e-4)


def test_seeds_differ() -> None:
    first, second = trained(DLLP(SMALL), [0, 1])
    assert not torch.allclose(weights(first), weights(second), atol=1e-2)


def test_training_is_deterministic() -> None:
    (first,), (second,) = (trained(DLLP(SMALL), [4], epochs=2) for _ in range(2))
    assert torch.equal(weights(first), weights(second))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", [DLLP, BagSoftLabel, Supervised])
def test_it_learns(method: type[Method], classes: int) -> None:
    (outcome,) = trained(method(SMALL), [0], epochs=60, classes=classes, rows=800)
    assert outcome.selected["auc"].value > 0.85


def test_a_stack_update_is_torchs_adamw() -> None:
    """Against an independent loop: one model, torch.optim.AdamW, the same bags (dropout off)."""
    method = DLLP(replace(SMALL, weight_decay=0.1))
    task = toy_task(0)

    def encoder(task: Task) -> Encoder:
        return MLPEncoder(task.schema, MLPParams(token_dim=4, numeric_hidden=4, hidden=16, dim=8), 0.0)

    ours = Population([Trainee(0, method, task, 0.01)], encoder, Protocol(epochs=1), Machine())
    plan, _ = ours.data.plan_epoch("bags", 2, 1, ours.rngs)
    torch.manual_seed(0)
    network = ours.stack.write_out(0, ours.stack.theta[0])
    network = copy.deepcopy(network)
    optimiser = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.1)
    for drawn in plan[0]:
        bags = ours.data.take("bags", ours.slots, drawn[None])
        single = Bags(type(bags.rows)(*(v[0] for v in bags.rows)), *(v[0] for v in bags[1:]))
        optimiser.zero_grad()
        proportion_loss(Model(network).log_proba(single), single).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
    again = Population([Trainee(0, method, task, 0.01)], encoder, Protocol(epochs=1), Machine())
    (outcome,) = again.train()
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
        return super().loss(model, bags, progress) + wrong


def test_nan_fails_one_member_and_leaves_the_others_alone() -> None:
    good, bad = Exploding(Exploding.Params(hidden=16)), Exploding(Exploding.Params(hidden=16, limit=2.0))
    members = [Trainee(s, m, toy_task(s), 0.01) for s, m in enumerate((good, bad, good))]
    outcomes = Population(members, mlp, Protocol(epochs=4), Machine()).train()
    assert outcomes[1].failure == "the loss was not finite in epoch 2 of stage 'train'"
    assert outcomes[1].epochs == 3
    assert [outcomes[0].failure, outcomes[2].failure] == ["", ""]
    assert [outcomes[0].epochs, outcomes[2].epochs] == [4, 4]
    (alone,) = Population(members[2:], mlp, Protocol(epochs=4), Machine()).train()
    assert torch.allclose(weights(outcomes[2]), weights(alone), atol=1e-4)


def test_each_criterion_has_its_own_patience_and_members_leave_when_all_have_settled() -> None:
    seen: list[Epoch] = []
    many = population(DLLP(SMALL), [0, 1, 2], epochs=200, patience=3)
    outcomes = many.train(seen.append)
    lasts = [max(choice.epoch for choice in outcome.selected.values()) for outcome in outcomes]
    assert [outcome.epochs for outcome in outcomes] == [last + 3 + 1 for last in lasts]
    assert len(seen) == max(outcome.epochs for outcome in outcomes)
    assert len({choice.epoch for outcome in outcomes for choice in outcome.selected.values()}) > 1
    assert len({outcome.epochs for outcome in outcomes}) > 1  # they did leave at different times
    for seed, outcome in enumerate(outcomes):  # and leaving changed nothing for those that stayed
        (alone,) = trained(DLLP(SMALL), [seed], epochs=200, patience=3)
        assert alone.epochs == outcome.epochs


class TwoPlayers(DLLP):
    """Encoder and head as two players, the head's turn second."""

    phases = (Phase("encoder", ("encoder.",)), Phase("head", ("head.",)))

    def phase_loss(self, phase: str, model: Model, bags: Bags, now: Now) -> Tensor:
        loss = self.loss(model, bags, progress)
        return loss if phase == "encoder" else 0.0 * loss


def test_a_phase_updates_its_own_modules_alone() -> None:
    pop = population(TwoPlayers(replace(SMALL, weight_decay=0.0)), [0], epochs=1)
    before = pop.stack.theta[0].clone()
    (outcome,) = pop.train()
    head = pop.stack.columns(["head."])
    assert torch.equal(weights(outcome)[head], before[head])  # its loss was 0
    assert not torch.equal(weights(outcome)[~head], before[~head])


class PseudoLabels(DLLP):
    """Two stages: bags, then rows with labels that `prepare` makes of the first stage's predictions."""

    stages = (Stage("bags"), Stage("rows", unit="rows", refresh=2))
    calls: list[tuple[str, float]]

    def prepare(self, stage: str, member: MemberView) -> FloatArray | None:
        proba = member.proba()
        assert member.encode().shape == (len(proba), 8)
        self.calls.append((stage, float(proba[:, 1].std())))
        with torch.no_grad():
            member.network.head[4].bias.add_(1.0)  # type: ignore[index, union-attr, operator]
        return None if stage == "bags" else np.eye(2)[proba.argmax(axis=1)]


def test_what_follows_a_judged_stage_is_run_from_the_best_weights_of_each_regime() -> None:
    method = PseudoLabels(SMALL)
    method.calls = []
    pop = population(method, [1], epochs=8)
    started: list[Tensor] = []
    first: dict[str, Tensor] = {}
    run_stage = pop._run_stage

    def watched(stage: Stage, on_epoch: Any) -> None:
        started.append(pop.weights[0].clone())
        run_stage(stage, on_epoch)
        if stage.name == "bags":
            first.update({name: choice.weights for name, choice in pop.outcomes[0].selected.items()})

    pop._run_stage = watched  # type: ignore[method-assign]
    (outcome,) = pop.train()
    assert [stage for stage, _ in method.calls] == ["bags", *["rows"] * 4, *["rows"] * 4]
    assert torch.equal(started[1], first[HANDOVER["fine"]])
    assert torch.equal(started[2], first[HANDOVER["coarse"]])
    assert not torch.equal(started[1], started[2])
    assert outcome.epochs == 24
    assert set(pop.data.targets[0].unique().tolist()) == {0.0, 1.0}
    assert set(outcome.selected) == set(CRITERIA)


def test_each_regime_gets_what_it_would_get_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    method = PseudoLabels(SMALL)
    method.calls = []
    (both,) = population(method, [0], epochs=4).train()
    for regime, handover in HANDOVER.items():
        with monkeypatch.context() as patch:
            patch.setattr("llpbench.training.population.HANDOVER", {regime: handover})
            (alone,) = population(method, [0], epochs=4).train()
        assert {CRITERIA[name].regime for name in alone.selected} == {regime}
        for name, choice in alone.selected.items():
            assert torch.equal(choice.weights, both.selected[name].weights)


def test_hyperparameters_may_differ_between_members() -> None:
    class Scaled(DLLP):
        @dataclass(frozen=True)
        class Params(MethodParams):
            scale: Annotated[float, Uniform(0, 2)] = 1.0

        params: Params

        def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
            return self.params.scale * super().loss(model, bags, progress)

    members = [Trainee(0, Scaled(Scaled.Params(hidden=16, scale=s)), toy_task(0), 0.01) for s in (0.0, 1.0)]
    pop = Population(members, mlp, Protocol(epochs=1), Machine())
    start = pop.stack.theta.clone()
    still, moved = pop.train()
    decay = (1 - 0.01 * 0.01) ** 8  # weight decay alone: 15 bags, 8 steps
    assert torch.allclose(weights(still), start[0] * decay, atol=1e-6)
    assert not torch.allclose(weights(moved), start[1] * decay, atol=1e-3)


class Branching(DLLP):
    """Looks at a number, which vmap forbids."""

    stackable = False

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        loss = super().loss(model, bags, progress)
        return loss if loss.item() < 1e9 else 2 * loss


def test_a_method_that_cannot_be_stacked_is_run_member_by_member() -> None:
    stacked = trained(DLLP(SMALL), [0, 1], unequal=True, epochs=2)
    apart = trained(Branching(SMALL), [0, 1], unequal=True, epochs=2)
    for one, other in zip(stacked, apart, strict=True):
        assert torch.allclose(weights(one), weights(other), atol=1e-4)
    with pytest.raises(RuntimeError, match="vmap"):
        trained(type("Undeclared", (Branching,), {"stackable": True})(SMALL), [0, 1])


class TwoTurns(DLLP):
    """One player with two turns a step, another with one, at learning rates of their own."""

    phases = (Phase("body", ("encoder.",)), Phase("body", ("encoder.",)), Phase("head", ("head.",), rate=0.0))


def test_a_player_with_two_turns_keeps_one_optimiser_and_rates_are_factors() -> None:
    pop = population(TwoTurns(SMALL), [0], epochs=1)
    before = pop.stack.theta[0].clone()
    counted: list[AdamW] = []
    step = AdamW.step

    def counting(self: AdamW, theta: Tensor, gradient: Tensor) -> None:
        counted.append(self)
        step(self, theta, gradient)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdamW, "step", counting)
        (outcome,) = pop.train()
    steps = pop.steps(pop.method.stages[0])
    assert [counted.count(optimiser) for optimiser in dict.fromkeys(counted)] == [2 * steps, steps]
    head = pop.stack.columns(["head."])
    assert torch.equal(weights(outcome)[head], before[head])
    assert not torch.equal(weights(outcome)[~head], before[~head])


class WarmUp(DLLP):
    """Two epochs without validation, of another loss, then the usual."""

    stages = (Stage("warm-up", epochs=2, judged=False), Stage("main", rate=0.5))
    seen: list[str]

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        self.seen.append(f"{self.stage} {int(now.epochs)}")
        return super().loss(model, bags, progress) * (3.0 if self.stage == "warm-up" else 1.0)


def test_a_warm_up_is_not_judged_and_hands_over_its_last_weights() -> None:
    method = WarmUp(SMALL)
    method.seen = []
    method.stackable = False  # type: ignore[misc]  # so that progress can be looked at
    pop = population(method, [0], epochs=3)
    seen: list[Epoch] = []
    pop._run_stage(method.stages[0], seen.append)
    assert [epoch.criterion for epoch in seen] == ["loss", "loss"]
    assert all(np.isfinite(epoch.value) for epoch in seen)
    assert pop.outcomes[0].selected == {}
    assert torch.equal(pop.weights[0], pop.theta[0].detach())
    (outcome,) = population(method, [0], epochs=3).train()
    assert outcome.epochs == 5
    assert set(method.seen) == {"warm-up 2", "main 3"}
    assert outcome.selected["auc"].epoch < 3


def test_training_starts_from_given_weights() -> None:
    start = {"head.4.bias": torch.tensor([3.0, -3.0])}
    pop = Population([Trainee(0, DLLP(SMALL), toy_task(0), 0.01, start)], mlp, Protocol(epochs=1), Machine())
    bias = pop.stack.columns(["head.4.bias"])
    assert pop.stack.theta[0][bias].tolist() == [3.0, -3.0]
    plain = population(DLLP(SMALL), [0])
    assert torch.equal(pop.stack.theta[0][~bias], plain.stack.theta[0][~bias])


def test_torchs_own_randomness_in_a_loss_is_refused() -> None:
    class Unseeded(DLLP):
        def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
            return super().loss(model, bags, progress) + torch.rand(())

    with pytest.raises(RuntimeError, match="random"):
        trained(Unseeded(SMALL), [0])


def test_a_loss_that_is_not_a_single_number_is_refused() -> None:
    class PerBag(DLLP):
        def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
            del now
            return model.log_proba(bags).sum(dim=(1, 2))

    with pytest.raises(ValueError, match=r"single number, however: shape \(2,\)"):
        trained(PerBag(SMALL), [0])


@pytest.mark.parametrize("unit", ["bags", "rows"])
def test_an_epoch_draws_every_unit_once_and_fills_its_last_step_with_earlier_ones(unit: str) -> None:
    pop = population(DLLP(SMALL), [0, 1], size=16)  # 15 bags, two a step: the last step lacks one
    per_step = {"bags": 2, "rows": 32}[unit]
    plan, keys = pop.data.plan_epoch(unit, per_step, 1, pop.rngs)  # type: ignore[arg-type]
    units = {"bags": 15, "rows": 240}[unit]
    assert plan.shape[:2] == keys.shape[:2] == (2, 8)
    for drawn in plan.reshape(2, -1):
        assert sorted(drawn[:units].tolist()) == list(range(units))
        assert set(drawn[units:].tolist()) <= set(drawn[: 7 * plan.shape[2]].tolist())
    assert not torch.equal(plan[0], plan[1])


def test_tasks_of_different_shape_are_refused() -> None:
    members = [Trainee(0, DLLP(SMALL), toy_task(0), 0.01), Trainee(1, DLLP(SMALL), toy_task(1, size=8), 0.01)]
    with pytest.raises(LLPBenchError, match="same shape"):
        Population(members, mlp, Protocol(), Machine())


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [16, 24])  # sizes that differ from those of an earlier population in this process
def test_a_compiled_population_trains_as_an_eager_one(hidden: int) -> None:
    method = DLLP(replace(SMALL, hidden=hidden))
    eager = trained(method, [0, 1], epochs=2)
    compiled = trained(method, [0, 1], epochs=2, machine=Machine(compiled=True))
    for one, other in zip(eager, compiled, strict=True):
        assert torch.allclose(weights(one), weights(other), atol=1e-4)


def test_a_schema_says_what_a_network_may_know() -> None:
    schema = toy_task(0).schema
    assert schema == Schema(3, (5, 4), 2, schema.prior, 32)
    assert sum(schema.prior) == pytest.approx(1)


def test_a_phase_of_which_no_parameter_is_known_is_refused() -> None:
    mistyped = type("Mistyped", (TwoPlayers,), {"phases": (Phase("encoder", ("encodr.",)),)})
    with pytest.raises(ValueError, match=r"begins with 'encodr\.'"):
        trained(mistyped(SMALL), [0])


class ThreeStages(DLLP):
    """Two judged stages before the last."""

    stages = (Stage("a"), Stage("b"), Stage("c"))


def test_no_stage_depends_on_how_long_labels_of_validation_rows_let_an_earlier_one_run() -> None:
    table, whole = toy_table(), toy_assignment()
    inside = type(whole.split)(whole.split.train, whole.validation.ravel(), whole.split.test)
    assignment = Assignment(inside, whole.train, whole.validation, whole.test)
    lasted, chosen = [], []
    for each in (table, permuted_within(table, assignment.validation)):
        members = [Trainee(0, ThreeStages(SMALL), build_task(each, assignment), 0.01)]
        pop = Population(members, mlp, Protocol(epochs=30, patience=2), Machine())
        (outcome,) = pop.train()
        lasted.append(outcome.epochs)
        chosen.append({name: c.weights for name, c in outcome.selected.items() if CRITERIA[name].regime == "coarse"})
    assert lasted[0] != lasted[1]  # else this test shows nothing
    assert all(torch.equal(chosen[0][name], chosen[1][name]) for name in chosen[0])


class UnjudgedBetween(DLLP):
    """A stage without epochs to choose from stands between two that have."""

    stages = (Stage("a"), Stage("b", epochs=2, judged=False), Stage("c", epochs=1))
    starts: ClassVar[list[Tensor]] = []

    def prepare(self, stage: str, member: MemberView) -> None:
        if stage in ("b", "c"):
            self.starts.append(torch.cat([p.detach().flatten() for p in member.network.parameters()]).clone())


def test_what_an_unjudged_stage_has_learned_is_what_the_next_one_starts_from() -> None:
    UnjudgedBetween.starts.clear()
    trained(UnjudgedBetween(SMALL), [0])
    b, c = UnjudgedBetween.starts[:2]
    assert not torch.equal(b, c)


class Remembering(PseudoLabels):
    """Counts in a buffer how often it was prepared in the second stage."""

    seen: list[float]

    def build(self, encoder: Encoder, schema: Schema) -> nn.Module:
        network = super().build(encoder, schema)
        network.register_buffer("count", torch.zeros(()))
        return network

    def prepare(self, stage: str, member: MemberView) -> FloatArray | None:
        count: Any = member.network.count
        if stage == "rows":
            self.seen.append(float(count))
            count.add_(1)
        return super().prepare(stage, member)


def test_buffers_of_one_regime_do_not_reach_the_other() -> None:
    method = Remembering(SMALL)
    method.calls, method.seen = [], []
    population(method, [0], epochs=4).train()
    assert method.seen == [0.0, 1.0, 0.0, 1.0]
