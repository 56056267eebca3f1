"""Class awareness and pair accuracy: known answers, and what the journal holds of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from small import population

from llpbench.core.bags import FloatArray, Task
from llpbench.core.cell import Environment, Protocol
from llpbench.core.method import MethodParams
from llpbench.core.metrics import test_metrics, verdict
from llpbench.core.registry import METHODS
from llpbench.core.tables import Assignment, Table
from llpbench.data.loading import load_table
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.training.cell_runs import run_cell
from llpbench.training.judging import (
    _class_awareness,
    _known_bag_metrics,
    _pair_accuracy,
    _score,
    _whole_bag_metrics,
    full_verdict,
    judge,
)
from llpbench.training.specification import make_cell

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
    found = _class_awareness(z, labels)
    assert found["cosine-intra"] == pytest.approx(within)
    assert found["cosine-inter"] == pytest.approx(between)
    assert found["cas"] == pytest.approx((1 + within) / (2 + within + between))


def test_centring_removes_common_direction() -> None:
    z = np.eye(2)[LABELS] + 100.0
    found = _class_awareness(z, LABELS)
    assert found["cas"] == pytest.approx(0.5, abs=1e-3)
    assert found["cas-centred"] == pytest.approx(1.0, abs=1e-6)


def test_pair_accuracy_matches_hand_computation() -> None:
    equal = np.array([[True, True, False, True]])
    positive = np.array([[True, True, True, False]])
    found = _pair_accuracy(equal, positive, np.array([0.5]))
    assert found == pytest.approx({"pair-accuracy": 2 / 3, "pair-chance": 0.5, "pair-kappa": 1 / 3})
    assert math.isnan(_pair_accuracy(equal, np.zeros_like(positive), np.array([0.5]))["pair-accuracy"])


@pytest.mark.usefixtures("tiny_bench")
@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("dllp", set()),
        ("llp-vat", {"w", "w-share"}),
        ("tabllp-bdc", {"pair-accuracy", "pair-chance", "pair-kappa", "lambda", "gamma", "lambda-share"}),
    ],
)
def test_journal_has_diagnostics_at_best_epochs(method: str, names: set[str]) -> None:
    cell = make_cell(method, "tiny", bag_size=16, encoder="mlp", protocol=Protocol(epochs=3))
    (record,) = run_cell(cell, [0], Environment(device="cpu"))
    assert record["status"] == "ok", record["reason"]
    for chosen in record["results"].values():
        found = chosen["diagnostics"]
        assert set(found) == {"cas", "cas-centred", "cosine-intra", "cosine-inter"} | names
        assert all(value is not None and math.isfinite(value) for value in found.values())
        if "lambda" in names:
            assert chosen["epoch"] is not None
            assert found["lambda"] == pytest.approx(math.exp(-5 * (1 - chosen["epoch"] / 3) ** 2), rel=1e-5)
            assert found["pair-chance"] == pytest.approx(0.52, abs=0.1)  # of 40 % in random pairs
    spent = sum(record["times"][what] for what in ("warm-up", "train", "evaluate"))
    assert spent <= record["times"]["stage train"] < 1.5 * spent


test_metrics.__test__ = False  # type: ignore[attr-defined]  # a function of the package, not a test

KEY = "column:by=native-country+education"


@pytest.fixture(scope="module")
def adult() -> Table:
    return load_table("adult")


@pytest.fixture(scope="module")
def assignment(adult: Table) -> Assignment:
    return assign_bags(adult, KEY, None, seed=0)


@pytest.fixture(scope="module")
def task(adult: Table, assignment: Assignment) -> Task:
    return build_task(adult, assignment)


def test_test_row_belongs_to_training_bag_of_its_key(adult: Table, assignment: Assignment) -> None:
    assert assignment.test_bags is not None
    keys = adult.categorical[:, [adult.categorical_names.index(name) for name in ("native-country", "education")]]
    bags = {tuple(keys[bag[0]]): number for number, bag in enumerate(assignment.train)}
    expected = [bags.get(tuple(keys[row]), -1) for row in assignment.split.test]
    assert assignment.test_bags.tolist() == expected
    assert (assignment.test_bags >= 0).mean() > 0.9


def test_pooled_and_dropped_rows_have_no_known_bag(adult: Table, assignment: Assignment) -> None:
    whole, pooled = assignment, assign_bags(adult, f"{KEY}:least=50:rest=pool", None, seed=0)
    assert whole.test_bags is not None
    assert pooled.test_bags is not None
    sizes = (whole.train >= 0).sum(axis=1)
    small = (whole.test_bags >= 0) & (sizes[whole.test_bags] < 50)
    assert small.any()
    assert ((pooled.test_bags < 0) == (small | (whole.test_bags < 0))).all()


def test_constant_feature_becomes_bag_effect(task: Task) -> None:
    assert task.test_bags is not None
    assert task.test.labels is not None
    said = [np.tile(task.bags.prior, (len(part.rows.numeric), 1)) for part in (task.bags, task.test)]
    found = _known_bag_metrics(task, said[0], said[1])
    assert set(found) == {"auc-known-bags", "log-loss-known-bags", "brier-known-bags"}
    share = np.where(task.test_bags >= 0, task.bags.proportions[task.test_bags, 1], task.bags.prior[1])
    by_share = test_metrics(np.stack([1 - share, share], axis=1), task.test)
    assert found["auc-known-bags"] >= by_share["auc"] - 0.002  # small bags are believed less
    assert found["log-loss-known-bags"] < by_share["log-loss"]
    assert found["log-loss-known-bags"] < test_metrics(said[1], task.test)["log-loss"] - 0.02


def test_training_predictions_sum_to_bags(task: Task) -> None:
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


@pytest.mark.parametrize("bagging", [f"{KEY}:split=bags", "kmeans:clusters=20", "random"])
def test_uninformative_bags_are_not_known(adult: Table, bagging: str) -> None:
    task = build_task(adult, assign_bags(adult, bagging, 256 if bagging == "random" else None, seed=0))
    assert task.test_bags is None
    assert _known_bag_metrics(task, np.zeros((0, 2)), np.zeros((0, 2))) == {}


def test_single_class_and_zero_rows_are_handled() -> None:
    assert math.isnan(_class_awareness(np.ones((4, 2)), np.zeros(4, int))["cas"])
    assert _score(-1.0, -1.0) == 0.5
    assert math.isfinite(_class_awareness(np.zeros((4, 2)), np.array([0, 0, 1, 1]))["cas"])
