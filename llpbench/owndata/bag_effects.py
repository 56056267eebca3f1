"""Rows of known bags: predictions that use the counts of a row's bag in addition to its features.

The logits of a row in bag k are s z + a + b_k, where z are the logits of the model, s is a factor for their spread
inside bags, a is an offset, and b_k ~ N(0, tau^2) is the effect of the bag.

A model has already learned a part of the effects of the bags of its fit; trees learn nearly all of them. Therefore s
and tau are estimated from held-out predictions, where each bag is predicted by a model fitted without it. The effects
are the posterior mode at this s and tau.

Counts show whether z is right between bags, not inside bags. If bags have large effects, z may agree with the counts by
chance. Therefore the prior of s has two components. The larger tau, the more probable is the second one:

- Features hold inside bags. Then s is log-normal, around 1 if tau is 0 and around a third if tau is large.
- Features do not hold inside bags. Then s is `_LEAST`: rows of a bag keep their order and get about its share.

Logits that hardly vary inside bags do no harm and keep their spread. The evidence of held-out bags cannot replace this
prior (`benchmarks/natural.py`). In hotel bookings by country, half of the spread is best; in Covid tests by clinic,
none is. Held-out bags support neither. Nor can it show slopes that are unstable inside bags. So s is at most R C.
R = 2 - 1 / r^2 falls with the correlation r, inside bags, of the model's and the held-out predictions. C is the
variance of bags' mean logits, divided by itself plus tau^2.

Rare positives are calibrated to held-out bags, too. With B random bags and a share p of positives, the weight of a
feature (per standard deviation, on logits) has a standard error of about 1 / sqrt(B p (1 - p)), whatever the size of
bags: 1.3 with 48 bags and p = 1.3 %. Methods do not allow for this. So if positives are rare, the logits z of rows
become s z + a. Here s, from nearly 0 to 1, is the posterior mean given the counts of held-out bags (with a prior
proportional to s), and a makes the mean probability equal to the counted share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import logsumexp, softmax
from scipy.stats import ttest_1samp

from llpbench.blocks.assigning import log_of
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.distinct import Distinct
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Ragged, Rows
from llpbench.core.seeding import generator
from llpbench.core.text import plural, verb

_FEWEST_BAGS = 6
"""Smallest number of known bags for which bags are held out."""
PIECE_ROWS = 131_072
"""Whole bags are processed in pieces: consecutive bags with at most this number of rows, or one larger bag."""
_FOLDS, _FOLDS_OF_MANY_ROWS, _MANY_ROWS = 3, 2, 100_000
_LEAST = 0.05  # spread if held-out bags do not show that features help
_SPREADS = (_LEAST, 0.1, 0.18, 0.3, 0.45, 0.65, 1.0)
"""Possible spreads. None is larger than the model's."""
_TAUS = (0.01, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56)
"""Possible standard deviations of effects of bags on logits."""
_LOG_STD, _NARROW = 0.3, 0.3
"""Prior standard deviation of log s, and median of the prior of s if bags have large effects."""
_CONFOUNDED = 0.06  # variance of effects of bags at which the median of the prior is half-way to that
_EVEN = 0.25  # standard deviation of effects of bags at which both components of the prior have probability 1/2
_HARMLESS = 0.07  # standard deviation of logits inside bags that costs at most 0.001 nats if features are useless
_FEWEST_ROWS = 3  # smallest number of rows of a bag in which predictions are correlated
_LEVEL = 0.05  # level of the test of whether features help

_Learner = Callable[[BaggedRows, Rows], FloatArray]
"""Function that fits to bags with known counts and returns predictions of rows [rows, classes]."""


@dataclass(frozen=True, eq=False)
class KnownBags:
    """Adjustment of predictions for rows of known bags."""

    spread: float  # s, the factor of the logits
    deviation: float  # tau
    effects: FloatArray  # [bags, classes] a + b_k; NaN where counts are suppressed

    def __call__(self, proba: FloatArray, bags: IntArray) -> FloatArray:
        """Return probabilities [rows, classes]. `bags` [rows] are positions of known bags, -1 for other bags."""
        known, moved = (bags >= 0) & np.isfinite(self.effects[bags]).all(axis=1), proba.copy()
        moved[known] = softmax(self.spread * log_of(proba[known]) + self.effects[bags[known]], axis=1)
        return moved

    @classmethod
    def learn(cls, known: BaggedRows, fitted: FloatArray, held_out: FloatArray | None) -> Self:
        """Return spread and effects of the bags of `known`, from predictions by the model and held-out predictions.

        Without held-out predictions (too few bags) the spread is 1, and effects are those of `BagCounts.bag_effects`.
        """
        counts, same = BagCounts(known), Distinct.of_rows(known.rows)
        if same is not None:  # equal rows of a bag have equal predictions
            counts, first = counts.folded(same)
            fitted, held_out = fitted[first], None if held_out is None else held_out[first]
        if held_out is None:
            return cls(1.0, np.nan, counts.bag_effects(log_of(fitted)))
        weights = softmax(_evidence(known, counts, log_of(held_out), _SPREADS, _TAUS) + np.log(_prior()))
        spread = float(np.exp(weights.sum(axis=1) @ np.log(_SPREADS)))  # posterior means of logarithms
        deviation = float(np.exp(weights.sum(axis=0) @ np.log(_TAUS)))
        spread = min(spread, _reliable(counts, fitted, held_out, deviation))
        centered = log_of(fitted) - log_of(fitted).mean(axis=1, keepdims=True)
        away = centered - _means(centered, counts)[counts.bag_of_row]
        inside = float(np.sqrt(2 * np.average((away**2).sum(axis=1), weights=counts.weights)))
        spread = max(spread, min(1.0, _HARMLESS / max(inside, 1e-12)))
        logits = spread * log_of(fitted)
        offset = _level(logits, known, counts.weights)
        return cls(spread, deviation, offset + counts.effects_of_spread(logits + offset, deviation)[0])


def held_out_predictions(known: BaggedRows, learn: _Learner, seed: int) -> FloatArray | None:
    """Return predictions [rows, classes] of each bag by a model that was fitted without it; None for too few bags.

    Predictions are mixed with uniform ones of weight 1/(2 rows), so that no class has probability 0.
    """
    rows, classes = len(known.bag_of_row), known.counts.shape[1]
    if len(known.sizes) < _FEWEST_BAGS:
        return None
    found, folds = np.empty((rows, classes)), _FOLDS if rows <= _MANY_ROWS else _FOLDS_OF_MANY_ROWS
    fold_of_bag = _folds_of(known.proportions, folds, seed)
    for fold in range(folds):
        inside, rest = (fold_of_bag == fold)[known.bag_of_row], known.some(fold_of_bag != fold)
        one_class = rest.prior.max() == 1.0  # nothing can be learned
        found[inside] = rest.prior if one_class else learn(rest, Rows(*(part[inside] for part in known.rows)))
    uniform = 1 / (2 * rows)
    return np.asarray((1 - uniform) * found + uniform / classes)


def shows_features_help(known: BaggedRows, held_out: FloatArray) -> bool:
    """Return whether held-out predictions [rows, classes] are significantly better than the mean share of other bags.

    The criterion is the KL divergence from the proportions of a bag (one-sided paired t test over bags, level 5 %).
    Classes without people are left out.
    """
    occurs = known.counts.sum(axis=0) > 0
    known, held_out = replace(known, counts=known.counts[:, occurs]), held_out[:, occurs]
    held_out = held_out / held_out.sum(axis=1, keepdims=True)
    total, least = known.counts.sum(axis=0), 1 / (2 * len(known.bag_of_row))
    others = (total - known.counts) / (known.sizes.sum() - known.sizes)[:, None]
    means = np.stack([np.bincount(known.bag_of_row, each, len(known.sizes)) for each in held_out.T], axis=1)
    logs = [np.log(share.clip(least)) for share in (means / known.sizes[:, None], others)]
    gains = (known.proportions * (logs[0] - logs[1])).sum(axis=1)
    return bool(ttest_1samp(gains, 0.0, alternative="greater").pvalue < _LEVEL)


def _folds_of(proportions: FloatArray, folds: int, seed: int) -> IntArray:
    """Return the fold of each bag [bags]. Bags of similar shares are in different folds."""
    rng, share = generator(seed, "held-out bags of folds"), proportions[:, proportions.mean(axis=0).argmin()]
    order, fold = np.lexsort((rng.random(len(share)), share)), np.empty(len(share), dtype=np.int64)
    for some in np.split(order, range(folds, len(order), folds)):
        fold[some] = rng.permutation(folds)[: len(some)]
    return fold


def _evidence(
    known: BaggedRows, counts: BagCounts, logits: FloatArray, spreads: Sequence[float], taus: Sequence[float]
) -> FloatArray:
    """Return the log evidence [spreads, taus] of counts, multinomial with mean predictions, for held-out `logits`."""
    evidence = np.zeros((len(spreads), len(taus)))
    for i, spread in enumerate(spreads):
        scaled = spread * logits
        scaled = scaled + _level(scaled, known, counts.weights)
        effects: FloatArray | None = None
        for j, tau in enumerate(taus):
            effects, evidence[i, j] = counts.effects_of_spread(scaled, tau, effects)
            if counts.noise:
                continue
            # the sum of independent rows varies slightly less; a normal approximation is too coarse for counts of 0, 1
            moved = scaled + effects[counts.bag_of_row]
            evidence[i, j] -= (counts.counts * effects).sum() - counts.total(logsumexp(moved, axis=1))
            means = _means(softmax(moved, axis=1), counts)
            evidence[i, j] += (counts.counts * np.log(np.maximum(means, 1e-300))).sum()
    return evidence


def _prior() -> FloatArray:
    """Return the prior probability of each spread, given tau [spreads, taus]."""
    taus = np.array(_TAUS)
    center = 1 - (1 - _NARROW) * taus**2 / (taus**2 + _CONFOUNDED)
    prior = softmax(-0.5 * (np.log(np.array(_SPREADS)[:, None] / center) / _LOG_STD) ** 2, axis=0)
    hold = 1 / (1 + (taus / _EVEN) ** 4)  # probability
    return np.asarray(hold * prior + np.eye(len(prior), 1) * (1 - hold))


def _reliable(counts: BagCounts, fitted: FloatArray, held_out: FloatArray, deviation: float) -> float:
    """Return the largest spread that predictions deserve inside bags; both are probabilities [rows, classes]."""
    x, y = (values - _means(values, counts)[counts.bag_of_row] for values in (fitted, held_out))
    both, one, other = (counts.sums((a * b).sum(axis=1)) for a, b in ((x, y), (x, x), (y, y)))
    sizes = np.where(counts.sizes >= _FEWEST_ROWS, counts.sizes, 0)
    alike = (sizes * both / np.sqrt(np.maximum(one * other, 1e-12))).sum() / max(sizes.sum(), 1)
    means, shares = _means(log_of(held_out), counts), counts.sizes / counts.sizes.sum()
    means = means - means.mean(axis=1, keepdims=True)
    explained = 2 * (shares @ (means - shares @ means) ** 2).sum() / (means.shape[1] - 1)
    stable = max(0.0, 2 - 1 / max(alike, 0.05) ** 2)
    return float(stable * explained / (explained + deviation**2 + 1e-12))


def _means(values: FloatArray, counts: BagCounts) -> FloatArray:
    return np.stack([counts.sums(each) for each in values.T], axis=1) / counts.sizes[:, None]


def _total_shares(known: BaggedRows) -> FloatArray:
    """Return the share of each class in all counts [classes]. Unlike in `prior`, negative counts reduce the sum."""
    total = known.counts.sum(axis=0).clip(min=0)
    return np.asarray(total / total.sum()) if known.noise and total.sum() > 0 else known.prior


def _level(logits: FloatArray, known: BaggedRows, weights: FloatArray | None = None) -> FloatArray:
    """Return the offset [classes] of logits that makes the mean prediction equal to the share of all known counts."""
    target = _total_shares(known).clip(0.5 / len(known.bag_of_row))
    target, offset = target / target.sum(), np.zeros(len(target))
    for _ in range(100):
        factor = target / np.maximum(np.average(softmax(logits + offset, axis=1), axis=0, weights=weights), 1e-300)
        offset = offset + np.log(factor)
        if np.abs(factor - 1).max() < 1e-6:
            break
    return np.asarray(offset - offset.mean())


def pieces(sizes: IntArray) -> list[slice]:
    """Return the bags of each piece; `sizes` [bags] are numbers of rows."""
    ends, found, first = np.cumsum(sizes), [], 0
    while first < len(sizes):
        fitting = int(np.searchsorted(ends, ends[first] - sizes[first] + PIECE_ROWS, side="right"))
        found.append(slice(first, max(fitting, first + 1)))
        first = found[-1].stop
    return found


def piece_of(whole: BaggedRows, bags: slice, rows: Rows | None = None) -> BaggedRows:
    """Return some bags of `whole` with their `rows`, in the order of bags. Rows may be left out.

    A noisy bag without positive counts keeps the proportions of all bags.
    """
    counts, sizes = whole.counts[bags], whole.sizes[bags]
    counts = np.where((counts <= 0).all(axis=1, keepdims=True), whole.prior, counts)
    nothing = np.empty((int(sizes.sum()), 0))
    index = Ragged(np.arange(len(nothing)), sizes)
    return BaggedRows(Rows(nothing, nothing, nothing) if rows is None else rows, index, counts, whole.noise)


def added_up(
    proba: FloatArray, whole: BaggedRows, chosen: IntArray, spread: float, weights: FloatArray | None = None
) -> FloatArray:
    """Return predictions [rows, classes]. The rows `chosen` are whole bags and add up to their counts.

    With `weights` [rows], sums of weights times predictions are these counts.
    """
    found, starts = proba.copy(), np.append(0, np.cumsum(whole.sizes))
    for bags in pieces(whole.sizes):
        rows = chosen[whole.bag_by_bag[starts[bags.start] : starts[bags.stop]]]
        counts = BagCounts(piece_of(whole, bags))
        if weights is not None:
            counts = counts.weighted(weights[rows])
        found[rows] = counts.adding_up(spread * log_of(proba[rows]))
    return found


_RARE, _WARNED = 0.13, 0.05
"""Classes but the largest are rare below the first share together; few bags alone warn below the second."""
_ENOUGH, _FEW = 20.0, 2.0
"""B p (1 - p) from which no calibration is needed, and below which a warning is shown: standard errors of 0.2, 0.7."""
SUPPORTED = 2.0
"""Log evidence of held-out bags, in nats, from which they show that features help."""
_CALIBRATIONS = (0.03, 0.1, 0.3, 0.5, 0.7, 1.0)
"""Possible factors of logits. With the first one predictions of rows hardly differ."""
_FEW_TAUS = (0.01, 0.16, 0.64, 2.56)
"""Possible standard deviations of effects of bags on logits."""


@dataclass(frozen=True, eq=False)
class BagCalibration:
    """Calibration of predictions to held-out bags."""

    spread: float  # s, the factor of logits
    offset: FloatArray  # [classes] a
    evidence: float  # log Bayes factor in nats of the predictions against a constant one, on held-out bags; NaN: none

    def __call__(self, proba: FloatArray) -> FloatArray:
        return np.asarray(softmax(self.spread * log_of(proba) + self.offset, axis=1))

    @classmethod
    def learn(cls, known: BaggedRows, fitted: FloatArray, held_out: FloatArray | None) -> Self:
        """Return the calibration from predictions of the rows of `known`. Without held-out predictions s is 1."""
        if held_out is None:
            return cls(1.0, _level(log_of(fitted), known), np.nan)
        found = logsumexp(_evidence(known, BagCounts(known), log_of(held_out), _CALIBRATIONS, _FEW_TAUS), axis=1)
        spread = float(softmax(found + np.log(_CALIBRATIONS)) @ np.array(_CALIBRATIONS))
        gain = float(logsumexp(found[1:]) - np.log(len(found) - 1) - found[0])
        return cls(spread, _level(spread * log_of(fitted), known), gain)


def rare_classes(known: BaggedRows) -> tuple[bool, bool]:
    """Return whether positives are so rare that predictions are calibrated to held-out bags, and whether to calibrate.

    A class that is not so rare may still be so rare that a method's prior changes its share noticeably.
    """
    shares = _total_shares(known)
    largest = float(shares.max())
    rare = 1 - largest < _RARE and len(known.sizes) * (1 - largest) * largest < _ENOUGH
    return rare, rare or bool(shares.min() < _WARNED)


def few_positives_warning(known: BaggedRows, classes: Sequence[Hashable], found: BagCalibration | None) -> str:
    """Return a message if positives are few or no held-out bags show that features help; else "".

    Without a calibration (None) the message is about counts only.
    """
    shares, rows = _total_shares(known), len(known.bag_of_row)
    share, supported = 1 - shares.max(), found is None or found.evidence >= SUPPORTED
    few = bool(len(known.sizes) * share * (1 - share) < _FEW)
    if supported and (share >= _WARNED or not few):
        return ""
    rare, positives = [label for place, label in enumerate(classes) if place != shares.argmax()], share * rows
    named = " or ".join(map(repr, rare[:3])) + " or another" * (len(rare) > 3)
    told = f"{positives:,.0f} of {rows:,} rows {verb(round(positives), 'is', 'are')} of class {named}, in "
    told += plural(len(known.sizes), "bag") + ", which is too little to learn much about them" * few
    if found is not None and not np.isnan(found.evidence):
        told += f". Held-out bags {'' if supported else 'do not '}show that features help (log evidence "
        told += f"{found.evidence:z.1f} nats). Differences between rows, on logits, are shrunk to "
        told += f"{100 * found.spread:.0f} %"
    return f"{told}. Give more bags, or bags that differ more."
