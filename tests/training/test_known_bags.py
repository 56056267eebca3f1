"""Rows of known bags: which bag a test row is of, and what its prediction becomes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from llpbench.core.bags import Task
from llpbench.core.metrics import test_metrics
from llpbench.core.tables import Assignment, Table
from llpbench.data.loading import load_table
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.training.judging import known_bag_metrics, whole_bag_metrics

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


@pytest.mark.parametrize("bagging", [f"{KEY}:split=bags", "kmeans:clusters=20", "random"])
def test_uninformative_bags_are_not_known(adult: Table, bagging: str) -> None:
    task = build_task(adult, assign_bags(adult, bagging, 256 if bagging == "random" else None, seed=0))
    assert task.test_bags is None
    assert known_bag_metrics(task, np.zeros((0, 2)), np.zeros((0, 2))) == {}


def test_constant_feature_becomes_bag_effect(task: Task) -> None:
    assert task.test_bags is not None
    assert task.test.labels is not None
    said = [np.tile(task.bags.prior, (len(part.rows.numeric), 1)) for part in (task.bags, task.test)]
    found = known_bag_metrics(task, said[0], said[1])
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
    of_share = whole_bag_metrics(task, np.tile(task.bags.prior, (rows, 1)))
    assert of_share["auc-whole-bags"] == pytest.approx(roc_auc_score(labels, share[:, 1]))
    assert of_share["brier-whole-bags"] == pytest.approx(2 * np.mean((share[:, 1] - labels) ** 2))
    told = np.where(np.random.default_rng(0).random(rows) < 0.3, labels, 1 - labels)  # worse than nothing within bags
    misled = whole_bag_metrics(task, np.eye(2)[told] * 0.8 + 0.1)
    assert misled["auc-whole-bags"] < of_share["auc-whole-bags"]
    knowing = whole_bag_metrics(task, np.eye(2)[labels] * 0.02 + 0.49)
    assert knowing["accuracy-whole-bags"] == 1.0
    assert knowing["auc-whole-bags"] > of_share["auc-whole-bags"] + 0.05


def test_no_known_bags_without_counts(task: Task) -> None:
    unlabelled = replace(task, test=replace(task.test, labels=None))
    assert known_bag_metrics(unlabelled, np.zeros((0, 2)), np.zeros((0, 2))) == {}
    assert whole_bag_metrics(replace(task, train_labels=None), np.zeros((0, 2))) == {}
