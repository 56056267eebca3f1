"""Normal and robust scores of numbers: known answers, and what holds for every column."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from llpbench.core.bags import Rows
from llpbench.core.numbers import MOST_KNOTS, NormalScores, Transform, _RobustScores
from llpbench.data.tasks import Scaler

NAN = float("nan")


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_normal_scores_are_quantiles_of_mid_ranks() -> None:
    scores = NormalScores(column(1, 2, 2, 5))
    deviation = np.std([-1.150349, 0, 0, 1.150349])
    given = scores(column(1, 2, 5, 3, 0, 9, NAN)).ravel()
    assert given[:-1] * deviation == pytest.approx([-1.150349, 0, 1.150349, 0.674490, -1.150349, 1.150349], abs=1e-6)
    assert np.isnan(given[-1])


def test_robust_scores_are_clipped_smoothly() -> None:
    scores = _RobustScores(column(-1, 0, 0.5, 1, 3))  # median 0.5, quartiles 0 and 1
    assert scores(column(3.5, 1.5)).ravel() == pytest.approx([2.121320, 0.948683], abs=1e-6)


@pytest.mark.parametrize("kind", [NormalScores, _RobustScores])
@pytest.mark.parametrize("rows", [50, 5 * MOST_KNOTS])
def test_scores_are_monotone_and_invertible(kind: type[NormalScores] | type[_RobustScores], rows: int) -> None:
    rng = np.random.default_rng(0)
    numeric = np.column_stack([rng.lognormal(0, 3, rows), rng.integers(0, 5, rows), np.full(rows, 7.0)])
    numeric[::7, 0] = NAN
    scores: Transform = kind(numeric)
    given = scores(numeric)
    assert np.isnan(given[::7, 0]).all()
    assert np.isfinite(given[np.isfinite(numeric)]).all()
    for place in (0, 1):
        known = np.flatnonzero(np.isfinite(numeric[:, place]))
        order = known[np.argsort(numeric[known, place])]
        assert (np.diff(given[order, place]) >= 0).all()
        back = scores.inverse(place, given[order, place])
        assert back == pytest.approx(numeric[order, place], rel=2e-2, abs=1e-6)
    assert (given[:, 2] == 0).all()
    assert (scores(np.array([[1.0, 1.0, 9.0]]))[0, 2]) == 0


def test_normal_scores_of_many_values_are_close_to_the_exact_ones() -> None:
    values = np.random.default_rng(1).lognormal(0, 2, 10 * MOST_KNOTS)
    exact = norm.ppf((np.argsort(np.argsort(values)) + 0.5) / len(values))
    error = np.abs(NormalScores(values[:, None])(values[:, None]).ravel() - exact / exact.std())
    assert error.max() < 0.35
    assert error[np.abs(exact) < 2].max() < 0.02


def scaled(numeric: np.ndarray, kind: str) -> Rows:
    nothing = np.empty((len(numeric), 0), int)
    return Scaler(numeric, nothing, (), kind)(numeric, nothing)


@pytest.mark.parametrize("kind", ["z", "scores", "robust"])
def test_missing_values_are_marked_zeros_and_outliers_do_not_move_other_scores(kind: str) -> None:
    rows = scaled(column(1, NAN, 3, 8), kind)
    assert rows.numeric[1] == 0
    assert rows.missing.ravel().tolist() == [False, True, False, False]
    values = np.random.default_rng(2).normal(size=(500, 1))
    spoilt = values.copy()
    spoilt[0] = 1e20
    plain, given = scaled(values, kind).numeric, scaled(spoilt, kind).numeric
    inner = np.abs(values.ravel()) < 2
    assert kind == "z" or np.abs(given - plain)[inner & (np.arange(500) > 0)].max() < 0.05
    assert np.isfinite(given).all()
