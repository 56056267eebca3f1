"""Counts of bags as they were published: exact, fractional, noisy or suppressed."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from llpbench.core.bags import BaggedRows, FloatArray, Rows

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
    prior = [(5.5 + 1.2 + 7) / (5.5 + 1.2 + 2.4 + 14), (2.4 + 7) / (5.5 + 1.2 + 2.4 + 14)]
    assert np.allclose(train.prior, prior)
    assert np.allclose(train.proportions, [[1.0, 0.0], prior, [1 / 3, 2 / 3], [0.5, 0.5]])
    assert train.noise == 1.5
    assert replace(train, counts=train.counts * 2).noise == 1.5


def test_suppressed_bags_do_not_affect_prior() -> None:
    train = bagged([4, 2, 2], [[3, 1], [NAN, NAN], [2, 0]])
    assert train.known.tolist() == [True, False, True]
    assert np.allclose(train.prior, [5 / 6, 1 / 6])
    assert np.allclose(train.proportions, [[0.75, 0.25], [5 / 6, 1 / 6], [1.0, 0.0]])


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
    assert kept.counts.tolist() == [[3, 1], [2, 1.5]]
    assert kept.noise == 0.5
    assert len(kept.rows.numeric) == len(kept.bag_of_row) == 7

    def rows_of(bags: BaggedRows, bag: int) -> FloatArray:
        return np.sort(bags.rows.numeric[bags.index[bag, : bags.sizes[bag]], 0])

    for before, after in ((0, 0), (2, 1)):
        assert rows_of(train, before).tolist() == rows_of(kept, after).tolist()
    assert (kept.index >= -1).all()
    assert kept.sizes.tolist() == [4, 3]


def test_prior_is_uniform_without_known_bags() -> None:
    nothing: list[list[list[float]]] = [[[NAN] * 3, [NAN] * 3], [[-1, 0, -2], [0, 0, 0]]]
    for counts in nothing:
        train = bagged([2, 2], counts)
        assert np.allclose(train.prior, 1 / 3)
        assert np.allclose(train.proportions, 1 / 3)
