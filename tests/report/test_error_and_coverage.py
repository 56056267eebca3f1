"""What boards claim is wrong no more often than they say: on boards drawn at random, whose truth is known.

The fast version of `benchmarks/error_and_coverage.py`, whose numbers stand in docs/statistics.md.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from boards_drawn import MEANS, TRUTHS, Floats, draw, true_ranks
from pandas import DataFrame
from scipy import stats

from llpbench.report import statistics

DRAWS = 400


def blocks(rng: np.random.Generator, means: Floats, datasets: int) -> DataFrame:
    return DataFrame(draw(rng, means, datasets=datasets).mean(axis=(1, 2)))


def at_most(share: float, draws: int = DRAWS) -> float:
    """What a share found in draws may be where the true one is `share`: three standard errors more."""
    return share + 3 * sqrt(share * (1 - share) / draws)


@pytest.mark.parametrize("datasets", [4, 9])
def test_equal_methods_differ_significantly_no_more_often_than_claimed(datasets: int) -> None:
    rng = np.random.default_rng(datasets)
    corrected = uncorrected = 0
    for _ in range(DRAWS):
        found = blocks(rng, TRUTHS["equal"](rng), datasets)
        corrected += bool((statistics.paired_p(found) < 0.05).any())
        t = np.abs(statistics._paired_t(found))
        uncorrected += bool((t > stats.t.ppf(0.975, datasets - 1)).any())
    assert corrected / DRAWS <= at_most(0.05)
    assert uncorrected / DRAWS > 0.5, "these boards do tempt"


@pytest.mark.parametrize("truth", ["close", "published", "random"])
@pytest.mark.parametrize("datasets", [4, 9])
def test_rank_intervals_hold_the_true_rank_of_every_row(truth: str, datasets: int) -> None:
    rng = np.random.default_rng(datasets)
    held, widths = np.zeros(len(MEANS)), []
    for _ in range(DRAWS):
        means = TRUTHS[truth](rng)
        first, last = true_ranks(means)
        low, high = statistics.rank_intervals(blocks(rng, means, datasets))
        held += (low <= last) & (high >= first)
        widths.append((high - low + 1).mean())
    # the largest of twelve shares of misses, so four standard errors
    assert (1 - held / DRAWS).max() <= 0.05 + 4 * sqrt(0.05 * 0.95 / DRAWS)
    assert np.mean(widths) < len(MEANS), "that is not because they always say everything"


@pytest.mark.parametrize("datasets", [4, 9])
def test_intervals_of_gaps_hold_the_true_share(datasets: int) -> None:
    rng = np.random.default_rng(datasets)
    draws = 1000
    gap = rng.gamma(1.5, 10, (draws, datasets))
    gained = (0.15 + 0.4 * rng.normal(size=gap.shape)) * gap
    ends = [statistics.ratio_interval(zip(one, other, strict=True)) for one, other in zip(gained, gap, strict=True)]
    assert np.mean([low <= 0.15 <= high for low, high in ends]) == pytest.approx(0.95, abs=0.03)
