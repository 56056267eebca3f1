"""Main effects against a dense process on every combination of values, averaged by brute force."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from bagged import in_bags, rows_of
from numpy.testing import assert_allclose
from scipy.special import expit

from llpbench.blocks.bag_logits import LogitProcess
from llpbench.blocks.bag_process import FittedProcess, ProcessSettings, _fit_process
from llpbench.blocks.components import Components
from llpbench.blocks.design import bag_average
from llpbench.blocks.evidence import _BagSpace, _FeatureSpace
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.core.effects import FeatureEffect, FeatureEffects
from llpbench.core.numbers import _RobustScores
from llpbench.data.tasks import Scaler

NAN = float("nan")
ROWS, SIZE = 600, 20


def bagged(rows: Rows, bags: IntArray, labels: FloatArray) -> BaggedRows:
    """Rows in bags [bags, size] with the counts of these labels."""
    positive = labels[bags].sum(axis=1)
    return in_bags(rows, bags.tolist(), np.stack([bags.shape[1] - positive, positive], axis=1).tolist())


def some_train(seed: int = 0) -> BaggedRows:
    """Two numbers of few values that depend on each other, one sometimes missing, and a category."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 12, ROWS) / 4.0
    second = np.where(rng.random(ROWS) < 0.1, NAN, np.round(first + rng.normal(size=ROWS)))
    codes = rng.integers(1, 4, ROWS)
    logits = first - 1.5 + (codes == 2) * (first > 1)
    labels = (rng.random(ROWS) < expit(logits)).astype(float)
    rows = rows_of(np.column_stack([first, second]).tolist(), codes[:, None].tolist())
    return bagged(rows, np.argsort(first + 2 * rng.normal(size=ROWS)).reshape(-1, SIZE), labels)


TRAIN = some_train()
SHARES = _fit_process(TRAIN, ProcessSettings(waves=30, draws=0), np.random.default_rng(0))
LOGITS = LogitProcess.from_shares(SHARES, TRAIN)
AVERAGE = np.asarray(bag_average(TRAIN).todense())


def dense(components: Components, rows: Rows) -> FloatArray:
    """[rows, features] of all components, side by side."""
    binned = components.bin(rows)
    columns = components.columns(binned)
    parts = [each.factor[components.codes(each, binned)] for each in components.effects]
    return np.hstack([*parts, *(joint(columns) for joint in components.joint)]).astype(np.float64)


def combinations(rows: Rows) -> tuple[Rows, FloatArray, list[FloatArray]]:
    """Return all combinations of values, their shares if features were independent, and the values of each feature."""
    tables = [np.where(gone, NAN, x) for x, gone in zip(rows.numeric.T, rows.missing.T, strict=True)]
    tables += list(rows.categorical.T.astype(float))
    found = [np.unique(table, return_counts=True) for table in tables]
    grid = np.array(list(itertools.product(*(values for values, _ in found))))
    share = np.array([np.prod(each) for each in itertools.product(*(counts / len(rows[0]) for _, counts in found))])
    return rows_of(grid[:, :2].tolist(), grid[:, 2:].tolist()), share, list(grid.T)


def averaging(share: FloatArray, column: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The values of a feature, and [values, combinations] what averages over the others, less what averages all."""
    values = np.unique(column)
    same = np.array([np.isnan(column) if np.isnan(value) else column == value for value in values])
    return values, same * share / (same @ share)[:, None] - share


def place(effect: FeatureEffect, values: FloatArray) -> list[int]:
    """The bin of each value."""
    if effect.codes is not None:
        return [next(i for i, codes in enumerate(effect.codes) if int(value) in codes) for value in values]
    assert effect.edges is not None
    inner = np.searchsorted(effect.edges, values, side="right")
    return [len(effect.values) - 1 if np.isnan(value) else int(i) for value, i in zip(values, inner, strict=True)]


@pytest.mark.parametrize("process", [SHARES, LOGITS], ids=["shares", "logits"])
def test_main_effects_are_average_predictions(process: FittedProcess | LogitProcess) -> None:
    grid, share, columns = combinations(TRAIN.rows)
    predicted = (process.shares if isinstance(process, FittedProcess) else process)(grid)[:, 1]
    effects = process.effects()
    assert [effect.feature for effect in effects] == [0, 1, 2]
    for effect, column in zip(effects, columns, strict=True):
        values, average = averaging(share, column)
        assert_allclose(effect.values[place(effect, values)], average @ predicted, atol=2e-5)
        assert effect.weights.sum() == pytest.approx(1)
        assert effect.weights @ effect.values == pytest.approx(0, abs=1e-6)
    assert effects[1].missing
    assert not effects[0].missing
    assert FeatureEffects(effects).strongest(1) == [effects[0]]


@pytest.mark.parametrize("space", ["bags", "features"])
def test_share_uncertainty_matches_dense_process(space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "llpbench.blocks.evidence._algebra",
        _FeatureSpace if space == "features" else lambda means, _: _BagSpace(means, 24),
    )
    found = _fit_process(TRAIN, ProcessSettings(waves=5, draws=0), np.random.default_rng(0))
    evidence, components = found.evidence, found.components
    widths = [mean.shape[1] for mean in evidence.means]
    scales = np.repeat(evidence.scales(found.hyperparameters), widths)
    grid, share, columns = combinations(TRAIN.rows)
    at_grid, at_rows = dense(components, grid), dense(components, TRAIN.rows)
    observed = AVERAGE @ at_rows
    covariance = observed * scales @ observed.T + np.diag(evidence.diagonal(found.hyperparameters))
    prior = float(TRAIN.prior[1])
    for effect, column in zip(found.effects(), columns, strict=True):
        values, functional = averaging(share, column)
        linear = functional @ at_grid
        cross = linear * scales @ observed.T
        before = (linear**2 * scales).sum(axis=1)
        after = before - (cross * np.linalg.solve(covariance, cross.T).T).sum(axis=1)
        where = place(effect, values)
        assert_allclose(effect.std[where], np.sqrt(after * prior * (1 - prior)), rtol=1e-3)
        marginal = np.array([(np.isnan(column) if np.isnan(value) else column == value) @ share for value in values])
        assert effect.undetermined == pytest.approx(marginal @ after / (marginal @ before), rel=1e-3)
        assert 0 < effect.undetermined < 1


def test_logit_uncertainty_is_laplace() -> None:
    components, rows = LOGITS.components, dense(LOGITS.components, TRAIN.rows)
    p = expit(LOGITS()[:, 1])
    v = p * (1 - p)
    evidence, prior = SHARES.evidence, float(TRAIN.prior[1])
    widths = [mean.shape[1] for mean in evidence.means]
    scales = np.repeat(evidence.scales(SHARES.hyperparameters), widths) / (prior * (1 - prior))
    slopes = np.hstack([(AVERAGE @ v)[:, None], AVERAGE @ (v[:, None] * rows)])
    precision = slopes.T / (AVERAGE @ v / SIZE) @ slopes + np.diag(1 / np.append(4.0, scales))
    covariance = np.linalg.inv(precision)[1:, 1:]
    grid, share, columns = combinations(TRAIN.rows)
    at_grid = dense(components, grid)
    for effect, column in zip(LOGITS.effects(), columns, strict=True):
        values, functional = averaging(share, column)
        linear = functional @ at_grid
        expected = np.sqrt((linear @ covariance * linear).sum(axis=1))
        assert_allclose(effect.std[place(effect, values)], expected, rtol=0.05)


def test_effects_have_names_units_and_categories() -> None:
    number, _, category = LOGITS.effects()
    numbers = np.array([[30.0, 0.0], [50.0, 1.0]])  # the first has mean 40 and standard deviation 10
    scaler = Scaler(numbers, np.zeros((2, 1), np.int64), [["red", "green", "blue"]])
    age, colour = scaler.named([number, category], ["age", "income"], ["colour"])
    assert (age.name, colour.name) == ("age", "colour")
    assert number.edges is not None
    assert age.edges is not None
    assert_allclose(age.edges, 40 + 10 * number.edges)
    assert category.codes is not None
    assert colour.categories == tuple(("missing", "red", "green", "blue")[codes[0]] for codes in category.codes)
    (rare,) = scaler.named([replace(category, codes=((1,), (0, 2, 3)))], ["age", "income"], ["colour"])
    assert rare.categories == ("red", "3 others")
    (robust,) = Scaler(numbers, np.zeros((2, 0), np.int64), [], "robust").named([number], ["age", "income"], [])
    assert robust.edges is not None
    assert_allclose(_RobustScores(numbers)(np.column_stack([robust.edges] * 2))[:, 0], number.edges, atol=1e-4)
