"""Row targets that match the counts of bags, for stages of single rows."""

from __future__ import annotations

import numpy as np

from llpbench.blocks.assigning import assigned, log_of
from llpbench.core.bags import BaggedRows, FloatArray


def in_known_bags(values: FloatArray, train: BaggedRows) -> FloatArray:
    """Return `values` [rows, classes], with 0 in bags with suppressed counts: training ignores their rows."""
    return np.asarray(np.where(train.known[train.bag_of_row, None], values, 0.0))


def matching_labels(proba: FloatArray, train: BaggedRows) -> FloatArray:
    """Return one-hot labels [rows, classes] that match counts with the least total -log P; 0 in suppressed bags."""
    known = train.known[train.bag_of_row]
    targets = np.zeros(proba.shape)
    labels = assigned(log_of(proba[known]), train.where_known())
    targets[known] = np.eye(proba.shape[1])[labels]
    return targets
