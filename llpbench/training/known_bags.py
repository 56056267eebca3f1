"""Predictions for rows of known bags. They use the features and also which training bag a row belongs to.

A new row in natural bags (districts, days) often belongs to a bag with known counts. Rows of a bag share causes that no
feature shows. Their logits are therefore shifted by the bag's random effect, estimated from the counts of its training
rows (`BagCounts.bag_effects`). New rows need not match these counts, which are partly chance in a small bag. Training
rows do match them, because the counts are their own (disaggregation).
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
"""smallest probability; the logits of smaller ones could not be shifted enough"""


def known_bag_metrics(task: Task, of_train: FloatArray, of_test: FloatArray) -> dict[str, float]:
    """Return the metrics `...-known-bags` of predictions for training and test rows [rows, classes].

    Empty if no test row belongs to a training bag, or without labels.
    """
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
    """Return the metrics `...-whole-bags` of training predictions that are adjusted to every bag's counts.

    `of_train` [training rows, classes] are the predictions. Accuracy is computed for assigned labels that match the
    counts. Empty if bags are not natural, or without labels.
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
