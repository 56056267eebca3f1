"""TabLLP-PSE: DLLP, then pseudo-labels that match the counts of every bag exactly.

    stage 1: L_bag;  stage 2: cross-entropy to labels of k-means with Σᵢ [ŷᵢ = c] = nₖc
    ŷᵢ: label of row i, from clusters whose sizes match the counts

The pseudo-labelling baseline of the TabLLP-BDC paper, after Liu et al. 2021 and Caron et al. 2018. The first stage is
DLLP. The second trains on rows with the labels of a constrained k-means. It assigns the rows of each bag to centroids
of classes at the smallest total squared distance, with as many rows per label as the bag counts. Choices where the
paper is silent:

- Centroids start as the mean vectors of the classes that the first stage predicts, so each centroid has a class.
- Labels are updated every 10 epochs, from the current encoder and predictions.

If proportions are similar in all bags, their counts hardly separate the classes. Then k-means drifts to any other
structure of z, and a seed may end below chance. `space=proba` clusters predictions instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from torch import Tensor

from llpbench import Member, Method, MethodParams, Now, Stage, losses, register_method
from llpbench.blocks.assigning import assigned
from llpbench.core.bags import BaggedRows, Bags, FloatArray, IntArray
from llpbench.core.model import Model
from llpbench.core.ranges import Choice

ITERATIONS = 50
"""largest number of iterations of the constrained k-means"""


@dataclass(frozen=True)
class _PSEParams(MethodParams):
    """Hyperparameters of the second stage."""

    refresh: Annotated[int | None, Choice(1, 5, 10, None)] = 10
    """epochs between two updates of the labels; None: never"""
    space: Annotated[str, Choice("z", "proba")] = "z"
    """space of the clustering: row vectors, or predictions"""
    second_rate: Annotated[float, Choice(0.1, 1.0)] = 1.0
    """factor on the learning rate in the second stage"""


@register_method("tabllp-pse", version=1, reference="TabLLP-BDC paper, after Liu et al. 2021", family="pseudo-label")
class TabLLPPSE(Method):
    """DLLP, then training on pseudo-labels from k-means constrained by each bag's counts."""

    Params = _PSEParams
    params: _PSEParams

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        second = Stage("pseudo-labels", unit="rows", refresh=self.params.refresh, rate=self.params.second_rate)
        self.stages = (Stage("proportions"), second)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return the proportion loss of bags; in the second stage of single rows, where it is cross-entropy."""
        return losses.proportion_loss(model.log_proba(bags), bags)

    def prepare(self, member: Member, now: Now) -> FloatArray | None:
        """Return the second stage's pseudo-labels, one-hot [rows, classes]."""
        if now.stage == "proportions":
            return None
        proba = member.proba().astype(np.float64)
        points = proba if self.params.space == "proba" else member.encode().astype(np.float64)
        labels, _ = _constrained_kmeans(points, _centroids_of(points, proba), member.train)
        return np.asarray(np.eye(proba.shape[1])[labels])


def _centroids_of(points: FloatArray, weights: FloatArray) -> FloatArray:
    """Return means [classes, dim] of `points` [rows, dim] with `weights` [rows, classes]; without weight, of all."""
    total = weights.sum(axis=0)[:, None]
    means = weights.T @ points / np.maximum(total, np.finfo(np.float64).tiny)
    return np.asarray(np.where(total > 0, means, points.mean(axis=0)))


def _constrained_kmeans(points: FloatArray, centroids: FloatArray, train: BaggedRows) -> tuple[IntArray, list[float]]:
    """Run k-means with labels that match the counts of each bag.

    From `points` [rows, dim] and first `centroids` [classes, dim], return labels [rows] and the objective (the sum of
    squared distances) after each iteration, which never rises.
    """
    labels, objective = np.full(len(points), -1), []
    for _ in range(ITERATIONS):
        cost = ((points**2).sum(axis=1)[:, None] - 2 * points @ centroids.T) + (centroids**2).sum(axis=1)
        before, labels = labels, _match_counts(cost, train)
        objective.append(float(cost[np.arange(len(cost)), labels].sum()))
        if (before == labels).all():
            break
        centroids = np.where(
            np.bincount(labels, minlength=len(centroids))[:, None] > 0,
            _centroids_of(points, np.eye(len(centroids))[labels]),
            centroids,
        )
    return labels, objective


def _match_counts(cost: FloatArray, train: BaggedRows) -> IntArray:
    """Return the labels [rows] of least total `cost` [rows, classes] that match the counts of every bag.

    Noisy or fractional counts are matched as in `BaggedRows.whole_counts`. In bags with suppressed counts, each row
    gets its own cheapest label.
    """
    labels, known = np.asarray(cost.argmin(axis=1), dtype=np.int64), train.known[train.bag_of_row]
    labels[known] = assigned(-cost[known], train.where_known())
    return labels
