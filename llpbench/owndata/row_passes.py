"""Passes over rows in batches: what is computed of each batch, in the order of parts and batches."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pandas as pd

from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import IntArray
from llpbench.owndata.bag_codes import BagCodes
from llpbench.tables.row_files import RowBatch, RowBatches

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class LargeRows:
    """Rows in batches, with the roles of their columns."""

    batches: RowBatches
    keys: Sequence[str]
    """columns that name a bag"""
    left_out: Sequence[str]
    """columns that are not features, apart from `keys`"""
    keep_key: bool = False
    """whether `keys` are features, too"""
    texts: Sequence[str] = ()
    """columns that the user declared as text"""

    def features_of(self, batches: Iterable[RowBatch]) -> Iterator[FeatureBatch]:
        """Yield the features and bags of batches."""
        codes = BagCodes(self.keys)
        out = {*self.left_out, *(() if self.keep_key else self.keys)}
        for batch in batches:
            with batch.blamed():
                places, labels = codes(batch)
                frame = batch.frame.drop(columns=[name for name in out if name in batch.frame.columns])
                if self.keep_key:
                    frame = frame.assign(**codes.texts(batch))
            yield FeatureBatch(batch, frame, places, labels)


@dataclass(frozen=True, eq=False)
class FeatureBatch:
    """Features and bags of consecutive rows."""

    batch: RowBatch
    frame: pd.DataFrame
    codes: IntArray
    """[rows] position of the row's bag in `labels`"""
    labels: list[Hashable]
    """labels of bags; None if missing"""


Compute = Callable[[FeatureBatch], Found]
"""Function of a batch. It may run in a thread or on another machine, so it must not change anything."""


def computed(item: FeatureBatch, compute: Compute[Found]) -> tuple[int, Found]:
    """Return the number of rows of a batch, and the result of `compute`."""
    with item.batch.blamed():
        return len(item.codes), compute(item)


def in_threads(rows: LargeRows, compute: Compute[Found]) -> Iterator[tuple[int, Found]]:
    """Yield `computed` of each batch. Raises `DataError` with the name of a part that cannot be read."""
    return side_by_side(rows.features_of(rows.batches), partial(computed, compute=compute))
