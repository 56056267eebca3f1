"""Compiled training steps: when compilation pays off, and a cache of compiled code between runs.

On a GPU steps are recorded (`stage.py`), which is nearly as fast and takes no compilation time. `--compile` also
compiles them. On a CPU compilation takes a minute or two and pays off for deep encoders. Encoders that declare
`Encoder.compiles` are compiled if enough training is planned, the method allows it (`Method.compiles`) and a compiler
exists. For other encoders compilation takes ten seconds per population size and needs `--compile`. The decision depends
neither on timings nor on the number of seeds: compiled for a CPU, SAINT's dropout drops other elements, and a seed must
get the same numbers alone as together with others. A record's `hardware` says whether its steps were compiled.
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

from llpbench.data.loading import cache_directory
from llpbench.training.device import Machine, fast_products

_RECOMPILES = 64
"""largest number of compilations of a step; beyond it torch silently stops compiling"""

_KEPT_IN = "TORCHINDUCTOR_CACHE_DIR"
_LIBRARY = re.compile(r"/[^\s:]+\.so(?=:)")


def forget_compiled(machine: Machine) -> None:
    """Discard code compiled for earlier populations: a new one cannot use it, but it counts towards the limit."""
    torch.compiler.reset()
    torch._dynamo.config.recompile_limit = _RECOMPILES
    # Otherwise the sign of ReLU inputs is stored as booleans, which in C++ is slower than a matrix product.
    torch._functorch.config.recompute_views = machine.device.type == "cpu"
    # internal to torch: users cannot act on it
    warnings.filterwarnings("ignore", r"`torch\._prims_common\.check` is deprecated", FutureWarning)


def compiled(function: Callable[..., Any], machine: Machine) -> Callable[..., Any]:
    """Return `function`, compiled for every combination of phase, stage and number of members when it first occurs.

    For a CPU the calls of kernels are also compiled. A step of SAINT has more than a hundred, which are slow in Python.
    """
    # torch would make sizes dynamic if they differ between populations, and vmap cannot map dynamic sizes
    step = torch.compile(function, dynamic=False, options={"cpp_wrapper": machine.device.type == "cpu"})

    def quick(*args: Any) -> Any:
        with fast_products(machine):
            return step(*args)

    return quick


@cache
def compiler_exists() -> bool:
    """Return whether a C++ compiler exists. Compiling for a CPU needs one."""
    keep_compiled_code()  # first, because the call below fixes torch's folder for this and all later processes
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        return False
    return True


def keep_compiled_code() -> None:
    """Store compiled code in the user's cache, for later runs and cells of the same shape; torch's cache is temporary.

    If the user has set TORCHINDUCTOR_CACHE_DIR, that folder is used.
    """
    os.environ.setdefault(_KEPT_IN, str(cache_directory() / "compiled"))


def remove_damaged(error: BaseException) -> bool:
    """Remove the cached library that `error` reports as damaged; return whether one was removed.

    A process that is killed while compiling leaves half a file, which torch would always take for complete.
    """
    match = _LIBRARY.search(str(error))
    folder = os.environ.get(_KEPT_IN)
    if match is None or folder is None:
        return False
    library = Path(match.group())
    if not library.is_file() or not library.is_relative_to(Path(folder).absolute()):
        return False
    library.unlink()
    return True
