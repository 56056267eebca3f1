"""Compiled training steps: where they are worth their compilation, and code that is kept between runs.

On a GPU steps are recorded (`recording.py`), which is nearly as fast and takes no time. `--compile` compiles them, too.

On a CPU compilation takes a minute or two. A deep encoder repays it, so encoders that declare `Encoder.compiles` are
compiled if enough training is planned, their method allows it (`Method.compiles`) and there is a compiler. For other
encoders compilation takes ten seconds a size of population and is left to `--compile`. The decision depends neither on
timings nor on the number of seeds: compiled for a CPU, SAINT's dropout falls on other elements, and a seed must get the
same numbers alone as among others. A record's `hardware` says whether its steps were compiled.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from llpbench.core.cell import Cell, Environment, Protocol
from llpbench.core.registry import ENCODERS, METHODS
from llpbench.data.loading import cache_directory
from llpbench.training.device import Machine, quick_products

REPAID_AFTER = 1_000_000
"""planned rows x epochs of a member, 2,000 steps of 512 rows: compiling those of SAINT took one to two minutes on a CPU
of 2021 (three to five where a loss takes derivatives itself) and spares about a tenth of a second of each"""

RECOMPILES = 64
"""of a step; beyond it torch silently stops compiling"""

_KEPT_IN = "TORCHINDUCTOR_CACHE_DIR"
_LIBRARY = re.compile(r"/[^\s:]+\.so(?=:)")


def forget_compiled(machine: Machine) -> None:
    """Make room for a new population: what was compiled for others is of no use to it, but counts."""
    torch.compiler.reset()
    torch._dynamo.config.recompile_limit = RECOMPILES
    # else where a ReLU was positive is kept as booleans, which C++ stores more slowly than it multiplies matrices; not
    # in bfloat16, where nothing is gained
    quick = machine.device.type == "cpu" and machine.precision == torch.float32
    torch._functorch.config.recompute_views = quick
    # a matter between two parts of torch: users cannot act on it
    warnings.filterwarnings("ignore", r"`torch\._prims_common\.check` is deprecated", FutureWarning)


def compiled(function: Callable[..., Any], machine: Machine) -> Callable[..., Any]:
    """Compiled for every combination of phase, stage and number of members that a training meets.

    For a CPU, what calls the kernels is compiled, too: from Python, the more than a hundred calls of a step of SAINT
    take some of its time.
    """
    # sizes that torch would take for dynamic, since another population had others, cannot be mapped over members
    made = torch.compile(function, dynamic=False, options={"cpp_wrapper": machine.device.type == "cpu"})

    def quick(*args: Any) -> Any:
        with quick_products(machine):
            return made(*args)

    return quick


def compiles_on_cpu(cell: Cell, environment: Environment, rows: int) -> bool:
    """Whether a cell's steps are compiled there: as somebody says, else where it is repaid. `rows`: of a member."""
    if environment.compile is not None:
        return environment.compile
    if cell.encoder is None or not ENCODERS.get(cell.encoder).compiles or not METHODS.get(cell.method).compiles:
        return False
    return (cell.protocol or Protocol()).epochs * rows >= REPAID_AFTER and compiler_exists()


def most_together(cell: Cell, environment: Environment, machine: Machine) -> int | None:
    """How many members of a cell train together at most, unless somebody says otherwise; None: all.

    A deep encoder compiled for a CPU trains one at a time: three of SAINT take as long together as one after the other,
    with more memory, and as members finish other numbers of them would have to be compiled, too.
    """
    if not METHODS.get(cell.method).stackable:
        return 1
    deep = cell.encoder is not None and ENCODERS.get(cell.encoder).compiles
    alone = deep and machine.compiled and machine.device.type == "cpu"
    return environment.members or (1 if alone else None)


@cache
def compiler_exists() -> bool:
    """Whether there is a C++ compiler, which compiling for a CPU needs."""
    keep_compiled_code()  # before torch, when asked, settles on its temporary folder, for all processes started later
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
