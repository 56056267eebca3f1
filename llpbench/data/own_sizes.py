"""Limits on the sizes of bags: options of every bagging without a size, in addition to its own.

A bagging without a size assigns every row to a bag, which may have one row or half of the table. This module corrects
bags that are too small or too large. It can also split whole bags, instead of rows, into training, validation and test:

- `least`, `most`: limits on the rows of a training bag. If rows are split, validation and test bags have an eighth of
  the rows of training bags, and an eighth of these limits. A bag with fewer than `least` rows is dissolved. A bag with
  more than `most` rows is reduced to `most` random rows. The rows left over are called the rest.
- `rest`: `drop` removes these rows from all bags (validation and test rows are still evaluated). `pool` makes bags of
  `most` rows from them, or a single bag. If the last bag has fewer than `least` rows, its rows are dropped.
- `split`: `rows` splits rows 80/10/10, stratified by class, so the bags of test rows also have training rows. `bags`
  splits bags, so the bags of validation and test rows have no training rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import IntArray, Rest
from llpbench.core.errors import LLPBenchError
from llpbench.core.tables import Split
from llpbench.data.baggings import shuffled


class _Limited(NamedTuple):
    """Bags within their limits."""

    bags: IntArray
    """[bags, longest] rows, padded with -1; [0, 0] without any bags"""
    rest: Rest


def limited(bags: IntArray, rng: Generator, *, least: int, most: int, rest: str) -> _Limited:
    """Limit bags `[bags, longest]` to between `least` and `most` rows (0: no limit); return them and the rest."""
    inside: list[IntArray] = []
    over: list[IntArray] = [np.empty(0, dtype=np.int64)]
    for padded in bags:
        bag = padded[padded >= 0]
        if most and len(bag) > most:
            bag = shuffled(bag, rng)
            over.append(bag[most:])
            bag = bag[:most]
        (inside if len(bag) >= least else over).append(bag)
    left = shuffled(np.concatenate(over), rng)
    size = most or len(left)
    pools = [left[start : start + size] for start in range(0, len(left), size)] if rest == "pool" else []
    pools = [pool for pool in pools if len(pool) >= least]
    pooled = sum(map(len, pools))
    return _Limited(_padded([*inside, *pools]), Rest(dropped=len(left) - pooled, pooled=pooled))


def _padded(bags: list[IntArray]) -> IntArray:
    padded = np.full((len(bags), max(map(len, bags), default=0)), -1, dtype=np.int64)
    for place, bag in zip(padded, bags, strict=True):
        place[: len(bag)] = bag
    return padded


def split_bags(bags: IntArray, rng: Generator, what: str) -> tuple[Split, dict[str, IntArray]]:
    """Split whole bags `[bags, longest]` into test, validation and training; return the rows and bags of each part.

    Bags in random order are added to test until it has about a tenth of the rows, then to validation. The others are
    for training. A part ends when the next bag would move it further from a tenth, so it has between 0.5 and 1.5 tenths
    of the rows. A bag with more than a tenth of all rows is always for training. The split is not stratified by class.
    `what` names the bagging in an error. Raises `LLPBenchError` if there are too few bags to fill the parts.
    """
    sizes = (bags >= 0).sum(axis=1)
    tenth = sizes.sum() / 10
    order = shuffled(np.arange(len(bags)), rng)
    chosen: dict[str, list[int]] = {"test": [], "validation": [], "train": [int(n) for n in order if sizes[n] > tenth]}
    waiting = [int(n) for n in order if sizes[n] <= tenth]
    for part in ("test", "validation"):
        rows = 0
        while waiting and abs(rows + sizes[waiting[0]] - tenth) <= abs(rows - tenth):
            rows += sizes[waiting[0]]
            chosen[part].append(waiting.pop(0))
        if rows <= tenth / 2:
            raise LLPBenchError(
                f"{what} makes too few bags of at most a tenth of the rows for separate test and validation bags: "
                f"{len(bags):,} bags, {int((sizes <= tenth).sum()):,} of them small enough. Choose split=rows "
                "or a finer key."
            )
    chosen["train"] += waiting
    parts = {part: bags[np.sort(np.array(numbers, dtype=np.int64))] for part, numbers in chosen.items()}
    rows_of = {part: shuffled(found[found >= 0], rng) for part, found in parts.items()}
    return Split(**rows_of), {part: _trimmed(found) for part, found in parts.items()}


def _trimmed(bags: IntArray) -> IntArray:
    """Return bags without columns that contain only padding."""
    return bags[:, : int((bags >= 0).sum(axis=1).max(initial=0))]
