"""How often what boards claim is wrong: significant differences, intervals, and Friedman's test.

    python -m benchmarks.error_and_coverage --draws 1000

Boards have twelve methods, three bag sizes and ten seeds. docs/statistics.md has the numbers.

A score is the sum of the method's mean and independent effects of dataset, bag size and seed. Their standard deviations
(`SPREADS`) are those of the published journal: methods without pretraining by labels, 4 datasets, 3 bag sizes, 3 seeds.
Within a dataset a seed has the same split at every bag size. Effects on all methods are not simulated, because all
comparisons are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Literal, NamedTuple

import click
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pandas import DataFrame
from scipy.stats import friedmanchisquare

from llpbench.report import statistics

Floats = NDArray[np.float64]
Shape = Literal["normal", "heavy", "skewed", "two-valued"]

MEANS = np.array([81.0, 80.2, 79.9, 79.7, 79.5, 79.4, 79.2, 77.9, 75.8, 73.5, 71.4, 79.1])
"""Published means of twelve rows."""


TRUTHS: dict[str, Callable[[Generator], Floats]] = {
    "equal": lambda _: np.full(len(MEANS), 80.0),
    "close": lambda _: np.linspace(80.0, 79.89, len(MEANS)),
    "published": lambda _: MEANS,
    "random": lambda rng: rng.normal(78.0, 3.0, len(MEANS)),
}
"""True means by name: all equal; 0.01 points apart; as published; normal with a standard deviation of 3."""


class Spreads(NamedTuple):
    """Standard deviations of the effects of dataset, bag size and seed, by method."""

    datasets: Floats
    bag_sizes: Floats
    seeds: Floats


SPREADS = Spreads(
    np.array([1.8, 1.3, 6.5, 0.7, 2.4, 1.4, 0.9, 4.0, 4.1, 6.4, 5.1, 5.1]),
    np.array([1.6, 1.2, 4.5, 1.6, 2.5, 2.4, 1.1, 3.3, 3.5, 2.2, 4.4, 2.4]),
    np.array([1.3, 3.8, 2.4, 1.9, 4.9, 1.3, 1.5, 1.6, 4.9, 1.7, 2.3, 1.7]),
)


def draw(rng: Generator, means: Floats, *, datasets: int, shape: Shape = "normal") -> Floats:
    """Return scores [datasets, bag sizes, seeds, methods]. `shape`: distribution of dataset and size effects."""
    methods, bag_sizes, seeds = len(means), 3, 10
    at_dataset = _noise(rng, shape, datasets, 1, 1, methods) * SPREADS.datasets
    at_size = _noise(rng, shape, datasets, bag_sizes, 1, methods) * SPREADS.bag_sizes
    split = rng.normal(size=(datasets, 1, seeds, methods)) * SPREADS.seeds * np.sqrt(0.2)
    rest = rng.normal(size=(datasets, bag_sizes, seeds, methods)) * SPREADS.seeds * np.sqrt(0.8)
    return np.asarray(means + at_dataset + at_size + split + rest)


def _noise(rng: Generator, shape: Shape, *size: int) -> Floats:
    """Return noise with mean 0 and variance 1."""
    if shape == "heavy":
        return np.asarray(rng.standard_t(3, size=size) / np.sqrt(3))
    if shape == "skewed":
        return rng.exponential(size=size) - 1
    if shape == "two-valued":
        return rng.choice([-1.0, 1.0], size=size)
    return rng.normal(size=size)


def true_ranks(means: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and last true rank of each method. Equal methods share their ranks."""
    return 1 + (means[:, None] < means).sum(axis=1), (means[:, None] <= means).sum(axis=1)


def measure(name: str, datasets: int, shape: Shape, draws: int) -> dict[str, float | str]:
    """Of boards of that many datasets."""
    rng = np.random.default_rng(1)
    found: dict[str, list[float]] = {}
    held = np.zeros(len(MEANS))
    for _ in range(draws):
        means = TRUTHS[name](rng)
        blocks = DataFrame(draw(rng, means, datasets=datasets, shape=shape).mean(axis=(1, 2)))
        first, last = true_ranks(means)
        low, high = statistics.rank_intervals(blocks)
        holds = (low <= last) & (high >= first)
        held += holds
        above = np.greater.outer(blocks.mean().to_numpy(), blocks.mean().to_numpy())
        told = np.zeros_like(above)
        pairs = {pair: [*(blocks[pair[0]] - blocks[pair[1]])] for pair in combinations(range(len(means)), 2)}
        for (one, other), difference in statistics.compared(pairs).items():
            told[[one, other], [other, one]] = difference.is_significant
        told &= above
        ends = [statistics.interval(blocks[other] - blocks[len(means) - 1]) for other in range(len(means) - 1)]
        each = {
            "any pair wrongly significant": (told & (means[:, None] <= means)).any(),
            "pairs rightly significant": (told & (means[:, None] > means)).sum()
            / max((means[:, None] > means).sum(), 1),
            "rank interval holds, mean": holds.mean(),
            "rank interval holds, all rows": holds.all(),
            "ranks in an interval": (high - low + 1).mean(),
            "against floor holds": np.mean([a <= m - means[-1] <= b for (a, b), m in zip(ends, means, strict=False)]),
            "friedman below 0.05": friedmanchisquare(*blocks.to_numpy().T).pvalue < 0.05,
        }
        for key, value in each.items():
            found.setdefault(key, []).append(float(value))
    worst = {"rank interval holds, worst row": held.min() / draws}
    setting = {"truth": name, "datasets": datasets, "shape": shape}
    return {**setting, **{key: float(np.mean(values)) for key, values in found.items()}, **worst}


@click.command(help=__doc__)
@click.option("--draws", default=1000, show_default=True)
def main(draws: int) -> None:
    """Print a line for each kind of board."""
    boards: list[tuple[str, int, Shape]] = [(name, datasets, "normal") for datasets in (4, 6, 9) for name in TRUTHS]
    shapes: tuple[Shape, ...] = ("heavy", "skewed", "two-valued")
    boards += [(name, 4, shape) for shape in shapes for name in ("equal", "random")]
    for board in boards:
        numbers = measure(*board, draws).items()
        click.echo(
            "  ".join(
                f"{key}: {value:.3f}" if isinstance(value, float) else f"{key}: {value}" for key, value in numbers
            )
        )


if __name__ == "__main__":
    main()
