"""Passes over files on the machines of a Ray cluster, with the results of passes on this machine.

A task of Ray Data reads one part, with the code that reads it here, and returns the result of each batch. This process
merges them in the order of parts and batches. Bins of all rows stay in the memory of the cluster. Ray Data sorts them
into blocks of whole bags, and a pass is a task for each block. Its results come back in the order of bags.
"""

from __future__ import annotations

import copy
import logging
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import ray
import ray.data
from ray.data import DataContext, Dataset
from threadpoolctl import threadpool_limits

from llpbench.blocks.components import Components
from llpbench.core.bags import IntArray
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.provenance import require_software, software
from llpbench.core.ray_address import no_cluster, require_answer
from llpbench.core.text import one_line
from llpbench.owndata.bag_store import FILE_BYTES, BinLayout, Records
from llpbench.owndata.quick_rows import QuickGroup
from llpbench.owndata.row_passes import Compute, FeatureBatch, LargeRows, computed

_LEAST_BLOCK_BYTES = 1 << 20
_BLOCKS_OF_CPU = 4
"""Number of blocks for each CPU, so that CPUs end a pass at about the same time."""

Found = TypeVar("Found")


@contextmanager
def cluster_passes(address: str) -> Iterator[ClusterPasses]:
    """Join a Ray cluster, and leave it at the end; a cluster that this process has already joined is used and kept.

    Raises `LLPBenchError` if there is no cluster at `address`, and for errors of Ray.
    """
    os.environ.setdefault("RAY_DATA_USAGE_DISABLED", "1")
    joins = not ray.is_initialized()
    logger = logging.getLogger("ray.data")
    level = logger.level
    try:
        if joins:
            _join(address)
        logger.setLevel(logging.CRITICAL)  # the caller gets one line
        context = DataContext.get_current().copy()
        context.enable_progress_bars = False
        context.shuffle_strategy = "sort_shuffle_pull_based"  # the default starts further processes
        context.execution_options.preserve_order = True
        with DataContext.current(context):
            yield ClusterPasses()
    finally:
        logger.setLevel(level)
        if joins:
            ray.shutdown()


def _join(address: str) -> None:
    require_answer(address)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        raise no_cluster(address, one_line(error)) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray has replaced it


class ClusterPasses:
    """Passes over rows in parts that all machines of the cluster can read."""

    def read(self, rows: LargeRows, compute: Compute[Found]) -> Iterator[tuple[int, Found]]:
        """Yield what `in_threads` yields. Raises the same errors, and `DataError` if a machine cannot read a part."""
        first, size, parts = 0, _cpus(), len(rows.batches.parts)
        while first < parts:  # later tasks know what earlier parts have shown
            yield from _read(rows, range(first, min(first + size, parts)), compute)
            first, size = first + size, 2 * size

    def store(self, components: Components, sizes: IntArray) -> AbstractContextManager[ClusterStore]:
        """Return a store for the bins of bags of `sizes` rows [bags]."""
        return nullcontext(ClusterStore(components, sizes))


class ClusterStore:
    """The bins of all rows in the memory of the cluster."""

    def __init__(self, components: Components, sizes: IntArray) -> None:
        """Distribute bags of `sizes` rows [bags] to blocks."""
        self._bytes = 2 * len(components.fine_bins) * int(sizes.sum())
        most = max(self._bytes // (_BLOCKS_OF_CPU * _cpus()), _LEAST_BLOCK_BYTES)
        self.layout = BinLayout(components, sizes, min(most, FILE_BYTES // 2))
        self._layout = ray.put(self.layout)
        self._blocks: Dataset | None = None

    @property
    def description(self) -> str:
        """Where the bins are, and their size."""
        return f"memory of the cluster: {self._bytes / 1e9:.2f} GB"

    def fill(self, rows: LargeRows, compute: Compute[Records | None], done: Callable[[int], None]) -> None:
        """Prepare a pass that adds rows; those of a bag may come in any order. `finish` makes the pass."""
        del done
        chunks = _mapped(_part_numbers(range(len(rows.batches.parts))), _chunks_of_part, ray.put((rows, compute)))
        chunks = chunks.sort("file", boundaries=[*range(1, len(self.layout.files))])
        self._blocks = _mapped(chunks, _block, self._layout)

    def finish(self) -> None:
        """Order rows by bag."""
        assert self._blocks is not None
        with _errors_on_one_line():
            self._blocks = self._blocks.materialize()

    def __call__(self, look: Callable[[QuickGroup], Found]) -> Iterator[Found]:
        """Yield the result of `look` for each group of bags, in the order of bags, as `BagGroups` does."""
        assert self._blocks is not None
        return _results(_mapped(self._blocks, _looked, self._layout, ray.put(look)))


def _read(rows: LargeRows, parts: range, compute: Compute[Found]) -> Iterator[tuple[int, Found]]:
    """Yield what `in_threads` yields of some parts."""
    batches = rows.batches
    reading = batches.reading
    for part, found in _results(_mapped(_part_numbers(parts), _results_of_part, ray.put((rows, compute)))):
        stale = batches.reading != reading  # an earlier part has changed how this one is read
        if part is None:
            if not stale:
                yield found
            continue
        error, kinds, decimals = found
        if stale or error is not None or not batches.agrees(kinds):
            for item in rows.features_of(batches.of_part(part)):  # raises the error of a pass on this machine
                yield computed(item, compute)
            if error is not None and not stale:
                raise error
        else:
            batches.learn(kinds, decimals)


# What follows, up to the next line, runs on the machines of the cluster.


def _results_of_part(table: pa.Table, reference: Any) -> Iterator[pa.Table]:
    """Yield the results of the batches of a part, then its number, its error (or None) and what it has shown."""
    part, error = table["id"][0].as_py(), None
    rows, compute = _fetched(reference)
    rows = replace(rows, batches=copy.deepcopy(rows.batches))  # which learn from the part
    try:
        for item in _items(rows, part):
            yield _packed((None, computed(item, compute)))
    except LLPBenchError as raised:
        error = raised
    yield _packed((part, (error, rows.batches.kinds, rows.batches.decimals)))


def _items(rows: LargeRows, part: int) -> Iterator[FeatureBatch]:
    if not (path := rows.batches.parts[part]).exists():
        raise DataError(
            f"machine {os.uname().nodename!r} has no file {str(path)!r}. Put ROWS into a folder that has the same path "
            "on all machines of the cluster."
        )
    return rows.features_of(rows.batches.of_part(part))


def _chunks_of_part(table: pa.Table, reference: Any) -> Iterator[pa.Table]:
    """Yield the records of the batches of a part, with the number of their file and their order."""
    part = table["id"][0].as_py()
    rows, compute = _fetched(reference)
    yield _CHUNKS.empty_table()
    for item in _items(replace(rows, batches=copy.deepcopy(rows.batches)), part):
        found = computed(item, compute)[1] or []
        chunks = [
            {"file": file, "part": part, "first": item.batch.first, "records": records.tobytes()}
            for file, records in enumerate(found)
            if len(records)
        ]
        yield pa.Table.from_pylist(chunks, schema=_CHUNKS)


def _block(table: pa.Table, reference: Any) -> Iterator[pa.Table]:
    """Yield the number of a file and the bins of its bags."""
    layout: BinLayout = _fetched(reference)
    number = table["file"][0].as_py()
    order = np.lexsort([table["first"], table["part"]])
    records = [np.frombuffer(table["records"][int(chunk)].as_buffer(), layout.record) for chunk in order]
    bins = layout.ordered(layout.files[number], np.concatenate(records))
    yield pa.table({"file": [number], "bins": pa.array([bins.tobytes()], pa.large_binary())})


def _looked(table: pa.Table, reference: Any, look: Any) -> Iterator[pa.Table]:
    """Yield the results of the groups of a file."""
    layout: BinLayout = _fetched(reference)
    bins = np.frombuffer(table["bins"][0].as_buffer(), np.uint8)
    for group in layout.groups(layout.files[table["file"][0].as_py()], bins):
        yield _packed(_fetched(look)(group()))


_CHUNKS = pa.schema([("file", pa.int64()), ("part", pa.int64()), ("first", pa.int64()), ("records", pa.large_binary())])


@lru_cache(maxsize=2)
def _fetched(reference: Any) -> Any:
    return ray.get(reference)


def _packed(result: Any) -> pa.Table:
    return pa.table({"result": pa.array([pickle.dumps(result, 5)], pa.large_binary())})


def _with_one_thread(
    task: Callable[..., Iterator[pa.Table]],
    required: Mapping[str, Any],
    folder: Path,
    references: Sequence[Any],
    table: pa.Table,
) -> Iterator[pa.Table]:
    """Yield what a task yields, in a folder, and with one thread of linear algebra, as `side_by_side` does."""
    require_software(required)
    with threadpool_limits(1, "blas"), chdir(folder) if folder.is_dir() else nullcontext():
        yield from task(table, *references)


# What follows runs on this machine.


def _part_numbers(parts: range) -> Dataset:
    """Return numbers, each in a block of its own."""
    return ray.data.from_items([{"id": part} for part in parts], override_num_blocks=len(parts))


def _mapped(blocks: Dataset, task: Callable[..., Any], *references: Any) -> Dataset:
    """Return the results of a task for each block; the `references` are for its other arguments."""
    function = partial(_with_one_thread, task, software(), Path.cwd(), references)
    return blocks.map_batches(function, batch_size=None, batch_format="pyarrow")


def _results(packed: Dataset) -> Iterator[Any]:
    """Yield results, in the order of blocks."""
    with threadpool_limits(1, "blas"), _errors_on_one_line():
        for table in packed.iter_batches(batch_size=None, batch_format="pyarrow"):
            for result in table["result"]:
                yield pickle.loads(result.as_buffer())


@contextmanager
def _errors_on_one_line() -> Iterator[None]:
    try:
        yield
    except LLPBenchError:
        raise
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, LLPBenchError):
            cause = getattr(cause, "cause", None) or cause.__cause__
        raise cause or LLPBenchError(f"Ray failed: {one_line(error)}") from error


def _cpus() -> int:
    """Return the number of CPUs of the cluster."""
    return max(int(ray.cluster_resources().get("CPU", 1)), 1)  # type: ignore[no-untyped-call]
