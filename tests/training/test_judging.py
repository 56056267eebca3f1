"""Class awareness, pair accuracy and known bags: known answers and records; training without validation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from small import SMALL, mlp, population, toy_task
from torch import Tensor

from llpbench.core.bags import Bags, FloatArray, Task
from llpbench.core.cell import Average, Cell, Environment, Protocol
from llpbench.core.criteria import CRITERIA
from llpbench.core.method import MethodParams, Pairs, Reports
from llpbench.core.metrics import test_metrics as judge_predictions
from llpbench.core.metrics import verdict
from llpbench.core.model import Model
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.core.tables import Assignment, Table
from llpbench.data.loading import load_table
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.data.toy import permuted_within, toy_assignment, toy_table
from llpbench.methods.dllp import DLLP
from llpbench.training.cell_runs import make_task, run_cell
from llpbench.training.cohort import Trainee
from llpbench.training.device import Machine
from llpbench.training.judging import (
    _class_awareness,
    _class_awareness_scores,
    _judge_pairs,
    _known_bag_metrics,
    _whole_bag_metrics,
    full_verdict,
    judge,
)
from llpbench.training.population import Population
from llpbench.training.specification import make_cell
from llpbench.training.stage import _AveragedWeights

LABELS = np.array([0, 0, 0, 1, 1])


@pytest.mark.parametrize("classes", [2, 3])
def test_class_awareness_matches_all_pairs(classes: int) -> None:
    rng = np.random.default_rng(0)
    z, labels = rng.normal(size=(40, 5)), np.arange(40) % classes
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosine = unit @ unit.T
    rows = [np.flatnonzero(labels == c) for c in range(classes)]
    within = np.mean([np.mean([cosine[pair] for pair in itertools.permutations(own, 2)]) for own in rows])
    between = np.mean([cosine[np.ix_(a, b)].mean() for a, b in itertools.combinations(rows, 2)])
    assert _class_awareness(z, labels) == pytest.approx((1 + within) / (2 + within + between))


@pytest.mark.parametrize(
    ("score", "vectors"), [(1, [1, 1, 1, -1, -1]), (2 / 3, np.eye(2)[[0, 0, 0, 1, 1]]), (0.5, [1] * 5)]
)
def test_class_awareness_has_known_answers(score: float, vectors: FloatArray) -> None:
    assert _class_awareness(np.reshape(vectors, (5, -1)), LABELS) == pytest.approx(score)


def test_centring_removes_common_direction() -> None:
    found = _class_awareness_scores(np.eye(2)[LABELS] + 100.0, LABELS)
    assert found == pytest.approx({"cas": 0.5, "cas-centred": 1.0}, abs=1e-3)


class NextRow(DLLP, Reports):
    """Pairs the rows of a bag with the next rows of the other; those before `least` are positive."""

    least = 0

    def pseudo_pairs(self, model: Model, bags: Bags) -> Pairs:
        place = torch.arange(bags.mask.shape[1])
        return Pairs((place + 1) % len(place), place < self.least)


@pytest.mark.parametrize("least", [0, 5])
def test_pair_accuracy_is_fraction_of_positive_pairs_of_one_class(least: int) -> None:
    method = NextRow(SMALL)
    method.least = least
    trained = population(method, [0], epochs=1)
    train, labels = trained.members[0].task.train, trained.members[0].task.train_labels
    assert labels is not None
    drawn = trained.data.plan_epoch("bags", 2, 1, {0: generator(0, "pairs")}).drawn[0]
    pairs = [(train.index[one][n], train.index[other][n + 1]) for one, other in drawn for n in range(least)]
    found = _judge_pairs(trained, 0, trained.state.weights.repeat(2, 1))
    expected = np.mean([labels[a] == labels[b] for a, b in pairs]) if pairs else np.nan
    assert [each["pair-accuracy"] for each in found] == pytest.approx([expected] * 2, nan_ok=True)


@pytest.mark.usefixtures("tiny_bench")
@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("dllp", set()),
        ("llp-vat", {"w", "w-share"}),
        ("tabllp-bdc", {"pair-accuracy", "pair-chance", "lambda", "gamma", "lambda-share"}),
    ],
)
def test_journal_has_diagnostics_at_best_epochs(method: str, names: set[str]) -> None:
    cell = make_cell(method, "tiny", bag_size=16, encoder="mlp", protocol=Protocol(epochs=3))
    (record,) = run_cell(cell, [0], Environment(device="cpu"))
    assert record["status"] == "ok", record["reason"]
    for chosen in record["results"].values():
        found = chosen["diagnostics"]
        assert set(found) == {"cas", "cas-centred"} | names
        assert all(value is not None and math.isfinite(value) for value in found.values())
        if "lambda" in names:
            assert chosen["epoch"] is not None
            assert found["lambda"] == pytest.approx(math.exp(-5 * (1 - chosen["epoch"] / 3) ** 2), rel=1e-5)
            assert found["pair-chance"] == pytest.approx(0.52, abs=0.1)  # of 40 % in random pairs


KEY = "column:by=native-country+education"


@cache
def known_bags() -> tuple[Table, Assignment, Task]:
    adult = load_table("adult")
    assignment = assign_bags(adult, KEY, None, seed=0)
    return adult, assignment, build_task(adult, assignment)


def test_only_test_row_of_a_key_in_training_has_known_bag() -> None:
    adult, assignment, _ = known_bags()
    assert assignment.test_bags is not None
    keys = adult.categorical[:, [adult.categorical_names.index(name) for name in ("native-country", "education")]]
    bags = {tuple(keys[bag[0]]): number for number, bag in enumerate(assignment.train)}
    expected = [bags.get(tuple(keys[row]), -1) for row in assignment.split.test]
    assert assignment.test_bags.tolist() == expected
    assert (assignment.test_bags >= 0).mean() > 0.9
    limited = assign_bags(adult, f"{KEY}:least=50", None, seed=0)
    assert limited.test_bags is not None
    sizes = (assignment.train >= 0).sum(axis=1)
    small = (assignment.test_bags >= 0) & (sizes[assignment.test_bags] < 50)
    assert small.any()
    assert ((limited.test_bags < 0) == (small | (assignment.test_bags < 0))).all()


def test_constant_feature_becomes_bag_effect() -> None:
    task = known_bags()[2]
    assert task.test_bags is not None
    assert task.test.labels is not None
    said = [np.tile(task.bags.prior, (len(part.rows.numeric), 1)) for part in (task.bags, task.test)]
    found = _known_bag_metrics(task, said[0], said[1])
    assert set(found) == {"auc-known-bags", "log-loss-known-bags", "brier-known-bags"}
    share = np.where(task.test_bags >= 0, task.bags.proportions[task.test_bags, 1], task.bags.prior[1])
    by_share = judge_predictions(np.stack([1 - share, share], axis=1), task.test)
    assert found["auc-known-bags"] >= by_share["auc"] - 0.002  # small bags are believed less
    assert found["log-loss-known-bags"] < by_share["log-loss"]
    assert found["log-loss-known-bags"] < judge_predictions(said[1], task.test)["log-loss"] - 0.02


def test_training_predictions_sum_to_bags() -> None:
    task = known_bags()[2]
    labels = task.train_labels
    assert labels is not None
    rows = len(labels)
    share = task.bags.proportions[task.bags.bag_of_row]
    of_share = _whole_bag_metrics(task, np.tile(task.bags.prior, (rows, 1)))
    assert of_share["auc-whole-bags"] == pytest.approx(roc_auc_score(labels, share[:, 1]))
    assert of_share["brier-whole-bags"] == pytest.approx(2 * np.mean((share[:, 1] - labels) ** 2))
    told = np.where(np.random.default_rng(0).random(rows) < 0.3, labels, 1 - labels)  # worse than nothing within bags
    misled = _whole_bag_metrics(task, np.eye(2)[told] * 0.8 + 0.1)
    assert misled["auc-whole-bags"] < of_share["auc-whole-bags"]
    knowing = _whole_bag_metrics(task, np.eye(2)[labels] * 0.02 + 0.49)
    assert knowing["accuracy-whole-bags"] == 1.0
    assert knowing["auc-whole-bags"] > of_share["auc-whole-bags"] + 0.05
    told = np.tile(task.bags.prior, (len(task.test.rows.numeric), 1))
    judged = full_verdict(task, told, np.tile(task.bags.prior, (rows, 1)))["test"]
    assert judged == {
        **verdict(told, task.test)["test"],
        **_known_bag_metrics(task, share * 0 + task.bags.prior, told),
        **of_share,
    }


def test_moved_validation_bags_are_not_judged_as_whole_bags() -> None:
    table, assignment, task = known_bags()
    used = assignment.with_validation_in_training()
    moved = replace(build_task(table, used), moved=len(used.train) - len(assignment.train))
    prior = task.bags.prior
    plain, found = (_whole_bag_metrics(each, np.tile(prior, (len(each.bags.bag_of_row), 1))) for each in (task, moved))
    assert found == pytest.approx(plain)


@pytest.mark.parametrize("members", [1, 2])
def test_saved_predictions_are_those_judged(members: int) -> None:
    trained = population(METHODS.get("dllp")(MethodParams(learning_rate=1e-2, hidden=16)), range(members), epochs=2)
    trained.train()
    numbers = range(members)
    task = trained.members[0].task
    results, found = judge(trained, numbers, keep=True)
    assert found.keys() == results.keys()
    for name, parts in found.items():
        assert verdict(parts["test"], task.test)["test"]["auc"] == results[name]["test"]["auc"]
        of_validation: FloatArray = parts["validation"]
        assert of_validation.shape == (len(task.validation.rows.numeric), 2)
        if name == "accuracy" and members == 1:
            right = (of_validation.argmax(axis=1) == task.validation.labels).mean()
            assert right == pytest.approx(results[name]["validation"])
    assert np.allclose(found["l1"]["test"].sum(axis=1), 1, atol=1e-4)
    _, of_average = judge(averaging("half"), range(1), keep=True)
    assert [*of_average["l1"]] == ["test"], "validation rows were trained on"


@pytest.mark.parametrize("bagging", [f"{KEY}:split=bags", "kmeans:clusters=20", "random"])
def test_uninformative_bags_are_not_known(bagging: str) -> None:
    adult = known_bags()[0]
    task = build_task(adult, assign_bags(adult, bagging, 256 if bagging == "random" else None, seed=0))
    assert task.test_bags is None
    assert _known_bag_metrics(task, np.zeros((0, 2)), np.zeros((0, 2))) == {}


def test_single_class_and_zero_rows_are_handled() -> None:
    assert math.isnan(_class_awareness(np.ones((4, 2)), np.zeros(4, int)))
    assert math.isfinite(_class_awareness(np.zeros((4, 2)), np.array([0, 0, 1, 1])))


def averaging(average: str, method: DLLP | None = None, seeds: tuple[int, ...] = (0,)) -> Population:
    """Members on the toy task, trained without validation."""
    members = [Trainee(seed, method or DLLP(SMALL), toy_task(seed)) for seed in seeds]
    trained = Population(members, mlp, Protocol(epochs=3, patience=1), Machine(), average=Average.of(average))
    trained.train()
    return trained


def test_failure_before_average_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DLLP, "loss", lambda _, model, bags, __: math.nan * model.log_proba(bags).sum())
    (outcome,) = averaging("half").outcomes
    assert "finite" in outcome.failure
    assert outcome.averaged is None


def test_half_averages_epochs_of_second_half() -> None:
    average = _AveragedWeights("half", 5, 10, torch.zeros(2, 3))
    for epoch in range(5):
        average.after_step(torch.full((2, 3), 100.0))
        average.after_epoch(epoch, torch.full((2, 3), float(epoch)))
    assert average.weights[:, :, 0].tolist() == [[2.0, 3.0, 4.0]] * 2


def test_moving_average_is_of_weights_after_steps() -> None:
    average = _AveragedWeights("ema", 3, 100, torch.full((1, 2), 9.0))  # the initial weights do not count
    for epoch, weight in enumerate((1.0, 0.0, 0.0)):
        for _ in range(100):
            average.after_step(torch.full((1, 2), weight))
        average.after_epoch(epoch, torch.zeros(1, 2))
    of_first = (1 - np.exp(-1 / 3)) * np.exp(-2 / 3) / (1 - np.exp(-1))
    assert average.weights.shape == (1, 1, 2)
    assert average.weights[0, 0].tolist() == pytest.approx([of_first] * 2, abs=2e-3)


def test_training_without_validation_takes_same_steps() -> None:
    """The same random numbers: the weights of the last epoch are equal, and all epochs are trained."""
    plain = population(DLLP(SMALL), [0], epochs=6, patience=6)
    last: list[Tensor] = []
    plain.train(lambda _: last.append(plain.state.weights))
    half = averaging("half:6")
    assert half.outcomes[0].epochs == 6
    assert half.outcomes[0].selected == {}
    assert half.outcomes[0].averaged is not None
    assert len(half.outcomes[0].averaged) == 3
    chosen = {choice.epoch: choice.weights for choice in plain.outcomes[0].selected.values()}
    assert chosen, "some criterion chooses an epoch"
    for epoch, weights in chosen.items():
        if epoch >= 3:
            assert torch.equal(half.outcomes[0].averaged[epoch - 3], weights)
    assert any(epoch >= 3 for epoch in chosen)


def test_averaged_prediction_is_judged_for_every_criterion() -> None:
    trained, task = averaging("half:4", seeds=(0, 0)), toy_task(0)
    results, predicted = judge(trained, [0, 1], keep=True)
    assert set(results) == set(CRITERIA)
    weights = [outcome.averaged for outcome in trained.outcomes]
    proba = np.mean(
        [trained.predict(n, w, task.test.rows) for n, w in enumerate(weights) if w is not None], axis=(0, 1)
    )
    for result in results.values():
        assert (result["epoch"], result["validation"]) == (3, None)
        assert result["test"] == pytest.approx(verdict(proba, task.test)["test"])
    np.testing.assert_allclose(predicted["l1"]["test"], proba)


def test_permuted_labels_change_no_averaged_weight() -> None:
    assignment = toy_assignment().with_validation_in_training()
    found = []
    for table in (toy_table(), permuted_within(toy_table(), assignment.train)):
        members = [Trainee(0, DLLP(SMALL), build_task(table, assignment))]
        trained = Population(members, mlp, Protocol(), Machine(), average=Average("ema", 3))
        found.append(trained.train()[0].averaged)
    assert found[0] is not None
    assert found[1] is not None
    assert torch.equal(found[0], found[1])


def cell_of(**changes: str) -> Cell:
    cell = make_cell("dllp", "wine_quality", bag_size=64, encoder="mlp", protocol=Protocol(epochs=2, patience=2))
    return replace(cell, **changes)  # type: ignore[arg-type]


def test_validation_bags_are_trained_on_last() -> None:
    assignment = assign_bags(load_table("wine_quality"), "ordered", 64, 0)
    usual, whole = (make_task(cell_of(average=average), 0, "bags", None) for average in ("", "half:2"))
    assert len(whole.train.sizes) == len(assignment.train) + len(assignment.validation)
    np.testing.assert_array_equal(whole.train.counts[: len(assignment.train)], usual.train.counts)
    np.testing.assert_array_equal(whole.train.counts[len(assignment.train) :], usual.validation.counts)
    assert usual.manifest == whole.manifest == assignment.manifest
    np.testing.assert_array_equal(whole.test.labels, usual.test.labels)
