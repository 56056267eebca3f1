"""Bags whose rows were chosen by their labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bagged import predict, rows_of, schema_of
from scipy.special import log_softmax

from llpbench.blocks.linear import _are_chosen_by_label, _flatter
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Ragged
from llpbench.core.seeding import generator

BAGS, SIZE = 60, 50


def bagged(columns: FloatArray, labels: IntArray, order: IntArray) -> BaggedRows:
    """Rows in bags of `SIZE`, in this order."""
    counts = np.zeros((BAGS, labels.max() + 1))
    np.add.at(counts, (np.repeat(np.arange(BAGS), SIZE), labels[order]), 1.0)
    return BaggedRows(rows_of(columns.tolist()), Ragged(order, np.full(BAGS, SIZE)), counts)


def world(kind: str, classes: int, seed: int = 0) -> tuple[BaggedRows, FloatArray]:
    """Bags of a kind, and the true log probabilities of rows, whose classes are normal with means 2 apart."""
    rng = generator(seed, kind, str(classes))
    if kind == "label":
        shares = rng.dirichlet(np.ones(classes), size=BAGS)
        labels = np.concatenate([rng.choice(classes, SIZE, p=share) for share in shares])
    else:
        labels = rng.integers(classes, size=BAGS * SIZE)
    columns = rng.normal(size=(BAGS * SIZE, 3))
    columns[:, 0] += 2 * labels
    prior = np.bincount(labels) / len(labels)
    truth = log_softmax(np.log(prior) - 0.5 * (columns[:, :1] - 2 * np.arange(classes)) ** 2, axis=1)
    order = {
        "label": np.arange(len(labels)),
        "random": rng.permutation(len(labels)),
        "ordered": columns[:, 0].argsort(),
    }
    return bagged(columns, labels, order[kind]), truth


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["label", "random", "ordered"])
def test_only_bags_with_rows_chosen_by_label_are_recognised(kind: str, classes: int) -> None:
    for seed in range(5):
        train, _ = world(kind, classes, seed)
        assert _are_chosen_by_label(train, schema_of(train)) is (kind == "label")


def test_noise_of_counts_is_not_taken_for_choice_by_label() -> None:
    train, _ = world("random", 2)
    noisy = np.clip(train.counts + np.random.default_rng(0).normal(scale=20, size=(BAGS, 1)) * [1, -1], 0, SIZE)
    train = replace(train, counts=noisy, noise=20.0)
    assert not _are_chosen_by_label(train, schema_of(train))


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_that_are_too_steep_become_true_ones(classes: int) -> None:
    train, truth = world("label", classes)
    found = _flatter(4 * truth, train)
    assert found.slope == pytest.approx(1 / 4, rel=0.15)
    corrected = np.exp(log_softmax(found(4 * truth), axis=1))
    assert np.abs(corrected - np.exp(truth)).mean() < 0.03
    assert _flatter(truth / 4, train).slope == 1.0  # bags can only say that a fit went too far


@pytest.mark.parametrize("name", ["bag-gp", "bag-gp-gbdt"])
def test_methods_correct_probabilities_of_rows_chosen_by_label(name: str) -> None:
    train, truth = world("label", 2)
    proba = predict(name, train, train.rows)
    loss = -(np.exp(truth) * np.log(np.clip(proba, 1e-9, None))).sum(axis=1).mean()
    best, constant = -(np.exp(truth) * truth).sum(axis=1).mean(), np.log(2)
    assert loss < best + 0.2 * (constant - best)
