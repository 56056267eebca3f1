"""Direct methods on counts that are noisy, fractional, suppressed or of classes in another order."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from llpbench.blocks.bag_losses import BAG_LOSSES
from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.registry import METHODS
from llpbench.data.toy import toy_task

NAMES = ["bag-mean-linear", "bag-soft-label-linear", "bag-soft-label-gbdt"]
TASK = toy_task(0, unequal=True)
FEWER = {"trees": 50, "rounds": 2, "draws": 0}
BAG_PARAMS: dict[str, list[dict[str, Any]]] = {
    **{name: [{}, {"model": "logistic"}] for name in NAMES[:2]},
    "count-linear": [{"loss": loss} for loss in BAG_LOSSES.values],
}
"""hyperparameters with which a method is tried, other than the defaults alone"""
DIRECT = [
    (entry.name, params)
    for entry in METHODS.entries()
    if entry.facts["kind"] == "direct" and entry.load().supervision == "bags"
    for params in BAG_PARAMS.get(entry.name, [{}])
]


def predictions(name: str, train: BaggedRows, **params: Any) -> FloatArray:
    declared = METHODS.get(name)
    own = {field.name for field in fields(declared.Params)}
    method = declared(declared.Params(**{key: value for key, value in FEWER.items() if key in own} | params))
    schema = replace(TASK.schema, classes=train.counts.shape[1])
    return np.asarray(method.fit(train, schema, np.random.default_rng(0))(TASK.test.rows))


@pytest.mark.parametrize(("name", "params"), DIRECT)
def test_suppressed_bags_are_as_if_they_were_not_there(name: str, params: dict[str, Any]) -> None:
    known = ~np.isin(np.arange(len(TASK.train.index)), [2, 5, 11])
    expected = predictions(name, TASK.train.some(known), **params)
    suppressed = replace(TASK.train, counts=np.where(known[:, None], TASK.train.counts, np.nan))
    assert np.allclose(predictions(name, suppressed, **params), expected, atol=1e-9)
    assert not np.allclose(predictions(name, TASK.train, **params), expected, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("name", "params"), [each for each in DIRECT if "gbdt" not in each[0]])
def test_classes_swapped_swap_their_probabilities(name: str, params: dict[str, Any], classes: int) -> None:
    train = toy_task(0, classes=classes, unequal=True).train
    found = predictions(name, replace(train, counts=train.counts[:, ::-1].copy()), **params)[:, ::-1]
    # splits of bag-forest that gain the same may be chosen differently
    assert np.quantile(np.abs(found - predictions(name, train, **params)), 0.9) < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_noisy_counts_count_by_their_proportions(name: str) -> None:
    rng = np.random.default_rng(0)
    noisy = replace(TASK.train, counts=TASK.train.counts + rng.normal(0, 6, size=TASK.train.counts.shape), noise=6.0)
    assert (noisy.counts < 0).any()
    proba = predictions(name, noisy)
    assert np.isfinite(proba).all()
    exact = replace(noisy, counts=noisy.proportions * noisy.sizes[:, None])
    assert np.allclose(proba, predictions(name, exact), atol=1e-6)
    assert not np.allclose(proba, predictions(name, TASK.train), atol=1e-3)
