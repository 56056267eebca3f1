"""Criteria and metrics against known answers and scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, roc_auc_score

from llpbench.core.bags import Holdout, Rows
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.metrics import (
    auc,
    bag_means,
    expected_calibration_error,
    holdout_criteria,
    kl,
    l1,
    macro_auc,
    mpiou,
    test_metrics,
)

test_metrics.__test__ = False  # type: ignore[attr-defined]  # a function of the package, not a test


def holdout(labels: np.ndarray, index: np.ndarray, classes: int) -> Holdout:
    """A holdout of which only labels and bags matter."""
    rows = Rows(np.zeros((len(labels), 1)), np.zeros((len(labels), 0), np.int64), np.zeros((len(labels), 1), bool))
    counts = np.stack([np.bincount(labels[bag[bag >= 0]], minlength=classes) for bag in index]).astype(np.float64)
    return Holdout(rows, index, counts, labels)


@pytest.mark.parametrize("decimals", [8, 1])  # with one decimal most scores are tied
def test_auc_agrees_with_scikit_learn(decimals: int) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (3, 200))
    scores = np.round(rng.random((3, 200)) + 0.3 * labels, decimals)
    ours = auc(torch.from_numpy(scores), torch.from_numpy(labels == 1))
    assert ours.tolist() == pytest.approx([roc_auc_score(y, s) for y, s in zip(labels, scores, strict=True)])


def test_auc_of_one_class_is_not_a_number() -> None:
    assert torch.isnan(auc(torch.rand(5), torch.ones(5, dtype=torch.bool)))


def test_macro_auc_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 300)
    proba = rng.dirichlet(np.ones(4), 300) + 0.2 * np.eye(4)[labels]
    proba /= proba.sum(axis=1, keepdims=True)
    ours = macro_auc(torch.from_numpy(proba), torch.from_numpy(labels))
    assert float(ours) == pytest.approx(roc_auc_score(labels, proba, multi_class="ovr", average="macro"))


def test_mpiou_known_answers() -> None:
    half, quarters = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    assert float(mpiou(half, quarters)) == pytest.approx(0.583333, abs=1e-6)
    assert float(mpiou(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))) == 0
    assert float(mpiou(half, half)) == 1
    # a class absent from both is left out; one absent from the bag costs its whole share, however little is predicted
    assert float(mpiou(torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.5, 0.5, 0.0]]))) == 1
    assert float(mpiou(torch.tensor([[1 - 1e-9, 1e-9]]), torch.tensor([[1.0, 0.0]]))) == pytest.approx(0.5)


def test_l1_and_kl_known_answers() -> None:
    half, quarters = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    assert float(l1(half, quarters)) == pytest.approx(0.5)
    assert float(l1(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))) == 2
    assert float(kl(half, quarters)) == pytest.approx(0.130812, abs=1e-6)
    assert np.isfinite(float(kl(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))))


def test_bag_means_leave_padding_out() -> None:
    proba = torch.tensor([[[0.2, 0.8], [0.4, 0.6], [1.0, 0.0]]])
    index = torch.tensor([[[0, 1], [2, -1]]])
    assert torch.allclose(bag_means(proba, index), torch.tensor([[[0.3, 0.7], [1.0, 0.0]]]))


def test_coarse_criteria_do_not_read_labels() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 60)
    whole = holdout(labels, np.arange(60).reshape(6, 10), 3)
    within = labels.reshape(6, 10).copy()
    for bag in within:
        rng.shuffle(bag)
    shuffled = replace(whole, labels=within.ravel())
    proba = rng.dirichlet(np.ones(3), 60)
    before, after = holdout_criteria(proba, whole), holdout_criteria(proba, shuffled)
    assert set(before) == set(CRITERIA)
    for name, criterion in CRITERIA.items():
        assert (before[name] == after[name]) == (criterion.regime == "coarse"), name


def test_test_metrics_are_complete_and_right() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 100)
    score = np.clip(0.3 * labels + rng.random(100) * 0.7, 0, 1)
    proba = np.column_stack([1 - score, score])
    values = test_metrics(proba, holdout(labels, np.arange(100).reshape(10, 10), 2))
    assert set(values) == set(METRICS)
    assert values["auc"] == pytest.approx(roc_auc_score(labels, score))
    assert values["accuracy"] == pytest.approx(accuracy_score(labels, score > 0.5))
    assert values["brier"] == pytest.approx(2 * np.mean((score - labels) ** 2))


def test_calibration_error_of_a_sure_and_wrong_and_of_a_calibrated_predictor() -> None:
    assert expected_calibration_error(np.array([[0.0, 1.0]] * 4), np.zeros(4, int)) == 1
    labels = np.array([1, 1, 1, 0])
    assert expected_calibration_error(np.array([[0.25, 0.75]] * 4), labels) == pytest.approx(0)
