"""Targets of rows from counts: transport, pseudo-labels and transition matrices, and the methods made of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from bagged import in_bags, rows_of
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit
from small import bags_of, make_bags, no_features, toy_task

from llpbench.blocks.assigning import transported
from llpbench.core.bags import Bags
from llpbench.methods.llpfc import _forward_targets, _noisy_prior, _transition
from llpbench.methods.rot import _counted_labels

TWO = torch.tensor([[[0.9, 0.1], [0.6, 0.4]]]).log()
ONE_EACH = make_bags(no_features(1, 2), torch.ones(1, 2, dtype=torch.bool), [[0.5, 0.5]])


@pytest.mark.parametrize("entropy", [1.0, 0.2, 0.05])
def test_transport_plan_of_two_rows_matches_hand_computation(entropy: float) -> None:
    found = transported(TWO, ONE_EACH, entropy, rounds=200)[0, 0, 0]
    expected = float(expit((logit(0.9) - logit(0.6)) / (2 * entropy)))
    assert float(found) == pytest.approx(expected, abs=1e-5)
    assert expected == pytest.approx({1.0: 0.710102, 0.2: 0.988787, 0.05: 1 - 1.7e-8}[entropy], abs=1e-6)


def unequal(classes: int) -> tuple[torch.Tensor, Bags]:
    """Random predictions of bags of 7 and 4 rows; of three classes each bag lacks one."""
    torch.manual_seed(0)
    mask = torch.arange(7) < torch.tensor([[7], [4]])
    counts = torch.tensor([[3.0, 4.0, 0.0], [0.0, 1.0, 3.0]])[:, :classes]
    counts = torch.tensor([[3.0, 4.0], [1.0, 3.0]]) if classes == 2 else counts
    bags = make_bags(no_features(2, 7), mask, (counts / mask.sum(dim=1, keepdim=True)).tolist())
    return torch.randn(2, 7, classes).log_softmax(dim=-1), bags


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_match_counts_at_least_cost(classes: int) -> None:
    log_proba, bags = unequal(classes)
    labels = _counted_labels(log_proba, bags)
    assert torch.equal(labels.sum(dim=1), bags.counts)
    assert torch.equal(labels.sum(dim=2), bags.mask.float())
    for k in range(2):
        size = int(bags.mask[k].sum())
        places = np.repeat(np.arange(classes), bags.counts[k].int().tolist())
        cost = log_proba[k, :size].numpy()[:, places]
        best = cost[linear_sum_assignment(cost, maximize=True)].sum()
        assert float((labels[k, :size] * log_proba[k, :size]).sum()) == pytest.approx(float(best), abs=1e-4)


GAMMA = np.array([[0.8, 0.2], [0.4, 0.6]])


def test_matrix_and_prior_of_two_bags_match_hand_computation() -> None:
    half = np.array([0.5, 0.5])
    assert _transition(GAMMA, half) == pytest.approx(np.array([[2 / 3, 0.25], [1 / 3, 0.75]]), abs=1e-6)
    assert _transition(np.array([[1.0, 0.0], [1.0, 0.0]]), half).tolist() == [[0.5, 0.5]] * 2, "a class in no bag"
    assert _noisy_prior(GAMMA, half) == pytest.approx([0.25, 0.75], abs=1e-5)
    assert _noisy_prior(GAMMA, np.array([0.95, 0.05])) == pytest.approx([1.0, 0.0], abs=1e-5)  # beyond any mixture


def test_grouping_handles_left_over_and_suppressed_bags() -> None:
    counts = [[8.0, 2.0], [4.0, 6.0], [5.0, 5.0], [np.nan, np.nan]]
    train = in_bags(rows_of([[0.0]] * 40), [list(range(10 * k, 10 * k + 10)) for k in range(4)], counts)
    targets = _forward_targets(train, "uniform", np.random.default_rng(0)).reshape(4, 10, 2)
    assert bool((targets == targets[:, :1]).all())
    parts = [k for k in range(4) if not bool((targets[k] == 1).all())]
    assert len(parts) == 2
    assert 3 not in parts
    first, second = (targets[k, 0] for k in parts)
    assert first + second == pytest.approx([1, 1])


def test_surplus_rows_of_larger_bag_are_dropped() -> None:
    """Bags of 10 and 90 rows weigh the same together: a row of the large one takes part with probability 1/9."""
    train = in_bags(rows_of([[0.0]] * 100), [list(range(10)), list(range(10, 100))], [[8.0, 2.0], [36.0, 54.0]])
    shares = []
    for seed in range(200):
        targets = _forward_targets(train, "uniform", np.random.default_rng(seed))
        assert not (targets[:10] == 1).all(axis=1).any()
        shares.append((targets[10:] != 1).any(axis=1).mean())
    assert np.mean(shares) == pytest.approx(1 / 9, abs=0.01)


def test_fractional_counts_round_like_whole_counts() -> None:
    task = toy_task(0)
    counts = np.array([[2.5, 1.5], [1.2, 2.8]])
    train = replace(task.train, index=task.train.index[:2, :4], counts=counts)
    bags = bags_of(train, 0, 1)
    labels = _counted_labels(torch.randn(2, 4, 2).log_softmax(dim=-1), bags)
    assert labels.sum(dim=1).tolist() == train.whole_counts.tolist()
