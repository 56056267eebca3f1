"""bag-gp-gbdt: the average of three models, a Gaussian process and two kinds of boosted trees.

    softmax( ⅓ log p_bag-gp + ⅓ log p_em-gbdt + ⅓ log p_count-gbdt )

The prediction is the softmax of the mean of their log probabilities, with equal weights. All three use only bags:

- `bag-gp` has the strongest prior and is the best of the three if there are few bags.
- `em-gbdt` starts from the posterior of `bag-gp` and adds interactions.
- `count-gbdt` starts from the class proportions, independently of `bag-gp`, and therefore makes other errors.

If rows seem to be chosen by their labels, logits are corrected (`blocks/linear.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from scipy.special import log_softmax

from llpbench import BaggedRows, Choice, DirectMethod, DirectParams, FloatArray, Rows, Schema, register_method
from llpbench.blocks.bag_logits import LogitProcess, ProcessPredictor
from llpbench.blocks.components import ProcessSettings
from llpbench.blocks.design import some_bags
from llpbench.blocks.linear import FlatterLogits, correction
from llpbench.blocks.side_by_side import together
from llpbench.blocks.trees import TreeLogits, TreeRows, TreeSettings


@dataclass(frozen=True, eq=False)
class _UnionPredictor(ProcessPredictor):
    """The softmax of the mean log probabilities of three models. Only the process has a posterior, and so effects."""

    refitted: TreeLogits
    counted: TreeLogits

    def log_proba(self, rows: Rows) -> FloatArray:
        """Return the mean log probabilities [rows, classes] of the three models."""
        members = (self.process(rows), self.refitted(rows), self.counted(rows))
        return np.asarray(sum(1 / 3 * log_softmax(each, axis=1) for each in members))


@dataclass(frozen=True)
class _BagGPGBDTParams(DirectParams):
    """Hyperparameters. All other hyperparameters of the three models have their defaults."""

    trees: Annotated[int, Choice(200, 400, 800)] = 800
    """trees of `count-gbdt`"""
    rounds: Annotated[int, Choice(2, 4, 10)] = 4
    """rounds of `em-gbdt`"""


@register_method("bag-gp-gbdt", version=1, reference="this benchmark")
class BagGPGBDT(DirectMethod):
    """Average of bag-gp, em-gbdt and count-gbdt: the mean of their log probabilities."""

    Params = _BagGPGBDTParams
    params: _BagGPGBDTParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> _UnionPredictor:
        """Fit the three models. If rows seem to be chosen by their labels, fit them to halves of the bags, too."""
        train = some_bags(train, rng)
        union = self._union(train, rng)
        return replace(union, flatter=correction(lambda part: self._union(part, rng).log_proba, train, schema))

    def _union(self, train: BaggedRows, rng: np.random.Generator) -> _UnionPredictor:
        """Fit the process, then trees from its posterior, then trees from the prior."""
        process = LogitProcess.of(train, ProcessSettings(), rng)
        data, start = TreeRows(train), process()
        *seeds, last = rng.integers(2**31, size=self.params.rounds + 1).tolist()
        refitted, counted = together(
            lambda: data.boost_posteriors(start, TreeSettings(100), seeds),
            lambda: data.boost_counts(TreeSettings(self.params.trees), last),
        )
        return _UnionPredictor(process, FlatterLogits(), refitted, counted)
