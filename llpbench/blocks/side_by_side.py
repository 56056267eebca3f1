"""Work that threads do side by side, each with one thread of linear algebra."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Found = TypeVar("Found")

_workers: ContextVar[int | None] = ContextVar("workers", default=None)


def workers() -> int:
    """Return the number of threads of `side_by_side`: that of `with_workers`, or as many as torch uses."""
    return _workers.get() or torch.get_num_threads()


@contextmanager
def with_workers(number: int) -> Iterator[None]:
    """Set the number of threads of `side_by_side`, whatever torch uses."""
    token = _workers.set(number)
    try:
        yield
    finally:
        _workers.reset(token)


def side_by_side(items: Iterable[Item], compute: Callable[[Item], Found]) -> Iterator[Found]:
    """Yield `compute(item)` for each item, in the order of items, which the calling thread makes.

    Each of the `workers()` computes with one thread of linear algebra. Only a few items wait in memory.
    """
    threads = workers()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Found]] = deque()
        for item in items:
            waiting.append(pool.submit(compute, item))
            if len(waiting) > threads + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def are_shared() -> bool:
    """Return whether `with_workers` lets several computations share the threads."""
    return (_workers.get() or 1) > 1


def together(*computations: Callable[[], Found]) -> list[Found]:
    """Return the results of some computations: side by side if they share the threads, otherwise in turn."""
    return [*side_by_side(computations, lambda each: each())] if are_shared() else [each() for each in computations]
