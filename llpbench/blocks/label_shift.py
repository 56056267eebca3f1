"""Bags whose rows were chosen by their labels: a test, and the correction of probabilities.

A method that explains a bag's proportions by the mean probability of its rows assumes that rows with the same features
have the same probabilities in every bag. If rows were chosen by their labels (case-control samples, `dirichlet` bags),
it is instead the rows of the same class that are alike in every bag. Proportions then vary more than the mean of true
probabilities can, and a fit that follows them has logits that are several times too large.

Such bags have two signs: proportions vary by more than chance, and bag means of all features are a linear function of
them, up to chance. Class means of any column then follow from bag means (Quadrianto et al. 2009). Those of
the log probabilities determine the slope with the largest likelihood, as in Platt scaling, but without labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import chdtrc, logsumexp

from llpbench.blocks.design import LinearColumns, bag_average
from llpbench.blocks.linear import class_means, prior_of
from llpbench.core.bags import BaggedRows, FloatArray, Rows, Schema

_CHANCE = 1e-6
"""significance level of both tests"""
_FEWEST = 8
"""smallest number of degrees of freedom: with fewer bags, the second test can hardly reject"""
_MOST = 1.2
"""largest mean over columns of the variance between bags that proportions leave, in units of chance"""
_LEAST = 0.05
"""smallest slope; above 0, so that rows keep their order"""


@dataclass(frozen=True, eq=False)
class FlatterLogits:
    """Log probabilities times a slope of at most 1, plus an intercept for each class."""

    slope: float
    intercepts: FloatArray
    """[classes]"""

    def __call__(self, log_proba: FloatArray) -> FloatArray:
        """Return log probabilities [rows, classes], up to a constant for each row."""
        return np.asarray(self.slope * log_proba + self.intercepts)


def _are_chosen_by_label(train: BaggedRows, schema: Schema) -> bool:
    """Return whether proportions vary by more than chance, and features between bags only with the proportions.

    False if counts have noise, which looks like such a variation.
    """
    sizes, prior = train.sizes.astype(np.float64), prior_of(train)
    apart = train.proportions - prior
    bags, classes = apart.shape
    freedom = bags - classes
    varied = (sizes[:, None] * apart**2 / np.maximum(prior, 1e-12)).sum()
    if train.noise or freedom < _FEWEST or chdtrc((bags - 1) * (classes - 1), varied) > _CHANCE:
        return False
    columns = LinearColumns("scores", train.rows, schema)(train.rows)
    means = (bag_average(train) @ columns).toarray()
    means -= sizes @ means / sizes.sum()
    root = np.sqrt(sizes)[:, None]
    rest = root * means - root * apart @ np.linalg.lstsq(root * apart, root * means, rcond=None)[0]
    varies = np.asarray(columns.multiply(columns).sum(axis=0)).ravel() > 0
    inside = 1 - (sizes @ means**2 / sizes.sum())[varies]
    excess = (rest**2).sum(axis=0)[varies] / np.maximum(inside, 1e-9)
    if not len(excess):
        return False
    return bool(excess.mean() < _MOST * freedom and chdtrc(freedom, excess.max()) * len(excess) > _CHANCE)


def correction(
    fit: Callable[[BaggedRows], Callable[[Rows], FloatArray]], train: BaggedRows, schema: Schema
) -> FlatterLogits | None:
    """Return the correction of a method if rows were chosen by their labels, from bags that its fit has not seen.

    `fit` returns a function from rows to log probabilities [rows, classes]. It is called twice, with half of the bags.
    """
    if not _are_chosen_by_label(train, schema):
        return None
    log_proba = np.empty((len(train.bag_of_row), len(train.prior)))
    odd = np.arange(len(train.sizes)) % 2 == 1
    for unseen in (odd, ~odd):
        rows = unseen[train.bag_of_row]
        log_proba[rows] = fit(train.some(~unseen))(Rows(*(each[rows] for each in train.rows)))
    return _flatter(log_proba, train)


def _flatter(log_proba: FloatArray, train: BaggedRows) -> FlatterLogits:
    """Return the slope (at most 1) and intercepts of log probabilities [rows, classes] with the largest likelihood."""
    from scipy.optimize import minimize  # takes long to import, and `llpbench plan` does not need it

    prior = prior_of(train)
    log_proba = log_proba - logsumexp(log_proba, axis=1, keepdims=True)
    means = sparse.csr_array(bag_average(train) @ log_proba)
    attained = prior @ np.diag(class_means(train.proportions, train.sizes.astype(np.float64), means, 0.0))

    def objective(values: FloatArray) -> tuple[float, FloatArray]:
        logits = values[0] * log_proba + values[1:]
        free = logsumexp(logits, axis=1)
        proba = np.exp(logits - free[:, None])
        gradient = np.append((proba * log_proba).sum(axis=1).mean() - attained, proba.mean(axis=0) - prior)
        return float(free.mean() - values[0] * attained - prior @ values[1:]), gradient

    start = np.append(1.0, np.zeros(len(prior)))
    limits = [(_LEAST, 1.0), *[(-50.0, 50.0)] * len(prior)]
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=limits)
    return FlatterLogits(float(found.x[0]), found.x[1:])
