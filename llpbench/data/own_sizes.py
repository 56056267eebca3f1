"""Bags of their own sizes: what every bagging that makes such can be told besides its own options.

A bagging without a size gives every row it is told of a bag, be that a bag of one row or of half the table. Here too
small and too large ones are mended, and whole bags, instead of rows, are split into training, validation and test:

- `least`, `most`: rows of a training bag; where rows are split, validation and test bags have an eighth of its rows,
  and of these limits. A bag with fewer than `least` is taken apart; of one with more than `most` as many remain, drawn
  at random. What is left over is the rest.
- `rest`: `drop` leaves these rows in no bag (of validation and test they stay rows to be judged on); `pool` makes bags
  of them, of `most` rows, or a single one; of the last of these, if it has fewer than `least`, the rows are dropped.
- `split`: `rows` splits rows 80/10/10, stratified by class, so that test rows are of bags that have training rows, too;
  `bags` splits bags: validation and test rows are of bags without a training row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import IntArray, Rest
from llpbench.core.errors import LLPBenchError
from llpbench.core.tables import Split
from llpbench.data.baggings import shuffled


class Limited(NamedTuple):
    """Bags within their limits."""

    bags: IntArray
    """[bags, longest], -1 behind shorter ones; without any, [0, 0]"""
    rest: Rest


def limited(bags: IntArray, rng: Generator, *, least: int, most: int, rest: str) -> Limited:
    """Bags `[bags, longest]` of `least` to `most` rows (0: any number), and what became of the rest."""
    kept: list[IntArray] = []
    over: list[IntArray] = [np.empty(0, dtype=np.int64)]
    for padded in bags:
        bag = padded[padded >= 0]
        if most and len(bag) > most:
            bag = shuffled(bag, rng)
            over.append(bag[most:])
            bag = bag[:most]
        (kept if len(bag) >= least else over).append(bag)
    left = shuffled(np.concatenate(over), rng)
    size = most or len(left)
    pools = [left[start : start + size] for start in range(0, len(left), size)] if rest == "pool" else []
    pools = [pool for pool in pools if len(pool) >= least]
    pooled = sum(map(len, pools))
    return Limited(_padded([*kept, *pools]), Rest(dropped=len(left) - pooled, pooled=pooled))


def _padded(bags: list[IntArray]) -> IntArray:
    found = np.full((len(bags), max(map(len, bags), default=0)), -1, dtype=np.int64)
    for place, bag in zip(found, bags, strict=True):
        place[: len(bag)] = bag
    return found


def split_bags(bags: IntArray, rng: Generator, what: str) -> tuple[Split, dict[str, IntArray]]:
    """Whole bags `[bags, longest]` as test, validation and training: the rows of each part, and its bags.

    In random order bags go into test until it has about a tenth of the rows, then into validation; the others train. A
    part ends where the next bag would take it further from a tenth than it is, so it has more than half and at most
    one and a half of it; a bag of more than a tenth of all rows always trains. Nothing is stratified: the parts differ
    in their balance of classes as bags do. `what` names the bagging in an error; raises `LLPBenchError` if there are
    too few bags to fill the parts.
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
                f"{what} makes too few bags of at most a tenth of the rows to test and validate on bags of their own: "
                f"{len(bags):,} bags, {int((sizes <= tenth).sum()):,} of them small enough. Choose split=rows "
                "or a finer key."
            )
    chosen["train"] += waiting
    parts = {part: bags[np.sort(np.array(numbers, dtype=np.int64))] for part, numbers in chosen.items()}
    rows_of = {part: shuffled(found[found >= 0], rng) for part, found in parts.items()}
    return Split(**rows_of), {part: _trimmed(found) for part, found in parts.items()}


def _trimmed(bags: IntArray) -> IntArray:
    """Without the padding that no bag needs."""
    return bags[:, : int((bags >= 0).sum(axis=1).max(initial=0))]
