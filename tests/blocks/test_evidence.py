"""The evidence of bags against a dense reference, its gradient against finite differences, and draws from it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from llpbench.blocks.bag_process import _hmc
from llpbench.blocks.evidence import Evidence, Prior, _BagSpace, _FeatureSpace, without_zeros
from llpbench.core.bags import FloatArray

BAGS, WIDTHS = 7, (2, 3, 4)
SIZES = np.array([20, 3, 20, 20, 7, 3, 20])
NOISE = np.array([0.1, 0.02, 0.1, 0.1, 0.0, 0.02, 0.0])


def some_evidence(classes: int = 2, *, bag_effects: bool = True) -> Evidence:
    rng = np.random.default_rng(0)
    means = [rng.normal(size=(BAGS, width)) for width in WIDTHS]
    exponents = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    numbers = 4 if bag_effects else 3
    prior = Prior(np.linspace(-1, 0, numbers), np.linspace(0.5, 1.5, numbers))
    targets = rng.normal(size=(BAGS, classes))
    targets -= targets.mean(axis=1, keepdims=True)  # as shares do, they sum to zero
    return Evidence(means, exponents, prior, targets, SIZES, NOISE)


def dense(evidence: Evidence, t: FloatArray) -> FloatArray:
    """C in plain numpy."""
    scales = [np.exp(t[0]), np.exp(t[1]), np.exp((t[0] + t[1]) / 2)]
    effects = np.exp(t[3]) if len(t) == 4 else 0.0
    covariance = sum(s * mean @ mean.T for s, mean in zip(scales, evidence.means, strict=True))
    return np.asarray(covariance + np.diag(np.exp(t[2]) * evidence.unit + evidence.noise + effects))


T = np.array([-0.3, -1.2, 0.4, -0.8])


@pytest.fixture(params=["grams", "bags", "wide", "without room", "features", "sums"])
def space(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All ways of doing the algebra."""
    narrow = {"grams": 0, "bags": 24, "wide": 2, "without room": 2}.get(request.param)
    monkeypatch.setattr("llpbench.blocks.evidence._MOST_GRAMS", 0 if request.param == "without room" else 10**9)
    monkeypatch.setattr(
        "llpbench.blocks.evidence._algebra",
        _FeatureSpace if narrow is None else lambda means, _: _BagSpace(means, narrow),
    )
    monkeypatch.setattr("llpbench.blocks.evidence._REPEATED", 1 if request.param == "sums" else 20)
    return str(request.param)


@pytest.mark.parametrize("classes", [2, 3])
def test_evidence_is_normal_density(space: str, classes: int) -> None:
    found = some_evidence(classes)
    assert (getattr(found._space, "sums", None) is not None) == (space == "sums")
    normal = multivariate_normal(np.zeros(BAGS), dense(found, T))
    total = sum(-normal.logpdf(each) for each in found.targets.T) * (classes - 1) / classes
    constant = (classes - 1) * BAGS / 2 * np.log(2 * np.pi)
    assert found(T)[0] == pytest.approx(total - constant + found.prior.minus_log(T)[0], rel=1e-9)


@pytest.mark.parametrize("bag_effects", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_evidence_gradient_matches_finite_differences(space: str, classes: int, bag_effects: bool) -> None:
    del space
    found = some_evidence(classes, bag_effects=bag_effects)
    t = T if bag_effects else T[:3]
    for i, slope in enumerate(found(t)[1]):
        step = np.eye(len(t))[i] * 1e-5
        assert slope == pytest.approx((found(t + step)[0] - found(t - step)[0]) / 2e-5, rel=1e-5, abs=1e-7)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("step", [800.0, -800.0])
def test_overlong_step_has_infinite_evidence(space: str, step: float) -> None:
    del space
    evidence = some_evidence()
    value, gradient = evidence(np.full(len(evidence.prior.mean), step))
    assert value == np.inf if step > 0 else np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_posterior_matches_dense_computation(space: str) -> None:
    del space
    found = some_evidence()
    posterior = found.posterior(T)
    assert_allclose(posterior.alpha, np.linalg.solve(dense(found, T), found.targets), rtol=1e-8)
    inverse = np.linalg.inv(dense(found, T))
    assert_allclose(posterior.inverse.times(np.eye(BAGS)), inverse, rtol=1e-7, atol=1e-10)
    some = np.random.default_rng(1).normal(size=(3, BAGS, 3))
    expected = [np.trace(each.T @ inverse @ each) for each in some]
    assert_allclose(np.array(posterior.inverse.tracer()([*some])), expected, rtol=1e-9)


def test_draws_have_moments_of_known_posterior() -> None:
    covariance = np.array([[1.0, 0.6], [0.6, 0.8]])
    precision, center = np.linalg.inv(covariance), np.array([0.5, -1.0])

    def minus_log(x: FloatArray) -> tuple[float, FloatArray]:
        slope = precision @ (x - center)
        return 0.5 * float((x - center) @ slope), slope

    drawn = _hmc(minus_log, np.zeros(2), np.random.default_rng(0), draws=4000, burn_in=200)
    assert_allclose(drawn.mean(axis=0), center, atol=0.06)
    assert_allclose(np.cov(drawn.T), covariance, atol=0.08)


def test_draws_stay_in_region_of_density() -> None:
    def half_line(x: FloatArray) -> tuple[float, FloatArray]:
        return (float(x[0]), np.ones(1)) if x[0] > 0 else (np.inf, np.zeros(1))

    drawn = _hmc(half_line, np.ones(1), np.random.default_rng(0), draws=4000, burn_in=200, steps=4)
    assert drawn.min() > 0
    assert drawn.mean() == pytest.approx(1.0, abs=0.15)


def test_trajectory_ends_where_density_is_zero() -> None:
    seen: list[float] = []

    def one_point(x: FloatArray) -> tuple[float, FloatArray]:
        seen.append(float(x[0]))
        return (0.0 if x[0] == 1 else np.inf), np.zeros(1)

    drawn = _hmc(one_point, np.ones(1), np.random.default_rng(0), draws=3, burn_in=2)
    assert (drawn == 1).all()
    assert len(seen) == 1 + 5, "one evaluation at the start, and one in each trajectory"


def test_empty_features_are_left_out() -> None:
    mean = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
    assert without_zeros(mean).tolist() == [[1.0, 2.0], [0.0, 3.0]]
    assert without_zeros(np.zeros((3, 2))).shape == (3, 1)
