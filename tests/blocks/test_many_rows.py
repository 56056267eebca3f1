"""The process in groups of bags against the same process with all bags at once."""

from __future__ import annotations

import numpy as np
import pytest
from bagged import in_bags, rows_of
from numpy.testing import assert_allclose
from scipy.special import expit

from llpbench.blocks import bag_process, many_rows
from llpbench.blocks.bag_logits import LogitProcess
from llpbench.blocks.bag_process import FittedProcess, ProcessSettings, _fit_process
from llpbench.core.bags import BaggedRows, FloatArray

SETTINGS = ProcessSettings(waves=10, draws=0)


def some_train(classes: int = 2) -> tuple[BaggedRows, FloatArray]:
    """Rows of bags of 5 to 14 in no order, and the probability of the last class."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 15, 240)
    numbers = rng.normal(size=(sizes.sum(), 2))
    codes = rng.integers(1, 4, (sizes.sum(), 1))
    probability = expit(1.5 * numbers[:, 0] + (codes[:, 0] == 2) - 0.5)
    labels = (rng.random(len(numbers)) < probability) * (classes - 1)
    if classes == 3:
        labels[rng.random(len(labels)) < 0.3] = 1
    bags = np.split(rng.permutation(sizes.sum()), np.cumsum(sizes)[:-1])
    counts = [np.bincount(labels[bag], minlength=classes) for bag in bags]
    rows = rows_of(numbers.tolist(), codes.tolist())
    return in_bags(rows, [bag.tolist() for bag in bags], [each.tolist() for each in counts]), probability


TRAIN, PROBABILITY = some_train()
PLAIN = _fit_process(TRAIN, SETTINGS, np.random.default_rng(0))


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of a few bags, and a few groups an equation."""
    monkeypatch.setattr(many_rows, "_ROWS", 60)
    monkeypatch.setattr(many_rows, "_BAGS", 25)


def in_groups(process: FittedProcess, train: BaggedRows) -> FittedProcess:
    """The process, as if it were of a sample that is all bags."""
    return bag_process._with_all_bags(process, train, train)


def test_shares_and_their_uncertainty_are_those_of_all_bags_at_once() -> None:
    found = in_groups(PLAIN, TRAIN)
    assert_allclose(found.shares(), PLAIN.shares(), atol=1e-5)
    for one, other in zip(found.effects(), PLAIN.effects(), strict=True):
        assert_allclose(one.values, other.values, atol=1e-5)
        assert_allclose(one.std, other.std, rtol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_are_those_of_all_bags_at_once(classes: int) -> None:
    train, _ = some_train(classes)
    process = _fit_process(train, SETTINGS, np.random.default_rng(0))
    at_once = LogitProcess.from_shares(process, train)
    found = LogitProcess.from_shares(in_groups(process, train), train)
    assert_allclose(found(), at_once(), atol=0.05)  # both stop where little is gained
    for one, other in zip(found.effects(0), at_once.effects(0), strict=True):
        assert_allclose(one.std, other.std, rtol=0.02)


def test_many_rows_are_fitted_from_a_sample_of_bags_and_then_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bag_process, "_MANY_ROWS", 1000)
    monkeypatch.setattr(bag_process, "_SAMPLE_ROWS", 1000)
    monkeypatch.setattr(bag_process, "_FEWEST_BAGS", 100)
    process = _fit_process(TRAIN, SETTINGS, np.random.default_rng(0))
    assert process.sample is not None
    some = process.sample[1]
    assert len(some.sizes) == int(1000 / TRAIN.sizes.mean())
    logits = LogitProcess.from_shares(process, TRAIN)
    of_sample = LogitProcess.from_shares(*process.sample)
    errors = [np.abs(expit(each(TRAIN.rows)[:, 1]) - PROBABILITY).mean() for each in (logits, of_sample)]
    assert errors[0] < 0.06
    assert errors[0] < errors[1]
    assert_allclose(logits(), logits(TRAIN.rows), atol=1e-6)  # in batches of other sizes
    effects, of_some = logits.effects(), of_sample.effects()
    assert all(one.undetermined < other.undetermined for one, other in zip(effects, of_some, strict=True))
