"""Rare positives: probabilities that are calibrated to held-out bags.

Random bags tell a weight of a feature (per standard deviation, on logits) with a standard error of about
1 / sqrt(B p (1 - p)), B bags and p the share of positives, whatever the size of bags: 48 bags at 1.3 % leave 1.3. A
method's own caution does not see that. So where positives are rare, the logits z of rows become s z + a: s, from nearly
0 to 1, is the posterior mean given the counts of held-out bags, all values alike likely beforehand, and a makes the
mean probability the share that was counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from llpbench.blocks.assigning import log_of
from llpbench.blocks.counts import BagCounts
from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.text import plural
from llpbench.owndata.bag_effects import counts_evidence, level, total_shares

RARE = 0.05
"""share of all classes but the largest, below which predictions are calibrated"""
_ENOUGH = 20.0
"""B p (1 - p) from which bags tell more than any calibration: a standard error of 0.2"""
FEW = 2.0
"""B p (1 - p) below which a line warns: a standard error of 0.7"""
SUPPORTED = 2.0
"""log evidence of held-out bags, in nats, below which they do not show that features tell anything"""
_SPREADS = (0.03, 0.1, 0.3, 0.5, 0.7, 1.0)
"""of logits; the first one is of predictions that hardly tell rows"""
_TAUS = (0.01, 0.16, 0.64, 2.56)
"""standard deviations of effects of bags on logits"""


class FewPositives(UserWarning):
    """Rows of a class are too rare for bags to tell what they have in common."""


@dataclass(frozen=True, eq=False)
class BagCalibration:
    """Predictions that agree with held-out bags as far as these can tell."""

    spread: float
    """s, which logits are multiplied by"""
    offset: FloatArray
    """[classes] a"""
    evidence: float
    """of held-out bags for the predictions, against the same probability for all rows: log Bayes factor in nats"""

    def __call__(self, proba: FloatArray) -> FloatArray:
        """[rows, classes]"""
        return np.asarray(softmax(self.spread * log_of(proba) + self.offset, axis=1))


def information(known: BaggedRows) -> float:
    """B p (1 - p) of bags of known counts, p the share of all classes but the largest."""
    share = 1 - float(total_shares(known).max())
    return len(known.sizes) * share * (1 - share)


def is_rare(known: BaggedRows) -> bool:
    """Return whether positives are so rare that predictions need calibration."""
    return 1 - total_shares(known).max() < RARE and information(known) < _ENOUGH


def has_rare_class(known: BaggedRows) -> bool:
    """Return whether a class is so rare that a method's caution bends its share: nobody counted is 2 % of all."""
    return bool(total_shares(known).min() < RARE)


def calibration(known: BaggedRows, fitted: FloatArray, held_out: FloatArray | None) -> BagCalibration:
    """From predictions of the rows of `known` by the model, and held-out ones; None of the latter: a alone is found."""
    if held_out is None:
        return BagCalibration(1.0, level(log_of(fitted), known), 0.0)
    counts, logits = BagCounts(known), log_of(held_out)
    found = []
    for spread in _SPREADS:
        scaled = spread * logits
        scaled = scaled + level(scaled, known)
        found.append(logsumexp([counts_evidence(counts, scaled, tau)[1] for tau in _TAUS]))
    weights = softmax(found)
    spread = float(weights @ np.array(_SPREADS))
    gain = float(logsumexp(found[1:]) - np.log(len(found) - 1) - found[0])
    return BagCalibration(spread, level(spread * log_of(fitted), known), gain)


def few_positives_warning(known: BaggedRows, classes: Sequence[Hashable], found: BagCalibration | None) -> str:
    """One line where positives are few, or where held-out bags do not show that features tell anything; else "".

    None: nothing was calibrated, and counts alone are told of.
    """
    few = information(known) < FEW
    supported = found is None or found.evidence >= SUPPORTED
    if not few and supported:
        return ""
    rare = [label for place, label in enumerate(classes) if place != total_shares(known).argmax()]
    positives = (1 - total_shares(known).max()) * len(known.bag_of_row)
    told = (
        f"{positives:,.0f} of {len(known.bag_of_row):,} rows {'is' if round(positives) == 1 else 'are'} of class "
        f"{' or '.join(map(repr, rare[:3]))}"
        f"{' or another' if len(rare) > 3 else ''}, in {plural(len(known.sizes), 'bag')}"
    )
    if few:
        told += ": so few tell little of what such rows have in common"
    if found is not None:
        told += (
            f". Held-out bags {'' if supported else 'do not '}show that features help (log evidence "
            f"{found.evidence:.1f} nats); logits keep {100 * found.spread:.0f} % of their spread"
        )
    return f"{told}. Give more bags, or bags that differ more."
