"""Rows that are the same: processes and counts on the distinct ones give what they give on all."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from llpbench.blocks.components import Components
from llpbench.blocks.counts import BagCounts
from llpbench.core import distinct as module
from llpbench.core.bags import BaggedRows, FloatArray, Ragged, Rows

SIZES = np.array([900, 600, 5, 1000, 3, 492])


def bags(classes: int) -> BaggedRows:
    """3,000 rows, few of them distinct, in six bags, two small ones among them."""
    rng = np.random.default_rng(0)
    of_row = np.repeat(np.arange(6), SIZES)
    rows = Rows(
        rng.integers(0, np.array([1, 4, 3, 2, 2, 3])[of_row])[:, None].astype(np.float32),
        rng.integers(0, 3, (3000, 1)),
        np.repeat([[False], [True]], [2999, 1], axis=0),
    )
    label = (rng.random(3000) * (0.6 + 0.3 * rows.numeric[:, 0]) * classes).astype(int).clip(0, classes - 1)
    counts = np.zeros((6, classes))
    np.add.at(counts, (of_row, label), 1.0)
    return BaggedRows(rows, Ragged(np.arange(3000), SIZES), counts)


def fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEWEST_ROWS", 1000)


def components(train: BaggedRows) -> Components:
    found = Components(train.rows, np.random.default_rng(0), lengthscale=0.3, waves=20)
    found.effects.append(found.pair(0, 1))
    return found


def test_means_and_values_of_components(monkeypatch: pytest.MonkeyPatch) -> None:
    train = bags(2)
    plain = components(train)
    fold(monkeypatch)
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
def test_posteriors_and_effects_of_counts(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    train = bags(classes)
    fold(monkeypatch)
    same = module.distinct_rows(train.rows)
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
