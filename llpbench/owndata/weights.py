"""Weights of rows that stand for several people, and the repeated rows that replace them in a fit.

Methods do not know weights. Whole weights are exact: each row is repeated as often as its weight says.

Fractional weights, and weights of more than `MOST_REPEATED` people, are rounded. A bag then has as many repeated rows
as people (scaled if people are too many, or fewer than rows), and each row is repeated by its scaled weight, rounded up
or down. The rounding is systematic, not random: rows of a bag are ordered by their features, and rounded weights of the
first rows add up to their weights within half a row. So a feature's total in a bag changes by at most about one row.
"""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural
from llpbench.data.bag_tables import BagLabels
from llpbench.data.reading_bags import column_of_rows
from llpbench.tables.number_text import NumberText

MOST_REPEATED = 2_000_000
"""Largest number of repeated rows."""


def read_weights(sample_weight: Any, X: Any) -> FloatArray | None:
    """Return the weight of each row, None if there are none. Numbers may be texts, such as 1,456.

    Raises `LLPBenchError` for a wrong number of weights, and unless all are finite numbers, 0 or more.
    """
    if sample_weight is None:
        return None
    column = column_of_rows(sample_weight, X, "sample_weight", "Give one weight per row.").infer_objects()
    values = column if pd.api.types.is_numeric_dtype(column) else NumberText.read(column).values
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if not wrong.any():
        return np.asarray(numbers)
    first = column[wrong].tolist()[0]
    shown = "a missing value" if pd.isna(first) else repr(first)
    where = "" if column.name is None else f" in column {str(column.name)!r}"
    advice = "Name a column of numbers." if np.isnan(numbers).all() else "Correct these weights, or remove these rows."
    such = f"({plural(int(wrong.sum()), 'such row')} in all)"
    raise LLPBenchError(f"weights must be numbers from 0, got {shown}{where} {such}. {advice}")


@dataclass(frozen=True, eq=False)
class Repeats:
    """Repeated rows, and the number of people in their bags. Rows without weights are "repeated" once."""

    places: IntArray | slice  # [repeated rows] position of the original row, ascending
    sizes: IntArray  # [bags] number of repeated rows
    people: FloatArray  # [bags] sums of weights
    exact: bool  # whether each row is repeated exactly as often as its weight says

    def counts(self, found: FloatArray, *, noisy: bool = False) -> FloatArray:
        """Return counts of people [bags, classes] as counts of repeated rows."""
        if self.exact:
            return found
        total = self.people[:, None] if noisy else found.sum(axis=1, keepdims=True)
        return np.asarray(found * (self.sizes[:, None] / total))

    @property
    def ratio(self) -> float:
        """Number of repeated rows per person."""
        return 1.0 if self.exact else float(self.sizes.sum() / self.people.sum())

    def warning(self, rows: int) -> str:
        """Return a message about rounded weights; "" if none were rounded."""
        if self.exact:
            return ""
        total, repeated = self.people.sum(), f"{int(self.sizes.sum()):,} times in all"
        told = "weights are not whole" if total <= MOST_REPEATED else f"more than {MOST_REPEATED:,} people"
        rounded = f"repeated {repeated}, each weight rounded up or down"
        return f"{told}: {rows:,} rows that stand for {total:,.10g} people are {rounded}."

    @classmethod
    def of(cls, labels: BagLabels, features: Callable[[], pd.DataFrame]) -> Self:
        """Return the repetitions of rows by weight; `features` order them. Rows without a bag are left out."""
        inside, people = labels.of_row >= 0, np.asarray(labels.sizes, dtype=np.float64)
        if labels.weights is None:
            places = slice(None) if inside.all() else np.flatnonzero(inside)
            return cls(places, labels.sizes.astype(np.int64), people, True)
        weights = np.where(inside, labels.weights, 0.0)
        if not (weights % 1).any() and people.sum() <= MOST_REPEATED:
            times, sizes = weights.astype(np.int64), people.astype(np.int64)
            return cls(np.repeat(np.arange(len(times)), times), sizes, people, True)
        wanted = np.maximum(np.rint(min(max(people.sum(), inside.sum()), MOST_REPEATED) / people.sum() * people), 1.0)
        frame, ranks = features(), [labels.of_row]  # sort keys, the most important first
        for place in range(frame.shape[1]):
            column = frame.iloc[:, place]
            if not pd.api.types.is_numeric_dtype(column):
                column = column.astype(object).where(column.notna(), "").astype(str)
            ranks.append(pd.factorize(column, sort=True)[0])
        order = np.lexsort(ranks[::-1])
        order = order[inside[order]]
        bag = labels.of_row[order]
        shares = pd.Series(weights[order] / people[bag]).groupby(bag).cumsum()
        ends = np.floor(shares * wanted[bag] + 0.5 - 1e-9)
        times = np.zeros(len(weights), dtype=np.int64)
        times[order] = ends.groupby(bag).diff().fillna(ends)
        return cls(np.repeat(np.arange(len(weights)), times), wanted.astype(np.int64), people, False)


def in_bags(
    rows: Rows, labels: BagLabels, counts: FloatArray, groups: IntArray | None = None
) -> tuple[BaggedRows, Repeats, FloatArray]:
    """Return rows in bags, repeated by weight, the repetitions, and weights [repeated rows] that make up for rounding.

    With these, each bag (with `groups` [rows]: each group of a bag) has the sum of its rows' weights, times `ratio`.
    """
    cells = labels
    if groups is not None:
        keys = pd.Series(labels.of_row * (groups.max() + 1) + groups)
        of_row, names = pd.factorize(keys if labels.weights is None else keys.where(labels.weights > 0), sort=True)
        cells = replace(labels, of_row=of_row, names=names.tolist())
    copies = Repeats.of(cells, lambda: pd.DataFrame(dict(enumerate([*rows.numeric.T, *rows.categorical.T]))))
    repeated = Rows(*(part[copies.places] for part in rows))
    weights = (copies.people / copies.sizes * copies.ratio)[cells.of_row[copies.places]]
    return BaggedRows(repeated, labels.index(copies.places), counts), copies, weights
