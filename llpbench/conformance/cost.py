"""Time and memory of training on toy data."""

from __future__ import annotations

import time
import weakref
from functools import cache
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from llpbench.blocks.losses import proportion_loss
from llpbench.conformance.subject import Subject, train
from llpbench.core.bags import Bags, Task
from llpbench.core.method import Method, Now
from llpbench.core.model import Model
from llpbench.core.registry import Entry
from llpbench.core.seeding import generator
from llpbench.data.toy import toy_assignment, toy_table

STEPS_OF_A_FIT = 100
"""number of DLLP's steps with which the fit of a direct method is compared"""


def cost_of(subject: Subject) -> tuple[float, float]:
    """Return the seconds of a training step on two bags of 256 rows, and the largest number of bytes in use at once.

    For a direct method, those of its fit.
    """
    task = subject.task(toy_table(1800), toy_assignment(1800, 256))
    if subject.direct:
        return _cost_of_fit(subject, task)
    seconds = []
    for epochs in (1, 4, 4):  # the first only warms up
        population = subject.population({0: task}, epochs)
        train(population)
        steps = sum(population.steps(stage) * (stage.epochs or epochs) for stage in population.method.stages)
        seconds.append(population.seconds["train"] / steps)
    with _LiveTensors() as live:
        train(subject.population({0: task}, 1))
    return min(seconds[1:]), live.most


def _cost_of_fit(subject: Subject, task: Task) -> tuple[float, float]:
    import tracemalloc

    def fit() -> float:
        start = time.perf_counter()
        subject.method().fit(task.train, task.schema, generator(0, "training"))
        return time.perf_counter() - start

    seconds = min(fit() for _ in range(2))
    tracemalloc.start()
    try:
        fit()
        return seconds, float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


class ProportionsAlone(Method):
    """Method for comparison, the same as DLLP: only the proportion loss."""

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        del now
        return proportion_loss(model.log_proba(bags), bags)


@cache
def dllp_cost() -> tuple[float, float]:
    """Return `cost_of` DLLP."""
    facts = {"kind": "neural", "role": "", "classes": "multi", "reference": "Ardehaly & Culotta 2017"}
    return cost_of(Subject(Entry("method", "dllp", "", facts, __file__, __name__, ProportionsAlone)))


class _LiveTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counter of the bytes of all live tensors created by operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most = self._now = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and (storage := tensor.untyped_storage()) not in self._known:
                self._known.add(storage)
                size = storage.nbytes()
                self._now += size
                self.most = max(self.most, self._now)
                weakref.finalize(storage, self._free, size)
        return out

    def _free(self, size: int) -> None:
        self._now -= size
