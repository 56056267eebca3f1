"""What a representation and pseudo-pairs are worth, judged by the evaluator, which alone holds labels.

The paper reports both: how class-aware the row vectors are, and how many pseudo-positive pairs are of one class.
"""

from __future__ import annotations

import itertools

import numpy as np

from llpbench.core.bags import BoolArray, FloatArray, IntArray


def class_awareness(z: FloatArray, labels: IntArray) -> dict[str, float]:
    """Class awareness score of row vectors `z` [rows, dim] with `labels` [rows], raw and centred.

    With u = z / |z|: intra, the mean cosine of two rows of a class, averaged over classes; inter, the mean cosine of
    rows of two classes, averaged over pairs of classes. With s = (1 + cosine) / 2 the score is s_intra / (s_intra +
    s_inter): 0.5 where z tells nothing of classes, 1 where they are antipodes. `cas-centred` subtracts the mean of z
    first: in a transformer all vectors lie in a narrow cone, which hides the differences. NaN with a single class.
    """
    intra, inter = _cosines(z, labels)
    centred = _cosines(z - z.mean(axis=0), labels)
    return {
        "cas": _score(intra, inter),
        "cas-centred": _score(*centred),
        "cosine-intra": intra,
        "cosine-inter": inter,
    }


def _score(intra: float, inter: float) -> float:
    """s_intra / (s_intra + s_inter), s = (1 + cosine) / 2."""
    return 0.5 if intra + inter == -2 else (1 + intra) / (2 + intra + inter)


def _cosines(z: FloatArray, labels: IntArray) -> tuple[float, float]:
    """Mean cosine within and between classes, exact in O(rows x dim): the sums of unit vectors hold all of it."""
    z = z.astype(np.float64)
    unit = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    sums, sizes, squares = [], [], []
    for label in np.unique(labels):
        rows = unit[labels == label]
        sums.append(rows.sum(axis=0))
        sizes.append(len(rows))
        squares.append((rows**2).sum())  # the number of rows that are not 0
    within = [
        (total @ total - square) / (size * (size - 1))
        for total, size, square in zip(sums, sizes, squares, strict=True)
        if size > 1
    ]
    between = [sums[a] @ sums[b] / (sizes[a] * sizes[b]) for a, b in itertools.combinations(range(len(sums)), 2)]
    if not within or not between:
        return float("nan"), float("nan")
    return float(np.mean(within)), float(np.mean(between))


def pair_accuracy(equal: BoolArray, positive: BoolArray, chance: FloatArray) -> dict[str, float]:
    """How many pseudo-positive pairs are of one class.

    `equal`, `positive` [pairs of rows]: whether the two rows of a pair are of one class, and whether the method took
    them to be; `chance` [pairs of bags]: the probability that two random rows are, sum_c p_1c p_2c. `pair-kappa`
    is (accuracy - chance) / (1 - chance). NaN without a positive pair.
    """
    accuracy = float(equal[positive].mean()) if positive.any() else float("nan")
    expected = float(chance.mean())
    kappa = (accuracy - expected) / (1 - expected) if expected < 1 else float("nan")
    return {"pair-accuracy": accuracy, "pair-chance": expected, "pair-kappa": kappa}
