"""Bags of one row beside large ones: nothing is padded to the longest, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from districts import counted, people

from llpbench import LLPClassifier
from llpbench.core.bags import BaggedRows, Holdout, IntArray, Ragged, Rows
from llpbench.core.metrics import holdout_criteria
from llpbench.data.bag_tables import rows_of_bags
from llpbench.owndata import fitting, scoring


def bagged(seed: int = 0, rows: int = 60, bags: int = 7) -> tuple[BaggedRows, BaggedRows]:
    """The same bags, padded and not."""
    rng = np.random.default_rng(seed)
    of_row = rng.permutation(np.append(np.arange(bags), rng.integers(0, bags, rows - bags)))
    features = Rows(rng.normal(size=(rows, 2)), np.zeros((rows, 0), np.int64), np.zeros((rows, 2), bool))
    sizes = np.bincount(of_row)
    counts = np.stack([sizes - sizes // 3, sizes // 3], axis=1).astype(float)
    counts[2] = np.nan
    index = np.full((bags, sizes.max()), -1)
    for bag in range(bags):
        index[bag, : sizes[bag]] = np.flatnonzero(of_row == bag)
    return BaggedRows(features, index, counts), BaggedRows(features, rows_of_bags(of_row, bags), counts)


def test_bags_without_padding_are_the_same_bags() -> None:
    padded, ragged = bagged()
    for one, other in ((padded, ragged), (padded.where_known(), ragged.where_known())):
        assert np.array_equal(one.sizes, other.sizes)
        assert np.array_equal(one.bag_of_row, other.bag_of_row)
        assert np.array_equal(one.rows.numeric, other.rows.numeric)
        assert all(np.array_equal(a[a >= 0], b) for a, b in zip(one.index, other.index, strict=True))
        some = np.array([4, 0])
        width = int(one.sizes[some].max())
        assert np.array_equal(one.padded(some, width), other.padded(some, width))


def test_criteria_of_bags_of_all_sizes_are_those_of_padded_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    padded, ragged = bagged()
    p = np.random.default_rng(1).random(60)
    proba = np.stack([1 - p, p], axis=1)
    expected = holdout_criteria(proba, Holdout(padded.rows, padded.index, padded.counts, labels=None))
    for most in (scoring.MOST_PADDED, 40):
        monkeypatch.setattr(scoring, "MOST_PADDED", most)
        found = scoring.coarse_criteria(proba, ragged)
        assert set(found) == {"mpiou", "mpiou-hard", "l1", "l1-hard", "kl", "likelihood"}
        assert found == pytest.approx({name: expected[name] for name in found})


def test_large_bags_are_shown_to_networks_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    _, ragged = bagged()
    monkeypatch.setattr(fitting, "LARGEST_IN_STEP", 4)
    parts = fitting._in_parts(ragged, np.random.default_rng(0))
    assert parts.sizes.max() == 4
    assert sorted(parts.bag_by_bag) == list(range(60))
    whole = ragged.bag_of_row[[rows[0] for rows in parts.index]]
    assert all((ragged.bag_of_row[rows] == bag).all() for rows, bag in zip(parts.index, whole, strict=True))
    assert np.allclose(parts.proportions, ragged.proportions[whole])
    assert np.array_equal(parts.known, ragged.known[whole])


def test_large_bags_are_not_held_out_beside_many_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_PADDED", 100)
    of_row = np.append(np.repeat(np.arange(60), 2), np.full(500, 60))
    _, small = bagged(rows=len(of_row), bags=61)
    bags = replace(small, index=rows_of_bags(of_row, 61), counts=np.ones((61, 2)))
    assert not any(fitting._held_out(bags, 0.5, seed)[60] for seed in range(20))


@pytest.mark.parametrize("method", ["count-gbdt", "dllp"])
def test_little_is_padded_beside_a_large_bag(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 bags of a row and one of 1,000: a padded index has a million places."""
    cells: list[int] = []
    padded = BaggedRows.padded

    def watched(self: BaggedRows, bags: IntArray, width: int) -> IntArray:
        cells.append(len(bags) * width)
        return padded(self, bags, width)

    monkeypatch.setattr(BaggedRows, "padded", watched)
    monkeypatch.setattr(fitting, "MOST_PADDED", 10_000)
    frame, _, votes = people(2000, 10)
    bags = np.where(np.arange(2000) < 1000, np.arange(2000), 5000)
    table = counted(bags, votes)
    settings = {"params": {"trees": 100}} if method == "count-gbdt" else {"epochs": 1, "bags_per_step": 16}
    model = LLPClassifier(method, **settings)  # type: ignore[arg-type]
    model.fit(frame, bags, counts=table)
    assert isinstance(model._known.index, Ragged)
    model.score_bags(frame, bags, counts=table)
    assert max(cells) < 10_000
