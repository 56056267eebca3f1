"""The process of bags: evidence, bins, components, effects and groups of bags, against dense references."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bagged import labelled, rows_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit
from scipy.stats import multivariate_normal

from llpbench.blocks import bag_process
from llpbench.blocks.bag_logits import LogitProcess
from llpbench.blocks.bag_process import FittedProcess, _fit_process, _hmc, _unexplained
from llpbench.blocks.components import Components, ProcessSettings
from llpbench.blocks.design import RowBins, bag_average
from llpbench.blocks.evidence import Evidence, Prior, _BagSpace, _FeatureSpace, without_zeros
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.core.effects import FeatureEffect, FeatureEffects
from llpbench.core.numbers import _RobustScores
from llpbench.data.tasks import Scaler

NAN = float("nan")
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


def covariance_of(evidence: Evidence, t: FloatArray) -> FloatArray:
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
    normal = multivariate_normal(np.zeros(BAGS), covariance_of(found, T))
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
    assert_allclose(posterior.alpha, np.linalg.solve(covariance_of(found, T), found.targets), rtol=1e-8)
    inverse = np.linalg.inv(covariance_of(found, T))
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


def some_rows(rows: int = 60, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 3))
    numbers[rng.random(rows) < 0.2, 1] = NAN
    numbers[:, 2] = 1.5  # constant
    return rows_of(numbers, rng.integers(0, 4, (rows, 1)))


def in_groups(rows: Rows, size: int, labels: IntArray) -> BaggedRows:
    """Neighbours in bags of this size."""
    return labelled(rows, labels, np.arange(len(labels)).reshape(-1, size))


def test_numbers_are_binned_by_quantile_with_missing_apart() -> None:
    rows = rows_of([[float(i)] for i in range(8)] + [[NAN], [NAN]])
    bins = RowBins(rows, 4, 10)
    assert_array_equal(bins(rows), [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]])
    feature = bins.features[0]
    assert_allclose(feature.weights, [0.2] * 5)
    assert_allclose(feature.positions, [0.125, 0.375, 0.625, 0.875, NAN])  # type: ignore[arg-type]
    assert_array_equal(bins(rows_of([[-100.0], [100.0]])), [[0, 3]])


def test_rare_and_unseen_categories_share_the_last_bin() -> None:
    codes = [[3]] * 4 + [[1]] * 3 + [[2]] * 2 + [[0]]
    bins = RowBins(rows_of([[]] * len(codes), codes), 4, 2)
    assert_array_equal(bins(rows_of([[]] * 5, [[3], [1], [2], [0], [9]])), [[0, 1, 2, 2, 2]])
    assert_allclose(bins.features[0].weights, [0.4, 0.3, 0.3])


def components(rows: Rows) -> Components:
    found = Components(rows, np.random.default_rng(0), ProcessSettings(waves=20))
    found.effects += [found.pair(0, 1), found.pair(0, 3), found.pair(2, 3)]
    return found


def features_of(found: Components, rows: Rows) -> list[FloatArray]:
    """[rows, features] of every component."""
    binned = found.bin(rows)
    columns = found.columns(binned)
    parts = [each.factor[found.codes(each, binned)] for each in found.effects]
    return parts + [joint(columns) for joint in found.joint]


def test_components_have_mean_zero_and_variance_one() -> None:
    rows = some_rows()
    for i, features in enumerate(features_of(components(rows), rows)):
        assert_allclose(features.mean(axis=0), 0, atol=1e-5)
        constant = i == 2
        assert (features**2).sum(axis=1).mean() == pytest.approx(0.0 if constant else 1.0, abs=1e-5)


def test_effects_have_kernel_covariance() -> None:
    rows = some_rows()
    found = components(rows)
    feature, codes = found.fine.features[0], found.binned.fine[0]
    u = feature.positions
    assert u is not None
    plain = np.exp(-0.5 * ((u[:-1, None] - u[:-1]) / 0.3) ** 2)
    w = feature.weights[:-1]
    centred = plain - (plain @ w)[:, None] - w @ plain + w @ plain @ w
    centred /= w @ np.diag(centred)
    phi = found.effects[0].factor[codes]
    assert_allclose(phi @ phi.T, centred[np.ix_(codes, codes)], atol=2e-3)


def test_bag_means_equal_row_means() -> None:
    rows = some_rows()
    found, bag_of_row, sizes = components(rows), np.repeat([0, 1, 2], [10, 20, 30]), np.array([10, 20, 30])
    dense = features_of(found, rows)
    weights = np.random.default_rng(1).uniform(size=60)
    for features, mean in zip(dense, found.bag_means(bag_of_row, sizes, weights), strict=True):
        expected = [(weights[:, None] * features)[bag_of_row == k].mean(axis=0) for k in range(3)]
        assert_allclose(mean, expected, atol=1e-5)
    rng = np.random.default_rng(2)
    coefficients = [rng.normal(size=(features.shape[1], 2)) for features in dense]
    expected_value = sum(features @ w for features, w in zip(dense, coefficients, strict=True))
    assert_allclose(found.value(coefficients), expected_value, atol=1e-4)
    other = some_rows(15, seed=3)
    expected_other = sum(f @ w for f, w in zip(features_of(found, other), coefficients, strict=True))
    assert_allclose(found.value(coefficients, found.bin(other)), expected_other, atol=1e-4)


def test_pairs_are_screened_by_explained_variance() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(8000, 5))
    labels = (numbers[:, 1] * numbers[:, 3] > 0).astype(int)
    train = in_groups(rows_of(numbers), 10, labels)
    found = _fit_process(train, ProcessSettings(waves=10, draws=0, most_pairs=1), np.random.default_rng(0))
    assert found.components.effects[-1].features == (1, 3)
    assert len(found.components.effects) == 6


SETTINGS = ProcessSettings(waves=10, draws=0)


def confounded(own: float) -> BaggedRows:
    """120 bags of 50 rows: x0 differs between bags and matters; 3 % of x1's variance lies between bags, and it
    matters nothing. `own`: standard deviation of what a bag has of its own."""
    rng = np.random.default_rng(0)
    bag = np.repeat(np.arange(120), 50)
    between = rng.normal(size=(120, 2)) * [0.8, np.sqrt(0.03)]
    numbers = between[bag] + rng.normal(size=(6000, 2)) * [0.6, np.sqrt(0.97)]
    cause = own * rng.normal(size=120)
    labels = (rng.random(6000) < expit(1.5 * numbers[:, 0] + cause[bag])).astype(int)
    return in_groups(rows_of(numbers), 50, labels)


def test_confounded_bags_shrink_weakly_identified_effects() -> None:
    train = confounded(own=1.5)
    plain, aware = (fit(train, SETTINGS, np.random.default_rng(0)) for fit in (_fit_process, FittedProcess.of))
    assert plain.confounded
    assert aware.confounded
    assert aware.unexplained == plain.unexplained
    ratio = [one.importance / other.importance for one, other in zip(aware.effects(), plain.effects(), strict=True)]
    assert ratio[0] > 0.9
    assert ratio[1] < 0.5
    lowered = _fit_process(train, replace(SETTINGS, confounding_aware=True), np.random.default_rng(0))
    lower = lowered.evidence.prior.mean - plain.evidence.prior.mean
    means, weights = plain.evidence.means, train.sizes / train.sizes.sum()
    between = np.array([weights @ (means[c] ** 2).sum(axis=1) for c in (0, 1, 3, 4)])  # 2: the pair
    assert_allclose(lower[[0, 1, 3, 4]], 2 * np.log(between / between.max()))
    assert_array_equal(np.delete(lower, [0, 1, 3, 4]), 0)
    assert between[1] / between[0] == pytest.approx(0.05 / 0.66, rel=0.5)


ROWS, SIZE = 600, 20


def some_train(seed: int = 0) -> BaggedRows:
    """Two numbers of few values that depend on each other, one sometimes missing, and a category."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 12, ROWS) / 4.0
    second = np.where(rng.random(ROWS) < 0.1, NAN, np.round(first + rng.normal(size=ROWS)))
    codes = rng.integers(1, 4, ROWS)
    logits = first - 1.5 + (codes == 2) * (first > 1)
    labels = (rng.random(ROWS) < expit(logits)).astype(int)
    rows = rows_of(np.column_stack([first, second]), codes[:, None])
    return labelled(rows, labels, np.argsort(first + 2 * rng.normal(size=ROWS)).reshape(-1, SIZE))


TRAIN = some_train()
SHARES = _fit_process(TRAIN, ProcessSettings(waves=30, draws=0), np.random.default_rng(0))
LOGITS = LogitProcess.from_shares(SHARES, TRAIN)
AVERAGE = np.asarray(bag_average(TRAIN).todense())


def combinations(rows: Rows) -> tuple[Rows, FloatArray, list[FloatArray]]:
    """Return all combinations of values, their shares if features were independent, and the values of each feature."""
    tables = [np.where(gone, NAN, x) for x, gone in zip(rows.numeric.T, rows.missing.T, strict=True)]
    tables += list(rows.categorical.T.astype(float))
    found = [np.unique(table, return_counts=True) for table in tables]
    grid = np.array(list(itertools.product(*(values for values, _ in found))))
    share = np.array([np.prod(each) for each in itertools.product(*(counts / len(rows[0]) for _, counts in found))])
    return rows_of(grid[:, :2], grid[:, 2:]), share, list(grid.T)


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


def test_posterior_mean_matches_dense_process() -> None:
    drawn = _fit_process(TRAIN, ProcessSettings(waves=30, draws=4), np.random.default_rng(0))
    assert not np.isnan(drawn.shares()).any()
    # all rows at once: prior covariance of rows, observed through the matrix of bag averages
    t, evidence = SHARES.hyperparameters, SHARES.evidence
    parts = features_of(SHARES.components, TRAIN.rows)
    prior = sum(s * phi @ phi.T for s, phi in zip(evidence.scales(t), parts, strict=True))
    observed = AVERAGE @ prior @ AVERAGE.T + np.diag(evidence.diagonal(t))
    pi = TRAIN.prior[1]
    deviation = np.sqrt(pi * (1 - pi))
    residual = (TRAIN.proportions[:, 1] - pi) / deviation
    expected = pi + deviation * prior @ AVERAGE.T @ np.linalg.solve(observed, residual)
    assert_allclose(SHARES.shares()[:, 1], expected, atol=2e-4)
    assert_allclose(SHARES.shares().sum(axis=1), 1, atol=1e-9)


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
    at_grid, at_rows = np.hstack(features_of(components, grid)), np.hstack(features_of(components, TRAIN.rows))
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
    components, rows = LOGITS.components, np.hstack(features_of(LOGITS.components, TRAIN.rows))
    p = expit(LOGITS()[:, 1])
    v = p * (1 - p)
    evidence, prior = SHARES.evidence, float(TRAIN.prior[1])
    widths = [mean.shape[1] for mean in evidence.means]
    scales = np.repeat(evidence.scales(SHARES.hyperparameters), widths) / (prior * (1 - prior))
    slopes = np.hstack([(AVERAGE @ v)[:, None], AVERAGE @ (v[:, None] * rows)])
    precision = slopes.T / (AVERAGE @ v / SIZE) @ slopes + np.diag(1 / np.append(4.0, scales))
    covariance = np.linalg.inv(precision)[1:, 1:]
    grid, share, columns = combinations(TRAIN.rows)
    at_grid = np.hstack(features_of(components, grid))
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


@pytest.mark.parametrize(("classes", "empty"), [(2, 0), (2, 2), (5, 0), (8, 1)])
def test_bags_differ_by_the_test_of_pearson(classes: int, empty: int) -> None:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(classes, 60.0), size=12)
    counts = np.array([rng.multinomial(80, each) for each in proba])
    p = stats.chi2_contingency(counts).pvalue
    padded = np.column_stack([counts, np.zeros((12, empty))])
    prior = padded.sum(axis=0) / padded.sum()
    targets = (padded / 80 - prior) / np.sqrt(prior * (1 - prior)).clip(1e-9)
    found: Any = SimpleNamespace(targets=targets, unit=np.full(12, 1 / 80), noise=0.0)
    found.n_scale_parameters, found.has_bag_effects = 0, True
    for chance in (0.99 * p, 1.01 * p):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bag_process, "_CHANCE", chance)
            assert (_unexplained(found, np.log([1.0, 0.001]), prior) > 0) == (chance > p)
