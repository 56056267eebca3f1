"""A Gaussian process on rows that is observed only through bag means, on the scale of shares (class proportions).

Each class is pi + sqrt(pi (1 - pi)) g(x), with g the sum of `Components`. Hyperparameters are the scale of each
feature's effect, one factor for all pairs, the scales of the two joint components, the noise and, if bags differ in
size, a random effect of bags. With few bags their posterior is wide, so predictions are averaged over it (`_hmc`). With
many bags the mode suffices.

`FittedProcess.of`: if bags are confounded, priors of scales depend on the part of a feature's variance that lies
between bags.
Suppose bags have a common cause of variance omega^2 that rows do not have. For a feature with a part b of its variance
between bags, this looks like an effect of size omega / sqrt(b). If an effect has prior variance s, a fraction s / (s +
omega^2 / b) of it is credible. For small b this fraction is proportional to b. So the prior standard deviation of an
effect is multiplied by b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc

from llpbench.blocks.components import Components, ProcessSettings
from llpbench.blocks.design import as_proba
from llpbench.blocks.evidence import Evidence, Prior, without_zeros
from llpbench.blocks.main_effects import Observed, main_effects
from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import BaggedRows, FloatArray, Rows
from llpbench.core.effects import FeatureEffect

_LITTLE = (np.log(0.05), 1.5)
"""mean and standard deviation of log scale: a component explains about a twentieth of a label's variance"""
_PAIRS = (-1.0, 1.0)
"""prior of the log factor between a pair's scale and the geometric mean of its features' scales"""
_NOISE = (-0.3, 0.5)
"""prior of log sigma^2; sigma^2 is one if rows of a bag are independent, and less if features explain them"""
_BAG_EFFECT = (np.log(0.01), 3.0)
"""prior of log omega^2"""
_CONFOUNDED = 0.2
"""bags are confounded if features and chance leave more than this part of their proportions' variance unexplained"""
_CHANCE = 0.05
"""significance level at which bags differ by more than chance"""
_LEAST_SHARE = 1e-6
"""lower limit of the part of a feature's variance that lies between bags; needed for constant features"""
_MANY_BAGS = 1000
"""with more bags, only a quarter as many pairs are used, to limit the linear algebra"""
_SMALL_BAG = 64
"""mean rows of a bag; the search for hyperparameters is brief if many bags have fewer"""
_SCORED = 16
"""pairs that a thread scores at once"""
_BRIEF = 12
"""steps of a brief search"""


@dataclass(frozen=True, eq=False)
class FittedProcess:
    """The posterior mean of a process, with its components and evidence."""

    components: Components
    prior: FloatArray
    """[classes]"""
    coefficients: list[FloatArray]
    """[features, classes] of each component, on the scale of standardised shares"""
    hyperparameters: FloatArray
    """posterior mean of the hyperparameters"""
    evidence: Evidence
    unexplained: float
    """part of the variance of bags' proportions that neither features nor chance explain, in the first fit"""

    @classmethod
    def of(cls, train: BaggedRows, settings: ProcessSettings, rng: np.random.Generator) -> FittedProcess:
        """Fit a process; if bags are confounded, fit again with priors that allow for it."""
        plain = _fit_process(train, settings, rng)
        if not plain.confounded:
            return plain
        aware = replace(settings, confounding_aware=True)
        return replace(_fit_process(train, aware, rng), unexplained=plain.unexplained)

    @property
    def confounded(self) -> bool:
        """Whether the proportions of bags have other causes, so that relations between bags may not hold for rows."""
        return self.unexplained > _CONFOUNDED

    def shares(self, rows: Rows | None = None) -> FloatArray:
        """Return the posterior mean of shares [rows, classes], possibly outside [0, 1]. None: of the training rows."""
        binned = None if rows is None else self.components.bin(rows)
        return self.prior + np.sqrt(self.prior * (1 - self.prior)) * self.components.value(self.coefficients, binned)

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes] in [0, 1]."""
        return as_proba(self.shares(rows))

    def effects(self, label: int = -1) -> list[FeatureEffect]:
        """Return each feature's effect on the share of a class, with uncertainty at the mean hyperparameters."""
        weights = np.concatenate([each[:, label] for each in self.coefficients])
        spread = np.sqrt(self.prior[label] * (1 - self.prior[label]))
        scales = self.evidence.scales(self.hyperparameters)
        columns = [np.sqrt(s) * mean for s, mean in zip(scales, self.evidence.means, strict=True)]
        observed = Observed(scales, np.hstack(columns), self.evidence.diagonal(self.hyperparameters))
        return main_effects(self.components, weights, observed, "share", float(spread))


def _fit_process(train: BaggedRows, settings: ProcessSettings, rng: np.random.Generator) -> FittedProcess:
    """Return the posterior mean of shares. All counts in `train` must be known.

    A brief search for hyperparameters starts from those of the process without pairs.
    """
    many = len(train.sizes) > _MANY_BAGS
    most_pairs = settings.most_pairs // 4 if many else settings.most_pairs
    components = Components(train.rows, rng, settings)
    features = len(components.effects)
    pairs = [(i, j) for i in range(features) for j in range(i + 1, features)]
    start: FloatArray | None = None
    steps = 60 if len(train.sizes) <= settings.averaged_up_to else 30
    if len(pairs) > most_pairs:
        pairs, nearby = _screened(train, components, pairs, settings.confounding_aware)
        pairs = pairs[:most_pairs]
        if many and train.sizes.mean() < _SMALL_BAG:
            start, steps = nearby, _BRIEF
    components.effects += [components.pair(i, j) for i, j in pairs]
    means = components.bag_means(train.bag_of_row, train.sizes)
    evidence, mode = _mode(train, components, means, steps, settings.confounding_aware, start)
    drawn = mode[None]
    if settings.draws and len(train.sizes) <= settings.averaged_up_to:
        center, std = evidence.prior.mean, evidence.prior.std

        def whitened(z: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = evidence(center + std * z)
            return value, gradient * std

        start = (mode - center) / std
        drawn = center + std * _hmc(whitened, start, rng, draws=settings.draws, burn_in=settings.draws // 2)
    posteriors = [evidence.posterior(t) for t in drawn]
    weights = [np.mean([each.scales[c] * each.alpha for each in posteriors], axis=0) for c in range(len(means))]
    coefficients = [mean.T @ weight for mean, weight in zip(means, weights, strict=True)]
    mean = drawn.mean(axis=0)
    return FittedProcess(
        components, train.prior, coefficients, mean, evidence, _unexplained(evidence, mean, train.prior)
    )


def _unexplained(evidence: Evidence, t: FloatArray, prior: FloatArray) -> float:
    """Return the unexplained part of the variance: bag effects, and noise beyond that of independent rows.

    It is 0 if bags do not differ significantly (Pearson's chi-squared, 5 %): the estimate would depend on the prior.
    """
    squares = evidence.targets[:, prior > 0] ** 2  # classes that no bag has would dilute the mean
    variance, freedom = squares.mean(axis=1), (len(squares) - 1) * max(squares.shape[1] - 1, 1)
    if chdtrc(freedom, (squares @ (1 - prior[prior > 0]) / (evidence.unit + evidence.noise)).sum()) > _CHANCE:
        return 0.0
    weights = 1 / evidence.unit / (1 / evidence.unit).sum()
    excess = max(float(np.exp(t[evidence.n_scale_parameters])) - 1.0, 0.0) * float(weights @ evidence.unit)
    effects = float(np.exp(t[-1])) if evidence.has_bag_effects else 0.0
    return min((excess + effects) / max(float(weights @ variance), 1e-12), 1.0)


def _mode(
    train: BaggedRows,
    components: Components,
    means: list[FloatArray],
    steps: int,
    confounding_aware: bool,
    start: FloatArray | None = None,
) -> tuple[Evidence, FloatArray]:
    """Return the evidence of some components, and the hyperparameters that maximise it, searched from `start`."""
    targets, noise = _standardised(train)
    exponents, expected = _hyperparameters(components, train)
    if confounding_aware:
        expected = _expecting_little(expected, components, means, train)
    evidence = Evidence(means, exponents, expected, targets, train.sizes, noise)
    if start is None:
        start = evidence.prior.mean.copy()
        start[evidence.n_scale_parameters] = 0.0
    from scipy.optimize import minimize  # takes long to import, and `llpbench plan` does not need it

    return evidence, minimize(evidence, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x


def _standardised(train: BaggedRows) -> tuple[FloatArray, FloatArray]:
    """Return proportions minus the prior [bags, classes] and the variance of their noise [bags], in standard units."""
    prior = train.prior.clip(1e-9, 1 - 1e-9)
    spread = np.sqrt(prior * (1 - prior))
    return (train.proportions - train.prior) / spread, (train.noise / train.sizes) ** 2 / (spread**2).mean()


def _screened(
    train: BaggedRows, components: Components, pairs: list[tuple[int, int]], confounding_aware: bool
) -> tuple[list[tuple[int, int]], FloatArray]:
    """Return pairs of features, the most promising first, and the hyperparameters of the process without pairs.

    A pair's score is the derivative of the evidence with respect to the pair's scale, per unit of added covariance.
    With G the pair's bag means, it is (|G' alpha|^2 - tr G' C^-1 G) / tr G G'.
    """
    means = components.bag_means(train.bag_of_row, train.sizes)
    evidence, mode = _mode(train, components, means, 30, confounding_aware)
    posterior = evidence.posterior(mode)
    traces = posterior.inverse.tracer()

    def scored(some: list[tuple[int, int]]) -> list[float]:
        found = (components.effect_means(components.pair(*pair), train.bag_of_row, train.sizes) for pair in some)
        every = [without_zeros(mean) for mean in found]
        fits = [((mean.T @ posterior.alpha) ** 2).sum() / len(train.prior) for mean in every]
        sizes = [max(float((mean**2).sum()), 1e-12) for mean in every]
        return [(fit - trace) / size for fit, trace, size in zip(fits, traces(every), sizes, strict=True)]

    parts = (pairs[start : start + _SCORED] for start in range(0, len(pairs), _SCORED))
    scores = [score for part in side_by_side(parts, scored) for score in part]
    return [pairs[k] for k in np.argsort(scores, kind="stable")[::-1]], mode


def _hyperparameters(components: Components, train: BaggedRows) -> tuple[FloatArray, Prior]:
    """Return exponents [components, hyperparameters of scale] and the priors of all hyperparameters.

    Hyperparameters are each feature's scale, the factor of pairs, the two joint scales, the noise and, if sizes differ,
    the bag effect.
    """
    singles = sum(len(effect.features) == 1 for effect in components.effects)
    exponents = np.zeros((len(components.effects) + 2, singles + 3))
    for c, effect in enumerate(components.effects):
        exponents[c, list(effect.features)] = 1 / len(effect.features)
        exponents[c, singles] = float(len(effect.features) == 2)
    exponents[-2, singles + 1] = exponents[-1, singles + 2] = 1.0
    priors = [_LITTLE] * singles + [_PAIRS, _LITTLE, _LITTLE, _NOISE]
    if train.sizes.min() < train.sizes.max():
        priors.append(_BAG_EFFECT)
    mean, std = np.array(priors).T
    return exponents, Prior(mean, std)


def _expecting_little(prior: Prior, components: Components, means: list[FloatArray], train: BaggedRows) -> Prior:
    """Return the prior for confounded bags, with smaller scales of single features and joint components.

    The factor is the squared part of a component's variance that lies between bags, relative to the largest part.
    """
    weights = train.sizes / train.sizes.sum()
    alone = [c for c, effect in enumerate(components.effects) if len(effect.features) == 1]
    joint = [len(means) - 2, len(means) - 1]
    between = np.array([weights @ (means[c] ** 2).sum(axis=1) for c in alone + joint])  # features have variance 1
    shares = (between / max(between.max(), _LEAST_SHARE)).clip(min=_LEAST_SHARE)
    lower = prior.mean.copy()
    lower[[*range(len(alone)), len(alone) + 1, len(alone) + 2]] += 2 * np.log(shares)
    return Prior(lower, prior.std)


def _hmc(
    minus_log: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    rng: np.random.Generator,
    *,
    draws: int,
    burn_in: int,
    steps: int = 8,
    size: float = 0.25,
    acceptance: float = 0.75,
) -> FloatArray:
    """Return draws [draws, numbers] from exp(-minus_log) by Hamiltonian Monte Carlo (Neal 2011).

    `minus_log` returns value and gradient. Maintained samplers need a compiler, a framework, or use no gradients.

    The scale of every number should be about one. During burn-in the leapfrog step adapts to the target `acceptance`.
    It varies randomly between trajectories, which prevents periodic ones.
    """
    place = start
    value, slope = minus_log(place)
    kept = np.empty((draws, len(start)))
    for draw in range(-burn_in, draws):
        step = size * rng.uniform(0.6, 1.2)
        momentum = rng.standard_normal(len(place))
        energy = value + 0.5 * float(momentum @ momentum)
        there, there_value, there_slope = place, value, slope
        momentum = momentum - 0.5 * step * there_slope
        for leap in range(steps):
            there = there + step * momentum
            there_value, there_slope = minus_log(there)
            if not np.isfinite(there_value):
                break
            momentum = momentum - (step if leap < steps - 1 else 0.5 * step) * there_slope
        lost = there_value + 0.5 * float(momentum @ momentum) - energy
        chance = np.exp(-max(lost, 0.0)) if np.isfinite(lost) else 0.0
        if draw < 0:
            size *= np.exp(0.1 * (chance - acceptance))
        if rng.uniform() < chance:
            place, value, slope = there, there_value, there_slope
        if draw >= 0:
            kept[draw] = place
    return kept
