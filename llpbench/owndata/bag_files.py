"""A table of bags in a file: a line a bag with a column a class, or a line a bag and class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.text import plural
from llpbench.data.frames import as_text
from llpbench.owndata.row_files import bag_keys, column_of, read_rows


@dataclass(frozen=True)
class BagFile:
    """A file, and what its columns say."""

    path: Path
    keys: Sequence[str]
    """the columns that name a bag"""
    counts: Sequence[str]
    """the columns with counts, or none"""
    proportions: Sequence[str]
    """the columns with proportions, or none"""
    class_column: str | None = None
    """of a long table, a line a bag and class: which class"""
    size_column: str | None = None
    """how many rows the whole bag has"""
    suppressed: Sequence[str] = ()
    """what stands where nothing is told, beside empty cells"""

    def read(self) -> dict[str, Any]:
        """The arguments of `LLPClassifier.fit` that it holds.

        Raises `LLPBenchError` unless there are either counts or proportions, and `DataError` for what is no number.
        """
        if bool(self.counts) == bool(self.proportions):
            raise LLPBenchError(
                "give one of --counts and --proportions: the columns of the table of bags that hold them."
            )
        values, long = self.counts or self.proportions, self.class_column is not None
        if long and len(values) != 1:
            raise LLPBenchError(
                f"with --class-column the table has a line a bag and class, and one column of numbers, however: "
                f"{', '.join(values)}."
            )
        if len(set(values)) < len(values):
            raise LLPBenchError(f"a column holds one class, however one stands twice: {', '.join(values)}.")
        names = [*self.keys, *([self.class_column] if self.class_column is not None else [])]
        frame = read_rows(self.path, keys=names)
        keys = bag_keys(frame, names, self.path)
        table = pd.DataFrame({name: self._numbers(frame, name) for name in values})
        table.index = pd.MultiIndex.from_frame(keys) if len(names) > 1 else pd.Index(keys.iloc[:, 0])
        given = table.iloc[:, 0] if long else table
        found: dict[str, Any] = {"counts" if self.counts else "proportions": given}
        if self.size_column is not None:
            found["sizes"] = self._sizes(frame, keys[list(self.keys)])
        return found

    def _sizes(self, frame: pd.DataFrame, keys: pd.DataFrame) -> pd.Series:
        assert self.size_column is not None
        bags = pd.Index(keys.iloc[:, 0]) if keys.shape[1] == 1 else pd.MultiIndex.from_frame(keys)
        sizes = pd.Series(self._numbers(frame, self.size_column).to_numpy(), index=bags)
        repeated = pd.DataFrame({"bag": bags.to_flat_index(), "size": sizes.to_numpy()}).drop_duplicates()
        two = repeated["bag"].duplicated()
        if two.any():
            raise DataError(
                f"file {str(self.path)!r}: column {self.size_column!r} has two sizes for "
                f"{plural(int(two.sum()), 'bag')}, such as {repeated['bag'][two].iloc[0]!r}. Give one."
            )
        return sizes[~bags.duplicated()]

    def _numbers(self, frame: pd.DataFrame, name: str) -> pd.Series:
        """A column as numbers, NaN where it is empty or suppressed."""
        texts = as_text(column_of(frame, name, self.path)).str.strip()
        texts = texts.mask(texts.isin({"", *self.suppressed}))
        numbers = pd.to_numeric(texts, errors="coerce")
        broken = texts[numbers.isna() & texts.notna()]
        if len(broken):
            raise DataError(
                f"file {str(self.path)!r}: {plural(len(broken), 'value')} of column {name!r} "
                f"{'is no number' if len(broken) == 1 else 'are no numbers'}, such as {broken.iloc[0]!r} in row "
                f"{broken.index[0]} (counted from 0). Mend it, or name what marks suppressed ones: "
                f"--suppressed '{broken.iloc[0]}'."
            )
        return numbers.astype(float)
