"""Errors and coverage of tests and intervals are as stated, on random boards with known means.

The fast version of `benchmarks/error_and_coverage.py`, whose numbers stand in docs/statistics.md.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from pandas import DataFrame

from benchmarks.error_and_coverage import MEANS, TRUTHS, Floats, draw, true_ranks
from llpbench.report import statistics

DRAWS = 400


def blocks(rng: np.random.Generator, means: Floats, datasets: int) -> DataFrame:
    return DataFrame(draw(rng, means, datasets=datasets).mean(axis=(1, 2)))


def at_most(share: float, draws: int = DRAWS) -> float:
    """Return the largest plausible share of draws if the true one is `share`: three standard errors more."""
    return share + 3 * sqrt(share * (1 - share) / draws)


@pytest.mark.parametrize(("chosen", "share"), [("before", 0.05), ("by its mean", 0.1)])
def test_equal_methods_differ_significantly_from_first_no_more_often_than_stated(chosen: str, share: float) -> None:
    rng = np.random.default_rng(9)
    wrong = 0
    for _ in range(DRAWS):
        found = blocks(rng, TRUTHS["equal"](rng), 9)
        first = 0 if chosen == "before" else found.mean().idxmax()
        family = {other: [*(found[first] - found[other])] for other in found if other != first}
        wrong += any(each.is_significant for each in statistics.compared(family).values())
    assert wrong / DRAWS <= at_most(share)


@pytest.mark.parametrize("truth", ["close", "published", "random"])
@pytest.mark.parametrize("datasets", [4, 9])
def test_rank_intervals_contain_true_rank(truth: str, datasets: int) -> None:
    rng = np.random.default_rng(datasets)
    covered, widths = np.zeros(len(MEANS)), []
    for _ in range(DRAWS):
        means = TRUTHS[truth](rng)
        first, last = true_ranks(means)
        low, high = statistics.rank_intervals(blocks(rng, means, datasets))
        covered += (low <= last) & (high >= first)
        widths.append((high - low + 1).mean())
    # the largest of twelve shares of misses, so four standard errors
    assert (1 - covered / DRAWS).max() <= 0.05 + 4 * sqrt(0.05 * 0.95 / DRAWS)
    assert np.mean(widths) < len(MEANS), "some ranks are excluded"
