"""Folds of bags that are held out: at random, or the later ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import RepeatedKFold

from llpbench.core.bags import BoolArray, FloatArray, IntArray
from llpbench.core.errors import LLPBenchError

_FEWEST = 4
"""smallest number of bags with known counts for folds"""


class Fold(NamedTuple):
    """A split of bags into training bags and held-out bags."""

    repeat: int
    fold: int
    train: BoolArray
    """[bags] whether a bag is for training"""
    held: IntArray
    """positions of the held-out bags, which have known counts"""


def random_folds(counts: FloatArray, folds: int, repeats: int, seed: int) -> Iterator[Fold]:
    """Yield folds of random parts: each holds out one part of the bags with known counts and trains on all others."""
    _require_whole("repeats", repeats, 1)
    _require_whole("random_state", seed, 0)
    known = _known(counts, folds)
    splits = RepeatedKFold(n_splits=folds, n_repeats=repeats, random_state=seed).split(known)
    for number, (_, held) in enumerate(splits):
        train = np.ones(len(counts), dtype=bool)
        train[known[held]] = False
        yield Fold(*divmod(number, folds), train, known[held])


def later_folds(counts: FloatArray, times: FloatArray, folds: int) -> Iterator[Fold]:
    """Yield folds of blocks by `times` [bags]: each holds out one block and trains on all earlier bags.

    There is one more block than folds, because the first block is never held out. Bags of the same time are in the same
    block. Blocks have about the same number of bags with known counts.
    """
    known = _known(counts, folds)
    moments, numbers = np.unique(times[known], return_counts=True)
    if len(moments) <= folds:
        raise LLPBenchError(
            f"{folds} folds of later bags need at least {folds + 1} different times, got {len(moments)}. Choose fewer "
            "folds."
        )
    starts, before = [0], np.cumsum(numbers) - numbers
    for block in range(1, folds + 1):
        nearest = int(np.abs(before - block * len(known) / (folds + 1)).argmin())
        starts.append(int(np.clip(nearest, starts[-1] + 1, len(moments) - folds - 1 + block)))
    edges = [*moments[starts], np.inf]
    if int((times[known] < edges[1]).sum()) < 2:
        raise LLPBenchError(
            f"the earliest of {folds + 1} blocks must have 2 bags with known counts, got 1. Choose fewer folds."
        )
    for fold in range(folds):
        inside = (times[known] >= edges[fold + 1]) & (times[known] < edges[fold + 2])
        yield Fold(0, fold, np.asarray(times < edges[fold + 1]), known[inside])


def held_to_trained(parts: Sequence[Fold], counts: FloatArray) -> float:
    """Return the ratio of held-out to training bags with known counts, mean over folds."""
    known = ~np.isnan(counts).any(axis=1)
    return float(np.mean([len(part.held) / (part.train & known).sum() for part in parts]))


def _require_whole(name: str, value: object, least: int) -> None:
    """Raise `LLPBenchError` unless a value is a whole number, `least` or more."""
    if not isinstance(value, int | np.integer) or value < least:
        raise LLPBenchError(f"{name} must be a whole number, {least} or more, got {value!r}.")


def require_classes(counts: FloatArray, parts: Sequence[Fold], classes: Sequence[Hashable]) -> None:
    """Raise `LLPBenchError` if the training bags of a fold have only one class."""
    has = counts > 0  # [bags, classes], False if suppressed
    for part in parts:
        left = has[part.train].any(axis=0)
        if left.sum() < 2 <= has.any(axis=0).sum():
            rare = int(np.flatnonzero(has.any(axis=0) & ~left)[0])
            known = int((~np.isnan(counts).any(axis=1)).sum())
            raise LLPBenchError(
                f"class {classes[rare]!r} must be in more bags, got {int(has[:, rare].sum())} of {known:,} bags with "
                f"counts: without a fold, all bags have only {classes[int(left.argmax())]!r}. Give more bags with "
                f"{classes[rare]!r}."
            )


def _known(counts: FloatArray, folds: int) -> IntArray:
    """Return the positions of the bags with known counts. Raises `LLPBenchError` if they are too few."""
    _require_whole("folds", folds, 2)
    known = np.flatnonzero(~np.isnan(counts).any(axis=1))
    if len(known) < max(folds, _FEWEST):
        raise LLPBenchError(
            f"{folds} folds need at least {max(folds, _FEWEST)} bags with known counts, got {len(known)}. Choose fewer "
            "folds, or give more bags."
        )
    return known
