"""Bins of all rows, ordered by bag, for passes over more rows than memory holds: in temporary files.

A row takes two bytes for each feature. Files hold whole bags, about 64 MB each, and are read one after the other.
Groups of bags are those of `BagGroups`, so sums are added in the same order as in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from llpbench.blocks import many_rows
from llpbench.blocks.components import Binned, Components
from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import IntArray, Rows
from llpbench.core.temporary import temporary_folder, writing
from llpbench.owndata.grid_bins import GridBins
from llpbench.owndata.quick_rows import JointFeatures, QuickGroup
from llpbench.owndata.row_passes import Compute, LargeRows, in_threads

FILE_BYTES = 1 << 26
_MOST_FILES = 200
_ORDERED_ROWS = 16_384
"""rows that are put in order at once"""

Found = TypeVar("Found")
Records = list[Any]
"""Bags and bins of rows, for each file."""


@dataclass(frozen=True)
class BinFile:
    """Some consecutive bags."""

    first: int
    """position of its first bag"""
    rows: int
    groups: tuple[slice, ...]
    """bags that are processed together"""


class BinLayout:
    """The distribution of bags to files, and what files contain."""

    def __init__(self, components: Components, sizes: IntArray, most: int) -> None:
        """Distribute bags of `sizes` rows [bags] to files of at most `most` bytes; larger ones have a single group."""
        self._components, self._sizes = components, sizes
        self._starts = np.append(0, np.cumsum(sizes))
        self._features = len(components.fine_bins)
        self.record = np.dtype([("bag", np.int32), ("bins", np.uint8, (2 * self._features,))])
        self.files = list(self._planned(most))
        self._first_bags = np.array([file.first for file in self.files], dtype=np.int64)

    @cached_property
    def _bins(self) -> GridBins:
        return GridBins(self._components)

    @cached_property
    def _joint(self) -> JointFeatures:
        return JointFeatures(self._components)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._sizes.sum())

    def _planned(self, most: int) -> Iterator[BinFile]:
        groups: list[slice] = []
        for group in _groups(self._starts):
            first = groups[0].start if groups else group.start
            if groups and (self._starts[group.stop] - self._starts[first]) * 2 * self._features > most:
                yield self._file(groups)
                groups = []
            groups.append(group)
        yield self._file(groups)

    def _file(self, groups: list[slice]) -> BinFile:
        first, last = groups[0].start, groups[-1].stop
        return BinFile(first, int(self._starts[last] - self._starts[first]), tuple(groups))

    def records(self, rows: Rows, bags: IntArray) -> Records:
        """Return what is stored of rows and their `bags` [rows]. Threads may call it."""
        binned = self._bins(rows)
        records = np.empty(len(bags), self.record)
        records["bag"] = bags
        records["bins"][:, : self._features] = binned.fine.T
        records["bins"][:, self._features :] = binned.coarse.T
        file_of_row = np.searchsorted(self._first_bags, bags, side="right") - 1
        order = np.argsort(file_of_row, kind="stable")
        ends = np.cumsum(np.bincount(file_of_row, minlength=len(self.files)))
        return np.split(records[order], ends[:-1])

    def ordered(self, file: BinFile, records: Any) -> Any:
        """Return the bins [2 features, rows] of the `records` of a file, ordered by bag, then as they were added."""
        assert len(records) == file.rows
        few = file.groups[-1].stop - file.first <= 1 << 16  # 16 bits are sorted much faster
        bags = (records["bag"] - file.first).astype(np.uint16 if few else np.int32)
        order = np.argsort(bags, kind="stable")
        bins = np.empty((2 * self._features, file.rows), np.uint8)
        for first in range(0, file.rows, _ORDERED_ROWS):
            part = slice(first, first + _ORDERED_ROWS)
            bins[:, part] = records["bins"][order[part]].T
        return bins

    def groups(self, file: BinFile, bins: Any) -> Iterator[Callable[[], QuickGroup]]:
        """Yield makers of the groups of a file, whose bins are given as bytes."""
        bins = bins.reshape(2, self._features, file.rows)
        binned = Binned(bins[0], bins[1])
        for bags in file.groups:
            first, last = self._starts[[bags.start, bags.stop]] - self._starts[file.first]
            rows = binned[int(first) : int(last)]
            yield partial(QuickGroup, self._components, rows, self._joint, bags, self._sizes[bags])


class Store(Protocol):
    """Bins of the rows of all bags, on this machine or on a cluster."""

    layout: BinLayout

    @property
    def description(self) -> str:
        """Where they are, and their size."""

    def fill(self, rows: LargeRows, compute: Compute[Records | None], done: Callable[[int], None]) -> None:
        """Add what `compute` returns for each batch: its `layout.records`, or None. Numbers of rows go to `done`."""

    def finish(self) -> None:
        """Order rows by bag, after they were added."""

    def __call__(self, look: Callable[[QuickGroup], Found]) -> Iterator[Found]:
        """Yield the result of `look` for each group of bags, in the order of bags, as `BagGroups` does."""


class Passes(Protocol):
    """Passes over rows, on this machine or on a cluster."""

    def read(self, rows: LargeRows, compute: Compute[Found]) -> Iterator[tuple[int, Found]]:
        """Yield the number of rows of each batch and the result of `compute`, in the order of parts and batches.

        Raises `DataError` with the name of a part that cannot be read.
        """

    def store(self, components: Components, sizes: IntArray) -> AbstractContextManager[Store]:
        """Return a store for the bins of bags of `sizes` rows [bags]."""


class LocalPasses:
    """Passes over rows on this machine, in threads."""

    def read(self, rows: LargeRows, compute: Compute[Found]) -> Iterator[tuple[int, Found]]:
        """Yield results as `Passes` says."""
        return in_threads(rows, compute)

    def store(self, components: Components, sizes: IntArray) -> BagStore:
        """Return temporary files."""
        return BagStore(components, sizes)


class BagStore:
    """Temporary files with the bins of all rows. A context manager, which deletes the files."""

    def __init__(self, components: Components, sizes: IntArray) -> None:
        """Create files for bags of `sizes` rows [bags]. Raises `DataError` if the disk has no room for them."""
        self._bytes = 2 * len(components.fine_bins) * int(sizes.sum())
        self.layout = BinLayout(components, sizes, max(FILE_BYTES, self._bytes // _MOST_FILES))
        self._folder = ExitStack()
        place = self._folder.enter_context(temporary_folder(size=self.layout.record.itemsize * self.layout.rows))
        self._paths = [place / f"{file.first}.bins" for file in self.layout.files]
        self._open: list[Any] = [open(path, "wb", 1 << 18) for path in self._paths]  # noqa: SIM115

    @property
    def description(self) -> str:
        """Where the bins are, and their size."""
        return f"temporary files: {self._bytes / 1e9:.2f} GB"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for file in self._open:
            file.close()
        self._folder.close()

    def fill(self, rows: LargeRows, compute: Compute[Records | None], done: Callable[[int], None]) -> None:
        """Add rows; those of a bag may come in any order."""
        for number, records in in_threads(rows, compute):
            if records is not None:
                self._add(records)
            done(number)

    def _add(self, records: Records) -> None:
        with writing():
            for file, part in zip(self._open, records, strict=True):
                if len(part):
                    file.write(part.tobytes())

    def finish(self) -> None:
        """Order the rows of each file by bag, after the last one was added."""
        for handle in self._open:
            handle.close()
        deque(side_by_side(zip(self.layout.files, self._paths, strict=True), self._order), maxlen=0)

    def _order(self, item: tuple[BinFile, Path]) -> None:
        file, path = item
        self.layout.ordered(file, np.fromfile(path, self.layout.record)).tofile(path)

    def __call__(self, look: Callable[[QuickGroup], Found]) -> Iterator[Found]:
        """Yield the result of `look` for each group of bags, in the order of bags, as `BagGroups` does."""
        files = zip(self.layout.files, self._paths, strict=True)
        groups = (group for file, path in files for group in self.layout.groups(file, np.fromfile(path, np.uint8)))
        return side_by_side(groups, lambda group: look(group()))


def _groups(starts: IntArray) -> Iterator[slice]:
    """Yield bags that are processed together, as `BagGroups` does; `starts` [bags + 1] are positions of rows."""
    first, bags = 0, len(starts) - 1
    while first < bags:
        fitting = int(np.searchsorted(starts, starts[first] + many_rows._ROWS, side="right")) - 1
        last = min(max(fitting, first + 1), bags)
        yield slice(first, last)
        first = last
