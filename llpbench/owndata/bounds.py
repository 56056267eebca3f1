"""Bounds of counts that hold without a model (Duncan & Davis 1953), and 95 % intervals within them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from llpbench.core.bags import FloatArray, IntArray

_TAILS = (0.025, 0.975)


def duncan_davis(people: FloatArray, counts: FloatArray, total: FloatArray | IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest possible number of people of a group who have an outcome.

    Of `total` people, `people` are in the group, and `counts` have the outcome (arrays of one shape, or broadcast).
    """
    return np.maximum(counts - (total - people), 0.0), np.minimum(people, counts)


def interval(
    values: FloatArray,
    drawn: FloatArray,
    least: FloatArray | float,
    most: FloatArray | float,
    methods: Sequence[Literal["linear", "lower", "higher"]] = ("linear", "linear"),
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of 95 % intervals within bounds; `drawn` are [draws, ...], `methods` those of the quantiles."""
    quantiles = (np.quantile(drawn, tail, axis=0, method=how) for tail, how in zip(_TAILS, methods, strict=True))
    lower, upper = (each.clip(least, most) for each in quantiles)
    return np.minimum(lower, values), np.maximum(upper, values)


def shares_among(
    among: Sequence[int] | IntArray,
    counts: FloatArray,
    drawn: FloatArray,
    least: FloatArray,
    most: FloatArray,
    people: FloatArray,
) -> tuple[FloatArray, ...]:
    """Return shares among some outcomes, the ends of 95 % intervals, and bounds, from counts [..., outcomes].

    `drawn` are draws of counts [draws, ..., outcomes], `least` and `most` their bounds, `people` those of the group.
    """
    some = [each[..., among].sum(axis=-1, keepdims=True) for each in (counts, drawn, least, most)]
    least_of_rest, most_of_rest = (
        each.sum(axis=-1, keepdims=True) - part for each, part in zip((least, most), some[2:], strict=True)
    )
    others = (
        np.minimum(some[3] - most, people - least - least_of_rest),
        np.maximum(some[2] - least, people - most - most_of_rest),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        share = counts / some[0]
        ends = [end / (end + other) for end, other in zip((least, most), others, strict=True)]
        ends = [np.where((end > 0) | np.isnan(share), end, 0.0) for end in ends]
        return share, *interval(share, np.where(some[1] > 0, drawn / some[1], share), *ends), *ends
