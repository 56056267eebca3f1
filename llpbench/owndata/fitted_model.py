"""`FittedModel`: everything that a fit has found, as one value. Predictions and files use nothing else."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.method import Predictor
from llpbench.owndata.bag_effects import KnownBags
from llpbench.owndata.columns import FeatureColumns
from llpbench.owndata.doubts import Doubts
from llpbench.owndata.rare import BagCalibration


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel:
    """A fitted model, without rows."""

    columns: FeatureColumns
    names: list[str] | None
    """names of features; None if they were columns of an array"""
    predictor: Predictor
    classes: list[Hashable]
    positive: int
    """position of the class that a single column of counts is of"""
    order: list[int]
    """position in `classes` of each column of an array of counts"""
    bags: list[Hashable]
    counts: FloatArray
    """[bags, classes], NaN if suppressed"""
    sizes: IntArray | FloatArray
    """[bags] numbers of rows, or sums of their weights"""
    deviation: float
    """standard deviation of the noise of a count"""
    of_rows: bool
    """whether the counts are of these rows, not of whole bags or other people"""
    calibration: BagCalibration | None
    doubts: Doubts | None
    left_out: dict[str, int]
    known_bags: KnownBags | None = None
    """effects of the bags; None until they are computed"""
    keys: list[str] = field(default_factory=list)
    """columns that name bags or hold weights"""
    reading: dict[str, Any] = field(default_factory=dict)
    """how the file of rows was read"""
    groupings: int = 1
