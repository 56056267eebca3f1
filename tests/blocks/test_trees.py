"""Training rows of trees in parts of whole bags."""

from __future__ import annotations

import numpy as np
import pytest
from bagged import in_bags, repeated, rows_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from llpbench.blocks import distinct, trees
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.bags import BaggedRows, FloatArray

BAGS, SIZE = 300, 10
FEW = TreeSettings(60)


def some_train(classes: int = 2) -> tuple[BaggedRows, FloatArray]:
    """Rows in bags in no order, one with a category of its own and one with a missing number, and the logit."""
    rng = np.random.default_rng(0)
    count = BAGS * SIZE
    numbers, codes = rng.normal(size=(count, 2)), rng.integers(1, 4, (count, 1))
    codes[1234], numbers[77, 1] = 9, np.nan
    logit = 2 * numbers[:, 0] + 1.5 * (codes[:, 0] == 2) - 0.5
    labels = (rng.random(count) < expit(logit)) * (classes - 1)
    labels[rng.random(count) < 0.1 * (classes - 2)] = 1
    bags = rng.permutation(count).reshape(BAGS, SIZE).tolist()
    counts = [np.bincount(labels[bag], minlength=classes).tolist() for bag in bags]
    return in_bags(rows_of(numbers.tolist(), codes.tolist()), bags, counts), logit


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three parts of 100 bags."""
    monkeypatch.setattr(trees, "_ONE_PART", BAGS * SIZE - 1)
    monkeypatch.setattr(trees, "_PART_ROWS", 500)
    monkeypatch.setattr(trees, "_PART_BAGS", 100)


@pytest.mark.usefixtures("in_parts")
def test_tree_parts_are_whole_bags_and_repeatable() -> None:
    train, _ = some_train()
    parts = TreeRows(train.rows).parts(train.bag_of_row, BAGS)
    assert [len(part.bags) for part in parts] == [100, 100, 100]
    assert sorted(np.concatenate([part.bags for part in parts])) == list(range(BAGS))
    for part in parts:
        assert_array_equal(part.rows, np.flatnonzero(np.isin(train.bag_of_row, part.bags)))
        assert part.data.num_row() == len(part.rows)
    again = TreeRows(train.rows).parts(train.bag_of_row, BAGS)
    assert_array_equal([part.bags for part in parts], [part.bags for part in again])
    assert np.ptp(parts[0].bags) > 150, "bags in a row may have much in common"


@pytest.mark.usefixtures("in_parts")
def test_parts_learn_from_all_bags() -> None:
    train, logit = some_train()
    start = np.zeros((len(logit), 2))
    data, counts = TreeRows(train.rows), BagCounts(train)
    some = train.some(np.isin(np.arange(BAGS), data.parts(train.bag_of_row, BAGS)[0].bags))
    alone, of_some = TreeRows(some.rows), BagCounts(some)
    for found, of_part in (
        (
            data.boost_counts(counts, train.prior, FEW, np.random.default_rng(0)),
            alone.boost_counts(of_some, some.prior, FEW, np.random.default_rng(0)),
        ),
        (
            data.boost_posteriors(counts, start, FEW, 3, np.random.default_rng(0)),
            alone.boost_posteriors(of_some, start[: len(some.bag_of_row)], FEW, 3, np.random.default_rng(0)),
        ),
    ):
        correlations = [np.corrcoef(each(train.rows)[:, 1], logit)[0, 1] for each in (found, of_part)]
        assert correlations[0] > 0.75
        assert correlations[0] > correlations[1] + 0.02


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("classes", [2, 3])
def test_trees_of_distinct_rows_equal_trees_of_all(classes: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    train = repeated(classes)
    start = np.random.default_rng(1).normal(size=(5, classes))[train.rows.categorical[:, 0]]
    found = []
    for least in (100_000, 1000):
        monkeypatch.setattr(distinct, "_FEWEST_ROWS", least)
        monkeypatch.setattr(trees, "_number_of_parts", lambda *_: parts)
        data, counts = TreeRows(train.rows), BagCounts(train)
        refitted = data.boost_posteriors(counts, start, TreeSettings(12), 2, np.random.default_rng(0))
        counted = data.boost_counts(counts, train.prior, TreeSettings(12), np.random.default_rng(0))
        found.append([each(train.rows) for each in (refitted, counted)])
        assert (data._parts[0].data.num_row() < 20) == (least == 1000)
    assert_allclose(found[1], found[0], atol=1e-4)
    assert np.std(found[0][0]) > 0.1
