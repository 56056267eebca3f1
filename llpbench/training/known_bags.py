"""Rows of known bags: predictions that know, besides a row's features, which training bag it is of.

Where bags are natural (a district, a day), a row to be predicted is often of a bag whose proportions are known. Its
logits are then moved by the shift of that bag at which the mean prediction of the bag's training rows is its
proportions: what made the bag what it is, and no feature says, its rows share.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from llpbench.blocks.counts import BagCounts
from llpbench.core.bags import FloatArray, Task
from llpbench.core.metrics import test_metrics

_LEAST = 1e-7
"""probability: what is surer has logits that no shift would move"""


def known_bag_metrics(task: Task, of_train: FloatArray, of_test: FloatArray) -> dict[str, float]:
    """Test metrics `...-known-bags` of predictions [training rows, classes] and [test rows, classes]; none where no
    test row is of a training bag, or nobody knows labels."""
    if task.test_bags is None or task.test.labels is None or not (task.test_bags >= 0).any():
        return {}
    shifts = BagCounts(task.bags).shifts(_logits(of_train))
    known = task.test_bags >= 0
    moved = _logits(of_test)
    moved[known] += shifts[task.test_bags[known]]
    proba = softmax(moved, axis=1)
    found = test_metrics(proba, task.test)
    return {f"{name}-known-bags": found[name] for name in ("auc", "log-loss", "brier")}


def _logits(proba: FloatArray) -> FloatArray:
    return np.asarray(np.log(proba.astype(np.float64).clip(_LEAST, 1 - _LEAST)))
