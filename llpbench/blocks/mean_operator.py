"""Mean maps: class means of columns, computed from bag means, and the logistic regression that they determine.

In an exponential family, the likelihood depends on labels only through sum_i y_ic x_i = N pi_c M_c, with M_c the mean
of class c. Bag means are mixtures of class means (Quadrianto et al. 2009; Patrini et al. 2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from llpbench.blocks.design import bag_average
from llpbench.blocks.linear import LogitWeights, minimise, outputs, probabilities
from llpbench.core.bags import BaggedRows, FloatArray, IntArray

_DENSE = 4_000
"""largest number of unknowns for which the class means of bags are the solution of one dense system"""
_NEAREST = 10
"""number of neighbours of each bag in larger systems"""
_RIDGE = 1e-8
"""ridge that pulls directions that proportions leave undetermined towards the mean of all rows"""


@dataclass(frozen=True, eq=False)
class _MeanOperator:
    """Statistics of the labels that are sufficient for logistic regression."""

    means: FloatArray
    """[classes, columns] mean over all rows of y_ic x_i"""
    prior: FloatArray
    """[classes] mean over all rows of y_ic"""


def prior_of(train: BaggedRows) -> FloatArray:
    """Return the class shares [classes] of rows, from proportions and sizes of bags."""
    return np.asarray(train.sizes @ train.proportions / train.sizes.sum())


def class_means(proportions: FloatArray, sizes: FloatArray, means: sparse.csr_array, shrinkage: float) -> FloatArray:
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


class _SmoothMeans:
    """Class means of each bag, smooth over a graph of bags (the Laplacian mean map).

    They minimise sum_k (m_k / mean size) |M_k - sum_c p_kc B_kc|^2 + gamma sum_c tr(B_c' L B_c), with L the Laplacian
    of the similarities exp(-|M_k - M_l| / median distance). Directions that proportions leave undetermined have the
    value of the mean of all rows. With more than `_DENSE` unknowns only the nearest bags are similar, and conjugate
    gradients solve the system.
    """

    def __init__(self, proportions: FloatArray, sizes: FloatArray, means: sparse.csr_array, gamma: float) -> None:
        """`means` [bags, columns] are bag means."""
        self.proportions, self.means, (bags, classes) = proportions, means, proportions.shape
        self.weights = sizes / sizes.mean()
        self.centre = means.T @ sizes / sizes.sum()
        mixing = sparse.hstack([sparse.diags_array(column) for column in proportions.T])
        laplacian = _laplacian(means, dense=bags * classes <= _DENSE)
        smooth = sparse.block_diag([laplacian] * classes)
        fit = mixing.T @ sparse.diags_array(self.weights) @ mixing
        ridge = sparse.diags_array(_RIDGE * np.tile(self.weights, classes))
        self.system = sparse.csr_array(fit + gamma * smooth + ridge)

    def combined(self, parts: FloatArray) -> FloatArray:
        """Return sum_kc a_kc B_kc [combinations, columns], with a given by `parts` [combinations, bags, classes]."""
        bags, classes = self.proportions.shape
        right = parts.transpose(0, 2, 1).reshape(len(parts), -1).T
        if bags * classes <= _DENSE:
            solved = np.linalg.solve(self.system.toarray(), right)
        else:
            jacobi = sparse.diags_array(1 / self.system.diagonal())
            each = [sparse.linalg.cg(self.system, column, rtol=1e-8, maxiter=2000, M=jacobi)[0] for column in right.T]
            solved = np.stack(each, axis=1)
        by_class = solved.reshape(classes, bags, len(parts))
        mixed = np.einsum("ckn,kc->kn", by_class, self.proportions) * self.weights[:, None]
        rest = parts.sum(axis=(1, 2)) - mixed.sum(axis=0)
        return np.asarray((self.means.T @ mixed).T + np.outer(rest, self.centre))

    def operator(self, sizes: FloatArray) -> FloatArray:
        """Return the mean over all rows of y_ic x_i [classes, columns]."""
        share = self.proportions * (sizes / sizes.sum())[:, None]
        return self.combined(share[None] * np.eye(share.shape[1])[:, None])


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
        graph = kneighbors_graph(means, _NEAREST, mode="distance", include_self=False)
        graph.data = np.exp(-graph.data / max(float(np.median(graph.data)), 1e-12))
        near = sparse.csr_array(graph.maximum(graph.T))
    return sparse.csr_array(sparse.diags_array(np.asarray(near.sum(axis=1)).ravel()) - near)


def mean_operator(train: BaggedRows, columns: sparse.csr_array, shrinkage: float = 0.0) -> _MeanOperator:
    """Return the operator of the mean map, with one mean per class; `columns` belong to the rows of `train`."""
    prior, sizes = prior_of(train), train.sizes.astype(np.float64)
    means = class_means(train.proportions, sizes, bag_average(train) @ columns, shrinkage)
    return _MeanOperator(means * prior[:, None], prior)


def laplacian_operator(train: BaggedRows, columns: sparse.csr_array, gamma: float) -> _MeanOperator:
    """Return the operator of the Laplacian mean map, with class means of each bag that are smooth over bags."""
    sizes, means = train.sizes.astype(np.float64), sparse.csr_array(bag_average(train) @ columns)
    return _MeanOperator(_SmoothMeans(train.proportions, sizes, means, gamma).operator(sizes), prior_of(train))


def labelled_operator(labels: IntArray, classes: int, columns: sparse.csr_array) -> _MeanOperator:
    """Return the operator of rows with given labels."""
    rows = len(labels)
    of_class = sparse.csr_array((np.full(rows, 1 / rows), (labels, np.arange(rows))), shape=(classes, rows))
    return _MeanOperator((of_class @ columns).toarray(), np.bincount(labels, minlength=classes) / rows)


def logistic_of_means(
    columns: sparse.csr_array, operator: _MeanOperator, strength: float, start: LogitWeights | None = None
) -> tuple[float, LogitWeights]:
    """Minimise sum_i logsumexp_c f_ic - N sum_c (w_c . means_c + prior_c b_c) + strength/2 |w|^2, a convex function.

    Returns the minimum and its weights.
    """
    transposed, rows = sparse.csr_array(columns.T), columns.shape[0]
    width = outputs(len(operator.prior))
    means, prior = operator.means[-width:].T * rows, operator.prior[-width:] * rows

    def objective(weights: LogitWeights) -> tuple[float, LogitWeights]:
        logits = weights(columns)
        free = np.logaddexp(0.0, logits) if width == 1 else logsumexp(logits, axis=1)
        value = free.sum() - (weights.coefficients * means).sum() - weights.intercept @ prior
        proba = probabilities(logits)[:, -width:]
        by_coefficient = transposed @ proba - means + strength * weights.coefficients
        value += strength / 2 * (weights.coefficients**2).sum()
        return float(value), LogitWeights(by_coefficient, proba.sum(axis=0) - prior)

    return minimise(objective, start or LogitWeights(np.zeros((columns.shape[1], width)), np.zeros(width)))
