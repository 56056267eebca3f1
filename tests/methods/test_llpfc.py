"""LLPFC: groups of bags, their transition matrices, and the corrected loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from bagged import in_bags, rows_of
from small import make_bags, moment, no_features

from llpbench.core.model import Encoder, Model, Network
from llpbench.methods.llpfc import LLPFC, LLPFCParams, forward_targets, noisy_prior, transition

GAMMA = np.array([[0.8, 0.2], [0.4, 0.6]])


def test_the_matrix_and_the_fitted_prior_of_two_bags() -> None:
    half = np.array([0.5, 0.5])
    assert transition(GAMMA, half) == pytest.approx(np.array([[2 / 3, 0.25], [1 / 3, 0.75]]), abs=1e-6)
    assert transition(np.array([[1.0, 0.0], [1.0, 0.0]]), half).tolist() == [[0.5, 0.5]] * 2, "a class in no bag"
    assert noisy_prior(GAMMA, half) == pytest.approx([0.25, 0.75], abs=1e-5)
    assert noisy_prior(GAMMA, np.array([0.95, 0.05])) == pytest.approx([1.0, 0.0], abs=1e-5)  # beyond any mixture


class Given(Model):
    """A model whose predictions are given."""

    def __init__(self, log_proba: torch.Tensor) -> None:
        super().__init__(Network(Encoder(), torch.nn.Identity()))
        self.given = log_proba

    def log_proba(self, bags: object) -> torch.Tensor:
        del bags
        return self.given


def test_the_corrected_loss_and_rows_without_part_that_have_no_gradient() -> None:
    method = LLPFC(LLPFCParams(hidden=8))
    for gamma, row, expected in ((GAMMA, 0, 0.470004), (GAMMA, 1, 0.980829), (np.eye(2), 0, -np.log(0.9))):
        target = transition(gamma, np.array([0.5, 0.5]))[row].tolist()
        logits = torch.tensor([[[0.9, 0.1]], [[0.3, 0.7]]]).log().requires_grad_()
        bags = make_bags(no_features(2, 1), torch.ones(2, 1, dtype=torch.bool), [target, [1.0, 1.0]])
        loss = method.loss(Given(logits.log_softmax(dim=-1)), bags, moment())
        assert float(loss.detach()) == pytest.approx(expected / 2, abs=1e-5)
        (gradient,) = torch.autograd.grad(loss, [logits])
        assert bool((gradient[0] != 0).any())
        assert float(gradient[1].abs().max()) < 1e-6


def test_bags_in_groups_left_over_and_suppressed() -> None:
    counts = [[8.0, 2.0], [4.0, 6.0], [5.0, 5.0], [np.nan, np.nan]]
    train = in_bags(rows_of([[0.0]] * 40), [list(range(10 * k, 10 * k + 10)) for k in range(4)], counts)
    targets = forward_targets(train, "uniform", np.random.default_rng(0)).reshape(4, 10, 2)
    assert bool((targets == targets[:, :1]).all())
    parts = [k for k in range(4) if not bool((targets[k] == 1).all())]
    assert len(parts) == 2
    assert 3 not in parts
    first, second = (targets[k, 0] for k in parts)
    assert first + second == pytest.approx([1, 1])


def test_rows_of_the_heavier_bag_are_left_out() -> None:
    """Bags of 10 and 90 rows weigh the same together: a row of the large one takes part with probability 1/9."""
    train = in_bags(rows_of([[0.0]] * 100), [list(range(10)), list(range(10, 100))], [[8.0, 2.0], [36.0, 54.0]])
    shares = []
    for seed in range(200):
        targets = forward_targets(train, "uniform", np.random.default_rng(seed))
        assert not (targets[:10] == 1).all(axis=1).any()
        shares.append((targets[10:] != 1).any(axis=1).mean())
    assert np.mean(shares) == pytest.approx(1 / 9, abs=0.01)
