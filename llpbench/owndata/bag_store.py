"""Temporary files with the bins of all rows, ordered by bag, for passes over more rows than memory holds.

A row takes two bytes for each feature. Files hold whole bags, about 64 MB each, and are read one after the other.
Groups of bags are those of `BagGroups`, so sums are added in the same order as in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from llpbench.blocks import many_rows
from llpbench.blocks.components import Binned, Components
from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import IntArray, Rows
from llpbench.core.errors import DataError
from llpbench.core.text import one_line
from llpbench.owndata.grid_bins import GridBins
from llpbench.owndata.quick_rows import JointFeatures, QuickGroup

_FILE_BYTES = 1 << 26
_MOST_FILES = 200
_ORDERED_ROWS = 16_384
"""rows that are put in order at once"""

Found = TypeVar("Found")
Records = list[Any]
"""Bags and bins of rows, for each file."""


@dataclass(frozen=True)
class _File:
    """Some consecutive bags."""

    path: Path
    first: int
    """position of its first bag"""
    rows: int
    groups: tuple[slice, ...]
    """bags that are processed together"""


class BagStore:
    """Bins of the rows of all bags. A context manager, which deletes the files."""

    def __init__(self, components: Components, sizes: IntArray) -> None:
        """Create files for bags of `sizes` rows [bags]. Raises `DataError` if the disk has no room for them."""
        self._components, self._sizes = components, sizes
        self._bins, self._joint = GridBins(components), JointFeatures(components)
        self._starts = np.append(0, np.cumsum(sizes))
        self._features = len(components.fine_bins)
        self._record = np.dtype([("bag", np.int32), ("bins", np.uint8, (2 * self._features,))])
        self._folder = tempfile.TemporaryDirectory(prefix="llpbench-")
        needed, place = self._record.itemsize * int(sizes.sum()) * 1.1, Path(self._folder.name)
        if (free := shutil.disk_usage(place).free) < needed:
            self._folder.cleanup()
            raise DataError(
                f"temporary files of {needed / 1e9:.1f} GB do not fit into {str(place.parent)!r}, which has "
                f"{free / 1e9:.1f} GB. Set TMPDIR to another folder."
            )
        self._files = list(self._planned(place))
        self._first_bags = np.array([file.first for file in self._files], dtype=np.int64)
        self._open: list[Any] = [open(file.path, "wb", 1 << 18) for file in self._files]  # noqa: SIM115

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._sizes.sum())

    @property
    def bytes(self) -> int:
        """Size of the temporary files in bytes."""
        return 2 * self._features * self.rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for file in self._open:
            file.close()
        self._folder.cleanup()

    def _planned(self, folder: Path) -> Iterator[_File]:
        most = max(_FILE_BYTES, self.bytes // _MOST_FILES)
        groups: list[slice] = []
        for group in _groups(self._starts):
            first = groups[0].start if groups else group.start
            if groups and (self._starts[group.stop] - self._starts[first]) * 2 * self._features > most:
                yield self._file(folder, groups)
                groups = []
            groups.append(group)
        yield self._file(folder, groups)

    def _file(self, folder: Path, groups: list[slice]) -> _File:
        first, last = groups[0].start, groups[-1].stop
        rows = int(self._starts[last] - self._starts[first])
        return _File(folder / f"{first}.bins", first, rows, tuple(groups))

    def records(self, rows: Rows, bags: IntArray) -> Records:
        """Return what is stored of rows and their `bags` [rows]. Threads may call it."""
        binned = self._bins(rows)
        records = np.empty(len(bags), self._record)
        records["bag"] = bags
        records["bins"][:, : self._features] = binned.fine.T
        records["bins"][:, self._features :] = binned.coarse.T
        file_of_row = np.searchsorted(self._first_bags, bags, side="right") - 1
        order = np.argsort(file_of_row, kind="stable")
        ends = np.cumsum(np.bincount(file_of_row, minlength=len(self._files)))
        return np.split(records[order], ends[:-1])

    def add(self, records: Records) -> None:
        """Add rows; those of a bag may come in any order."""
        try:
            for file, part in zip(self._open, records, strict=True):
                if len(part):
                    file.write(part.tobytes())
        except OSError as error:
            raise DataError(
                f"temporary files cannot be written: {one_line(error)}. Set TMPDIR to another folder."
            ) from error

    def finish(self) -> None:
        """Order the rows of each file by bag, after the last one was added."""
        for handle in self._open:
            handle.close()
        deque(side_by_side(self._files, self._order), maxlen=0)

    def _order(self, file: _File) -> None:
        records = np.fromfile(file.path, self._record)
        assert len(records) == file.rows
        few = file.groups[-1].stop - file.first <= 1 << 16  # 16 bits are sorted much faster
        bags = (records["bag"] - file.first).astype(np.uint16 if few else np.int32)
        order = np.argsort(bags, kind="stable")
        bins = np.empty((2 * self._features, file.rows), np.uint8)
        for first in range(0, file.rows, _ORDERED_ROWS):
            part = slice(first, first + _ORDERED_ROWS)
            bins[:, part] = records["bins"][order[part]].T
        bins.tofile(file.path)

    def __call__(self, look: Callable[[QuickGroup], Found]) -> Iterator[Found]:
        """Yield the result of `look` for each group of bags, in the order of bags, as `BagGroups` does."""
        return side_by_side(self._groups_of_files(), lambda group: look(group()))

    def _groups_of_files(self) -> Iterator[Callable[[], QuickGroup]]:
        for file in self._files:
            bins = np.fromfile(file.path, np.uint8).reshape(2, self._features, file.rows)
            binned = Binned(bins[0], bins[1])  # type: ignore[arg-type]
            for bags in file.groups:
                first, last = self._starts[[bags.start, bags.stop]] - self._starts[file.first]
                rows = binned[int(first) : int(last)]
                yield partial(QuickGroup, self._components, rows, self._joint, bags, self._sizes[bags])


def _groups(starts: IntArray) -> Iterator[slice]:
    """Yield bags that are processed together, as `BagGroups` does; `starts` [bags + 1] are positions of rows."""
    first, bags = 0, len(starts) - 1
    while first < bags:
        fitting = int(np.searchsorted(starts, starts[first] + many_rows._ROWS, side="right")) - 1
        last = min(max(fitting, first + 1), bags)
        yield slice(first, last)
        first = last
