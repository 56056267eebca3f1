"""Compiled training steps: where they repay their compilation, and code that is kept between runs.

On a GPU steps are always compiled. On a CPU that takes a minute or two, and only a deep encoder gains from it: so those
that declare it (`Encoder.compiles`) are compiled there if enough steps are planned and there is a compiler. Nothing
that is measured decides, and a record's `hardware` says which it was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from llpbench.core.bags import Task
from llpbench.core.cell import Cell, Protocol
from llpbench.core.method import Method
from llpbench.core.registry import ENCODERS
from llpbench.data.loading import cache_directory
from llpbench.training.training_data import buckets

REPAID_AFTER = 5000
"""planned steps of all members: compiling those of SAINT took one to two minutes on a CPU of 2021 (three to five where
a loss takes derivatives itself) and spares about a tenth of a second of each; most trainings end before their plan"""

RECOMPILES = 64
"""of a step; beyond it torch silently stops compiling"""

_KEPT_IN = "TORCHINDUCTOR_CACHE_DIR"
_LIBRARY = re.compile(r"/[^\s:]+\.so(?=:)")


def compiled(losses: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Compiled for every combination of phase, stage and number of members that a training meets."""
    torch.compiler.reset()  # what was compiled for other populations is of no use to this one, but counts
    torch._dynamo.config.recompile_limit = RECOMPILES
    # sizes that torch would take for dynamic, since another population had others, cannot be mapped over members
    return torch.compile(losses, dynamic=False)


def repays(cell: Cell, method: Method, tasks: Mapping[int, Task]) -> bool:
    """Whether a cell's steps are compiled on a CPU, unless somebody says otherwise."""
    if cell.encoder is None or not ENCODERS.get(cell.encoder).compiles or not compiler_exists():
        return False
    protocol = cell.protocol or Protocol()
    return sum(planned_steps(method, task, protocol) for task in tasks.values()) >= REPAID_AFTER


def planned_steps(method: Method, task: Task, protocol: Protocol) -> int:
    """Most steps of the longest stage."""

    def steps(unit: str) -> int:
        if unit == "rows":
            return -(-int(task.train.sizes.sum()) // task.schema.rows_per_step)
        parts: Iterable[int] = (len(part) for part in buckets(task.train.sizes, protocol.bags_per_step))
        return sum(-(-bags // protocol.bags_per_step) for bags in parts)

    return max((stage.epochs or protocol.epochs) * steps(stage.unit) for stage in method.stages)


def compiler_exists() -> bool:
    """Whether there is a C++ compiler, which compiling for a CPU needs."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        return False
    return True


def keep_compiled_code() -> None:
    """Keep what is compiled in the user's cache, for later runs and cells of the same shape; torch's own is temporary.

    Somebody's own TORCHINDUCTOR_CACHE_DIR is left as it is.
    """
    os.environ.setdefault(_KEPT_IN, str(cache_directory() / "compiled"))


def remove_damaged(error: BaseException) -> bool:
    """Remove the kept library that `error` says cannot be loaded; whether there was one.

    A process that was killed while it compiled leaves half a file, which torch takes for a whole one ever after.
    """
    found = _LIBRARY.search(str(error))
    folder = os.environ.get(_KEPT_IN)
    if found is None or folder is None:
        return False
    library = Path(found.group())
    if not library.is_file() or not library.is_relative_to(Path(folder).absolute()):
        return False
    library.unlink()
    return True
