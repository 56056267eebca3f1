"""prop-svm: a support vector machine, fitted in turn with labels that nearly match the counts of bags.

    min over w, y of ½ ‖w‖² + C Σᵢ hinge(yᵢ fᵢ) + C_p Σₖ mₖ | share of y in bag k − p̄ₖ |

Alternating proportion-SVM: Yu, Liu, Kumar, Jebara & Chang 2013. A linear SVM is fitted to the labels. Then each
bag gets its best labels (exact, by sorting). C starts at a ten-thousandth of its value and rises by 50 % each round.
The problem has many local optima. Fits from random labels end in very different optima. Fits from the ranks of ridge
regression on bag means stay near these ranks.

Differences from the authors' code:

- The SVM is linear and fitted by L-BFGS, instead of kernels and an external solver. C_p = 10 C.
- The first labels match the counts by the ranks of `bag-mean-linear`. The authors take the best of ten random
  labellings (`start=random`).
- With more than two classes, each class is fitted against the rest.
- A logistic curve, fitted to the proportions of bags, converts scores to probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import sparse

from llpbench.blocks.assigning import assigned
from llpbench.blocks.bag_losses import fit_bags
from llpbench.blocks.design import bag_average, linear_fit
from llpbench.blocks.linear import FEATURES, LinearColumns, LogitWeights, outputs, probabilities
from llpbench.blocks.proportion_svm import proportion_svm
from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, Rows, Schema
from llpbench.core.method import DirectMethod, DirectParams
from llpbench.core.ranges import Choice, LogUniform
from llpbench.core.registry import register_method

_RANDOM_STARTS = 10


@dataclass(frozen=True)
class PropSVMParams(DirectParams):
    """Hyperparameters."""

    features: Annotated[str, FEATURES] = "scores"
    """numbers as z-scores, as normal scores, or as these and ten quantile bins"""
    cost: Annotated[float, LogUniform(1e-3, 10.0)] = 1.0
    """cost of a row inside the margin, C in the paper"""
    proportions: Annotated[float, LogUniform(0.1, 100.0)] = 10.0
    """cost of each row too many or too few of a class in a bag, relative to `cost`"""
    start: Annotated[str, Choice("ridge", "random")] = "ridge"
    """first labels: from the ranks of ridge regression on bag means, or the best of ten random labellings"""


@dataclass(frozen=True, eq=False)
class CalibratedScores:
    """Probabilities from scores, by logistic curves fitted to the proportions of bags."""

    columns: LinearColumns
    scores: tuple[LogitWeights, ...]
    """one score for two classes, otherwise one for each class"""
    curves: tuple[LogitWeights, ...]
    """logit of a class as a function of its score"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        columns = self.columns(rows)
        pairs = zip(self.scores, self.curves, strict=True)
        each = [probabilities(curve(sparse.csr_array(score(columns)))) for score, curve in pairs]
        if len(each) == 1:
            return each[0]
        shares = np.column_stack([proba[:, 1] for proba in each]) + 1e-12
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@register_method("prop-svm", version=1, reference="Yu et al. 2013", family="classical", extra=True)
class PropSVM(DirectMethod):
    """Linear support vector machine with labels that match the proportions of bags."""

    Params = PropSVMParams
    params: PropSVMParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> CalibratedScores:
        """Fit each class against the rest, or once with two classes."""
        train = train.where_known()
        design = LinearColumns(self.params.features, train.rows, schema)
        columns = design(train.rows)
        scores, curves, anneal = [], [], self.params.start == "random"
        for label in range(schema.classes)[-outputs(schema.classes) :]:
            share = train.proportions[:, label]
            against = BaggedRows(train.rows, train.index, np.stack([1 - share, share], axis=1) * train.sizes[:, None])
            fits = [
                proportion_svm(columns, against, share, labels, self.params.cost, self.params.proportions, anneal)
                for labels in self._starts(columns, against, rng)
            ]
            scores.append(min(fits, key=lambda fit: fit[0])[1])
            curves.append(fit_bags(sparse.csr_array(scores[-1](columns)), against, "kl", 1e-3))
        return CalibratedScores(design, tuple(scores), tuple(curves))

    def _starts(self, columns: sparse.csr_array, train: BaggedRows, rng: np.random.Generator) -> list[BoolArray]:
        """Return one or several sets of labels [rows] that match the counts."""
        if self.params.start == "random":
            noise = rng.normal(size=(_RANDOM_STARTS, columns.shape[0], 2))
            return [assigned(each, train) == 1 for each in noise]
        means = sparse.csr_array(bag_average(train) @ columns)
        ridge = linear_fit("ridge", means, train.proportions, train.sizes / train.sizes.mean(), 1.0)
        return [assigned(np.log(ridge(columns)), train) == 1]
