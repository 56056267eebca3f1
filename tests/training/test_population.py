"""Populations: members together as alone, early stopping, steps of unequal bags, what a loss is given, and copies."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from small import (
    SMALL,
    assert_same,
    bags_of,
    make_bags,
    mlp,
    moment,
    no_features,
    population,
    some_bags,
    together,
    toy_task,
    trained,
    weights,
)
from torch import Tensor, nn

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import Bags, Rows, Schema, Task
from llpbench.core.cell import Epoch
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import DirectMethod, Method, MethodParams, Now, Stage, Unit
from llpbench.core.metrics import holdout_criteria
from llpbench.core.model import Encoder, Encoding, Model, Network, Random
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.core.tables import Assignment, Split
from llpbench.data.tasks import build_task
from llpbench.data.toy import toy_table
from llpbench.encoders.flat_mlps import _TabM, _TabMParams
from llpbench.encoders.saint import _Saint, _SaintParams, _SaintRow, _SaintRowParams
from llpbench.methods.bag_soft_label import BagSoftLabel
from llpbench.methods.dllp import DLLP
from llpbench.methods.self_llp import SelfLLP, _SelfLLPParams
from llpbench.methods.tabllp_bdc import TabLLPBDC, _BDCParams
from llpbench.methods.tabllp_pse import TabLLPPSE, _PSEParams
from llpbench.training.cohort import EncoderFactory
from llpbench.training.device import Machine, compiler_exists
from llpbench.training.judging import judge
from llpbench.training.objective import build_copies, encoding, log_proba, loss_at
from llpbench.training.stage import StageRun
from llpbench.training.training_data import LARGEST_RATIO, TrainingData, _buckets, _draw, profile


def saint(schema: Schema) -> Encoder:
    return _Saint(schema, _SaintParams(dim=8, depth=2, heads=2, head_dim=4, numeric_hidden=8), 0.1)


def saint_row(schema: Schema) -> Encoder:
    return _SaintRow(schema, _SaintRowParams(dim=4, heads=2, head_dim=4, numeric_hidden=8, row_head_dim=4), 0.1)


@pytest.mark.parametrize(("encoder", "unequal"), [(saint, False), (saint_row, True)], ids=["saint", "saint-row"])
def test_joint_training_equals_single_training(encoder: EncoderFactory, unequal: bool) -> None:
    """Tolerance: rounding only, 1e-4 of the weights after two epochs (in float32; batched products round apart).

    Every method, at equal rates: `test_conformance.py`.
    """
    rates = {0: 0.01, 1: 0.003, 2: 0.02}
    three = trained(DLLP(SMALL), [0, 1, 2], encoder=encoder, rates=rates, unequal=unequal, epochs=2)
    (alone,) = trained(DLLP(SMALL), [2], encoder=encoder, rates=rates, unequal=unequal, epochs=2)
    assert_same(alone, three[2])
    for name, choice in alone.selected.items():
        assert choice.value == pytest.approx(three[2].selected[name].value, abs=1e-4)


def test_stacked_update_equals_torch_adamw() -> None:
    """Against an independent loop: one model, torch.optim.AdamW, the same bags (dropout off)."""
    method, encoder = DLLP(replace(SMALL, weight_decay=0.1)), partial(mlp, dropout=0.0)
    task = toy_task(0)
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


def test_nan_ends_training_of_one_member_only() -> None:
    tasks = {seed: toy_task(seed) for seed in (0, 1)}
    train = tasks[1].train
    broken = replace(train, rows=train.rows._replace(numeric=train.rows.numeric * np.nan))
    tasks[1] = replace(tasks[1], train=broken)
    good, bad = together(DLLP(SMALL), tasks, epochs=4).train()
    assert (good.failure, good.epochs) == ("", 4)
    assert (bad.failure, bad.epochs) == ("the loss was not finite in epoch 0 of stage 'train'", 1)


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


@pytest.mark.slow
def test_compiled_population_equals_eager() -> None:
    """The layers of SAINT in the layout for compilers are compared in `test_encoders.py`, uncompiled."""
    if not compiler_exists():  # asked here alone: the answer takes seconds
        pytest.skip("no C++ compiler")
    method = DLLP(SMALL)
    eager = trained(method, [0, 1], epochs=2)
    compiled = trained(method, [0, 1], epochs=2, machine=Machine(compiled=True))
    for one, other in zip(eager, compiled, strict=True):
        assert torch.allclose(weights(one), weights(other), atol=1e-4)


SKEWED = [90, 1, 2, 40, 3, 1, 5, 2, 60, 8, 1, 12, 3, 2, 1, 20, 4, 1, 30, 6, 2]
"""sizes of bags, as keys of real tables make them"""


def skewed_task(seed: int = 0, sizes: list[int] | None = None, shuffled: bool = True) -> Task:
    """The toy table in bags of these sizes, in an order and with rows of the seed's own."""
    rng, sizes = np.random.default_rng(seed), sizes or SKEWED
    rows = rng.permutation(sum(sizes) + 120)
    if shuffled:
        sizes = [sizes[position] for position in rng.permutation(len(sizes))]
    index = np.full((len(sizes), max(sizes)), -1)
    for bag, end in enumerate(np.cumsum(sizes)):
        index[bag, : sizes[bag]] = rows[end - sizes[bag] : end]
    rest = rows[sum(sizes) :]
    table = toy_table(len(rows))
    split = Split(rows[: sum(sizes)], rest[:60], rest[60:])
    return build_task(table, Assignment(split, index, rest[:60].reshape(6, 10), rest[60:].reshape(6, 10)))


@pytest.mark.parametrize("per_step", [1, 2, 3, 4])
def test_buckets_hold_every_bag_once_by_size(per_step: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(15):
        sizes = np.round(rng.lognormal(2, 1.5, size=rng.integers(1, 60))).astype(np.int64) + 1
        found = _buckets(sizes, per_step)
        assert sorted(np.concatenate(found).tolist()) == list(range(len(sizes)))
        assert all(len(bucket) % per_step == 0 for bucket in found[:-1])  # only the last may leave a gap
        for bucket in found:
            alike = int((LARGEST_RATIO * sizes[bucket] >= sizes[bucket].max()).sum())
            assert len(bucket) - alike < per_step, "shorter bags only fill the last step"
        assert all(sizes[one].min() >= sizes[other].max() for one, other in pairwise(found))


@pytest.mark.parametrize(("seed", "per_step"), [(0, 2), (1, 3), (2, 2), (3, 3)])
def test_epoch_draws_every_bag_once_except_last_gap(seed: int, per_step: int) -> None:
    task = skewed_task(seed)
    data = TrainingData([task.train], torch.device("cpu"))
    plan = data.plan_epoch("bags", per_step, 2, {0: np.random.default_rng(seed)}, epoch=seed)
    steps = plan.drawn[0].numpy()
    assert len(steps) == len(plan.widths) == data.steps("bags", per_step) == -(-len(SKEWED) // per_step)
    assert plan.keys.shape == (1, len(steps), 2)
    drawn = np.bincount(steps.ravel(), minlength=len(SKEWED))
    assert drawn.min() == 1
    gap = steps.size - len(SKEWED)
    last = _buckets(task.train.sizes, per_step)[-1]
    assert drawn.sum() - len(SKEWED) == gap < per_step
    assert set(np.flatnonzero(drawn > 1).tolist()) <= set(last.tolist())
    for step, width in zip(steps, plan.widths, strict=True):
        assert any(set(step.tolist()) <= set(bucket.tolist()) for bucket in _buckets(task.train.sizes, per_step))
        assert task.train.sizes[step].max() <= width


@pytest.mark.parametrize(("bags", "per_step"), [(5, 4), (9, 8), (3, 2)])
def test_no_step_has_a_bag_twice(bags: int, per_step: int) -> None:
    for seed in range(200):
        steps = _draw(bags, per_step, np.random.default_rng(seed), "bags")
        assert all(len({*step}) == per_step for step in steps.tolist())


def test_each_epoch_has_its_own_step_order() -> None:
    data = TrainingData([skewed_task().train], torch.device("cpu"))
    widths = [data.plan_epoch("bags", 2, 1, {0: np.random.default_rng(0)}, epoch).widths for epoch in (0, 0, 1)]
    assert widths[0] == widths[1] != widths[2]
    assert sorted(widths[0]) == sorted(widths[2])
    assert list(widths[0]) not in (sorted(widths[0]), sorted(widths[0], reverse=True))


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize(("unit", "units", "per_step", "width"), [("bags", 15, 2, 16), ("rows", 240, 32, 1)])
def test_equal_bags_and_rows_are_drawn_in_plain_order(
    unit: Unit, units: int, per_step: int, width: int, epoch: int
) -> None:
    """The same calls of the generator (permutation, choice, integers), and steps in the order drawn."""
    pop = population(DLLP(SMALL), [0, 1], size=16)  # 15 bags
    plan = pop.data.plan_epoch(unit, per_step, 3, {n: generator(n, "training") for n in (0, 1)}, epoch)
    for number in (0, 1):
        rng = generator(number, "training")
        order = rng.permutation(units)
        expected = [*order, *rng.choice(order[: 7 * per_step], size=8 * per_step - units)]
        assert plan.drawn[number].flatten().tolist() == expected
        assert plan.keys[number].tolist() == rng.integers(2**32, size=(8, 3)).tolist()
    assert plan.widths == (width,) * 8


def test_step_holds_rows_of_its_bags_only() -> None:
    task = skewed_task(3)
    data, train = TrainingData([task.train], torch.device("cpu")), task.train
    plan = data.plan_epoch("bags", 2, 1, {0: np.random.default_rng(0)})
    for step, width in enumerate(plan.widths):
        bags = data.take("bags", torch.tensor([0]), plan.drawn[:, step], width, data.targets())
        for position, bag in enumerate(plan.drawn[0, step].tolist()):
            inside = bags.mask[0, position]
            rows = train.index[bag, : train.sizes[bag]]
            assert int(inside.sum()) == len(rows)
            for found, given in zip(bags.rows, train.rows, strict=True):
                assert torch.equal(found[0, position][inside], torch.from_numpy(given[rows]))
            assert bags.counts[0, position].tolist() == train.counts[bag].tolist()


@pytest.mark.parametrize(
    "method",
    [BagSoftLabel(SMALL), TabLLPBDC(_BDCParams(hidden=16, learning_rate=0.01))],
    ids=lambda m: type(m).__name__,
)
def test_members_with_permuted_bag_sizes_train_as_alone(method: Method) -> None:
    tasks = {seed: skewed_task(seed) for seed in (0, 1, 2)}
    assert len({profile(task.train, 2) for task in tasks.values()}) == 1
    assert tasks[0].train.sizes.tolist() != tasks[1].train.sizes.tolist()
    three = together(method, tasks, epochs=2).train()
    for seed in (0, 2):
        (alone,) = together(method, {seed: tasks[seed]}, epochs=2).train()
        assert_same(alone, three[seed])


def test_members_with_different_buckets_train_apart() -> None:
    # as many rows and bags as the others have
    other = [89, 1, 2, 40, 3, 1, 5, 2, 60, 8, 1, 12, 3, 2, 1, 20, 4, 1, 30, 6, 3]
    assert (sum(other), len(other)) == (sum(SKEWED), len(SKEWED))
    with pytest.raises(LLPBenchError, match="same shape"):
        together(DLLP(SMALL), {0: skewed_task(0), 1: skewed_task(1, other)})


NAN = np.nan


class Prior(DLLP):
    """Its loss is the share of the first class, and it predicts the shares of all."""

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        return bags.prior[0] + 0 * super().loss(model, bags, now)

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        return bags.prior.log() + 0 * model.log_proba(bags)


@pytest.mark.parametrize("unit", ["bags", "rows"])
def test_each_member_uses_its_own_prior(unit: Unit) -> None:
    tasks = {seed: toy_task(seed) for seed in (0, 1)}
    priors = [task.schema.prior for task in tasks.values()]
    assert priors[0] != priors[1]  # else this test shows nothing
    for task in tasks.values():
        labels = task.train_labels
        assert labels is not None
        assert task.schema.prior == pytest.approx(np.bincount(labels) / len(labels))
    method = type("Own", (Prior,), {"stages": (Stage(unit=unit),)})(SMALL)
    members = together(method, tasks, epochs=1)
    run = StageRun(members, method.stages[0], members.state)
    assert run.run_epoch(0).tolist() == pytest.approx([prior[0] for prior in priors])
    for number, (prior, task) in enumerate(zip(priors, tasks.values(), strict=True)):
        proba = members.predict(number, members.stack.theta[number][None], task.test.rows)
        assert np.allclose(proba, prior)
    for outcome, prior, task in zip(members.train(), priors, tasks.values(), strict=True):
        expected = holdout_criteria(np.tile(prior, (len(task.validation.rows.numeric), 1)), task.validation)["l1"]
        assert outcome.selected["l1"].value == pytest.approx(expected, abs=1e-6)


class Recording(DLLP):
    """Keeps all that it is given."""

    stackable = False
    seen: list[Bags]

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        self.seen.append(bags)
        return super().loss(model, bags, now)


def recorded(task: Task, unit: Unit = "bags") -> list[Bags]:
    method = type("Own", (Recording,), {"stages": (Stage(unit=unit),)})(SMALL)
    method.seen = []
    (outcome,) = together(method, {0: task}, epochs=1).train()
    assert not outcome.failure
    return list(method.seen)


def with_counts(task: Task, change: dict[int, list[float]]) -> Task:
    """The task with other counts of some bags."""
    counts = task.train.counts.copy()
    for bag, given in change.items():
        counts[bag] = given
    train = replace(task.train, counts=counts)
    return replace(task, train=train, bags=train)


def test_loss_receives_given_counts() -> None:
    task = with_counts(toy_task(0), {0: [NAN, NAN], 1: [-1.25, 17.5], 2: [3.5, 12.5]})
    train = task.train
    told = {tuple(given) for bags in recorded(task) for given in bags.counts.tolist()}
    assert told == {(0.0, 0.0) if np.isnan(given).any() else tuple(given) for given in train.counts}
    for bags in recorded(task):
        assert torch.allclose(bags.proportions.sum(dim=1), torch.ones(2))
        assert bool((bags.proportions >= 0).all())
        assert torch.equal(bags.known, (bags.counts != 0).any(dim=1))
        assert torch.allclose(bags.prior, torch.tensor(train.prior).float())
        unknown = bags.proportions[~bags.known]
        assert torch.allclose(unknown, bags.prior.expand_as(unknown))


def test_row_stage_uses_counts_as_targets() -> None:
    task = with_counts(toy_task(0), {bag: [8.0, 8.0] for bag in range(15)} | {3: [NAN, NAN]})
    seen = recorded(task, "rows")
    known = torch.cat([bags.known for bags in seen])
    assert int((~known).sum()) >= 16  # the rows of one bag, and no row without
    for bags in seen:
        assert bags.counts.tolist() == bags.proportions.tolist() == [[0.5, 0.5]] * len(bags.mask)
        assert bags.mask.shape == (32, 1)


COARSE = {name for name, criterion in CRITERIA.items() if criterion.regime == "coarse"}


def unlabelled(task: Task) -> Task:
    """The same bags without labels of rows."""
    validation, test = (replace(holdout, labels=None) for holdout in (task.validation, task.test))
    return replace(task, validation=validation, test=test, train_labels=None)


def test_only_coarse_criteria_are_selected_without_labels() -> None:
    with_labels = together(DLLP(SMALL), {0: toy_task(0), 1: toy_task(1)})
    population = together(DLLP(SMALL), {0: unlabelled(toy_task(0)), 1: unlabelled(toy_task(1))})
    for known, unknown in zip(with_labels.train(), population.train(), strict=True):
        assert set(unknown.selected) == COARSE
        for name, choice in unknown.selected.items():
            assert choice.epoch == known.selected[name].epoch
            assert choice.value == known.selected[name].value
            assert torch.equal(choice.weights, known.selected[name].weights)
    for number in (0, 1):
        results, full = judge(population, [number])[0], judge(with_labels, [number])[0]
        assert set(results) == COARSE
        for name, result in results.items():
            assert set(result["test"]) == {"mpiou", "l1"}
            assert result["test"] == {metric: full[name]["test"][metric] for metric in ("mpiou", "l1")}
            assert result["diagnostics"] == {}


def test_stage_after_judged_stage_runs_once() -> None:
    method = TabLLPPSE(_PSEParams(hidden=16, learning_rate=0.01, refresh=1))
    population, known = (together(method, {0: task}) for task in (unlabelled(toy_task(0)), toy_task(0)))
    (outcome,), (full,) = population.train(), known.train()
    assert outcome.epochs == 3 + 3  # and not for the other regime again
    assert full.epochs == 3 + 3 + 3
    assert set(outcome.selected) == COARSE
    for name, choice in outcome.selected.items():
        torch.testing.assert_close(choice.weights, full.selected[name].weights, rtol=1e-4, atol=1e-5)
        assert choice.training == "coarse"


SIZES = _TabMParams(copies=3, dim=16, depth=2, periodic=True)
METHOD = DLLP(MethodParams(learning_rate=0.01, hidden=8))
TAKE_ENCODER = [
    entry.name
    for entry in METHODS.entries()
    if not issubclass(entry.load(), DirectMethod) and entry.load().takes_encoder
]


def tabm(schema: Schema) -> Encoder:
    return _TabM(schema, SIZES, 0.1)


def network_of(dropout: float = 0.0) -> Network:
    torch.manual_seed(0)
    schema = toy_task(0).schema
    return build_copies(METHOD, _TabM(schema, SIZES, dropout), schema)


def alike(network: Network) -> Network:
    """Every copy as the first."""
    own = dict(network.named_parameters())
    with torch.no_grad():
        for name in network.of_copy:
            own[name].copy_(own[name][:1].clone().expand_as(own[name]))
    return network


class Constant(Encoder):
    """Copies whose row vectors are their own numbers."""

    contextual = False
    dim = token_dim = 1
    of_copy = ("value",)

    def __init__(self, values: tuple[float, ...]) -> None:
        super().__init__()
        self.copies, self._values = len(values), list(values)
        self.value = nn.Parameter(torch.tensor(self._values.pop(0)))

    def another(self) -> Constant:
        return Constant((self._values.pop(0),))

    def forward(self, rows: Rows, mask: Tensor, random: Random | None) -> Encoding:
        return Encoding(self.value.expand(*mask.shape, 1), self.value.expand(*mask.shape, 1, 1))


class Direct(DLLP):
    """Row vectors are logits of the second class."""

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        head = nn.Linear(1, schema.classes, bias=False)
        with torch.no_grad():
            head.weight.copy_(torch.tensor([[0.0], [1.0]]))
        return Network(encoder, head)


def test_copies_use_mean_of_losses() -> None:
    """Two copies that say 0.9 and 0.1 of a bag of proportion 0.8."""
    method, logit = Direct(MethodParams(learning_rate=0.01, hidden=8)), math.log(9)
    network = build_copies(method, Constant((logit, -logit)), Schema(1, (), 2, (0.5, 0.5), 2))
    bags = make_bags(no_features(1, 2), torch.ones(1, 2, dtype=torch.bool), [[0.2, 0.8]])
    assert network.get_parameter("encoder.value").tolist() == pytest.approx([logit, -logit])
    loss = loss_at(moment())(network, method, bags, torch.tensor(3))
    each = [0.2 * math.log(0.2 / (1 - p)) + 0.8 * math.log(0.8 / p) for p in (0.9, 0.1)]
    assert float(loss.detach()) == pytest.approx(sum(each) / 2, abs=1e-6)
    assert log_proba(network, method, bags).exp().flatten().tolist() == pytest.approx([0.5] * 4)
    assert encoding(network, method, bags).flatten().tolist() == pytest.approx([0.0] * 2, abs=1e-6)


def test_equal_copies_equal_one_network() -> None:
    """In loss, prediction, and the gradient of what they share."""
    network, bags, schema = alike(network_of()), some_bags(unequal=True), toy_task(0).schema
    single = METHOD.build(_TabM(schema, replace(SIZES, copies=1), 0.0), schema)
    own = dict(network.named_parameters())
    with torch.no_grad():
        for name, parameter in single.named_parameters():
            parameter.copy_(own[name][0] if name in network.of_copy else own[name])
    losses = [loss_at(moment())(each, METHOD, bags, torch.tensor(3)) for each in (network, single)]
    torch.testing.assert_close(*losses)
    for loss in losses:
        loss.backward()
    for name, parameter in single.named_parameters():
        gradient = own[name].grad
        assert gradient is not None
        torch.testing.assert_close(gradient.sum(dim=0) if name in network.of_copy else gradient, parameter.grad)
    torch.testing.assert_close(*(log_proba(each, METHOD, bags) for each in (network, single)))


def test_copies_have_their_own_streams() -> None:
    network, bags = alike(network_of(dropout=0.5)), some_bags()
    loss_at(moment())(network, METHOD, bags, torch.tensor(3)).backward()
    gradient = network.get_parameter("encoder.layers.1.scale_in").grad
    assert gradient is not None
    assert not torch.allclose(gradient[0], gradient[1], atol=1e-6)


@pytest.mark.parametrize("name", TAKE_ENCODER)
def test_every_method_trains_copies(name: str) -> None:
    """As one member of two it gets what it gets alone, and its copies go ways of their own."""
    declared = METHODS.get(name)
    method = declared(replace(declared.Params(), learning_rate=0.01, hidden=8))
    both = population(method, [0, 1], encoder=tabm, epochs=1, rows=160)
    place = both.stack.place("encoder.layers.1.scale_in")
    start = both.stack.theta[0, place].reshape(SIZES.copies, -1)
    outcomes = both.train()
    assert [outcome.failure for outcome in outcomes] == ["", ""]
    learned = outcomes[0].selected["l1"].weights[place].reshape(SIZES.copies, -1)
    assert not torch.equal(learned, start)
    assert not torch.allclose(learned[0], learned[1])
    (alone,) = trained(method, [0], encoder=tabm, epochs=1, rows=160)
    # AdamW turns rounding of tiny gradients into steps of 1e-4 on some processors; a step of another member is 1e-2
    assert torch.allclose(alone.selected["l1"].weights, outcomes[0].selected["l1"].weights, atol=1e-3)


def test_each_copy_has_its_teacher() -> None:
    """`after_step` sees one copy; what copies share is one weight of the teacher, too."""
    method = SelfLLP(_SelfLLPParams(hidden=8, learning_rate=0.01, decay=0.0))
    found = population(method, [0], encoder=tabm, epochs=1)
    names = ("encoder.layers.0.weight", "encoder.layers.1.scale_in", "head.0.weight")
    first, second, *_ = found.stack.theta[0, found.stack.place("head.0.weight")].reshape(SIZES.copies, -1)
    assert not torch.equal(first, second), "heads start apart"
    weights = found.train()[0].selected["l1"].weights
    for name in names:
        student, teacher = (weights[found.stack.place(each)] for each in (name, f"teacher.{name}"))
        assert torch.allclose(student, teacher, atol=1e-6), name
    shapes = dict(zip(found.stack.names, found.stack.shapes, strict=True))
    assert [shapes[f"teacher.{name}"][0] for name in names[1:]] == [SIZES.copies] * 2
