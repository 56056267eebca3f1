"""EPRM, MixBag and moment matching: losses of bags with known answers, or against enumeration."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
import torch
from small import make_bags, no_features, stream

from llpbench.methods.mixbag import QUANTILE, _some_of, _standard_error
from llpbench.methods.moment_matching import _counted_classes, _drawn_classes, _moment_loss

HALF, TARGET = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]])


def test_standard_errors_are_those_without_replacement() -> None:
    half, ten = torch.tensor([[0.5, 0.5]]), torch.tensor([10.0])
    error = _standard_error(half, torch.tensor([50.0]), torch.tensor([1e9]))
    assert float(QUANTILE * error[0, 0]) == pytest.approx(0.182139, abs=1e-6)
    assert float(_standard_error(half, ten, ten).max()) == 0.0, "a bag taken whole"
    assert float(_standard_error(half, torch.tensor([0.0]), ten).max()) < 10
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], [12, 8])
    shares = [rng.permutation(labels)[:6].mean() for _ in range(20_000)]
    found = _standard_error(torch.tensor([[0.6, 0.4]]), torch.tensor([6.0]), torch.tensor([20.0]))
    assert float(found[0, 1]) == pytest.approx(np.std(shares), rel=0.03)


def test_rows_are_sampled_without_replacement_or_padding() -> None:
    log_proba = torch.tensor([0.1, 0.2, 0.4, 0.9]).log()[None, :, None].expand(3, 4, 1)
    mask = torch.tensor([[True] * 4, [True, True, True, False], [True] * 4])
    seen = set()
    for key in range(40):
        found = _some_of(log_proba, mask, torch.tensor([4.0, 2.0, 0.0]), stream(key)).exp().flatten().tolist()
        assert found[0] == pytest.approx(1.6)
        assert found[2] == 0.0
        seen.add(round(found[1], 3))
    assert seen == {0.3, 0.5, 0.6}


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("classes", [2, 3])
def test_order_statistics_match_enumeration(order: int, classes: int) -> None:
    """Of bags of five and four rows, one padded."""
    rng = np.random.default_rng(0)
    proba, sizes = rng.dirichlet(np.ones(classes), (2, 5)), [5, 4]
    proba[1, 4] = 0
    found = _drawn_classes(torch.tensor(proba), torch.tensor(sizes), order).numpy()
    counts = np.array([[2, 3, 0], [1, 0, 3]])[:, :classes]
    counts[:, 0] += np.array(sizes) - counts.sum(axis=1)
    counted = _counted_classes(torch.tensor(counts, dtype=torch.float64), order).numpy()
    for k, size in enumerate(sizes):
        rows = list(permutations(range(size), order))
        labels = np.repeat(np.arange(classes), counts[k])
        for of in product(range(classes), repeat=order):
            drawn = np.mean([np.prod([proba[k, i, c] for i, c in zip(chosen, of, strict=True)]) for chosen in rows])
            assert found[k][of] == pytest.approx(drawn)
            share = np.mean([all(labels[i] == c for i, c in zip(chosen, of, strict=True)) for chosen in rows])
            assert counted[k][of] == pytest.approx(share)


def test_small_bags_use_available_orders_only() -> None:
    """A single row has its cross-entropy; noisy counts of it ask for no pair."""
    mask = torch.tensor([[True, False, False], [True, True, False]])
    log_proba = torch.tensor([[[0.8, 0.2]] * 3, [[0.6, 0.4]] * 3]).log()
    bags = make_bags(no_features(2, 3), mask, [[1.0, 0.0], [0.5, 0.5]])
    one = _moment_loss(log_proba, bags._replace(known=torch.tensor([True, False])), 3)
    assert float(one) == pytest.approx(-np.log(0.8), abs=1e-5)
    two = _moment_loss(log_proba, bags._replace(known=torch.tensor([False, True])), 3, uniform=0.0)
    expected = (-np.log(0.24) / 2 - np.log(0.24)) / 2  # halves of either class, then both orders of the two
    assert float(two) == pytest.approx(expected, abs=1e-5)
