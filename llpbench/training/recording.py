"""Training steps that a GPU records and replays.

A step of SAINT launches about 900 small kernels. Launching them from Python takes longer than running them. So a GPU
records a step as a CUDA graph and replays it with one launch. The kernels and numbers are the same.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

from llpbench.core.text import one_line

_BEFORE = 2
"""calls of each width before recording: the first compiles, the second is checked for waits"""
_WAITS = "synchronizing CUDA operation"
"""part of torch's warning if the host waits for the GPU"""


class Recorded:
    """A step that is recorded once for each width of its bags, and then replayed.

    Inputs other than its arguments must keep their addresses, and changes must be made in place. A step is not recorded
    if the host waits for the GPU during it, for example to assign rows on the CPU.
    """

    def __init__(self, step: Callable[[int, Tensor, Tensor, Tensor], Tensor]) -> None:
        self._step = step
        self._calls: Counter[int] = Counter()
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, list[Tensor], Tensor]] = {}
        self._possible = True

    def __call__(self, width: int, *tensors: Tensor) -> Tensor:
        """Run or replay the step; `tensors` must have the shapes and types of earlier calls."""
        self._calls[width] += 1
        if not self._possible or self._calls[width] < _BEFORE:
            return self._step(width, *tensors)
        if self._calls[width] == _BEFORE:
            return self._watch(width, tensors)
        if width not in self._graphs:
            self._record(width, tensors)
            if not self._possible:
                return self._step(width, *tensors)
        graph, places, result = self._graphs[width]
        for place, tensor in zip(places, tensors, strict=True):
            place.copy_(tensor)
        graph.replay()
        return result.clone()

    def _watch(self, width: int, tensors: tuple[Tensor, ...]) -> Tensor:
        """Run the step and record whether the host waits for the GPU in it."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                result = self._step(width, *tensors)
            finally:
                torch.cuda.set_sync_debug_mode(before)
        for warning in caught:
            if _WAITS in str(warning.message):
                self._possible = False
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return result

    def _record(self, width: int, tensors: tuple[Tensor, ...]) -> None:
        places = [tensor.clone() for tensor in tensors]
        graph = torch.cuda.CUDAGraph()
        others = next(iter(self._graphs.values()), None)
        try:
            # graphs of other widths never run at the same time, so they share memory
            with torch.cuda.graph(graph, pool=None if others is None else others[0].pool()):
                result = self._step(width, *places)
        except RuntimeError as error:
            self._possible = False
            self._graphs.clear()
            warnings.warn(
                f"a step could not be recorded and is launched kernel by kernel: {one_line(error)}", stacklevel=1
            )
            return
        self._graphs[width] = graph, places, result
