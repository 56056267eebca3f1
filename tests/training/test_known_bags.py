"""Rows of known bags: which bag a test row is of, and what its prediction becomes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from llpbench.core.bags import Task
from llpbench.data.loading import load_table
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.training.known_bags import known_bag_metrics

KEY = "column:by=native-country+education"


def task_of(bagging: str, size: int = 0) -> Task:
    table = load_table("adult")
    return build_task(table, assign_bags(table, bagging, size, seed=0))


def test_a_test_row_is_of_the_training_bag_of_its_key() -> None:
    table = load_table("adult")
    assignment = assign_bags(table, KEY, 0, seed=0)
    assert assignment.test_bags is not None
    columns = [table.categorical_names.index(name) for name in ("native-country", "education")]
    keys = table.categorical[:, columns]
    bags = {tuple(keys[bag[0]]): number for number, bag in enumerate(assignment.train)}
    expected = [bags.get(tuple(keys[row]), -1) for row in assignment.split.test]
    assert assignment.test_bags.tolist() == expected
    assert (assignment.test_bags >= 0).mean() > 0.9


def test_rows_of_pooled_and_dropped_bags_are_of_none() -> None:
    table = load_table("adult")
    whole, pooled = (assign_bags(table, f"{KEY}{more}", 0, seed=0) for more in ("", ":least=50:rest=pool"))
    assert whole.test_bags is not None
    assert pooled.test_bags is not None
    sizes = (whole.train >= 0).sum(axis=1)
    small = (whole.test_bags >= 0) & (sizes[whole.test_bags] < 50)
    assert small.any()
    assert ((pooled.test_bags < 0) == (small | (whole.test_bags < 0))).all()


@pytest.mark.parametrize("bagging", [f"{KEY}:split=bags", "kmeans:clusters=20", "random"])
def test_bags_that_say_nothing_of_other_rows_are_not_known(bagging: str) -> None:
    task = task_of(bagging, 256 if bagging == "random" else 0)
    assert task.test_bags is None
    assert known_bag_metrics(task, np.zeros((0, 2)), np.zeros((0, 2))) == {}


def test_what_is_the_same_of_every_row_becomes_its_bags_share() -> None:
    task = task_of(KEY)
    assert task.test_bags is not None
    assert task.test.labels is not None
    said = [np.tile(task.bags.prior, (len(part.rows.numeric), 1)) for part in (task.bags, task.test)]
    found = known_bag_metrics(task, said[0], said[1])
    half = np.minimum(0.5 / task.bags.sizes, 0.01)  # proportions of 0 and 1 are not believed
    share = task.bags.proportions[:, 1].clip(half, 1 - half)
    of_row = np.where(task.test_bags >= 0, share[task.test_bags], task.bags.prior[1])
    p = np.where(task.test.labels == 1, of_row, 1 - of_row)
    assert found["log-loss-known-bags"] == pytest.approx(-np.log(p).mean(), rel=1e-5)
    assert set(found) == {"auc-known-bags", "log-loss-known-bags", "brier-known-bags"}


def test_a_bag_is_moved_as_a_whole_to_what_is_known_of_it() -> None:
    task = task_of(KEY)
    rng = np.random.default_rng(0)
    z = [rng.normal(size=len(part.rows.numeric)) for part in (task.bags, task.test)]
    right = known_bag_metrics(task, *(np.stack([expit(-each), expit(each)], axis=1) for each in z))
    off = [z[0] + 3.0, z[1] + 3.0]  # what all bags have in common is mended, too
    moved = known_bag_metrics(task, *(np.stack([expit(-each), expit(each)], axis=1) for each in off))
    assert moved["log-loss-known-bags"] == pytest.approx(right["log-loss-known-bags"], abs=2e-2)
    unlabelled = replace(task, test=replace(task.test, labels=None))
    assert known_bag_metrics(unlabelled, np.zeros((0, 2)), np.zeros((0, 2))) == {}
