"""Warnings of `fit`, computed without labels: signs that a combination of direct methods may be wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol, Self, runtime_checkable

import numpy as np
from scipy.special import log_softmax
from scipy.stats import spearmanr

from llpbench.blocks.bag_logits import LogitProcess
from llpbench.core.bags import BaggedRows, FloatArray, Rows

CONFOUNDED = 0.15
"""Largest unexplained share of the variance of bags' proportions without a warning."""
_NEXT_TO_NOTHING = 0.9
"""Largest share of noise in the effects of features without a warning."""
_DISAGREEING = 0.5
"""Smallest rank correlation of two members without a warning. `docs/choosing.md` explains the three thresholds."""
_FEWEST_COUNTED = 10
"""Smallest number of rows of a class that is considered."""
_ALIKE = 0.02
"""Standard deviation of logits over rows below which predictions count as equal."""
_MOST_ROWS = 20_000
"""Largest number of rows whose ranks are compared."""


def sameness_warning(proba: FloatArray, *, network: bool) -> str:
    """Return a message if the probabilities [rows, classes] of a method are the same for all rows; else ""."""
    logits = np.log(proba.clip(1e-12, 1.0))
    if len(proba) < 2 or (logits - logits.mean(axis=1, keepdims=True)).std(axis=0).max() >= _ALIKE:
        return ""
    same = f"gives all rows the same probabilities ({', '.join(f'{share:.3g}' for share in proba.mean(axis=0))})"
    if network:
        advice = "Try another random_state or learning_rate, or a direct method, such as auto."
        return f"the network has collapsed: it {same}. {advice}"
    return f"the model {same}: bags do not show that features help. Give more bags, or bags that differ more."


@runtime_checkable
class Union(Protocol):
    """A predictor with three members: a process on bag means, trees from its posterior, trees on counts."""

    process: LogitProcess
    refitted: Callable[[Rows], FloatArray]
    counted: Callable[[Rows], FloatArray]


@dataclass(frozen=True)
class Doubts:
    """Signs that a fit may be wrong."""

    unexplained: float  # share of the variance of bags' proportions that neither features nor chance explain
    noise: float  # posterior variance of the effects of features over itself plus their squares; 1: no information
    agreement: float  # the lowest rank correlation between the predictions of two members
    held_out: float | None = None
    """log evidence of held-out bags (NaN: none), if positives are rare; it replaces noise and agreement, and
    `few_positives_warning` is about it"""

    @property
    def confounded(self) -> bool:
        """Whether bags differ for reasons other than their features."""
        return self.unexplained > CONFOUNDED

    @property
    def warning(self) -> str:
        """Message with the numbers; "" without a warning."""
        told = []
        if self.confounded:
            share = f"{100 * self.unexplained:.0f} % of the variance of bags' proportions"
            causes = "differences between bags may have other causes than the features"
            told.append(f"{share} is explained neither by features nor by chance: {causes}")
        if self.held_out is None and self.noise > _NEXT_TO_NOTHING:
            nothing = "the bags contain almost no information about features. Give more bags, or bags that differ more"
            told.append(f"{100 * self.noise:.0f} % of the estimated effects of features is noise, so {nothing}")
        if self.held_out is None and self.agreement < _DISAGREEING:
            told.append(f"the averaged models rank rows differently (rank correlation {self.agreement:.2f})")
        return "; ".join(told) + ". Check predictions on rows whose labels you know." if told else ""

    @classmethod
    def of(cls, union: Union, known: BaggedRows, held_out: float | None = None) -> Self:
        """Return the doubts of a union fitted to `known` bags, on at most 20,000 rows, without nearly empty classes."""
        total = known.counts.sum(axis=0)
        classes = np.flatnonzero(total >= _FEWEST_COUNTED).tolist()
        classes = classes if len(classes) > 1 else [*range(len(total))]
        step = -(-len(known.bag_of_row) // _MOST_ROWS)
        some = Rows(*(part[::step] for part in known.rows))
        members = [log_softmax(member(some), axis=1) for member in (union.process, union.refitted, union.counted)]
        agreement = min(_rank_correlation(one, other, classes) for one, other in combinations(members, 2))
        return cls(union.process.unexplained, _noise(union.process, classes), agreement, held_out)


def _noise(process: LogitProcess, classes: Sequence[int]) -> float:
    """Return the posterior variance of effects, divided by itself plus the squared effects (means over rows)."""
    some = classes[:1] if len(process.offsets) == 1 else classes  # with two, effects on one mirror the other
    effects = [effect for label in some for effect in process.effects(label)]
    variance = sum(float(effect.weights @ effect.std**2) for effect in effects)
    return variance / max(sum(effect.importance**2 for effect in effects) + variance, 1e-12)


def _rank_correlation(one: FloatArray, other: FloatArray, classes: Sequence[int]) -> float:
    """Return Spearman's rank correlation, mean over classes; 0 if a member predicts the same for all rows."""
    pairs = [(one[:, label], other[:, label]) for label in (classes[1:] if len(classes) == 2 else classes)]
    return float(np.mean([spearmanr(*pair).statistic if min(map(np.ptp, pair)) > 0 else 0.0 for pair in pairs]))
