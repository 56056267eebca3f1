"""Rare positives: probabilities that are calibrated to held-out bags.

With B random bags and a share p of positives, the weight of a feature (per standard deviation, on logits) has a
standard error of about 1 / sqrt(B p (1 - p)), whatever the size of bags. With 48 bags and p = 1.3 % it is 1.3. Methods
do not allow for this. So if positives are rare, the logits z of rows become s z + a. Here s, from nearly 0 to 1, is the
posterior mean given the counts of held-out bags (with a prior proportional to s), and a makes the mean probability
equal to the counted share.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from llpbench.blocks.assigning import log_of
from llpbench.blocks.counts import BagCounts
from llpbench.core.bags import BaggedRows, FloatArray
from llpbench.core.errors import LLPBenchWarning
from llpbench.core.text import plural
from llpbench.owndata.bag_effects import counts_evidence, level, total_shares

RARE = 0.13
"""Predictions are calibrated if all classes but the largest together have a smaller share than this."""
WARNED = 0.05
"""Warnings are shown below this share."""
_ENOUGH = 20.0
"""B p (1 - p) from which no calibration is needed: a standard error of 0.2."""
FEW = 2.0
"""B p (1 - p) below which a warning is shown: a standard error of 0.7."""
SUPPORTED = 2.0
"""Log evidence of held-out bags, in nats, from which they show that features help."""
_SPREADS = (0.03, 0.1, 0.3, 0.5, 0.7, 1.0)
"""Possible factors of logits. With the first one predictions of rows hardly differ."""
_TAUS = (0.01, 0.16, 0.64, 2.56)
"""Possible standard deviations of effects of bags on logits."""


class FewPositives(LLPBenchWarning):
    """A class is so rare that bags contain little information about it."""


@dataclass(frozen=True, eq=False)
class BagCalibration:
    """Calibration of predictions to held-out bags."""

    spread: float
    """s, the factor of logits"""
    offset: FloatArray
    """[classes] a"""
    evidence: float
    """log Bayes factor in nats of the predictions against a constant prediction, on held-out bags"""

    def __call__(self, proba: FloatArray) -> FloatArray:
        """[rows, classes]"""
        return np.asarray(softmax(self.spread * log_of(proba) + self.offset, axis=1))


def information(known: BaggedRows) -> float:
    """Return B p (1 - p) of bags with known counts, where p is the share of all classes but the largest."""
    share = 1 - float(total_shares(known).max())
    return len(known.sizes) * share * (1 - share)


def is_rare(known: BaggedRows) -> bool:
    """Return whether positives are so rare that predictions need calibration."""
    return 1 - total_shares(known).max() < RARE and information(known) < _ENOUGH


def has_rare_class(known: BaggedRows) -> bool:
    """Return whether a class is so rare that a method's prior changes its share noticeably."""
    return bool(total_shares(known).min() < WARNED) or is_rare(known)


def calibration(known: BaggedRows, fitted: FloatArray, held_out: FloatArray | None) -> BagCalibration:
    """Return the calibration from predictions of the rows of `known`. Without held-out predictions s is 1."""
    if held_out is None:
        return BagCalibration(1.0, level(log_of(fitted), known), 0.0)
    counts, logits = BagCounts(known), log_of(held_out)
    found = []
    for spread in _SPREADS:
        scaled = spread * logits
        scaled = scaled + level(scaled, known)
        found.append(logsumexp([counts_evidence(counts, scaled, tau)[1] for tau in _TAUS]))
    weights = softmax(np.array(found) + np.log(_SPREADS))
    spread = float(weights @ np.array(_SPREADS))
    gain = float(logsumexp(found[1:]) - np.log(len(found) - 1) - found[0])
    return BagCalibration(spread, level(spread * log_of(fitted), known), gain)


def few_positives_warning(known: BaggedRows, classes: Sequence[Hashable], found: BagCalibration | None) -> str:
    """Return a message if positives are few or held-out bags do not show that features help; else "".

    Without a calibration (None) the message is about counts only.
    """
    few = information(known) < FEW
    supported = found is None or found.evidence >= SUPPORTED
    if (not few and supported) or 1 - total_shares(known).max() >= WARNED:
        return ""
    rare = [label for place, label in enumerate(classes) if place != total_shares(known).argmax()]
    positives = (1 - total_shares(known).max()) * len(known.bag_of_row)
    told = (
        f"{positives:,.0f} of {len(known.bag_of_row):,} rows {'is' if round(positives) == 1 else 'are'} of class "
        f"{' or '.join(map(repr, rare[:3]))}"
        f"{' or another' if len(rare) > 3 else ''}, in {plural(len(known.sizes), 'bag')}"
    )
    if few:
        told += ", which is too little to learn much about them"
    if found is not None:
        told += (
            f". Held-out bags {'' if supported else 'do not '}show that features help (log evidence "
            f"{round(found.evidence, 1) + 0.0:.1f} nats). Differences between rows, on logits, are shrunk to "
            f"{100 * found.spread:.0f} %"
        )
    return f"{told}. Give more bags, or bags that differ more."
