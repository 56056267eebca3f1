"""Counts of bags, and criteria and metrics against known answers and scikit-learn."""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score

from llpbench.core import metrics
from llpbench.core.bags import BaggedRows, FloatArray, Holdout, Rows
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.metrics import brier_score, holdout_criteria, l1, macro_auc, mpiou, test_metrics

NAN = np.nan


def bagged(sizes: list[int], counts: list[list[float]], noise: float = 0.0) -> BaggedRows:
    """Bags of shuffled rows, whose only number is their position."""
    rows = sum(sizes)
    position = np.random.default_rng(0).permutation(rows)
    index = np.full((len(sizes), max(sizes)), -1)
    for bag, (size, start) in enumerate(zip(sizes, np.cumsum([0, *sizes]), strict=False)):
        index[bag, :size] = position[start : start + size]
    numeric = np.arange(rows, dtype=np.float32)[:, None]
    features = Rows(numeric, np.zeros((rows, 0), np.int64), np.zeros((rows, 1), bool))
    return BaggedRows(features, index, np.array(counts, dtype=np.float64), noise)


def test_exact_counts_are_unchanged() -> None:
    train = bagged([4, 2], [[3, 1], [0, 2]])
    assert train.sizes.tolist() == [4, 2]
    assert train.known.all()
    assert train.proportions.tolist() == [[0.75, 0.25], [0, 1]]
    assert train.prior.tolist() == [0.5, 0.5]
    assert train.whole_counts.tolist() == [[3, 1], [0, 2]]
    assert train.where_known() is train
    assert train.noise == 0.0
    assert [train.bag_of_row[row] for bag in train.index for row in bag[bag >= 0]] == [0, 0, 0, 0, 1, 1]


def test_noisy_counts_are_kept_and_proportions_lie_on_simplex() -> None:
    given = [[5.5, -1.5], [-2.0, -3.0], [1.2, 2.4], [7.0, 7.0]]
    train = bagged([4, 2, 3, 4], given, noise=1.5)
    assert train.counts.tolist() == given
    assert train.known.all()
    prior = np.array([5.5 - 2 + 1.2 + 7, -1.5 - 3 + 2.4 + 7]) / 16.6  # noise of single bags cancels
    assert np.allclose(train.prior, prior)
    assert np.allclose(train.proportions, [[1.0, 0.0], [*prior], [1 / 3, 2 / 3], [0.5, 0.5]])
    assert train.noise == 1.5
    assert replace(train, counts=train.counts * 2).noise == 1.5


def test_suppressed_bags_do_not_affect_prior_which_is_uniform_without_known_bags() -> None:
    train = bagged([4, 2, 2], [[3, 1], [NAN, NAN], [2, 0]])
    assert train.known.tolist() == [True, False, True]
    assert np.allclose(train.prior, [5 / 6, 1 / 6])
    assert np.allclose(train.proportions, [[0.75, 0.25], [5 / 6, 1 / 6], [1.0, 0.0]])
    for counts in ([[NAN] * 3, [NAN] * 3], [[-1.0, 0, -2], [0.0, 0, 0]]):
        assert np.allclose(bagged([2, 2], counts).prior, 1 / 3)
        assert np.allclose(bagged([2, 2], counts).proportions, 1 / 3)


def test_whole_counts_are_nearest_with_right_sum() -> None:
    """Against all ways to write a size as a sum; nearest in the sum of absolute differences, and of squares."""
    rng = np.random.default_rng(0)
    for classes in (2, 3, 4) * 6:
        sizes = rng.integers(1, 8, size=6).tolist()
        train = bagged(sizes, rng.normal(2, 2, size=(6, classes)).tolist())
        for size, share, whole in zip(sizes, train.proportions, train.whole_counts, strict=True):
            every = np.array([c for c in itertools.product(range(size + 1), repeat=classes) if sum(c) == size])
            assert whole.tolist() in every.tolist()
            for power in (1, 2):
                distance = (np.abs(every - share * size) ** power).sum(axis=1)
                assert (np.abs(whole - share * size) ** power).sum() == pytest.approx(distance.min(), abs=1e-9)


def test_whole_counts_match_known_cases() -> None:
    train = bagged([3, 4, 5, 3], [[1.5, 1.5, 0], [1, 1, 1], [10, 10, 0.0], [NAN] * 3])
    # ties go to the first classes; the last has the prior (12.5, 12.5, 1) / 26 of three rows
    assert train.whole_counts.tolist() == [[2, 1, 0], [2, 1, 1], [3, 2, 0], [2, 1, 0]]
    sizes = [1, 7, 49, 11_660]
    exact = [np.random.default_rng(size).multinomial(size, [0.2, 0.5, 0.3]).tolist() for size in sizes]
    assert bagged(sizes, exact).whole_counts.tolist() == exact


def test_known_bags_keep_their_rows() -> None:
    train = bagged([4, 2, 3], [[3, 1], [NAN, NAN], [2, 1.5]], noise=0.5)
    kept = train.where_known()
    assert (kept.counts.tolist(), kept.noise) == ([[3, 1], [2, 1.5]], 0.5)
    assert len(kept.rows.numeric) == len(kept.bag_of_row) == 7
    for before, after in ((train.index[0], kept.index[0]), (train.index[2, :3], kept.index[1, :3])):
        assert {*train.rows.numeric[before, 0]} == {*kept.rows.numeric[after, 0]}
    assert (kept.index >= -1).all()
    assert kept.sizes.tolist() == [4, 3]


test_metrics.__test__ = False  # type: ignore[attr-defined]  # a function of the package, not a test

COARSE = {name for name, criterion in CRITERIA.items() if criterion.regime == "coarse"}


def holdout(labels: np.ndarray, index: np.ndarray, classes: int) -> Holdout:
    """A holdout with given labels and bags; nothing else matters."""
    rows = Rows(np.zeros((len(labels), 1)), np.zeros((len(labels), 0), np.int64), np.zeros((len(labels), 1), bool))
    counts = np.stack([np.bincount(labels[bag[bag >= 0]], minlength=classes) for bag in index]).astype(np.float64)
    return Holdout(rows, index, counts, labels)


@pytest.mark.parametrize("decimals", [8, 1])  # with one decimal most scores are tied
def test_auc_agrees_with_scikit_learn(decimals: int) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (3, 200))
    scores = np.round(rng.random((3, 200)) + 0.3 * labels, decimals)
    ours = metrics._auc(torch.from_numpy(scores), torch.from_numpy(labels == 1))
    assert ours.tolist() == pytest.approx([roc_auc_score(y, s) for y, s in zip(labels, scores, strict=True)])
    many = rng.integers(0, 4, 300)
    proba = rng.dirichlet(np.ones(4), 300) + 0.2 * np.eye(4)[many]
    proba /= proba.sum(axis=1, keepdims=True)
    expected = roc_auc_score(many, proba, multi_class="ovr", average="macro")
    assert float(macro_auc(torch.from_numpy(proba), torch.from_numpy(many))) == pytest.approx(expected)


def test_nan_predictions_have_no_criterion() -> None:
    scores = torch.tensor([0.1, torch.nan, 0.3, 0.4])
    assert torch.isnan(metrics._auc(scores, torch.tensor([False, True, False, True])))
    proba = torch.full((2, 4, 2), 0.5).double()
    proba[1, 2] = torch.nan
    labels, index = torch.tensor([[0, 1, 0, 1]] * 2), torch.tensor([[[0, 1], [2, 3]]] * 2)
    found = metrics.validation_criteria(proba, labels, index, torch.full((2, 2, 2), 0.5).double(), torch.ones(2, 2) > 0)
    assert {name for name, value in found.items() if not torch.isnan(value[1])} == set()
    assert {name for name, value in found.items() if torch.isnan(value[0])} == set()


def test_proportion_distances_match_known_values() -> None:
    half, quarters = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    assert float(mpiou(half, quarters)) == pytest.approx(0.583333, abs=1e-6)
    assert float(mpiou(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))) == 0
    assert float(mpiou(half, half)) == 1
    # a class absent from both is left out; one absent from the bag costs its whole share, however little is predicted
    assert float(mpiou(torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.5, 0.5, 0.0]]))) == 1
    assert float(mpiou(torch.tensor([[1 - 1e-9, 1e-9]]), torch.tensor([[1.0, 0.0]]))) == pytest.approx(0.5)
    assert float(l1(half, quarters)) == pytest.approx(0.5)
    assert float(l1(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))) == 2
    assert float(metrics._kl(half, quarters)) == pytest.approx(0.130812, abs=1e-6)
    assert np.isfinite(float(metrics._kl(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))))


def test_count_likelihood_is_normal_approximation() -> None:
    rng = np.random.default_rng(6)
    index, sizes = np.full((3, 40), -1), (40, 7, 1)
    for bag, size in enumerate(sizes):
        index[bag, :size] = rng.permutation(60)[:size]
    for classes in (2, 3):
        proba = rng.dirichlet(np.ones(classes), size=(2, 60))
        counts = np.array([rng.multinomial(size, np.full(classes, 1 / classes)) for size in sizes])
        expected = np.zeros(2)
        for member in range(2):
            for bag, size in enumerate(sizes):
                p = proba[member, index[bag, :size], :-1]
                covariance = np.diag(p.sum(axis=0) + 1 / 12) - p.T @ p
                expected[member] += multivariate_normal(p.sum(axis=0), covariance).logpdf(counts[bag, :-1]) / 3
        where = torch.from_numpy(index).expand(2, -1, -1)
        target = torch.from_numpy(counts / np.array(sizes)[:, None]).expand(2, -1, -1)
        given = torch.from_numpy(proba)
        found = metrics._likelihood(given, metrics._bag_means(given, where), target, where)
        assert found.tolist() == pytest.approx(expected.tolist())


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
    assert {name for name in CRITERIA if before[name] == after[name]} == COARSE


def test_risk_of_bags_estimates_brier_score() -> None:
    """Exactly in bags of one row; in random bags of 8 of 4,000 rows nearly. l1 of bags says little about a row."""
    rng = np.random.default_rng(6)
    three = rng.integers(0, 3, 40)
    chance = rng.random(4_000)
    labels, index = (rng.random(4_000) < chance).astype(int), rng.permutation(4_000).reshape(500, 8)
    guesses = [share * chance + (1 - share) * 0.4 for share in (1.0, 0.5)]
    for proba, whole, tolerances in (
        (rng.dirichlet(np.ones(3), 40), holdout(three, np.arange(40).reshape(40, 1), 3), (1e-6, 1e-6)),
        *((np.column_stack([1 - guess, guess]), holdout(labels, index, 2), (0.05, 0.12)) for guess in guesses),
    ):
        assert whole.labels is not None
        values, expected = holdout_criteria(proba, whole), brier_score(proba, whole.labels)
        assert values["dsq"] == pytest.approx(expected, abs=tolerances[0])
        assert values["easyllp"] == pytest.approx(expected, abs=tolerances[1])


def test_test_metrics_are_complete_and_right() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 100)
    score = np.clip(0.3 * labels + rng.random(100) * 0.7, 0, 1)
    proba = np.column_stack([1 - score, score])
    values = test_metrics(proba, holdout(labels, np.arange(100).reshape(10, 10), 2))
    assert set(values) == {name for name in METRICS if not name.endswith("-bags")}
    assert values["auc"] == pytest.approx(roc_auc_score(labels, score))
    assert values["accuracy"] == pytest.approx(accuracy_score(labels, score > 0.5))
    assert values["brier"] == pytest.approx(2 * np.mean((score - labels) ** 2))
    three = np.insert(proba, 1, 0.0, axis=1)[:, [0, 2, 1]]  # a third class that no test row has
    of_three = test_metrics(three, holdout(labels, np.arange(100).reshape(10, 10), 3))
    both = [average_precision_score(labels == label, proba[:, label]) for label in (0, 1)]
    assert of_three["average-precision"] == pytest.approx(np.mean(both))


def test_log_loss_and_calibration_error_match_known_values() -> None:
    proba = np.array([[0.25, 0.75], [0.5, 0.5]])
    assert metrics._log_loss(proba, np.array([1, 0])) == pytest.approx(-np.log(0.375) / 2)
    assert metrics._log_loss(np.array([[0.0, 1.0]]), np.array([0])) == pytest.approx(34.54, abs=0.01)
    assert metrics._expected_calibration_error(np.array([[0.0, 1.0]] * 4), np.zeros(4, int)) == 1
    assert metrics._expected_calibration_error(np.array([[0.25, 0.75]] * 4), np.array([1, 1, 1, 0])) == pytest.approx(0)


def test_reliability_matches_hand_computation() -> None:
    positive = np.array([0.02, 0.04, 0.55, 0.55, 1.0])
    proba, labels = np.column_stack([1 - positive, positive]), np.array([0, 1, 1, 0, 1])
    assert metrics._reliability(proba, labels) == [[2, 0.03, 0.5], [2, 0.55, 0.5], [1, 1.0, 1.0]]
    three = np.array([[0.9, 0.05, 0.05]])  # each class against the rest, pooled
    assert metrics._reliability(three, np.array([1])) == [[2, 0.05, 0.5], [1, 0.9, 0.0]]
    assert "reliability" not in metrics.verdict(proba, replace(holdout(labels, np.arange(5)[None], 2), labels=None))


def unequal_holdout() -> tuple[Holdout, FloatArray]:
    """Bags of 1, 2, 7 and 20 rows, and predictions."""
    rng = np.random.default_rng(5)
    index = np.full((4, 20), -1)
    for bag, (start, end) in enumerate(pairwise((0, 1, 3, 10, 30))):
        index[bag, : end - start] = np.arange(start, end)
    labels = rng.integers(0, 3, 30)
    counts = np.stack([np.bincount(labels[bag[bag >= 0]], minlength=3) for bag in index]).astype(np.float64)
    whole = holdout(labels, index[:1], 3)
    return replace(whole, index=index, counts=counts), rng.dirichlet(np.ones(3), 30)


def test_coarse_criteria_weight_bags_equally() -> None:
    whole, proba = unequal_holdout()
    distances = []
    for bag, counts in zip(whole.index, whole.counts, strict=True):
        rows = bag[bag >= 0]
        distances.append(np.abs(proba[rows].mean(axis=0) - counts / len(rows)).sum())
    assert holdout_criteria(proba, whole)["l1"] == pytest.approx(np.mean(distances))
    assert abs(np.mean(distances) - np.average(distances, weights=whole.sizes)) > 1e-2  # by rows it would be another


def test_coarse_criteria_ignore_suppressed_bags_and_need_no_labels() -> None:
    whole, proba = unequal_holdout()
    counts = whole.counts.copy()
    counts[2] = np.nan
    full, found = holdout_criteria(proba, whole), holdout_criteria(proba, replace(whole, counts=counts))
    known = replace(whole, index=whole.index[[0, 1, 3]], counts=whole.counts[[0, 1, 3]])
    assert found == pytest.approx(holdout_criteria(proba, known))
    assert found["l1"] != pytest.approx(full["l1"])
    nothing = holdout_criteria(proba, replace(whole, counts=whole.counts * np.nan))
    assert {name for name, value in nothing.items() if np.isnan(value)} == COARSE
    unlabelled = replace(whole, labels=None)
    assert holdout_criteria(proba, unlabelled) == {name: full[name] for name in full if name in COARSE}
    assert test_metrics(proba, unlabelled) == {name: test_metrics(proba, whole)[name] for name in ("mpiou", "l1")}


def test_count_likelihood_is_nan_if_diverged_and_finite_if_certain() -> None:
    where, target = torch.arange(8).reshape(1, 1, 8).expand(3, -1, -1), torch.tensor([[[0.0, 1.0]]]).double()
    proba = torch.stack([torch.full((8, 2), torch.nan), torch.eye(2)[[0] * 8], torch.eye(2)[[1] * 8]]).double()
    means = metrics._bag_means(proba, where)
    diverged, wrong, right = metrics._likelihood(proba, means, target.expand(3, -1, -1), where).tolist()
    assert np.isnan(diverged)
    assert -np.inf < wrong < right
