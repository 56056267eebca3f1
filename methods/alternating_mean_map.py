"""alternating-mean-map: logistic regression, fitted in turn with labels that match the counts of bags.

    labels y of the largest logits with Σᵢ [yᵢ = c] = nₖc;  then logistic regression;  repeat

Patrini, Nock, Rivera & Caetano 2014 (AMM). A mean map gives the first logits. Then two steps alternate (EM with hard
labels):

- In each bag, each class is assigned to the rows with its largest logits. The number of these rows is the class's
  count.
- Logistic regression is fitted to these labels.

The fit with the smallest objective is returned, usually the last one.

Differences from the authors' code:

- Counts are the whole numbers nearest to the proportions. The authors round down, and then count at least one positive.
- With more than two classes, all are assigned together (`blocks/assigning.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import sparse

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, LogUniform, Schema, register_method
from llpbench.blocks.assigning import assigned
from llpbench.blocks.design import FEATURES, LinearColumns
from llpbench.blocks.linear import LinearPredictor, LogitWeights, MeanOperator
from llpbench.blocks.trees import full_logits

_SMOOTHNESS = 0.01
"""smoothness of class means over bags in the Laplacian mean map that gives the first logits"""
_ALIKE = 1e-4
"""range of the first logits below which bags count as equal; the first logits are then the result"""


@dataclass(frozen=True)
class _AlternatingMeanMapParams(DirectParams):
    features: Annotated[str, FEATURES] = "scores"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    strength: Annotated[float, LogUniform(0.1, 1e4)] = 10.0
    """strength of the L2 penalty, relative to a loss summed over rows"""
    start: Annotated[str, Choice("laplacian", "means")] = "laplacian"
    """mean map that gives the first logits"""
    rounds: Annotated[int, Choice(5, 30)] = 30
    """largest number of rounds"""


@register_method("alternating-mean-map", version=1, reference="Patrini et al. 2014", family="classical", extra=True)
class AlternatingMeanMap(DirectMethod):
    """Logistic regression refitted to labels that match the counts of bags."""

    Params = _AlternatingMeanMapParams
    params: _AlternatingMeanMapParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> LinearPredictor:
        """Alternate until the objective changes by less than 0.001, for at most `rounds` rounds."""
        design = LinearColumns(self.params.features, train.rows, schema)
        columns = design(train.rows)
        if self.params.start == "laplacian":
            operator = MeanOperator.smooth_over_bags(train, columns, _SMOOTHNESS)
        else:
            operator = MeanOperator.of_bags(train, columns)
        start = operator.logistic(columns, self.params.strength)[1]
        if np.ptp(start(columns), axis=0).max() < _ALIKE:  # labels would be arbitrary and confirm themselves
            return LinearPredictor(design, start)
        path = _alternated(columns, train, start, self.params)
        return LinearPredictor(design, min(path, key=lambda fit: fit[0])[1])


def _alternated(
    columns: sparse.csr_array, train: BaggedRows, start: LogitWeights, params: _AlternatingMeanMapParams
) -> list[tuple[float, LogitWeights]]:
    """Return the objective and the weights of each round."""
    path: list[tuple[float, LogitWeights]] = []
    weights = start
    while len(path) < params.rounds:
        labels = assigned(full_logits(weights(columns)), train)
        operator = MeanOperator.of_labels(labels, train.counts.shape[1], columns)
        path.append(operator.logistic(columns, params.strength, start=weights))
        weights = path[-1][1]
        if len(path) > 1 and abs(path[-1][0] - path[-2][0]) < 1e-3:
            break
    return path
