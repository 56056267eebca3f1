"""A Gaussian process on bags with a sigmoid link. Its hyperparameters come from the process on shares.

Damped Gauss-Newton steps find the posterior mode. Laplace's approximation gives its uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logit, softmax

from llpbench.blocks.bag_process import FittedProcess
from llpbench.blocks.components import Components, ProcessSettings
from llpbench.blocks.linear import FlatterLogits
from llpbench.blocks.main_effects import Observed, main_effects
from llpbench.core.bags import BaggedRows, FloatArray, Rows
from llpbench.core.effects import FeatureEffect


@dataclass(frozen=True, eq=False)
class LogitProcess:
    """Logits of rows: with two classes the logit of the second, otherwise of each class against the others."""

    components: Components
    offsets: list[float]
    coefficients: list[list[FloatArray]]
    observed: Sequence[Observed]
    """observations in the last linearisation of each output"""
    unexplained: float
    """part of the variance of bags' proportions that features and chance do not explain, from the process on shares"""

    @classmethod
    def of(cls, train: BaggedRows, settings: ProcessSettings, rng: np.random.Generator) -> LogitProcess:
        """Fit a process on shares, which chooses the hyperparameters, then one on logits."""
        return cls.from_shares(FittedProcess.of(train, settings, rng), train)

    @classmethod
    def from_shares(cls, process: FittedProcess, train: BaggedRows) -> LogitProcess:
        """Fit the same components on the logit scale, each class against the others, with unchanged hyperparameters.

        Linearised at the current p = sigmoid(f), v = p (1 - p), a bag observes the mean of v (f - f_0) plus noise. For
        independent rows the variance of the noise is the mean of v divided by the bag's size. A scale on shares is
        divided by (pi (1 - pi))^2 to give a scale on logits. Gauss-Newton steps are damped, because they diverge if a
        bag's rows are nearly certain: a step is halved until the objective falls.
        """
        classes = range(1, 2) if len(process.prior) == 2 else range(len(process.prior))
        found = [_LogitFit(process, train, c).run() for c in classes]
        offsets, coefficients, observed = (list(each) for each in zip(*found, strict=True))
        return LogitProcess(process.components, offsets, coefficients, observed, process.unexplained)

    def __call__(self, rows: Rows | None = None) -> FloatArray:
        """Return log probabilities [rows, classes], up to a constant for each row. None: of the training rows."""
        merged = [np.hstack(parts) for parts in zip(*self.coefficients, strict=True)]
        binned = None if rows is None else self.components.bin(rows)
        values = self.components.value(merged, binned) + np.array(self.offsets)
        return np.hstack([np.zeros_like(values), values]) if values.shape[1] == 1 else log_expit(values)

    def effects(self, label: int = -1, slope: float = 1.0) -> list[FeatureEffect]:
        """Return each feature's effect on the log odds of a class, with Laplace's uncertainty at the fitted scales.

        With two classes, the effect on one class is minus the effect on the other. Effects are multiplied by `slope`.
        """
        binary = len(self.offsets) == 1
        place, sign = (0, -slope if label in (0, -2) else slope) if binary else (label, slope)
        weights = np.concatenate(self.coefficients[place])[:, 0]
        return main_effects(self.components, weights, self.observed[place], "log odds", sign)


@dataclass(frozen=True, eq=False)
class ProcessPredictor:
    """Probabilities of rows and effects of features, from a process."""

    process: LogitProcess
    flatter: FlatterLogits
    """correction, if rows were chosen by their labels"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return np.asarray(softmax(self.flatter(self.log_proba(rows)), axis=1))

    def log_proba(self, rows: Rows) -> FloatArray:
        """Return log probabilities [rows, classes] without the correction, up to a constant for each row."""
        return self.process(rows)

    def effects(self, label: int = -1) -> list[FeatureEffect]:
        """Return the effect of each feature on a class."""
        return self.process.effects(label, self.flatter.slope)


class _LogitFit:
    """The Gauss-Newton fit of one class."""

    _BIAS = 4.0
    """prior variance of the offset, which is added to the prior's logit"""

    def __init__(self, process: FittedProcess, train: BaggedRows, label: int) -> None:
        self.components, self.train = process.components, train
        prior = float(process.prior[label].clip(1e-6, 1 - 1e-6))
        evidence, t = process.evidence, process.hyperparameters
        self.scales = evidence.scales(t) / (prior * (1 - prior))
        self.least = 0.1 * float(np.exp(t[evidence.n_scale_parameters])) * prior * (1 - prior)
        self.known_noise = (train.noise / train.sizes) ** 2
        self.bag_effects = np.exp(t[-1]) * prior * (1 - prior) if evidence.has_bag_effects else 0.0
        self.center = float(logit(prior))
        self.widths = [len(each) for each in process.coefficients]
        self.shares = train.proportions[:, label]

    def run(self, most_steps: int = 10) -> tuple[float, list[FloatArray], Observed]:
        """Return the offset, the coefficients [features, 1] of each component, and the last step's observations."""
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

    def values(self, raw: Sequence[FloatArray], bias: float) -> FloatArray:
        """Return logits [rows]."""
        coefficients = [s * each for s, each in zip(self.scales, raw, strict=True)]
        return self.center + bias + self.components.value(coefficients)[:, 0]

    def means(self, values: FloatArray) -> FloatArray:
        """Return bag means [bags]."""
        return np.bincount(self.train.bag_of_row, values) / self.train.sizes

    def objective(self, values: FloatArray, raw: Sequence[FloatArray], bias: float, noise: FloatArray) -> float:
        """Return minus the log of likelihood times prior, with fixed noise."""
        penalty = bias**2 / self._BIAS + sum(s * float((w**2).sum()) for s, w in zip(self.scales, raw, strict=True))
        return 0.5 * float(((self.shares - self.means(expit(values))) ** 2 / noise).sum() + penalty)


def _solve(columns: FloatArray, diagonal: FloatArray, target: FloatArray) -> FloatArray:
    """Return (columns columns' + diag(diagonal))^-1 target, solved over bags or columns, whichever are fewer."""
    rows, width = columns.shape
    if rows <= width:
        covariance = columns @ columns.T
        covariance[np.diag_indices(rows)] += diagonal
        return np.asarray(np.linalg.solve(covariance, target))
    scaled = columns / diagonal[:, None]
    inner = columns.T @ scaled
    inner[np.diag_indices(width)] += 1.0
    return np.asarray(target / diagonal - scaled @ np.linalg.solve(inner, scaled.T @ target))
