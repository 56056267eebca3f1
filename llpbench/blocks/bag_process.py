"""A Gaussian process on rows of which bag means are observed: fitted by its evidence, on the scale of shares or logits.

Each class is pi + sqrt(pi (1 - pi)) g(x), g the sum of `Components`. Its hyperparameters are the scale of each
feature's effect, one factor for all pairs, the scales of the two joint components, the noise and, where bags differ in
size, a random effect of bags. They are averaged over their posterior (`hmc`) where bags are few, for then one value of
them tells little; with many bags their mode suffices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit, softmax

from llpbench.blocks.components import Binned, Components
from llpbench.blocks.design import as_proba
from llpbench.blocks.evidence import Evidence, Prior
from llpbench.blocks.main_effects import Observed, Precision, main_effects
from llpbench.blocks.many_rows import BagGroup, BagGroups, NormalEquations, Seen
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
    sample: tuple[FittedProcess, BaggedRows] | None = None
    """where there are too many rows: the process of some bags, and these. Bins, scales of kernels, pairs, waves and
    hyperparameters are from it, the evidence is its own; the coefficients are from all bags"""
    precision: Precision | None = None
    """then that of the coefficients"""

    @property
    def unexplained(self) -> float:
        """Share of the variance of bags' proportions that neither their rows' features nor chance explain.

        By the noise beyond that of independent rows, and the random effect of bags; bags weigh as much as they have
        rows.
        """
        evidence, t = self.evidence, self.hyperparameters
        weights = 1 / evidence.unit / (1 / evidence.unit).sum()
        excess = max(float(np.exp(t[evidence.scale_names])) - 1.0, 0.0) * float(weights @ evidence.unit)
        effects = float(np.exp(t[-1])) if evidence.has_bag_effects else 0.0
        return min((excess + effects) / max(float(weights @ (evidence.targets**2).mean(axis=1)), 1e-12), 1.0)

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
    few = int(np.clip(_SAMPLE_ROWS / train.sizes.mean(), _FEWEST_BAGS, _MANY_BAGS))
    if len(train.bag_of_row) <= _MANY_ROWS or bags <= few or train.sizes.max() > _LARGEST_BAG:
        return _fit(train, replace(settings, most_pairs=most), rng)
    chosen = np.zeros(bags, dtype=bool)
    chosen[rng.choice(bags, few, replace=False)] = True
    some = replace(train, counts=np.where(chosen[:, None], train.counts, np.nan)).where_known()
    return _with_all_bags(_fit(some, replace(settings, most_pairs=most), rng), some, train)


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
        pairs = _screened(train, components, pairs)[: settings.most_pairs]
    components.effects += [components.pair(i, j) for i, j in pairs]
    means = components.bag_means(train.bag_of_row, train.sizes)
    evidence, mode = _mode(train, components, means, steps=60 if len(train.sizes) <= settings.averaged_up_to else 30)
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
    return FittedProcess(components, train.prior, coefficients, drawn.mean(axis=0), evidence)


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
    return FittedProcess(
        components, train.prior, coefficients, t, evidence, sample=(found, some), precision=Precision(scales, inner)
    )


def _mode(
    train: BaggedRows, components: Components, means: list[FloatArray], steps: int
) -> tuple[Evidence, FloatArray]:
    """The evidence of some components, and the hyperparameters at which it is largest."""
    prior = train.prior.clip(1e-9, 1 - 1e-9)
    spread = np.sqrt(prior * (1 - prior))
    targets = (train.proportions - train.prior) / spread
    noise = (train.noise / train.sizes) ** 2 / (spread**2).mean()
    evidence = Evidence(means, *_hyperparameters(components, train), targets, train.sizes, noise)
    start = evidence.prior.mean.copy()
    start[evidence.scale_names] = 0.0
    return evidence, minimize(evidence, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x


def _screened(train: BaggedRows, components: Components, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of features in the order in which they would raise the evidence of a process without pairs.

    The derivative of the evidence by a pair's scale s, per unit of what it adds to the covariance: with G its bag
    means, a pair's score is (|G' alpha|^2 - tr G' C^-1 G) / tr G G'.
    """
    means = components.bag_means(train.bag_of_row, train.sizes)
    evidence, mode = _mode(train, components, means, steps=30)
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


@dataclass(frozen=True, eq=False)
class LogitProcess:
    """Logits of rows: of the second class alone where there are two, else of each class against the others."""

    components: Components
    offsets: list[float]
    coefficients: list[list[FloatArray]]
    observed: Sequence[Observed | Precision]
    """by the last linearisation of each"""

    def __call__(self, rows: Rows | None = None) -> FloatArray:
        """[rows, classes] log probabilities, but for what a row's classes share; None: of the training rows"""
        merged = [np.hstack(parts) for parts in zip(*self.coefficients, strict=True)]
        binned = None if rows is None else self.components.bin(rows)
        values = self.components.value(merged, binned) + np.array(self.offsets)
        return np.hstack([np.zeros_like(values), values]) if values.shape[1] == 1 else log_expit(values)

    def proba(self, rows: Rows) -> FloatArray:
        """[rows, classes]"""
        return np.asarray(softmax(self(rows), axis=1))

    def effects(self, label: int = -1) -> list[FeatureEffect]:
        """Of each feature on the log odds of a class, the uncertainty by Laplace's approximation at the scales found.

        Of two classes the effect on one is minus that on the other.
        """
        binary = len(self.offsets) == 1
        place, sign = (0, -1.0 if label in (0, -2) else 1.0) if binary else (label, 1.0)
        weights = np.concatenate(self.coefficients[place])[:, 0]
        return main_effects(self.components, weights, self.observed[place], "log odds", sign)


@dataclass(frozen=True, eq=False)
class ProcessPredictor:
    """Probabilities of rows by a process, and its effects of features."""

    process: FittedProcess | LogitProcess

    def __call__(self, rows: Rows) -> FloatArray:
        """[rows, classes]"""
        return self.process.proba(rows)

    def effects(self, label: int = -1) -> list[FeatureEffect]:
        """Of each feature on a class."""
        return self.process.effects(label)


def fit_logits(process: FittedProcess, train: BaggedRows) -> LogitProcess:
    """The same components on the scale of logits, each class against the others, hyperparameters as they were found.

    Damped Gauss-Newton steps towards the mode. Linearised at the present p = sigmoid(f), v = p (1 - p), a bag's
    observation is the mean of v (f - f_0) plus noise of the variance of independent rows, the mean of v divided by the
    bag's size. What the scales mean on the scale of shares becomes, divided by (pi (1 - pi))^2, a scale of logits.
    Undamped steps diverge where a bag's rows are nearly certain; a step is halved until the objective falls.
    """
    classes = range(1, 2) if len(process.prior) == 2 else range(len(process.prior))
    if process.sample is not None:
        return _logits_of_all_bags(process, train, classes)
    found = [_LogitFit(process, train, c).run() for c in classes]
    offsets, coefficients, observed = (list(each) for each in zip(*found, strict=True))
    return LogitProcess(process.components, offsets, coefficients, observed)


class _LogitFit:
    """Gauss-Newton for one class."""

    _BIAS = 4.0
    """prior variance of what is added to the prior's logit"""

    def __init__(self, process: FittedProcess, train: BaggedRows, label: int) -> None:
        self.components, self.train = process.components, train
        prior = float(process.prior[label].clip(1e-6, 1 - 1e-6))
        evidence, t = process.evidence, process.hyperparameters
        self.scales = evidence.scales(t) / (prior * (1 - prior))
        self.least = 0.1 * float(np.exp(t[evidence.scale_names])) * prior * (1 - prior)
        self.known_noise = (train.noise / train.sizes) ** 2
        self.bag_effects = np.exp(t[-1]) * prior * (1 - prior) if evidence.has_bag_effects else 0.0
        self.center = float(logit(prior))
        self.widths = [len(each) for each in process.coefficients]
        self.shares = train.proportions[:, label]

    def run(self, most_steps: int = 10) -> tuple[float, list[FloatArray], Observed]:
        """Offset, coefficients [features, 1] of each component, and what the last step saw."""
        bag_of_row, sizes = self.train.bag_of_row, self.train.sizes
        raw, bias = [np.zeros((width, 1)) for width in self.widths], 0.0
        values = self.values(raw, bias)
        for _ in range(most_steps):
            p = expit(values)
            v = p * (1 - p)
            average = np.bincount(bag_of_row, v) / sizes
            noise = np.maximum(average, self.least) / sizes
            noise = noise + self.known_noise + self.bag_effects
            target = self.shares - self.means(p) + self.means(v * (values - self.center))
            means = self.components.bag_means(bag_of_row, sizes, v)
            columns = [np.sqrt(self._BIAS) * average[:, None]]
            columns += [np.sqrt(s) * mean for s, mean in zip(self.scales, means, strict=True)]
            seen = Observed(self.scales, np.hstack(columns), noise)
            alpha = _solve(seen.columns, noise, target)
            aim, bias_aim = [mean.T @ alpha[:, None] for mean in means], self._BIAS * float(average @ alpha)
            before, step = self.objective(values, raw, bias, noise), 1.0
            while step > 0.02:
                moved = [now + step * (then - now) for now, then in zip(raw, aim, strict=True)]
                moved_bias = bias + step * (bias_aim - bias)
                moved_values = self.values(moved, moved_bias)
                after = self.objective(moved_values, moved, moved_bias, noise)
                if after < before:
                    break
                step /= 2
            else:
                break
            raw, bias, values = moved, moved_bias, moved_values
            if before - after < 1e-3 * abs(before):
                break
        return self.center + bias, [s * each for s, each in zip(self.scales, raw, strict=True)], seen

    def run_in_groups(
        self, groups: BagGroups, offset: float, coefficients: list[FloatArray], most_steps: int = 4
    ) -> tuple[float, list[FloatArray], Precision]:
        """The same from a start nearby: a pass over the rows for each step, and nothing kept of a bag but its noise."""
        root = np.sqrt(np.append(self._BIAS, np.repeat(self.scales, self.widths)))
        now = aim = np.concatenate([[offset - self.center], *(each[:, 0] for each in coefficients)]) / root
        noise, before, step = np.zeros(0), np.inf, 1.0
        precision = np.zeros((0, 0))
        for _ in range(most_steps):
            moved = now + step * (aim - now)
            equations, misfits, noises = NormalEquations(), [], []
            for seen, misfit in groups(partial(self._seen, weights=root * moved, root=root)):
                equations.add(seen)
                misfits.append(misfit)
                noises.append(seen.noise)
            new_noise = np.concatenate(noises)
            # steps are judged with the noise that they were taken with, as above
            misfit = np.concatenate(misfits) ** 2
            after = 0.5 * float((misfit / (noise if len(noise) else new_noise)).sum() + moved @ moved)
            if after >= before:
                step /= 2
                continue
            gained, now, step = before - after, moved, 1.0
            noise, before = new_noise, 0.5 * float((misfit / new_noise).sum() + moved @ moved)
            precision, solved = equations.solved()
            aim = solved[:, 0]
            if gained < 1e-3 * abs(after):
                break
        bias, *weights = root[0] * now[0], *np.split((root * now)[1:, None], np.cumsum(self.widths)[:-1])
        return self.center + bias, weights, Precision(self.scales, precision)

    def _seen(self, group: BagGroup, weights: FloatArray, root: FloatArray) -> tuple[Seen, FloatArray]:
        """What bags say of the weights, linearised at these, and the misfit of each bag's share."""
        parts = np.split(weights[1:], np.cumsum(self.widths)[:-1])
        values = self.center + weights[0] + group.values(parts)
        p = expit(values)
        v = p * (1 - p)
        average, bags = group.mean(v), group.bags
        noise = np.maximum(average, self.least) / group.sizes + self.known_noise[bags] + self.bag_effects
        misfit = self.shares[bags] - group.mean(p)
        target = misfit + group.mean(v * (values - self.center))
        columns = root * np.hstack([average[:, None], group.features(v)])
        return Seen(columns, noise, target[:, None]), misfit

    def values(self, raw: Sequence[FloatArray], bias: float) -> FloatArray:
        """[rows] logits"""
        coefficients = [s * each for s, each in zip(self.scales, raw, strict=True)]
        return self.center + bias + self.components.value(coefficients)[:, 0]

    def means(self, values: FloatArray) -> FloatArray:
        """[bags]"""
        return np.bincount(self.train.bag_of_row, values) / self.train.sizes

    def objective(self, values: FloatArray, raw: Sequence[FloatArray], bias: float, noise: FloatArray) -> float:
        """Minus the log of likelihood times prior, the noise held fixed."""
        penalty = bias**2 / self._BIAS + sum(s * float((w**2).sum()) for s, w in zip(self.scales, raw, strict=True))
        return 0.5 * float(((self.shares - self.means(expit(values))) ** 2 / noise).sum() + penalty)


def _logits_of_all_bags(process: FittedProcess, train: BaggedRows, classes: range) -> LogitProcess:
    """The logits of a sample of bags, and from there a few steps with all bags."""
    assert process.sample is not None
    start = fit_logits(*process.sample)
    groups = BagGroups(process.components, train)
    found = [
        _LogitFit(process, train, label).run_in_groups(groups, offset, coefficients)
        for label, offset, coefficients in zip(classes, start.offsets, start.coefficients, strict=True)
    ]
    offsets, coefficients, precisions = (list(each) for each in zip(*found, strict=True))
    return LogitProcess(process.components, offsets, coefficients, precisions)


def _solve(columns: FloatArray, diagonal: FloatArray, target: FloatArray) -> FloatArray:
    """(columns columns' + diag(diagonal))^-1 target, in bags or in columns, whichever are fewer."""
    rows, width = columns.shape
    if rows <= width:
        covariance = columns @ columns.T
        covariance[np.diag_indices(rows)] += diagonal
        return np.asarray(np.linalg.solve(covariance, target))
    scaled = columns / diagonal[:, None]
    inner = columns.T @ scaled
    inner[np.diag_indices(width)] += 1.0
    return np.asarray(target / diagonal - scaled @ np.linalg.solve(inner, scaled.T @ target))
