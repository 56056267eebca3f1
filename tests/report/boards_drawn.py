"""Boards drawn at random, whose true order is known: what error and coverage of statistics are measured on.

A score is the method's mean, plus what the dataset makes of it, plus what the bag size does there, plus what the seed
does: independent between datasets, between bag sizes and between seeds, with the spreads that the published journal has
(`SPREADS`, methods without pretraining by labels, 4 datasets x 3 bag sizes x 3 seeds). Seeds share their split within
a dataset, whatever the bag size; what moves all methods alike is not drawn, since every comparison is paired.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Shape = Literal["normal", "heavy", "skewed", "two-valued"]

MEANS = np.array([81.0, 80.2, 79.9, 79.7, 79.5, 79.4, 79.2, 77.9, 75.8, 73.5, 71.4, 79.1])
"""of the twelve rows, as published"""


TRUTHS: dict[str, Callable[[Generator], Floats]] = {
    "equal": lambda _: np.full(len(MEANS), 80.0),
    "close": lambda _: np.linspace(80.0, 79.89, len(MEANS)),
    "published": lambda _: MEANS,
    "random": lambda rng: rng.normal(78.0, 3.0, len(MEANS)),
}
"""true means by name: all equal; 0.01 points apart; as published; normal with a standard deviation of 3"""


class Spreads(NamedTuple):
    """Standard deviations by method: of what a dataset, a bag size and a seed do to it alone."""

    datasets: Floats
    bag_sizes: Floats
    seeds: Floats


SPREADS = Spreads(
    np.array([1.8, 1.3, 6.5, 0.7, 2.4, 1.4, 0.9, 4.0, 4.1, 6.4, 5.1, 5.1]),
    np.array([1.6, 1.2, 4.5, 1.6, 2.5, 2.4, 1.1, 3.3, 3.5, 2.2, 4.4, 2.4]),
    np.array([1.3, 3.8, 2.4, 1.9, 4.9, 1.3, 1.5, 1.6, 4.9, 1.7, 2.3, 1.7]),
)


def draw(
    rng: Generator,
    means: Floats,
    *,
    datasets: int,
    bag_sizes: int = 3,
    seeds: int = 10,
    shape: Shape = "normal",
) -> Floats:
    """Scores [datasets, bag sizes, seeds, methods]; `shape`: of what datasets and bag sizes do."""
    methods = len(means)
    at_dataset = _noise(rng, shape, datasets, 1, 1, methods) * SPREADS.datasets
    at_size = _noise(rng, shape, datasets, bag_sizes, 1, methods) * SPREADS.bag_sizes
    split = rng.normal(size=(datasets, 1, seeds, methods)) * SPREADS.seeds * np.sqrt(0.2)
    rest = rng.normal(size=(datasets, bag_sizes, seeds, methods)) * SPREADS.seeds * np.sqrt(0.8)
    return np.asarray(means + at_dataset + at_size + split + rest)


def _noise(rng: Generator, shape: Shape, *size: int) -> Floats:
    """Of mean 0 and variance 1."""
    if shape == "heavy":
        return np.asarray(rng.standard_t(3, size=size) / np.sqrt(3))
    if shape == "skewed":
        return rng.exponential(size=size) - 1
    if shape == "two-valued":
        return rng.choice([-1.0, 1.0], size=size)
    return rng.normal(size=size)


def true_ranks(means: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last rank that each method can be said to have: equal ones share theirs."""
    return 1 + (means[:, None] < means).sum(axis=1), (means[:, None] <= means).sum(axis=1)
