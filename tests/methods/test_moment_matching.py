"""Moment matching: laws of the classes of several rows, against enumeration."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
import torch
from small import make_bags, no_features
from torch import Tensor

from llpbench.blocks.losses import count_loss, proportion_loss
from llpbench.core.bags import Bags
from llpbench.methods.moment_matching import counted_classes, drawn_classes, moment_loss

P = torch.tensor([0.9, 0.2, 0.5])


def three_rows() -> tuple[Tensor, Bags]:
    """Three rows with `P` of the second class; one row is of that class."""
    bags = make_bags(no_features(1, 3), torch.ones(1, 3, dtype=torch.bool), [[2 / 3, 1 / 3]])
    return torch.stack([1 - P, P], dim=-1)[None].log(), bags


def test_cross_entropies_of_three_rows() -> None:
    log_proba, bags = three_rows()
    orders = [float(moment_loss(log_proba, bags, r, uniform=0.0)) * r for r in (1, 2, 3)]
    assert np.diff([0.0, *orders]).tolist() == pytest.approx([0.717630, 1.403080, 1.990210], abs=1e-5)


def test_laws_of_pairs() -> None:
    log_proba, bags = three_rows()
    found = drawn_classes(log_proba.exp(), torch.tensor([3.0]), 2)
    assert found.flatten().tolist() == pytest.approx([0.176667, 0.29, 0.29, 0.243333], abs=1e-5)
    counted = counted_classes(bags.proportions * 3, 2).flatten().tolist()
    assert counted == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=1e-6)


def test_the_order_of_all_rows_is_the_likelihood_of_counts() -> None:
    log_proba, bags = three_rows()
    third = 3 * moment_loss(log_proba, bags, 3, uniform=0.0) - 2 * moment_loss(log_proba, bags, 2, uniform=0.0)
    assert float(third) - np.log(3) == pytest.approx(-np.log(0.41), abs=1e-5)
    assert float(third) - np.log(3) == pytest.approx(float(count_loss(log_proba, bags)), abs=1e-5)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("classes", [2, 3])
def test_laws_are_those_of_enumeration(order: int, classes: int) -> None:
    """Of bags of five and four rows, one padded."""
    rng = np.random.default_rng(0)
    proba, sizes = rng.dirichlet(np.ones(classes), (2, 5)), [5, 4]
    proba[1, 4] = 0
    found = drawn_classes(torch.tensor(proba), torch.tensor(sizes), order).numpy()
    counts = np.array([[2, 3, 0], [1, 0, 3]])[:, :classes]
    counts[:, 0] += np.array(sizes) - counts.sum(axis=1)
    counted = counted_classes(torch.tensor(counts, dtype=torch.float64), order).numpy()
    for k, size in enumerate(sizes):
        rows = list(permutations(range(size), order))
        labels = np.repeat(np.arange(classes), counts[k])
        for of in product(range(classes), repeat=order):
            drawn = np.mean([np.prod([proba[k, i, c] for i, c in zip(chosen, of, strict=True)]) for chosen in rows])
            assert found[k][of] == pytest.approx(drawn)
            share = np.mean([all(labels[i] == c for i, c in zip(chosen, of, strict=True)) for chosen in rows])
            assert counted[k][of] == pytest.approx(share)


def test_order_one_is_dllp_but_for_the_entropy_of_proportions() -> None:
    log_proba, bags = three_rows()
    entropy = -(bags.proportions * bags.proportions.log()).sum()
    assert float(moment_loss(log_proba, bags, 1) - entropy) == pytest.approx(float(proportion_loss(log_proba, bags)))


def test_bags_of_one_and_two_rows_have_the_orders_that_they_can() -> None:
    """A single row has its cross-entropy; noisy counts of it ask for no pair."""
    mask = torch.tensor([[True, False, False], [True, True, False]])
    log_proba = torch.tensor([[[0.8, 0.2]] * 3, [[0.6, 0.4]] * 3]).log()
    bags = make_bags(no_features(2, 3), mask, [[1.0, 0.0], [0.5, 0.5]])
    one = moment_loss(log_proba, bags._replace(known=torch.tensor([True, False])), 3)
    assert float(one) == pytest.approx(-np.log(0.8), abs=1e-5)
    two = moment_loss(log_proba, bags._replace(known=torch.tensor([False, True])), 3, uniform=0.0)
    expected = (-np.log(0.24) / 2 - np.log(0.24)) / 2  # halves of either class, then both orders of the two
    assert float(two) == pytest.approx(expected, abs=1e-5)
