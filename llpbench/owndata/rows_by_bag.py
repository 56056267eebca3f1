"""Rows in the order of bags, in temporary files, for computations on whole bags of more rows than memory holds.

Bags are processed in pieces: consecutive bags with at most `PIECE_ROWS` rows together, or one larger bag. The same
pieces are used in memory, so that both give the same results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np

from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Ragged, Rows
from llpbench.core.files import temporary_folder, writing

PIECE_ROWS = 131_072
_FILE_BYTES = 1 << 26
_MOST_FILES = 200


def pieces(sizes: IntArray) -> list[slice]:
    """Return the bags of each piece; `sizes` [bags] are numbers of rows."""
    ends, found, first = np.cumsum(sizes), [], 0
    while first < len(sizes):
        fitting = int(np.searchsorted(ends, ends[first] - sizes[first] + PIECE_ROWS, side="right"))
        found.append(slice(first, max(fitting, first + 1)))
        first = found[-1].stop
    return found


def without_rows(counts: FloatArray, sizes: IntArray, noise: float = 0.0) -> BaggedRows:
    """Return bags with counts [bags, classes] and sizes [bags], but without rows."""
    nothing = Rows(np.empty((0, 0), np.float32), np.empty((0, 0), np.int64), np.empty((0, 0), bool))
    return BaggedRows(nothing, Ragged(np.zeros(0, dtype=np.int64), sizes), counts, noise)


def piece_of(whole: BaggedRows, bags: slice, rows: Rows | None = None) -> BaggedRows:
    """Return some bags of `whole` with their `rows`, in the order of bags. Rows may be left out.

    A noisy bag without positive counts keeps the proportions of all bags.
    """
    counts, sizes = whole.counts[bags], whole.sizes[bags]
    counts = np.where((counts <= 0).all(axis=1, keepdims=True), whole.prior, counts)
    nothing = np.empty((int(sizes.sum()), 0))
    index = Ragged(np.arange(len(nothing)), sizes)
    return BaggedRows(Rows(nothing, nothing, nothing) if rows is None else rows, index, counts, whole.noise)


class RowsByBag:
    """Records of rows, ordered by bag. A context manager, which deletes the files."""

    def __init__(self, fields: Sequence[tuple[str, Any, tuple[int, ...]]], sizes: IntArray) -> None:
        """Create files for rows with `fields` (name, type, shape), in bags of `sizes` rows [bags].

        Raises `DataError` if the disk has no room for them.
        """
        self._record = np.dtype([("bag", np.int32), *fields])
        self._pieces, self._starts = pieces(sizes), np.append(0, np.cumsum(sizes))
        self.bytes = self._record.itemsize * int(sizes.sum())
        self._folder = ExitStack()
        place = self._folder.enter_context(temporary_folder(size=self.bytes))
        ends = np.array([(bags.start, bags.stop) for bags in self._pieces], dtype=np.int64).reshape(-1, 2)
        before = self._record.itemsize * self._starts[ends[:, 0]]
        self._file_of_piece = before // max(_FILE_BYTES, self.bytes // _MOST_FILES)
        self._file_of_bag = np.repeat(self._file_of_piece, ends[:, 1] - ends[:, 0])
        self._files: dict[int, Any] = {
            number: open(place / f"{number}.rows", "w+b", 1 << 18)  # noqa: SIM115
            for number in np.unique(self._file_of_piece).tolist()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()
        self._folder.close()

    def add(self, bags: IntArray, *fields: Any) -> None:
        """Add rows in their `bags` [rows]. Rows of a bag keep the order in which they are added."""
        records = np.empty(len(bags), self._record)
        for name, values in zip(self._record.names or (), (bags, *fields), strict=True):
            records[name] = values
        file_of_row = self._file_of_bag[bags]
        with writing():
            for number in np.unique(file_of_row).tolist():
                self._files[number].write(records[file_of_row == number].tobytes())

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        """Yield the bags of each piece, and their records, ordered by bag."""
        last, records, first = -1, np.empty(0, self._record), 0
        for bags, number in zip(self._pieces, self._file_of_piece.tolist(), strict=True):
            if number != last:
                self._files[number].seek(0)
                records = np.frombuffer(self._files[number].read(), self._record)
                records = records[np.argsort(records["bag"], kind="stable")]
                last, first = number, int(self._starts[bags.start])
            yield bags, records[self._starts[bags.start] - first : self._starts[bags.stop] - first]
