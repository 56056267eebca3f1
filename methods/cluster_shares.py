"""cluster-shares: divide rows into clusters, and estimate each cluster's class proportions from the bags.

    min over 0 ≤ v ≤ 1 of Σₖ (mₖ / mean m) ( p̄ₖ − Rₖ · v )² + shrinkage Σⱼ (vⱼ − π)²
    vⱼ: share of a class in cluster j;  Rₖⱼ: fraction of bag k's rows in cluster j;  mean m: mean size of bags

Stolpe & Morik 2011 cluster rows, and then label the clusters such that the labels match the proportions of bags. Chen
et al. 2009 do so with kernel k-means. Let R_kj be the fraction of bag k's rows in cluster j. A row's
prediction is the v, the proportions of a class, of its cluster, averaged over five clusterings.

Differences from the papers:

- The v_j are proportions, not labels. There is no evolutionary search for feature weights.
- `points=waves` approximates kernel k-means by 300 random Fourier features.
- Distances are those of normal scores, and two different categories have distance 1.
- With more than two classes, each class is fitted separately, and the v of a cluster are divided by their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import sparse

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, FloatArray, Rows, Schema, register_method
from llpbench.blocks.design import Points, bag_average

_STARTS = 5
_WAVES = 300
_BLOCK = 20_000
"""rows converted into random Fourier features at a time"""


@dataclass(frozen=True)
class _ClusterSharesParams(DirectParams):
    clusters: Annotated[int, Choice(5, 10, 20, 40)] = 20
    """number of clusters"""
    shrinkage: Annotated[float, Choice(0.01, 0.1, 1.0)] = 0.1
    """strength of shrinking the proportions of clusters to those of all rows; 1 counts as much as one bag"""
    points: Annotated[str, Choice("plain", "waves")] = "plain"
    """space of the clustering: rows, or their random Fourier features (kernel k-means)"""


@dataclass(frozen=True, eq=False)
class _Waves:
    """Random Fourier features of a Gaussian kernel. Its width is the root mean square distance of rows."""

    frequencies: FloatArray
    """[coordinates, waves]"""
    phases: FloatArray

    def __call__(self, points: sparse.csr_array) -> FloatArray:
        """Return features [rows, waves]."""
        return np.asarray(np.cos(points @ self.frequencies + self.phases), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class _Clusterings:
    """Assignment of rows to their nearest centres, in several clusterings."""

    points: Points
    waves: _Waves | None
    centres: FloatArray
    """[clusterings, clusters, coordinates]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return the cluster of each row [clusterings, rows]."""
        points = self.points(rows)
        nearest = [self._nearest(points[i : i + _BLOCK]) for i in range(0, points.shape[0], _BLOCK)]
        return np.concatenate(nearest, axis=1)

    def _nearest(self, points: sparse.csr_array) -> FloatArray:
        seen = points if self.waves is None else self.waves(points)
        return np.stack([((c**2).sum(axis=1) / 2 - seen @ c.T).argmin(axis=1) for c in self.centres])


@dataclass(frozen=True, eq=False)
class _ClusterPredictor:
    """The mean class proportions of a row's clusters."""

    clusters: _Clusterings
    shares: FloatArray
    """[clusterings, clusters, classes]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        pairs = zip(self.shares, self.clusters(rows), strict=True)
        return np.asarray(np.mean([shares[number] for shares, number in pairs], axis=0))


@register_method("cluster-shares", version=1, reference="after Stolpe & Morik 2011", family="classical", extra=True)
class ClusterShares(DirectMethod):
    """Clusters of rows with class proportions that explain the proportions of bags."""

    Params = _ClusterSharesParams
    params: _ClusterSharesParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> _ClusterPredictor:
        """Fit five clusterings by mini-batch k-means, and the proportions of each by least squares."""
        from sklearn.cluster import MiniBatchKMeans

        points = Points(train.rows, schema)
        plain, waves = points(train.rows), None
        seen: sparse.csr_array | FloatArray = plain
        if self.params.points == "waves":
            squares = plain.multiply(plain).mean(axis=0) - np.asarray(plain.mean(axis=0)) ** 2
            width = np.sqrt(2 * max(float(squares.sum()), 1e-12))
            waves = _Waves(rng.normal(size=(plain.shape[1], _WAVES)) / width, rng.uniform(0, 2 * np.pi, _WAVES))
            seen = np.concatenate([waves(plain[i : i + _BLOCK]) for i in range(0, plain.shape[0], _BLOCK)])
        number = min(self.params.clusters, plain.shape[0])
        centres = [
            MiniBatchKMeans(number, n_init=1, random_state=int(rng.integers(2**31))).fit(seen).cluster_centers_
            for _ in range(_STARTS)
        ]
        clusters = _Clusterings(points, waves, np.stack(centres).astype(np.float64))
        in_bag, weights = bag_average(train), train.sizes / train.sizes.mean()
        shares = []
        for labels in clusters(train.rows):
            place = (np.arange(len(labels)), labels)
            of_cluster = sparse.csr_array((np.ones(len(labels)), place), shape=(len(labels), number))
            inside = (in_bag @ of_cluster).toarray()
            shares.append(_cluster_shares(inside, train.proportions, weights, train.prior, self.params.shrinkage))
        return _ClusterPredictor(clusters, np.stack(shares))


def _cluster_shares(
    inside: FloatArray, proportions: FloatArray, weights: FloatArray, prior: FloatArray, shrinkage: float
) -> FloatArray:
    """Return class proportions of clusters [clusters, classes] that explain the `proportions` [bags, classes].

    `inside` [bags, clusters] are the fractions of each bag's rows in each cluster.
    """
    from scipy.optimize import lsq_linear  # takes long to import, and `llpbench plan` does not need it

    clusters, root, pull = inside.shape[1], np.sqrt(weights)[:, None], np.sqrt(shrinkage)
    system = np.vstack([inside * root, pull * np.eye(clusters)])
    targets = np.vstack([proportions * root, np.tile(pull * prior, (clusters, 1))])
    if len(prior) == 2:  # the other class gets the rest
        second = lsq_linear(system, targets[:, 1], (0, 1), method="bvls").x
        return np.column_stack([1 - second, second])
    shares = np.column_stack([lsq_linear(system, target, (0, 1), method="bvls").x for target in targets.T])
    shares += 1e-9 * prior
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
