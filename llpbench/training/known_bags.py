"""Rows of known bags: predictions that know, besides a row's features, which training bag it is of.

Where bags are natural (a district, a day), a row to be predicted is often of a bag whose counts are known. What made
the bag what it is, and no feature says, its rows share: their logits are moved by the bag's random effect, as the
counts of its training rows tell it (`BagCounts.bag_effects`). Moved until they meet these counts exactly, new rows
would take the chance in a small bag for knowledge. The training rows themselves are another matter: it is they that
were counted, and what is said of them adds up to the counts (disaggregation).
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import softmax

from llpbench.blocks.assigning import adding_up, assigned, log_of
from llpbench.blocks.counts import BagCounts
from llpbench.core.bags import FloatArray, Task
from llpbench.core.metrics import brier_score, macro_auc, test_metrics

_LEAST = 1e-7
"""probability: what is surer has logits that nothing would move"""


def known_bag_metrics(task: Task, of_train: FloatArray, of_test: FloatArray) -> dict[str, float]:
    """Test metrics `...-known-bags` of predictions [training rows, classes] and [test rows, classes]; none where no
    test row is of a training bag, or nobody knows labels."""
    if task.test_bags is None or task.test.labels is None or not (task.test_bags >= 0).any():
        return {}
    effects = BagCounts(task.bags).bag_effects(_logits(of_train))
    known = task.test_bags >= 0
    moved = _logits(of_test)
    moved[known] += effects[task.test_bags[known]]
    proba = softmax(moved, axis=1)
    found = test_metrics(proba, task.test)
    return {f"{name}-known-bags": found[name] for name in ("auc", "log-loss", "brier")}


def whole_bag_metrics(task: Task, of_train: FloatArray) -> dict[str, float]:
    """Metrics `...-whole-bags` of what predictions [training rows, classes] say of the training rows, once they add up
    to the counts of every bag; accuracy is that of labels of which there are as many as were counted.

    None where bags are not natural, or nobody knows labels.
    """
    if task.test_bags is None or task.train_labels is None:
        return {}
    logits, labels = log_of(of_train), task.train_labels
    proba = adding_up(logits, task.bags)
    return {
        "auc-whole-bags": float(macro_auc(torch.from_numpy(proba)[None], torch.from_numpy(labels)[None])[0]),
        "accuracy-whole-bags": float((assigned(logits, task.bags) == labels).mean()),
        "brier-whole-bags": brier_score(proba, labels),
    }


def _logits(proba: FloatArray) -> FloatArray:
    return np.asarray(np.log(proba.astype(np.float64).clip(_LEAST, 1 - _LEAST)))
