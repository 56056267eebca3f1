"""alternating-mean-map: logistic regression and labels of the right counts, in turn.

Patrini, Nock, Rivera & Caetano 2014 (AMM). Start from the logits of a mean map. Each bag labels as many rows of each
class as it counts, those with the largest logits; logistic regression is refitted to the labels, and so on: EM with
hard labels. `labels=max` takes the smallest logits instead, as the paper does for robustness, and keeps the best
objective. In ordered bags labels of exact counts confirm themselves, and it ends far behind its start.

Where it differs from the authors' code: counts are whole numbers nearest to the proportions (there: cut, and a bag
without positives gets one); more than two classes are assigned together (`blocks/assigning.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import sparse

from llpbench.blocks.assigning import assigned
from llpbench.blocks.linear import FEATURES, LinearColumns, LogitPredictor, LogitWeights
from llpbench.blocks.mean_operator import labelled_operator, laplacian_operator, logistic_of_means, mean_operator
from llpbench.blocks.trees import full_logits
from llpbench.core.bags import BaggedRows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import Choice, LogUniform
from llpbench.core.registry import register_method

_SMOOTHNESS = 0.01
"""of class means over bags where it starts from the Laplacian mean map"""
_ALIKE = 1e-4
"""logits of the start that differ by less say that bags are equal: it stays with them"""


@dataclass(frozen=True)
class AlternatingMeanMapParams(DirectParams):
    """Hyperparameters."""

    features: Annotated[str, FEATURES] = "scores"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    strength: Annotated[float, LogUniform(0.1, 1e4)] = 10.0
    """of the L2 penalty, beside a sum over rows"""
    start: Annotated[str, Choice("laplacian", "means")] = "laplacian"
    """mean map that gives the first logits"""
    labels: Annotated[str, Choice("min", "max")] = "min"
    """labels of the least or of the largest loss among those of the right counts"""
    rounds: Annotated[int, Choice(5, 30)] = 30
    """at most"""


@register_method("alternating-mean-map", reference="Patrini et al. 2014", family="classical", extra=True)
class AlternatingMeanMap(DirectMethod):
    """Logistic regression refitted to labels that match the counts of bags."""

    Params = AlternatingMeanMapParams
    params: AlternatingMeanMapParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LogitPredictor:
        """Until the objective changes by less than 0.001, or `rounds` are over."""
        del rng
        train = train.where_known()
        design = LinearColumns(self.params.features, train.rows, schema)
        columns = design(train.rows)
        if self.params.start == "laplacian":
            operator = laplacian_operator(train, columns, _SMOOTHNESS)
        else:
            operator = mean_operator(train, columns)
        start = logistic_of_means(columns, operator, self.params.strength)[1]
        if np.ptp(start(columns), axis=0).max() < _ALIKE:  # labels would be arbitrary, and confirm themselves
            return LogitPredictor(design, start)
        path = alternated(columns, train, start, self.params)
        return LogitPredictor(design, min(path, key=lambda fit: fit[0])[1])


def alternated(
    columns: sparse.csr_array, train: BaggedRows, start: LogitWeights, params: AlternatingMeanMapParams
) -> list[tuple[float, LogitWeights]]:
    """Objective and weights of each round."""
    path: list[tuple[float, LogitWeights]] = []
    weights, sign = start, 1 if params.labels == "min" else -1
    while len(path) < params.rounds:
        labels = assigned(sign * full_logits(weights(columns)), train)
        operator = labelled_operator(labels, train.counts.shape[1], columns)
        path.append(logistic_of_means(columns, operator, params.strength, start=weights))
        weights = path[-1][1]
        if len(path) > 1 and abs(path[-1][0] - path[-2][0]) < 1e-3:
            break
    return path
