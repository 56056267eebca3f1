"""count-bayes: naive Bayes fitted by EM, with class probabilities of rows that add up to the counts of bags.

    naive Bayes by EM,  class probabilities qᵢ = softmax( log P(xᵢ, y) + shift of the bag ), which add up to nₖ

Hernandez-Gonzalez, Inza & Lozano 2013 learn Bayesian networks in this way. Here the network is naive Bayes. Numbers are
divided into ten quantile bins.

- M step: estimate P(bin | class), with rows weighted by their posteriors q.
- E step: compute logits by Bayes' rule, then q given the counts of the bag.

EM starts from q = proportions, so one round is naive Bayes on soft labels. A new row is predicted by Bayes' rule with
the class proportions of all rows. EM of a generative model follows the strongest structure of the features, which need
not be the classes. More rounds can therefore be worse.

Differences from the paper: no structure is learned. `posterior=shift` shifts the logits of a bag until their
probabilities match its counts. `posterior=count` is the posterior given the counts: exact in small bags, a normal
approximation in larger ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import softmax

from llpbench import BaggedRows, DirectMethod, DirectParams, FloatArray, IntArray, Rows, Schema, register_method
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.design import RowBins
from llpbench.core.ranges import Choice, LogUniform

_BINS, _CATEGORIES = 10, 250
_STILL = 1e-4
"""largest change of posteriors at which EM stops"""
_LEAST = 1e-12
"""probability of a bin in which a class has no rows"""


@dataclass(frozen=True)
class _CountBayesParams(DirectParams):
    rounds: Annotated[int, Choice(1, 2, 5, 50)] = 50
    """largest number of EM rounds"""
    smoothing: Annotated[float, LogUniform(0.1, 100.0)] = 1.0
    """rows added to every bin of every class (Laplace)"""
    posterior: Annotated[str, Choice("shift", "count")] = "shift"
    """posterior of rows: logits shifted until the bag matches its counts, or the posterior given the counts"""


@dataclass(frozen=True, eq=False)
class _NaiveBayes:
    """Bayes' rule with independent features."""

    bins: RowBins
    tables: list[FloatArray]
    """[bins, classes] log probability of each bin of a feature"""
    prior: FloatArray
    """[classes]"""

    def __call__(self, rows: Rows) -> FloatArray:
        """Return probabilities [rows, classes]."""
        return np.asarray(softmax(_bayes_logits(self.bins(rows), self.tables, self.prior), axis=1))


@register_method("count-bayes", version=1, reference="Hernandez-Gonzalez et al. 2013", family="classical", extra=True)
class CountBayes(DirectMethod):
    """Naive Bayes by EM on the counts of bags."""

    Params = _CountBayesParams
    params: _CountBayesParams

    def fit(self, train: BaggedRows, schema: Schema, rng: np.random.Generator) -> _NaiveBayes:
        """Run at most `rounds` rounds of EM."""
        bins = RowBins(train.rows, _BINS, _CATEGORIES)
        codes, counts, q = bins(train.rows), BagCounts(train), train.proportions[train.bag_of_row]
        sizes = [feature.size for feature in bins.features]
        tables = _bayes_tables(codes, sizes, q, self.params.smoothing)
        for _ in range(self.params.rounds - 1):
            before, q = q, _responsibilities(counts, _bayes_logits(codes, tables, train.prior), self.params.posterior)
            tables = _bayes_tables(codes, sizes, q, self.params.smoothing)
            if np.abs(q - before).max() < _STILL:
                break
        return _NaiveBayes(bins, tables, train.prior)


def _bayes_tables(codes: IntArray, sizes: list[int], q: FloatArray, smoothing: float) -> list[FloatArray]:
    """Return log P(bin | class) [bins, classes] of each feature, with rows weighted by `q` [rows, classes]."""
    tables = []
    for feature, size in zip(codes, sizes, strict=True):
        total = np.stack([np.bincount(feature, weight, size) for weight in q.T], axis=1) + smoothing
        table = np.log(np.maximum(total / np.maximum(total.sum(axis=0), _LEAST), _LEAST))
        seen = np.bincount(feature, minlength=size) > 0  # smoothing alone would favour the rarer class
        tables.append(np.where(seen[:, None], table, 0.0))
    return tables


def _bayes_logits(codes: IntArray, tables: list[FloatArray], prior: FloatArray) -> FloatArray:
    """Return logits [rows, classes]: log prior + sum over features of log P(bin | class)."""
    logits = np.tile(np.log(np.maximum(prior, _LEAST)), (codes.shape[1], 1))
    for feature, table in zip(codes, tables, strict=True):
        logits += table[feature]
    return logits


def _responsibilities(counts: BagCounts, logits: FloatArray, posterior: str) -> FloatArray:
    """Return class probabilities of rows [rows, classes], given the counts of their bags."""
    return counts.fitted(logits) if posterior == "shift" else counts.posterior(softmax(logits, axis=1))
