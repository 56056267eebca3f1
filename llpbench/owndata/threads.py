"""Threads of fits and predictions, by the number of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from llpbench.blocks.side_by_side import with_workers
from llpbench.core.errors import LLPBenchError
from llpbench.training.cell_runs import limit_threads

SMALL = 100_000
"""Largest number of rows of a small table. Several threads of one computation wait for one another if processors are
busy, so that only independent computations share a small table."""


@contextmanager
def threads_for(n_jobs: Any, rows: int) -> Iterator[None]:
    """Limit the threads for a number of rows, as `LLPClassifier.n_jobs` says.

    For a small table, linear algebra has one thread, so that results do not depend on the number of threads.
    """
    if n_jobs is not None and not (isinstance(n_jobs, int | np.integer) and (n_jobs == -1 or n_jobs >= 1)):
        raise LLPBenchError(f"n_jobs must be None, -1 or a whole number from 1, got {n_jobs!r}")
    small = rows <= SMALL
    threads = (1 if small else -1) if n_jobs is None else int(n_jobs)
    with ExitStack() as limits:
        if threads > 0:
            limits.enter_context(limit_threads(threads))
        if small:
            limits.enter_context(threadpool_limits(1, "blas"))
            limits.enter_context(with_workers(_cores() if threads == -1 else threads))
        yield


def _cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
