"""Posteriors of rows given counts, against enumeration; distinct rows against all rows; trees and work side by side."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from bagged import in_bags, labelled, repeated, rows_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from llpbench.blocks import design, distinct
from llpbench.blocks.components import Components, ProcessSettings
from llpbench.blocks.counts import BagCounts, _poisson_binomial
from llpbench.blocks.design import some_bags
from llpbench.blocks.distinct import Distinct
from llpbench.blocks.side_by_side import side_by_side, together, with_workers, workers
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.bags import BaggedRows, FloatArray, Rows
from llpbench.core.errors import LLPBenchWarning


def rows(number: int, values: int) -> Rows:
    rng = np.random.default_rng(0)
    missing = rng.random((number, 1)) < 0.2
    numeric = np.where(missing, 0, rng.integers(0, values, (number, 1))).astype(np.float32)
    return Rows(numeric, rng.integers(0, 3, (number, 2)), missing)


def test_few_distinct_rows_represent_all(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows(2000, 4)
    assert Distinct.of_rows(table) is None
    monkeypatch.setattr(distinct, "_FEWEST_ROWS", 1000)
    assert Distinct.of_rows(rows(2000, 30)) is None
    assert Distinct.of_rows(Rows(np.zeros((2000, 0)), np.zeros((2000, 0), int), np.zeros((2000, 0), bool))) is None
    found = Distinct.of_rows(table)
    assert found is not None
    assert len(found.first) == (4 + 1) * 9
    for part in table:
        assert np.array_equal(part[found.first][found.place], part)
    assert found.counts.sum() == 2000


def by_enumeration(proba: FloatArray, counts: list[int]) -> FloatArray:
    """[rows, classes] of one bag: every labelling that has these counts, weighted by its probability."""
    rows, classes = proba.shape
    total = np.zeros((rows, classes))
    for labels in product(range(classes), repeat=rows):
        if np.bincount(labels, minlength=classes).tolist() == counts:
            total[np.arange(rows), labels] += np.prod(proba[np.arange(rows), labels])
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def one_bag(counts: list[float], rows: int) -> BaggedRows:
    return in_bags(rows_of([[0.0]] * rows), [list(range(rows))], [counts])


def with_negative(p: list[float]) -> FloatArray:
    return np.stack([1 - np.array(p), np.array(p)], axis=1)


@pytest.mark.parametrize("positives", range(6))
def test_posterior_of_small_bags_is_exact(positives: int) -> None:
    proba = with_negative([0.9, 0.2, 0.5, 0.01, 0.6])
    found = BagCounts(one_bag([5 - positives, positives], 5)).posterior(proba)
    likelihood = _poisson_binomial(proba[None, :, 1], np.array([positives]), np.array([5]))[1]
    labels = [y for y in product([0, 1], repeat=5) if sum(y) == positives]
    assert likelihood == pytest.approx([sum(np.prod(proba[range(5), y]) for y in labels)])
    assert_allclose(found, by_enumeration(proba, [5 - positives, positives]), atol=1e-9)


def test_posterior_of_large_bags_is_close_to_exact() -> None:
    p = np.random.default_rng(0).beta(2, 2, size=200)
    count = round(p.sum()) - 6
    found = BagCounts(one_bag([200 - count, count], 200)).posterior(with_negative(p.tolist()))
    exact = _poisson_binomial(p[None], np.array([count]), np.array([200]))[0][0]
    assert np.abs(exact - p).max() > 0.03
    assert_allclose(found[:, 1], exact, atol=0.005)


def test_posterior_of_three_classes_is_close_to_enumeration() -> None:
    proba = np.random.default_rng(0).dirichlet([2.0, 2.0, 2.0], size=10)
    found = BagCounts(one_bag([2, 6, 2], 10)).posterior(proba)
    expected = by_enumeration(proba, [2, 6, 2])
    assert np.abs(expected - proba).max() > 0.15
    assert_allclose(found, expected, atol=0.07)


def test_noisy_counts_pull_less() -> None:
    proba = with_negative([0.5] * 20)
    exact = BagCounts(one_bag([5, 15], 20)).posterior(proba)[0, 1]
    noisy = BagCounts(replace(one_bag([5, 15], 20), noise=np.sqrt(5.0))).posterior(proba)[0, 1]
    assert exact == pytest.approx(0.75)
    assert noisy == pytest.approx(0.625)  # noise of the variance of the sum halves the gap


def test_impossible_count_becomes_share_of_rows() -> None:
    train = in_bags(rows_of([[0.0]] * 7), [[0, 1, 2, 3, 4], [5, 6]], [[3, 2], [1, 1]])
    found = BagCounts(train).posterior(with_negative([0.3] * 5 + [1.0, 1.0]))
    assert_allclose(found[:, 1], [0.4] * 5 + [0.5] * 2)


@pytest.mark.parametrize("classes", [2, 3])
def test_posteriors_sum_to_proportions(classes: int) -> None:
    rng = np.random.default_rng(2)
    bags = [list(range(40)), list(range(40, 45)), list(range(45, 100))]
    counts = [[30, 10, 0], [2, 3, 0], [5, 50, 0]] if classes == 2 else [[20, 10, 10], [1, 3, 1], [5, 20, 30]]
    train = in_bags(rows_of([[0.0]] * 100), bags, [each[:classes] for each in counts])
    logits = rng.normal(size=(100, classes)) * 3
    found = BagCounts(train).fitted(logits)
    for bag, expected in zip(bags, train.proportions, strict=True):
        assert_allclose(found[bag].mean(axis=0), expected, atol=1e-4)
        shift = np.log(found[bag]) - logits[bag]
        assert_allclose(shift - shift[:, :1], np.broadcast_to(shift[0] - shift[0, 0], shift.shape), atol=1e-6)


def simulated(spread: float, classes: int, seed: int = 0) -> tuple[BagCounts, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 300, 150)
    bags = np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])
    logits = rng.normal(size=(sizes.sum(), classes))
    effects = spread * rng.normal(size=(150, classes))
    proba = softmax(logits + effects.repeat(sizes, axis=0), axis=1)
    labels = (rng.random((len(proba), 1)) > proba.cumsum(axis=1)).sum(axis=1)
    return BagCounts(labelled(rows_of([[0.0]] * len(proba)), labels, bags, classes)), logits, effects


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("spread", [0.2, 1.0])
def test_bag_effects_beat_no_effect_and_shift(spread: float, classes: int) -> None:
    counts, logits, truth = simulated(spread, classes)

    def error(effects: FloatArray) -> float:
        return float((((effects - truth) - (effects - truth).mean(axis=1, keepdims=True)) ** 2).mean() ** 0.5)

    found = error(counts.bag_effects(logits))
    assert found < 0.9 * error(counts.shifts(logits))
    assert found < 0.75 * error(np.zeros_like(truth))


@pytest.mark.parametrize("classes", [2, 5])
def test_bag_of_one_class_keeps_all_but_half_a_row_of_it(classes: int) -> None:
    counts = BagCounts(in_bags(rows_of([[0.0]] * 100), [list(range(100))], [[0] * (classes - 1) + [100]]))
    logits = np.random.default_rng(0).normal(size=(100, classes))
    expected = [0.005 / (classes - 1)] * (classes - 1) + [0.995]
    assert counts.fitted(logits).mean(axis=0) == pytest.approx(expected, rel=1e-3)


def components(train: BaggedRows) -> Components:
    found = Components(train.rows, np.random.default_rng(0), ProcessSettings(waves=20))
    found.effects.append(found.pair(0, 1))
    return found


def test_component_means_and_values_match_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    train = repeated(2)
    plain = components(train)
    monkeypatch.setattr(distinct, "_FEWEST_ROWS", 1000)
    folded = components(train)
    assert folded._same is not None
    assert len(folded._kept or [[]][0]) == 1
    weights = np.random.default_rng(1).random(3000)
    for given in (None, weights):
        for one, other in zip(
            folded.bag_means(train.bag_of_row, train.sizes, given),
            plain.bag_means(train.bag_of_row, train.sizes, given),
            strict=True,
        ):
            assert_allclose(one, other, atol=1e-5)
    coefficients = [np.ones((mean.shape[1], 2)) for mean in plain.bag_means(train.bag_of_row, train.sizes)]
    assert_allclose(folded.value(coefficients), plain.value(coefficients), atol=1e-3)
    single = folded.effect_means(folded.effects[0], train.bag_of_row, train.sizes)
    assert_allclose(single, plain.effect_means(plain.effects[0], train.bag_of_row, train.sizes), atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_posteriors_and_effects_follow_counts(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    train = repeated(classes)
    monkeypatch.setattr(distinct, "_FEWEST_ROWS", 1000)
    same = Distinct.of_rows(train.rows)
    assert same is not None
    counts = BagCounts(train)
    cells, first = counts.folded(same)
    assert len(first) < 200
    logits: FloatArray = np.random.default_rng(2).normal(size=(len(same.first), classes))[same.place]
    proba = softmax(logits, axis=1)
    assert_allclose(cells.posterior(proba[first]), counts.posterior(proba)[first], atol=1e-9)
    assert_allclose(cells.fitted(logits[first]), counts.fitted(logits)[first], atol=1e-5)
    assert_allclose(cells.bag_effects(logits[first]), counts.bag_effects(logits), atol=1e-4)
    assert cells.effects_of_spread(logits[first], 0.5)[1] == pytest.approx(counts.effects_of_spread(logits, 0.5)[1])
    assert cells.weights is not None
    assert cells.weights.sum() == 3000


def test_large_table_is_replaced_by_random_whole_bags(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 20, 300)
    bag_of_row = rng.permutation(np.repeat(np.arange(300), sizes))
    bags = [np.flatnonzero(bag_of_row == bag).tolist() for bag in range(300)]
    train = in_bags(rows_of(bag_of_row[:, None]), bags, [[size, 0] for size in sizes.tolist()])
    monkeypatch.setattr(design, "_MOST_ROWS", 1000)
    assert some_bags(train, rng) is train, "too few bags"
    monkeypatch.setattr(design, "_FEWEST_BAGS", 10)
    with pytest.warns(LLPBenchWarning, match=rf"fitted to [\d,]+ of {sizes.sum():,} rows, in \d+ of 300 bags"):
        some = some_bags(train, rng)
    numbers = some.rows.numeric[:, 0].astype(int)
    assert 980 < len(numbers) <= 1000
    assert_array_equal(some.counts[:, 0], sizes[np.unique(numbers)])
    assert_array_equal(numbers, np.unique(numbers)[some.bag_of_row])
    assert np.ptp(numbers) > 250, "bags in a row may have much in common"
    monkeypatch.setattr(design, "_FEWEST_BAGS", 200)
    with pytest.warns(LLPBenchWarning):
        assert len(some_bags(train, rng).sizes) == 200, "more rows for enough bags"
    monkeypatch.setattr(design, "_FEWEST_BAGS", 10)
    monkeypatch.setattr(design, "_MOST_BAGS", 50)
    with pytest.warns(LLPBenchWarning):
        assert len(some_bags(train, rng).sizes) == 50, "fewer rows of small bags"


@pytest.mark.parametrize("classes", [2, 3])
def test_trees_of_distinct_rows_equal_trees_of_all(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    train = repeated(classes)
    start = np.random.default_rng(1).normal(size=(5, classes))[train.rows.categorical[:, 0]]
    found = []
    for least in (100_000, 1000):
        monkeypatch.setattr(distinct, "_FEWEST_ROWS", least)
        data = TreeRows(train)
        refitted = data.boost_posteriors(start, TreeSettings(12), [1, 2])
        counted = data.boost_counts(TreeSettings(12), 3)
        found.append([each(train.rows) for each in (refitted, counted)])
        assert (data.data.num_row() < 20) == (least == 1000)
    assert_allclose(found[1], found[0], atol=1e-4)
    assert np.std(found[0][0]) > 0.1


def test_results_follow_order_of_items() -> None:
    for number in (1, 3):
        with with_workers(number):
            assert workers() == number
            assert list(side_by_side(range(20), lambda item: item**2)) == [item**2 for item in range(20)]


def test_workers_run_in_parallel() -> None:
    meeting = threading.Barrier(2, timeout=20)
    with with_workers(2):
        assert sorted(side_by_side(range(2), lambda item: (meeting.wait(), item)[1])) == [0, 1]


def test_computations_share_threads_only_with_workers() -> None:
    mine, meeting = threading.get_ident(), threading.Barrier(2, timeout=20)
    for number in (None, 1):
        with with_workers(number) if number else nullcontext():
            assert together(threading.get_ident, threading.get_ident) == [mine, mine]
    with with_workers(2):
        assert len({mine, *together(*[lambda: (meeting.wait(), threading.get_ident())[1]] * 2)}) == 3
        with pytest.raises(ZeroDivisionError):
            together(lambda: 1 // 0, threading.get_ident)
