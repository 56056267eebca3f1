"""Results of a function for many items, in threads and in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Found = TypeVar("Found")


def side_by_side(items: Iterable[Item], compute: Callable[[Item], Found]) -> Iterator[Found]:
    """Yield `compute(item)` for each item, in the order of items, which the calling thread makes.

    As many threads compute as torch uses, each with one thread of linear algebra. Only a few items wait in memory.
    """
    threads = torch.get_num_threads()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Found]] = deque()
        for item in items:
            waiting.append(pool.submit(compute, item))
            if len(waiting) > threads + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
