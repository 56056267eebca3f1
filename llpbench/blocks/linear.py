"""Linear models of rows that are fitted to bags: regressions of proportions, losses of whole bags, and mean maps.

Losses of bags, with p the probabilities of rows, n_k and m_k the counts and size of bag k, and r_k the mean of p minus
n_k / m_k:

- `count`: -log P(n_k) of independent rows, approximated by a normal of mean sum p and variance sum p (1 - p) + 1/12
  plus the variance of noise in the counts. It is exact (Poisson-binomial) in bags of at most 12 rows with whole counts.
  For more than two classes, it is a sum over classes, each against the rest (a composite likelihood).
- `kl`: m_k KL(n_k / m_k || mean p); `square`: m_k |r_k|^2;
- `absolute`: m_k sum_c |r_kc|; `insensitive`: m_k sum_c max(0, |r_kc| - 1 / sqrt(mean size)). Corners are rounded
  within 0.01.

Mean maps: in an exponential family, the likelihood depends on labels only through sum_i y_ic x_i = N pi_c M_c, with M_c
the mean of class c. Bag means are mixtures of class means (Quadrianto et al. 2009; Patrini et al. 2014).

Rows chosen by their labels (`correction`): a method that explains a bag's proportions by the mean probability of its
rows assumes that rows with the same features have the same probabilities in every bag. If rows were chosen by their
labels (case-control samples, `dirichlet` bags), it is instead the rows of the same class that are alike in every bag.
Proportions then vary more than the mean of true probabilities can, and a fit that follows them has logits that are
several times too large.

Such bags have two signs: proportions vary by more than chance, and bag means of all features are a linear function of
them, up to chance. Class means of any column then follow from bag means (Quadrianto et al. 2009). Those of the log
probabilities determine the slope with the largest likelihood, as in Platt scaling, but without labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.special import chdtrc, expit, logsumexp, softmax

from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import LinearColumns, OneHot, as_proba, bag_average
from llpbench.blocks.distinct import Distinct
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows, Schema
from llpbench.core.ranges import Choice


@dataclass(frozen=True, eq=False)
class LogitWeights:
    """A linear model of logits. Two classes have one output, the logit of the second."""

    coefficients: FloatArray
    """[columns, outputs]"""
    intercept: FloatArray
    """[outputs]"""

    def __call__(self, columns: sparse.csr_array) -> FloatArray:
        """Return logits [rows, outputs]."""
        return np.asarray(columns @ self.coefficients + self.intercept)

    def proba(self, columns: sparse.csr_array) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return _probabilities(self(columns))

    def minimise(self, objective: Callable[[LogitWeights], tuple[float, LogitWeights]]) -> tuple[float, LogitWeights]:
        """Minimise by L-BFGS from these weights; return the smallest value and its weights.

        `objective` returns a value and its gradient.
        """
        from scipy.optimize import minimize  # takes long to import, and `llpbench plan` does not need it

        shape = self.coefficients.shape

        def unpack(flat: FloatArray) -> LogitWeights:
            split = len(flat) - shape[1]
            return LogitWeights(flat[:split].reshape(shape), flat[split:])

        def flattened(flat: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = objective(unpack(flat))
            return value, np.concatenate([gradient.coefficients.ravel(), gradient.intercept])

        first = np.concatenate([self.coefficients.ravel(), self.intercept])
        options = {"maxiter": 500, "maxfun": 1000, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-7}
        found = minimize(flattened, first, jac=True, method="L-BFGS-B", options=options)
        return float(found.fun), unpack(found.x)


def _probabilities(logits: FloatArray) -> FloatArray:
    """Return probabilities [rows, classes] from logits [rows, outputs]."""
    if logits.shape[1] == 1:
        return np.hstack([expit(-logits), expit(logits)])
    return np.asarray(softmax(logits, axis=1))


def outputs(classes: int) -> int:
    """Return the number of logits for a number of classes."""
    return 1 if classes == 2 else classes


def hinge(x: FloatArray, corner: float) -> tuple[FloatArray, FloatArray]:
    """Return max(0, x) and its derivative, with a parabola from 0 to `corner`; it is at most corner / 2 too small."""
    inside = np.clip(x, 0.0, corner)
    return inside**2 / (2 * corner) + np.maximum(x - corner, 0.0), inside / corner


@dataclass(frozen=True, eq=False)
class _LinearShares:
    """Class proportions by ridge or logistic regression."""

    weights: LogitWeights
    """of proportions in ridge regression, of logits in logistic regression"""
    classes: int
    present: IntArray | None = None
    """classes of logistic regression, whose proportions are above 0; None: ridge regression"""

    def proba(self, features: sparse.csr_array) -> FloatArray:
        """Return probabilities [rows, classes]."""
        scores = self.weights(features)
        if self.present is None:
            return as_proba(scores)
        proba = np.zeros((len(scores), self.classes))
        proba[:, self.present] = _probabilities(scores)
        return proba


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """Probabilities of rows by a linear model of their columns."""

    design: LinearColumns | OneHot
    model: LogitWeights | _LinearShares

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return self.model.proba(self.design(rows))


def linear_fit(
    model: str, features: sparse.csr_array, targets: FloatArray, weights: FloatArray, strength: float
) -> _LinearShares:
    """Fit ridge or logistic regression of class proportions; return its `proba`: features -> [rows, classes]."""
    from sklearn.linear_model import LogisticRegression, Ridge

    classes = targets.shape[1]
    if model == "ridge" or np.count_nonzero(targets.any(axis=0)) == 1:  # logistic regression needs two classes
        ridge = Ridge(alpha=strength, solver="sparse_cg", tol=1e-8).fit(features, targets, sample_weight=weights)
        return _LinearShares(LogitWeights(ridge.coef_.T, ridge.intercept_), classes)
    # a soft label becomes one example of each class, weighted by its proportion
    labels = np.repeat(np.arange(classes), len(targets))
    repeated = sparse.csr_array(sparse.vstack([features] * classes))
    share = (targets * weights[:, None]).T.ravel()
    present = share > 0
    logistic = LogisticRegression(C=1 / strength, max_iter=1000)
    logistic.fit(repeated[present], labels[present], sample_weight=share[present])
    return _LinearShares(LogitWeights(logistic.coef_.T, logistic.intercept_), classes, logistic.classes_)


BAG_LOSSES = Choice("count", "kl", "square", "absolute", "insensitive")
_CORNER = 0.01
_PATH = (100.0, 10.0, 1.0)
"""factors of the penalty; each fit starts from the previous one, since the objective is not convex"""


class _BagLoss:
    """A loss of the predictions of rows, with its gradient. Equal rows can be predicted once."""

    def __init__(self, loss: str, train: BaggedRows, places: IntArray | None = None) -> None:
        """Make a loss (one of `BAG_LOSSES`) of `train`, whose counts must all be known.

        `places` [rows]: prediction that each row has (default: its own).
        """
        place = np.arange(len(train.bag_of_row)) if places is None else places
        shape = len(train.sizes), int(place.max()) + 1
        self.sums = sparse.csr_array((np.ones(len(place)), (train.bag_of_row, place)), shape=shape)
        """[bags, predictions] matrix whose product with predictions is the sum of each bag"""
        self.loss, self.transposed = loss, sparse.csr_array(self.sums.T)
        self.sizes = train.sizes.astype(np.float64)
        self.proportions, self.counts = train.proportions, BagCounts(train)
        self.extra = 1 / 12 + train.noise**2
        if places is not None:
            self.counts.rows = np.where(self.counts.rows >= 0, places[self.counts.rows], -1)

    def __call__(self, proba: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss summed over bags, and its derivatives with respect to `proba` [predictions, classes]."""
        if self.loss == "count":
            return self._count(proba)
        mean = self.sums @ proba / self.sizes[:, None]
        if self.loss == "kl":
            mean = np.maximum(mean, 1e-300)
            share = self.proportions
            value = np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0) / mean), 0.0)
            slope = -share / mean
        elif self.loss == "square":
            value, slope = (mean - self.proportions) ** 2, 2 * (mean - self.proportions)
        else:
            residual = mean - self.proportions
            tolerance = 1 / np.sqrt(self.sizes.mean()) if self.loss == "insensitive" else 0.0
            beyond = np.maximum(np.abs(residual) - tolerance, 0.0)
            rounded = np.hypot(beyond, _CORNER)
            value, slope = rounded - _CORNER, np.sign(residual) * beyond / rounded
        return float(self.sizes @ value.sum(axis=1)), self.transposed @ slope

    def _count(self, proba: FloatArray) -> tuple[float, FloatArray]:
        classes, small = proba.shape[1], self.counts.small
        total, gradient = 0.0, np.zeros_like(proba)
        for label in (1,) if classes == 2 else range(classes):
            p = proba[:, label]
            variance = self.sums @ (p * (1 - p)) + self.extra
            lacking = self.counts.counts[:, label] - self.sums @ p
            values = (lacking**2 / variance + np.log(2 * np.pi * variance)) / 2
            pull, spread = -lacking / variance, (1 - lacking**2 / variance) / (2 * variance)
            pull[small] = spread[small] = 0.0  # these bags are exact
            gradient[:, label] = self.transposed @ pull + self.transposed @ spread * (1 - 2 * p)
            if len(small):
                rows, q, exact = self.counts.exact(p, label)
                values[small] = -np.log(np.maximum(exact, 1e-300))
                np.add.at(gradient[:, label], rows, (p[rows] - q) / np.maximum(p[rows] * (1 - p[rows]), 1e-12))
            total += float(values.sum())
        return total, gradient


def fit_bags(columns: sparse.csr_array, train: BaggedRows, loss: str, strength: float) -> LogitWeights:
    """Return a linear model of logits that minimises a loss of bags + strength/2 |coefficients|^2.

    `columns` [rows, columns] are those of the rows of `train`. All its counts must be known.
    """
    if (same := Distinct.of_rows(train.rows)) is not None:
        columns = columns[same.first]
    bag_loss, transposed = _BagLoss(loss, train, None if same is None else same.place), sparse.csr_array(columns.T)

    def objective(weights: LogitWeights, penalty: float) -> tuple[float, LogitWeights]:
        proba = _probabilities(weights(columns))
        value, by_proba = bag_loss(proba)
        by_logit = proba * (by_proba - (proba * by_proba).sum(axis=1, keepdims=True))
        by_logit = by_logit[:, -1:] if proba.shape[1] == 2 else by_logit
        value += penalty / 2 * float((weights.coefficients**2).sum())
        return value, LogitWeights(transposed @ by_logit + penalty * weights.coefficients, by_logit.sum(axis=0))

    classes = train.counts.shape[1]
    prior = np.log(np.maximum(train.prior, 1e-9))
    weights = LogitWeights(
        np.zeros((columns.shape[1], outputs(classes))), prior[1:] - prior[:1] if classes == 2 else prior
    )
    for factor in _PATH:
        weights = weights.minimise(partial(objective, penalty=strength * factor))[1]
    return weights


_DENSE = 4_000
"""largest number of unknowns for which the class means of bags are the solution of one dense system"""
_NEAREST = 10
"""number of neighbours of each bag in larger systems"""
_RIDGE = 1e-8
"""ridge that pulls directions that proportions leave undetermined towards the mean of all rows"""


def _prior_of(train: BaggedRows) -> FloatArray:
    """Return the class shares [classes] of rows, from proportions and sizes of bags."""
    return np.asarray(train.sizes @ train.proportions / train.sizes.sum())


def _class_means(proportions: FloatArray, sizes: FloatArray, means: sparse.csr_array, shrinkage: float) -> FloatArray:
    """Return class means [classes, columns], by least squares of bag means [bags, columns] on proportions.

    Bags are weighted by size. `shrinkage` pulls class means towards the mean of all rows.
    """
    weighted = proportions * sizes[:, None]
    total = weighted.sum(axis=0)
    pull = np.diag(total) - np.outer(total, total) / total.sum()
    system = weighted.T @ proportions + shrinkage * pull
    centre = means.T @ sizes / sizes.sum()
    apart_from_it = (means.T @ weighted).T - np.outer(total, centre)
    return np.asarray(centre + np.linalg.pinv(system, rcond=1e-10, hermitian=True) @ apart_from_it)


def _laplacian(means: sparse.csr_array, dense: bool) -> sparse.csr_array:
    """Return the Laplacian [bags, bags] of the similarities, which have no diagonal."""
    from sklearn.metrics import pairwise_distances
    from sklearn.neighbors import kneighbors_graph

    if len(means.indptr) < 3:
        return sparse.csr_array((1, 1))
    if dense:
        distance = pairwise_distances(means)
        apart = distance[np.triu_indices(len(distance), 1)]
        similar = np.exp(-distance / max(float(np.median(apart)), 1e-12))
        np.fill_diagonal(similar, 0.0)
        near = sparse.csr_array(similar)
    else:
        graph = kneighbors_graph(means, min(_NEAREST, means.shape[0] - 1), mode="distance", include_self=False)
        graph.data = np.exp(-graph.data / max(float(np.median(graph.data)), 1e-12))
        near = sparse.csr_array(graph.maximum(graph.T))
    return sparse.csr_array(sparse.diags_array(np.asarray(near.sum(axis=1)).ravel()) - near)


@dataclass(frozen=True, eq=False)
class MeanOperator:
    """Statistics of the labels that are sufficient for logistic regression."""

    means: FloatArray
    """[classes, columns] mean over all rows of y_ic x_i"""
    prior: FloatArray
    """[classes] mean over all rows of y_ic"""

    @classmethod
    def of_bags(cls, train: BaggedRows, columns: sparse.csr_array, shrinkage: float = 0.0) -> MeanOperator:
        """Return the operator of the mean map, with one mean per class; `columns` belong to the rows of `train`."""
        prior, sizes = _prior_of(train), train.sizes.astype(np.float64)
        means = _class_means(train.proportions, sizes, bag_average(train) @ columns, shrinkage)
        return cls(means * prior[:, None], prior)

    @classmethod
    def smooth_over_bags(cls, train: BaggedRows, columns: sparse.csr_array, gamma: float) -> MeanOperator:
        """Return the operator of the Laplacian mean map, with class means of each bag that are smooth over bags.

        They minimise sum_k (m_k / mean size) |M_k - sum_c p_kc B_kc|^2 + gamma sum_c tr(B_c' L B_c), with L the
        Laplacian of the similarities exp(-|M_k - M_l| / median distance). Directions that proportions leave
        undetermined have the value of the mean of all rows. With more than `_DENSE` unknowns only the nearest bags are
        similar, and conjugate gradients solve the system.
        """
        proportions, sizes, means = train.proportions, train.sizes.astype(np.float64), bag_average(train) @ columns
        (bags, classes), weights, means = proportions.shape, sizes / sizes.mean(), sparse.csr_array(means)
        mixing = sparse.hstack([sparse.diags_array(column) for column in proportions.T])
        smooth = sparse.block_diag([_laplacian(means, dense=bags * classes <= _DENSE)] * classes)
        fit = mixing.T @ sparse.diags_array(weights) @ mixing
        ridge = sparse.diags_array(_RIDGE * np.tile(weights, classes))
        system = sparse.csr_array(fit + gamma * smooth + ridge)
        # [classes, bags, classes] the class means of bags that make up each row of the operator
        parts = (proportions * (sizes / sizes.sum())[:, None])[None] * np.eye(classes)[:, None]
        right = parts.transpose(0, 2, 1).reshape(classes, -1).T
        if bags * classes <= _DENSE:
            solved = np.linalg.solve(system.toarray(), right)
        else:
            jacobi = sparse.diags_array(1 / system.diagonal())
            each = [sparse.linalg.cg(system, column, rtol=1e-8, maxiter=2000, M=jacobi)[0] for column in right.T]
            solved = np.stack(each, axis=1)
        mixed = np.einsum("ckn,kc->kn", solved.reshape(classes, bags, classes), proportions) * weights[:, None]
        rest = parts.sum(axis=(1, 2)) - mixed.sum(axis=0)
        centre = means.T @ sizes / sizes.sum()
        return cls((means.T @ mixed).T + np.outer(rest, centre), _prior_of(train))

    @classmethod
    def of_labels(cls, labels: IntArray, classes: int, columns: sparse.csr_array) -> MeanOperator:
        """Return the operator of rows with given labels."""
        rows = len(labels)
        of_class = sparse.csr_array((np.full(rows, 1 / rows), (labels, np.arange(rows))), shape=(classes, rows))
        return cls((of_class @ columns).toarray(), np.bincount(labels, minlength=classes) / rows)

    def logistic(
        self, columns: sparse.csr_array, strength: float, start: LogitWeights | None = None
    ) -> tuple[float, LogitWeights]:
        """Minimise sum_i logsumexp_c f_ic - N sum_c (w_c . means_c + prior_c b_c) + strength/2 |w|^2.

        Returns the minimum of this convex function, and its weights.
        """
        transposed, rows = sparse.csr_array(columns.T), columns.shape[0]
        width = outputs(len(self.prior))
        means, prior = self.means[-width:].T * rows, self.prior[-width:] * rows

        def objective(weights: LogitWeights) -> tuple[float, LogitWeights]:
            logits = weights(columns)
            free = np.logaddexp(0.0, logits) if width == 1 else logsumexp(logits, axis=1)
            value = free.sum() - (weights.coefficients * means).sum() - weights.intercept @ prior
            proba = _probabilities(logits)[:, -width:]
            by_coefficient = transposed @ proba - means + strength * weights.coefficients
            value += strength / 2 * (weights.coefficients**2).sum()
            return float(value), LogitWeights(by_coefficient, proba.sum(axis=0) - prior)

        start = start or LogitWeights(np.zeros((columns.shape[1], width)), np.zeros(width))
        return start.minimise(objective)


_CHANCE = 1e-6
"""significance level of both tests"""
_FEWEST_DEGREES = 8
"""smallest number of degrees of freedom: with fewer bags, the second test can hardly reject"""
_MOST_EXCESS = 1.2
"""largest mean over columns of the variance between bags that proportions leave, in units of chance"""
_LEAST_SLOPE = 0.05
"""smallest slope; above 0, so that rows keep their order"""


@dataclass(frozen=True, eq=False)
class FlatterLogits:
    """Log probabilities times a slope of at most 1, plus an intercept for each class. The default changes nothing."""

    slope: float = 1.0
    intercepts: FloatArray | float = 0.0
    """[classes]"""

    def __call__(self, log_proba: FloatArray) -> FloatArray:
        """Return log probabilities [rows, classes], up to a constant for each row."""
        return np.asarray(self.slope * log_proba + self.intercepts)


def _are_chosen_by_label(train: BaggedRows, schema: Schema) -> bool:
    """Return whether proportions vary by more than chance, and features between bags only with the proportions.

    False if counts have noise, which looks like such a variation.
    """
    sizes, prior = train.sizes.astype(np.float64), _prior_of(train)
    apart = train.proportions - prior
    bags, classes = apart.shape
    freedom = bags - classes
    varied = (sizes[:, None] * apart**2 / np.maximum(prior, 1e-12)).sum()
    if train.noise or freedom < _FEWEST_DEGREES or chdtrc((bags - 1) * (classes - 1), varied) > _CHANCE:
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
    return bool(excess.mean() < _MOST_EXCESS * freedom and chdtrc(freedom, excess.max()) * len(excess) > _CHANCE)


def correction(
    fit: Callable[[BaggedRows], Callable[[Rows], FloatArray]], train: BaggedRows, schema: Schema
) -> FlatterLogits:
    """Return the correction of a method if rows were chosen by their labels, from bags that its fit has not seen.

    `fit` returns a function from rows to log probabilities [rows, classes]. It is called twice, with half of the bags.
    """
    if not _are_chosen_by_label(train, schema):
        return FlatterLogits()
    log_proba = np.empty((len(train.bag_of_row), len(train.prior)))
    odd = np.lexsort((train.sizes, train.proportions[:, -1])).argsort() % 2 == 1  # both halves have all kinds of bags
    for unseen in (odd, ~odd):
        rows = unseen[train.bag_of_row]
        log_proba[rows] = fit(train.some(~unseen))(Rows(*(each[rows] for each in train.rows)))
    return _flatter(log_proba, train)


def _flatter(log_proba: FloatArray, train: BaggedRows) -> FlatterLogits:
    """Return the slope (at most 1) and intercepts of log probabilities [rows, classes] with the largest likelihood."""
    from scipy.optimize import minimize  # takes long to import, and `llpbench plan` does not need it

    prior = _prior_of(train)
    log_proba = log_proba - logsumexp(log_proba, axis=1, keepdims=True)
    means = sparse.csr_array(bag_average(train) @ log_proba)
    attained = prior @ np.diag(_class_means(train.proportions, train.sizes.astype(np.float64), means, 0.0))

    def objective(values: FloatArray) -> tuple[float, FloatArray]:
        logits = values[0] * log_proba + values[1:]
        free = logsumexp(logits, axis=1)
        proba = np.exp(logits - free[:, None])
        gradient = np.append((proba * log_proba).sum(axis=1).mean() - attained, proba.mean(axis=0) - prior)
        return float(free.mean() - values[0] * attained - prior @ values[1:]), gradient

    start = np.append(1.0, np.zeros(len(prior)))
    limits = [(_LEAST_SLOPE, 1.0), *[(-50.0, 50.0)] * len(prior)]
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=limits)
    return FlatterLogits(float(found.x[0]), found.x[1:])
