"""Bag soft labels with nearest neighbours: average the proportions of the bags of the nearest training rows.

    f(x) = mean of p̄ over the bags of the nearest training rows, `neighbours` in number

This is the k-nearest-neighbour learner of Musicant, Christensen & Olson 2007 for aggregate outputs. In random bags it
learns almost nothing, since a neighbour may be in any bag. The paper does not specify the distance. Here numbers are
converted to normal scores, and two different categories have distance 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import sparse

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, FloatArray, Rows, Schema, register_method
from llpbench.blocks.design import Points

_TREE = 20
"""largest number of coordinates for which a ball tree is faster than brute force"""
_BLOCK = 4_096
"""rows predicted at a time"""


@dataclass(frozen=True)
class _BagSoftLabelKNNParams(DirectParams):
    neighbours: Annotated[int, Choice(10, 50, 200)] = 50
    """number of nearest training rows"""


@dataclass(frozen=True, eq=False)
class _NearestBags:
    """Mean targets of the nearest training rows."""

    points: Points
    training: sparse.csr_array | FloatArray
    """[training rows, coordinates]"""
    targets: FloatArray
    """[training rows, classes]"""
    neighbours: int

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        from sklearn.neighbors import NearestNeighbors

        algorithm = "ball_tree" if self.points.width <= _TREE else "brute"
        search = NearestNeighbors(n_neighbors=self.neighbours, algorithm=algorithm).fit(self.training)
        asked = _dense_if_narrow(self.points(rows))
        proba = np.empty((len(rows.numeric), self.targets.shape[1]))
        for first in range(0, len(proba), _BLOCK):
            nearest = search.kneighbors(asked[first : first + _BLOCK], return_distance=False)
            proba[first : first + _BLOCK] = self.targets[nearest].mean(axis=1)
        return proba


@register_method("bag-soft-label-knn", version=2, reference="Musicant et al. 2007", family="classical", extra=True)
class BagSoftLabelKNN(DirectMethod):
    """Mean proportions of the bags of the nearest training rows."""

    Params = _BagSoftLabelKNNParams
    params: _BagSoftLabelKNNParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> _NearestBags:
        """Store the training rows in random order, because the search takes the first of equally near ones."""
        points, order = Points(train.rows, schema), rng.permutation(len(train.bag_of_row))
        neighbours = min(self.params.neighbours, len(train.bag_of_row))
        targets = train.proportions[train.bag_of_row[order]]
        return _NearestBags(points, _dense_if_narrow(points(train.rows)[order]), targets, neighbours)


def _dense_if_narrow(points: sparse.csr_array, most: int = 200) -> sparse.csr_array | FloatArray:
    """Return points as a dense array if that needs little memory."""
    return np.asarray(points.toarray()) if points.shape[1] <= most else points
