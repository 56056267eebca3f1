"""Bags along the first principal component: neighbours on the axis of largest variance share a bag."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import standardised

_DIGITS = 9
"""number of decimals of a component's values; further decimals differ between libraries"""


@register_bagging("principal-component", version=1)
def _principal_component(table: Table, rows: IntArray, size: int, rng: Generator) -> IntArray:
    """Sort rows by the first principal component of their standardised numbers and frequent categories, and cut."""
    features = standardised(table, rows)
    values = features @ _first_component(features.T @ features)
    tie = rng.bit_generator.random_raw(len(rows))
    return rows[np.lexsort([tie, np.round(values, _DIGITS)])].reshape(-1, size)


def _first_component(covariance: FloatArray) -> FloatArray:
    """Return the first eigenvector [features], with a positive largest entry: its sign decides the order of bags."""
    first = np.linalg.eigh(covariance)[1][:, -1]
    return np.asarray(first * np.sign(first[np.abs(first).argmax()]))
