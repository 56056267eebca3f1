"""Counts known only as ranges, such as small cells of official tables: "1-9", "<10", "5+".

Each range is replaced by its expected count:

1. First guess, without features: the number of positives of a bag is beta-binomial, with the same mean and
   overdispersion in all bags. These two maximise the likelihood. The likelihood of a range is the probability of all
   numbers in it.
2. Each bag is predicted by models that were fitted without it. z is the logit of its mean prediction, and the logit of
   its mean is a + s z. Now a, s and the overdispersion maximise the likelihood.
3. The final fit learns from the expected count of each bag given its range, and treats it as exact.

This is one step of EM. Expectations come from held-out predictions, because a model that has seen a count would repeat
it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, expit, gammaln, logit, logsumexp

from llpbench.core.bags import BaggedRows, FloatArray, IntArray
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural
from llpbench.data.bag_tables import BagLabels, BagTable

_POINTS = 257
"""largest number of values of a range in a sum; in larger ranges, a value represents its neighbours, too"""
_LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class CountRanges:
    """Bags whose counts are ranges."""

    bags: IntArray  # [ranges] position of the bag
    low: FloatArray  # [ranges] fewest rows of the last class, in ascending order of classes
    high: FloatArray

    @classmethod
    def read(
        cls, ends: FloatArray, labels: BagLabels, table: BagTable, order: Sequence[int], suppress: bool
    ) -> tuple[Self, set[Hashable]]:
        """Return the ranges of bags, and the names of all bags with ranges.

        `ends` are those of `table`. `order`: positions of its classes in ascending order.

        With two columns, each limits the other, because both add up to the rows of a bag. Raises `LLPBenchError` for
        more than two classes, and unless `suppress` for bags whose ranges do not allow their number of rows.
        """
        if len(order) != 2:
            raise LLPBenchError(f"counts as ranges need two classes, got {len(order)}. Give NaN instead of ranges.")
        size, at = np.asarray(labels.sizes, dtype=np.float64), table.rows_of(labels)
        low, high = np.where((at >= 0)[:, None], ends[:, at], np.nan)
        ranged = (np.isnan(table.values[at]) & ~np.isnan(low)).any(axis=1)
        if low.shape[1] == 1:  # of the last class named
            low, high = (np.column_stack([size - other[:, 0], one]) for one, other in ((low, high), (high, low)))
        low, high = low[:, list(order)], high[:, list(order)]
        least = np.fmax(np.fmax(low[:, 1], size - high[:, 0]), 0.0)  # NaN: a class without an entry
        most = np.fmin(np.fmin(high[:, 1], size - low[:, 0]), size)
        exact = table.known(labels)
        off = ranged & (least > most)
        if off.any() and not suppress:
            bag = int(off.argmax())
            of_bag = zip(low[bag], high[bag], strict=True)
            both = " and ".join(f"{a:,.10g}" if a == b else f"{a:,.10g} to {b:,.10g}" for a, b in of_bag if a <= b)
            wrong = f"bag {labels.names[bag]!r} has {size[bag]:,.10g} rows, but its counts are {both}"
            advice = f"Correct them.{table.advice_to_ignore(exact | (ranged & ~off))}"
            raise LLPBenchError(f"{wrong} ({plural(int(off.sum()), 'such bag')} in all). {advice}")
        bags = np.flatnonzero(ranged & ~off)
        return cls(bags, least[bags], most[bags]), {labels.names[bag] for bag in np.flatnonzero(ranged)}

    def filled(
        self, counts: FloatArray, sizes: FloatArray | IntArray, predicted: FloatArray | None = None
    ) -> FloatArray:
        """Return the counts [bags, 2] with expected counts instead of ranges.

        `counts` [bags, 2], NaN if unknown; `sizes` [bags]. `predicted` [bags]: mean predictions of the last class by
        models without the bag; None: without features.
        """
        exact = np.asarray(~np.isnan(counts).any(axis=1))
        exact[self.bags] = False
        known, size_of_ranges = counts[exact, 1].clip(min=0), sizes[self.bags]
        width = self.high - self.low
        points = int(min(width.max(initial=0.0) + 1, _POINTS))
        inside = self.low[:, None] + np.arange(points) * np.maximum(width / max(points - 1, 1), 1.0)[:, None]
        values, outside = np.minimum(inside, self.high[:, None]), inside > self.high[:, None] + 1e-9
        logits = np.zeros(len(sizes)) if predicted is None else logit(predicted.clip(_LEAST, 1 - _LEAST))
        logits = logits - logits.mean()

        def of_ranges(t: FloatArray) -> FloatArray:
            """Return log probabilities [ranges, points], -inf outside a range."""
            middle = (t[0] + t[1] * logits[self.bags])[:, None]
            return np.where(outside, -np.inf, _beta_binomial(values, size_of_ranges[:, None], middle, t[2]))

        def loss(t: FloatArray) -> float:
            of_known = _beta_binomial(known, sizes[exact], t[0] + t[1] * logits[exact], t[2])
            return -float(of_known.sum() + logsumexp(of_ranges(t), axis=1).sum())

        share = (known.sum() + (self.low + self.high).sum() / 2) / max(sizes[exact].sum() + size_of_ranges.sum(), 1.0)
        start = [float(logit(np.clip(share, 1e-4, 1 - 1e-4))), 0.0 if predicted is None else 1.0, np.log(50.0)]
        bounds = [(-15, 15), (0, 0 if predicted is None else 1.5), (-1, 14)]
        weights = of_ranges(minimize(loss, start, bounds=bounds, method="L-BFGS-B").x)
        expected = (np.exp(weights - logsumexp(weights, axis=1, keepdims=True)) * values).sum(axis=1)
        filled = counts.copy()
        filled[self.bags] = np.column_stack([size_of_ranges - expected, expected])
        return filled

    def refilled(self, train: BaggedRows, held_out: FloatArray) -> BaggedRows:
        """Return bags with the counts that are expected given held-out predictions of all rows with known counts."""
        known, counts = train.where_known(), train.counts.copy()
        mean = np.bincount(known.bag_of_row, held_out[:, 1], len(known.sizes)) / known.sizes
        of_known = replace(self, bags=(np.cumsum(train.known) - 1)[self.bags])
        counts[train.known] = of_known.filled(known.counts, known.sizes, mean)
        return replace(train, counts=counts)


def _beta_binomial(count: FloatArray, size: Any, logits: FloatArray, log_precision: float) -> FloatArray:
    """Return log probabilities; counts and sizes need not be whole."""
    share, precision = expit(logits), np.exp(log_precision)
    one, other = share * precision + 1e-9, (1 - share) * precision + 1e-9
    rest = np.maximum(size - count, 0.0)
    choose = gammaln(size + 1) - gammaln(count + 1) - gammaln(rest + 1)
    return np.asarray(choose + betaln(count + one, rest + other) - betaln(one, other))
