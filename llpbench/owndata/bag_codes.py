"""The bags of rows that are read in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from llpbench.core.bags import IntArray
from llpbench.data.bag_tables import BagLabels
from llpbench.tables.column_names import column_of
from llpbench.tables.row_files import RowBatch
from llpbench.tables.texts import bag_keys


class BagCodes:
    """The bags of the rows of a batch, as codes and labels."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names` are the columns that name a bag."""
        self._names = list(names)
        self._known: dict[str, dict[tuple[type, Hashable], str | None]] = {name: {} for name in self._names}

    def __call__(self, batch: RowBatch) -> tuple[IntArray, list[Hashable]]:
        """Return the position of each row's bag [rows] among some labels, and these labels; a missing one is None."""
        keys = [self._texts_of(batch, name) for name in self._names]
        if len(keys) == 1:
            return keys[0][0], [*keys[0][1]]
        together = np.zeros(len(batch.frame), dtype=np.int64)
        missing = np.zeros(len(batch.frame), dtype=bool)
        for codes, texts in keys:
            together = together * len(texts) + codes
            missing |= np.array([text is None for text in texts])[codes]
        codes, uniques = pd.factorize(np.where(missing, -1, together))
        labels: list[Hashable] = []
        for value in uniques:
            label, rest = [], int(value)
            for _, texts in reversed(keys):
                label.append(texts[rest % len(texts)])
                rest //= len(texts)
            labels.append(None if value < 0 else tuple(reversed(label)))
        return codes, labels

    def texts(self, batch: RowBatch) -> dict[str, pd.Series]:
        """Return the columns that name a bag, as texts."""
        found = {}
        for name in self._names:
            codes, texts = self._texts_of(batch, name)
            found[name] = pd.Series(np.array(texts, dtype=object)[codes], index=batch.frame.index, dtype=object)
        return found

    def _texts_of(self, batch: RowBatch, name: str) -> tuple[IntArray, list[str | None]]:
        """Return the position of each row's key [rows] among distinct keys, and the keys; the last one is None."""
        codes, uniques = pd.factorize(column_of(batch.frame, name, batch.part))
        values, known = [(type(value), value) for value in uniques.tolist()], self._known[name]
        if new := [place for place, value in enumerate(values) if value not in known]:
            texts = bag_keys(pd.DataFrame({name: pd.Series(uniques[new])}), [name], batch.part)[name]
            for place, text, missing in zip(new, texts, texts.isna(), strict=True):
                known[values[place]] = None if missing else text
        found = [known[value] for value in values]
        return np.where(codes < 0, len(found), codes).astype(np.int64), [*found, None]


def rows_by_label(codes: IntArray, labels: Sequence[Hashable]) -> Counter[Hashable]:
    """Return the number of rows of each label, as `BagCodes` returns them."""
    found: Counter[Hashable] = Counter()
    for label, rows in zip(labels, np.bincount(codes, minlength=len(labels)).tolist(), strict=True):
        found[label] += rows
    return found


@dataclass(frozen=True, eq=False)
class CountedLabels(BagLabels):
    """Labels of bags whose rows were counted and are not in memory. `of_row` has one row for each bag."""

    rows: IntArray | None = None
    """[bags]"""

    @property
    def sizes(self) -> IntArray:
        """[bags] number of rows in each bag"""
        assert self.rows is not None
        return self.rows
