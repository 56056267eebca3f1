"""A Gaussian process on rows when only bag means are observed: fitted by its evidence, on the scale of shares.

Each class is pi + sqrt(pi (1 - pi)) g(x), g the sum of `Components`. Its hyperparameters are the scale of each
feature's effect, one factor for all pairs, the scales of the two joint components, the noise and, where bags differ in
size, a random effect of bags. They are averaged over their posterior (`hmc`) where bags are few, for then one value of
them tells little; with many bags their mode suffices.

Where bags are confounded (`fit_wary`), the priors of scales know how much of a feature's variance lies between bags.
What is common to a bag and not to its rows, of variance omega^2, looks like an effect of a feature of which a share b
lies between bags, of size omega / sqrt(b): of an effect of prior variance s, s / (s + omega^2 / b) is to be believed,
for small b as much as b. So the prior standard deviation of an effect is b times what it is elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from llpbench.blocks.components import Binned, Components
from llpbench.blocks.design import as_proba
from llpbench.blocks.evidence import Evidence, Prior
from llpbench.blocks.main_effects import Observed, Precision, main_effects
from llpbench.blocks.many_rows import BagGroups, NormalEquations, Seen
from llpbench.blocks.monte_carlo import hmc
from llpbench.core.bags import BaggedRows, FloatArray, Rows
from llpbench.core.effects import FeatureEffect

_LITTLE = (np.log(0.05), 1.5)
"""log normal prior of a scale: a component explains about a twentieth of the variance of a label"""
_PAIRS = (-1.0, 1.0)
"""of the factor between the scale of a pair and the geometric mean of its features' scales"""
_NOISE = (-0.3, 0.5)
"""of sigma^2, which is one if rows of a bag are independent, and less if features explain them"""
_BAG_EFFECT = (np.log(0.01), 3.0)
"""of omega^2"""
_CONFOUNDED = 0.2
"""share of the variance of bags' proportions that neither features nor chance explain: beyond, bags are confounded"""

_LEAST_SHARE = 1e-6
"""of a feature's variance between bags, as constant features have none"""
_MANY_BAGS = 1000
"""beyond, a quarter of the pairs are kept, so that the algebra in features stays small"""
_MANY_ROWS = 1_000_000
"""beyond, whatever is not a weight is found from a sample of bags"""
_SAMPLE_ROWS = 500_000
"""about as many, but at least as many bags as the next, and at most `_MANY_BAGS`"""
_FEWEST_BAGS = 300
_LARGEST_BAG = 65_536
"""rows; with larger ones all bags are used for everything, as their features would not fit into memory"""


@dataclass(frozen=True)
class ProcessSettings:
    """What is not found from the data."""

    lengthscale: float = 0.3
    """of numeric features, in quantiles"""
    joint_lengthscale: float = 0.7
    """of the joint component"""
    waves: int = 500
    """random Fourier features of the joint component"""
    most_pairs: int = 200
    """pairs of features; where there are more, those that would raise the evidence most"""
    averaged_up_to: int = 256
    """bags up to which hyperparameters are averaged over their posterior; beyond, they are at its mode"""
    draws: int = 80
    """of hyperparameters; 0: never more than the mode"""
    wary: bool = False
    """whether effects of features that hardly differ between bags are expected to be small"""


@dataclass(frozen=True, eq=False)
class FittedProcess:
    """A posterior mean, and what it is made of."""

    components: Components
    prior: FloatArray
    """[classes]"""
    coefficients: list[FloatArray]
    """[features, classes] of each component, on the scale of standardised shares"""
    hyperparameters: FloatArray
    """their posterior mean"""
    evidence: Evidence
    unexplained: float
    """share of the variance of bags' proportions that neither their rows' features nor chance explain, before priors
    are wary of that"""
    sample: tuple[FittedProcess, BaggedRows] | None = None
    """where there are too many rows: the process of some bags, and these. Bins, scales of kernels, pairs, waves and
    hyperparameters are from it, the evidence is its own; the coefficients are from all bags"""
    precision: Precision | None = None
    """then that of the coefficients"""

    @property
    def confounded(self) -> bool:
        """Whether bags differ for causes of their own, so that what holds between them need not hold between rows."""
        return self.unexplained > _CONFOUNDED

    def shares(self, binned: Binned | None = None) -> FloatArray:
        """[rows, classes] the posterior mean of each row's shares, which may lie beyond 0 and 1; None: training rows"""
        return self.prior + np.sqrt(self.prior * (1 - self.prior)) * self.components.value(self.coefficients, binned)

    def proba(self, rows: Rows) -> FloatArray:
        """[rows, classes] in [0, 1]"""
        return as_proba(self.shares(self.components.bin(rows)))

    def effects(self, label: int = -1) -> list[FeatureEffect]:
        """Of each feature on the share of a class; the uncertainty is that at the mean hyperparameters."""
        weights = np.concatenate([each[:, label] for each in self.coefficients])
        spread = np.sqrt(self.prior[label] * (1 - self.prior[label]))
        return main_effects(self.components, weights, self.precision or self._observed(), "share", float(spread))

    def _observed(self) -> Observed:
        scales = self.evidence.scales(self.hyperparameters)
        columns = [np.sqrt(s) * mean for s, mean in zip(scales, self.evidence.means, strict=True)]
        return Observed(scales, np.hstack(columns), self.evidence.diagonal(self.hyperparameters))


def fit_process(train: BaggedRows, settings: ProcessSettings, rng: np.random.Generator) -> FittedProcess:
    """The posterior mean of shares. `train` has known counts alone.

    Beyond a million rows, what is not a weight is found from bags drawn at random: half a million rows, in 300 to 1,000
    bags.
    """
    bags = len(train.sizes)
    most = settings.most_pairs if bags <= _MANY_BAGS else settings.most_pairs // 4
    settings = replace(settings, most_pairs=most)
    few = int(np.clip(_SAMPLE_ROWS / train.sizes.mean(), _FEWEST_BAGS, _MANY_BAGS))
    if len(train.bag_of_row) <= _MANY_ROWS or bags <= few or train.sizes.max() > _LARGEST_BAG:
        return _fit(train, settings, rng)
    chosen = np.zeros(bags, dtype=bool)
    chosen[rng.choice(bags, few, replace=False)] = True
    some = replace(train, counts=np.where(chosen[:, None], train.counts, np.nan)).where_known()
    return _with_all_bags(_fit(some, settings, rng), some, train)


def fit_wary(train: BaggedRows, settings: ProcessSettings, rng: np.random.Generator) -> FittedProcess:
    """The same, and where bags are confounded once more, with priors that know how little tells features from bags."""
    plain = fit_process(train, settings, rng)
    if not plain.confounded:
        return plain
    return replace(fit_process(train, replace(settings, wary=True), rng), unexplained=plain.unexplained)


def _fit(train: BaggedRows, settings: ProcessSettings, rng: np.random.Generator) -> FittedProcess:
    components = Components(
        train.rows,
        rng,
        lengthscale=settings.lengthscale,
        waves=settings.waves,
        joint_lengthscale=settings.joint_lengthscale,
    )
    features = len(components.effects)
    pairs = [(i, j) for i in range(features) for j in range(i + 1, features)]
    if len(pairs) > settings.most_pairs:
        pairs = _screened(train, components, pairs, settings.wary)[: settings.most_pairs]
    components.effects += [components.pair(i, j) for i, j in pairs]
    means = components.bag_means(train.bag_of_row, train.sizes)
    steps = 60 if len(train.sizes) <= settings.averaged_up_to else 30
    evidence, mode = _mode(train, components, means, steps, settings.wary)
    drawn = mode[None]
    if settings.draws and len(train.sizes) <= settings.averaged_up_to:
        center, std = evidence.prior.mean, evidence.prior.std

        def whitened(z: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = evidence(center + std * z)
            return value, gradient * std

        start = (mode - center) / std
        drawn = center + std * hmc(whitened, start, rng, draws=settings.draws, burn_in=settings.draws // 2)
    posteriors = [evidence.posterior(t) for t in drawn]
    weights = [np.mean([each.scales[c] * each.alpha for each in posteriors], axis=0) for c in range(len(means))]
    coefficients = [mean.T @ weight for mean, weight in zip(means, weights, strict=True)]
    mean = drawn.mean(axis=0)
    return FittedProcess(components, train.prior, coefficients, mean, evidence, _unexplained(evidence, mean))


def _with_all_bags(found: FittedProcess, some: BaggedRows, train: BaggedRows) -> FittedProcess:
    """The same process with coefficients from all bags, in one pass over them."""
    evidence, t = found.evidence, found.hyperparameters
    prior = train.prior.clip(1e-9, 1 - 1e-9)
    spread = np.sqrt(prior * (1 - prior))
    targets = (train.proportions - train.prior) / spread
    noise = evidence.variances(t, train.sizes, (train.noise / train.sizes) ** 2 / (spread**2).mean())
    scales, components = evidence.scales(t), found.components.on(train.rows)
    root = np.sqrt(np.repeat(scales, [len(each) for each in found.coefficients]))
    equations = NormalEquations()
    groups = BagGroups(components, train)
    for seen in groups(lambda group: Seen(root * group.features(), noise[group.bags], targets[group.bags])):
        equations.add(seen)
    inner, solved = equations.solved()
    coefficients = np.split(root[:, None] * solved, np.cumsum([len(each) for each in found.coefficients])[:-1])
    return replace(
        found,
        components=components,
        prior=train.prior,
        coefficients=coefficients,
        sample=(found, some),
        precision=Precision(scales, inner),
    )


def _unexplained(evidence: Evidence, t: FloatArray) -> float:
    """By the noise beyond that of independent rows, and the random effect of bags; bags weigh as much as they have
    rows."""
    weights = 1 / evidence.unit / (1 / evidence.unit).sum()
    excess = max(float(np.exp(t[evidence.scale_names])) - 1.0, 0.0) * float(weights @ evidence.unit)
    effects = float(np.exp(t[-1])) if evidence.has_bag_effects else 0.0
    return min((excess + effects) / max(float(weights @ (evidence.targets**2).mean(axis=1)), 1e-12), 1.0)


def _mode(
    train: BaggedRows, components: Components, means: list[FloatArray], steps: int, wary: bool
) -> tuple[Evidence, FloatArray]:
    """The evidence of some components, and the hyperparameters at which it is largest."""
    prior = train.prior.clip(1e-9, 1 - 1e-9)
    spread = np.sqrt(prior * (1 - prior))
    targets = (train.proportions - train.prior) / spread
    noise = (train.noise / train.sizes) ** 2 / (spread**2).mean()
    exponents, expected = _hyperparameters(components, train)
    if wary:
        expected = _expecting_little(expected, components, means, train)
    evidence = Evidence(means, exponents, expected, targets, train.sizes, noise)
    start = evidence.prior.mean.copy()
    start[evidence.scale_names] = 0.0
    return evidence, minimize(evidence, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x


def _screened(
    train: BaggedRows, components: Components, pairs: list[tuple[int, int]], wary: bool
) -> list[tuple[int, int]]:
    """Pairs of features in the order in which they would raise the evidence of a process without pairs.

    The derivative of the evidence by a pair's scale s, per unit of what it adds to the covariance: with G its bag
    means, a pair's score is (|G' alpha|^2 - tr G' C^-1 G) / tr G G'.
    """
    means = components.bag_means(train.bag_of_row, train.sizes)
    evidence, mode = _mode(train, components, means, 30, wary)
    posterior = evidence.posterior(mode)
    scores = []
    for i, j in pairs:
        mean = components.effect_means(components.pair(i, j), train.bag_of_row, train.sizes)
        gain = ((mean.T @ posterior.alpha) ** 2).sum() / len(train.prior) - (mean * posterior.inverse_times(mean)).sum()
        scores.append(gain / max(float((mean**2).sum()), 1e-12))
    return [pairs[k] for k in np.argsort(scores, kind="stable")[::-1]]


def _hyperparameters(components: Components, train: BaggedRows) -> tuple[FloatArray, Prior]:
    """Exponents [components, hyperparameters of scale] and the priors of all: each feature's scale, the factor of
    pairs, the two joint scales, the noise and, where sizes differ, the bag effect."""
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
    """The prior of hyperparameters where bags are confounded: of each feature's scale and the joint ones lower by the
    square of what share of its variance lies between bags, of the largest share."""
    weights = train.sizes / train.sizes.sum()
    alone = [c for c, effect in enumerate(components.effects) if len(effect.features) == 1]
    joint = [len(means) - 2, len(means) - 1]
    between = np.array([weights @ (means[c] ** 2).sum(axis=1) for c in alone + joint])  # features have variance 1
    shares = (between / max(between.max(), _LEAST_SHARE)).clip(min=_LEAST_SHARE)
    lower = prior.mean.copy()
    lower[[*range(len(alone)), len(alone) + 1, len(alone) + 2]] += 2 * np.log(shares)
    return Prior(lower, prior.std)
