"""Synthetic tables in the shape of the paper's two private ones: bags with counts and no row labels.

Private A and B of the paper have more than 300,000 rows, 69 numeric and 11 categorical columns, 2 and 3 classes, and at
least 250 rows per bag. Nothing else is known about them. These two tables have the same shape and nothing else in
common with them.

A bag is a point in a latent space of few dimensions, and its rows scatter around it. Columns are noisy views of a row's
position: linear ones, skewed ones, counts, and categories of all sizes, some with missing values. Classes depend on
the position, including products, and on an effect of the bag that no column shows. Labels never leave `_draw`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.registry import add_dataset
from llpbench.core.seeding import generator
from llpbench.data.sources import Generated

if TYPE_CHECKING:
    from pandas import DataFrame

NUMERIC, CATEGORICAL, LATENT = 69, 11, 6
LEAST = 250
"""smallest number of rows of a bag"""
WIDTHS = (2, 2, 3, 4, 5, 8, 12, 20, 40, 80, 150)
"""categories of each column"""


@dataclass(frozen=True)
class _SyntheticTable:
    """Definition of a table."""

    name: str
    classes: tuple[str, ...]
    prior: tuple[float, ...]
    """class shares from which logits start; columns make the actual shares more even"""
    bag_effect: float
    """standard deviation of the bag's part of the logits, which no column shows"""
    rows: int


A = _SyntheticTable("synthetic_a", ("no", "yes"), (0.85, 0.15), 0.3, 310_000)
B = _SyntheticTable("synthetic_b", ("high", "low", "middle"), (0.1, 0.6, 0.3), 0.5, 310_000)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Contents of a table."""

    numeric: FloatArray
    """[rows, 69] NaN where missing"""
    categorical: IntArray
    """[rows, 11] -1 where missing"""
    bag_of_row: IntArray
    """[rows]"""
    labels: IntArray
    """[rows] hidden from methods"""

    def counts(self, classes: int) -> IntArray:
        """[bags, classes]"""
        counts = np.zeros((self.bag_of_row.max() + 1, classes), dtype=np.int64)
        np.add.at(counts, (self.bag_of_row, self.labels), 1)
        return counts


def _draw(of: _SyntheticTable) -> _Drawn:
    """Draw the table; every call returns the same rows."""
    from scipy.special import softmax

    rng = generator(0, "synthetic", of.name)
    sizes = _sizes(of.rows, rng)
    bag_of_row = np.repeat(np.arange(len(sizes)), sizes)
    centres = 0.7 * _normal(rng, len(sizes), LATENT)
    place = centres[bag_of_row] + _normal(rng, of.rows, LATENT)

    views = place @ (_normal(rng, LATENT, NUMERIC) * (_uniform(rng, LATENT, NUMERIC) < 0.4))
    numeric = views + 1.5 * _normal(rng, of.rows, NUMERIC)
    numeric[:, :20] = np.exp(0.5 * numeric[:, :20])
    numeric[:, 20:35] = np.floor(np.maximum(numeric[:, 20:35], 0.0))
    gaps = np.where(np.arange(NUMERIC) % 4 == 3, 0.3 * _uniform(rng, NUMERIC), 0.0)
    numeric[_uniform(rng, of.rows, NUMERIC) < gaps] = np.nan

    categorical = np.empty((of.rows, CATEGORICAL), dtype=np.int64)
    for column, width in enumerate(WIDTHS):
        noisy = place[:, column % LATENT] + _normal(rng, of.rows)
        borders = np.quantile(noisy, np.sort(_uniform(rng, width - 1)))
        categorical[:, column] = np.searchsorted(borders, noisy)
    categorical[_uniform(rng, of.rows, CATEGORICAL) < 0.02] = -1

    classes = len(of.classes)
    products = np.column_stack([place, place[:, :3] * place[:, 3:], np.abs(place[:, :2])])
    logits = products @ _normal(rng, products.shape[1], classes)
    logits += (of.bag_effect * _normal(rng, len(sizes), classes))[bag_of_row] + np.log(of.prior)
    below = np.cumsum(softmax(logits, axis=1), axis=1)[:, :-1] < _uniform(rng, of.rows)[:, None]
    return _Drawn(numeric, categorical, bag_of_row, below.sum(axis=1))


def _sizes(rows: int, rng: Generator) -> IntArray:
    """Draw the sizes of bags by Pareto's law, from `LEAST` to twenty times that; the last bag has the rest."""
    drawn = LEAST * np.minimum((1.0 - _uniform(rng, rows // LEAST)) ** -0.7, 20.0)
    ends = np.cumsum(drawn.astype(np.int64))
    ends = ends[ends <= rows - LEAST]
    return np.diff(np.concatenate([[0], ends, [rows]]))


def _uniform(rng: Generator, *shape: int) -> FloatArray:
    """Draw numbers in (0, 1) from raw bits, which numpy keeps the same in all releases."""
    raw = rng.bit_generator.random_raw(int(np.prod(shape)))
    return np.asarray(((raw >> np.uint64(11)) + 0.5) * 2.0**-53).reshape(shape)


def _normal(rng: Generator, *shape: int) -> FloatArray:
    from scipy.special import ndtri

    return np.asarray(ndtri(_uniform(rng, *shape)))


@cache
def _tables(of: _SyntheticTable) -> tuple[DataFrame, DataFrame]:
    """Return rows with their bags, and bags with their counts."""
    import pandas as pd

    drawn = _draw(of)
    names = [f"bag{number:04}" for number in range(drawn.bag_of_row.max() + 1)]
    rows = pd.DataFrame(drawn.numeric, columns=[f"n{column:02}" for column in range(NUMERIC)])
    for column, width in enumerate(WIDTHS):
        texts = [f"v{value:03}" for value in range(width)]
        rows[f"c{column:02}"] = pd.Categorical.from_codes(drawn.categorical[:, column], texts)
    rows["bag"] = pd.Categorical.from_codes(drawn.bag_of_row, names)
    bags = pd.DataFrame(drawn.counts(len(of.classes)), columns=list(of.classes))
    return rows, bags.assign(bag=names)


add_dataset(
    A.name,
    """Synthetic, in the shape of the paper's Private A: two classes, bags with counts, no labels.""",
    source=Generated(lambda: _tables(A)[0]),
    bags=Generated(lambda: _tables(A)[1]),
    by=("bag",),
    licence="Apache-2.0",
    reference="synthetic, in the shape of the paper's Private A",
)

add_dataset(
    B.name,
    """Synthetic, in the shape of the paper's Private B: three classes, bags with counts, no labels.""",
    source=Generated(lambda: _tables(B)[0]),
    bags=Generated(lambda: _tables(B)[1]),
    by=("bag",),
    licence="Apache-2.0",
    reference="synthetic, in the shape of the paper's Private B",
)
