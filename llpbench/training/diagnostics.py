"""Quality of representations and pseudo-pairs, computed by the evaluator. Only the evaluator has labels.

The paper reports both: the class awareness of row vectors, and the fraction of pseudo-positive pairs of equal class.
"""

from __future__ import annotations

import itertools

import numpy as np

from llpbench.core.bags import BoolArray, FloatArray, IntArray


def class_awareness(z: FloatArray, labels: IntArray) -> dict[str, float]:
    """Return the class awareness score of row vectors `z` [rows, dim] with `labels` [rows], raw and centred.

    Intra is the mean cosine of two rows of one class, averaged over classes. Inter is the mean cosine of rows of two
    classes, averaged over pairs of classes. With s = (1 + cosine) / 2 the score is s_intra / (s_intra + s_inter): 0.5
    if z carries no class information, 1 if classes are antipodal. `cas-centred` first subtracts the mean of z, because
    all vectors of a transformer lie in a narrow cone, which hides the differences. NaN for a single class.
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
    """Return s_intra / (s_intra + s_inter), with s = (1 + cosine) / 2."""
    return 0.5 if intra + inter == -2 else (1 + intra) / (2 + intra + inter)


def _cosines(z: FloatArray, labels: IntArray) -> tuple[float, float]:
    """Return the mean cosine within and between classes, exact in O(rows x dim) from sums of unit vectors."""
    z = z.astype(np.float64)
    unit = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    sums, sizes, squares = [], [], []
    for label in np.unique(labels):
        rows = unit[labels == label]
        sums.append(rows.sum(axis=0))
        sizes.append(len(rows))
        squares.append((rows**2).sum())  # the number of nonzero rows
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
    """Return the fraction of pseudo-positive pairs whose rows have the same class.

    `equal`, `positive` [pairs of rows]: whether the two rows of a pair have the same class, and whether the method
    marked the pair as positive. `chance` [pairs of bags]: the probability of the same class for two random rows,
    sum_c p_1c p_2c. `pair-kappa` is (accuracy - chance) / (1 - chance). NaN without a positive pair.
    """
    accuracy = float(equal[positive].mean()) if positive.any() else float("nan")
    expected = float(chance.mean())
    kappa = (accuracy - expected) / (1 - expected) if expected < 1 else float("nan")
    return {"pair-accuracy": accuracy, "pair-chance": expected, "pair-kappa": kappa}
