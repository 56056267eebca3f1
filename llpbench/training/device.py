"""Devices: choice, precision, memory, compiled steps, and the hardware facts stored with each run.

On a GPU steps are recorded (`stage.py`), which is nearly as fast and takes no compilation time; `--compile` also
compiles them. Whether steps are compiled on a CPU (`cell_runs.REPAID_AFTER`) depends neither on timings nor on the
number of seeds: compiled for a CPU, SAINT's dropout drops other elements, and a seed must get the same numbers alone as
together with others. (Of whole natural bags, the seeds with least training rows decide.)
"""

from __future__ import annotations

import os
import platform
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural
from llpbench.data.loading import cache_directory
from llpbench.training import memory

_RECOMPILES = 64
"""largest number of compilations of a step; beyond it torch silently stops compiling"""

_KEPT_IN = "TORCHINDUCTOR_CACHE_DIR"
_LIBRARY = re.compile(r"/[^:\n]+\.so(?=:)")


@dataclass(frozen=True)
class Machine:
    """Device and settings for training the seeds of a cell together (in tuning, also its hyperparameter settings).

    They affect only speed and rounding.
    """

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    compiled: bool = False
    precision: torch.dtype = torch.float32
    recorded: bool = False
    """whether the GPU records a step once and replays it (`stage.py`)"""

    def fast_products(self) -> AbstractContextManager[None]:
        """Let oneDNN multiply float32 matrices in code compiled for a CPU, if that is fast and exact.

        For float32, torch uses MKL. MKL uses AVX-512 only on Intel CPUs. On AMD CPUs, oneDNN is twice as fast. Code
        that is not compiled keeps torch's default and so gives the same bits as before.
        """
        compiled = self.compiled and self.device.type == "cpu"
        return _onednn() if compiled and "Intel" not in _processor() and _onednn_is_exact() else nullcontext()

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function`, compiled for every combination of phase, stage and number of members when it first occurs.

        For a CPU the calls of kernels are also compiled. A step of SAINT has more than a hundred, which are slow in
        Python.
        """
        # torch would make sizes dynamic if they differ between populations, and vmap cannot map dynamic sizes
        step = torch.compile(function, dynamic=False, options={"cpp_wrapper": self.device.type == "cpu"})

        def quick(*args: Any) -> Any:
            with self.fast_products():
                return step(*args)

        return quick

    def forget_compiled(self) -> None:
        """Discard code compiled for earlier populations: a new one cannot use it, but it counts towards the limit."""
        torch.compiler.reset()
        torch._dynamo.config.recompile_limit = _RECOMPILES
        # Otherwise the sign of ReLU inputs is stored as booleans, which in C++ is slower than a matrix product.
        torch._functorch.config.recompute_views = self.device.type == "cpu"
        # internal to torch: users cannot act on it
        warnings.filterwarnings("ignore", r"`torch\._prims_common\.check` is deprecated", FutureWarning)

    def hardware(self, threads: int, precision: str) -> dict[str, Any]:
        """Return the record's `hardware`, without a host name."""
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else _processor()
        facts = {"device": self.device.type, "name": name, "threads": threads}
        return facts | {"compiled": self.compiled, "precision": precision}

    def reset_peak_memory(self) -> None:
        """Reset the peak memory that `peak_memory_mb` reports."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            memory.give_back()  # memory of earlier cells
            memory.reset_peak()

    def peak_memory_mb(self) -> float | None:
        """Return peak memory in MB since the reset: of tensors on a GPU, of the process on a CPU (`memory.py`)."""
        return torch.cuda.max_memory_allocated(self.device) / 2**20 if self.device.type == "cuda" else memory.peak_mb()


def pick_device(name: str) -> torch.device:
    """Return the device `name`; `auto` picks a GPU if there is one. Raises `LLPBenchError` if it is not available."""
    require_device_name(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        told = f"device {name!r} does not exist: torch sees {plural(torch.cuda.device_count(), 'GPU')}"
        raise LLPBenchError(f"{told}. Use --device cpu.")
    return device


def require_device_name(name: str) -> None:
    """Raise `LLPBenchError` unless `name` is a supported device; it need not exist on this machine."""
    if name == "auto":
        return
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise LLPBenchError(f"unknown device {name!r}. Choose --device auto, cpu, cuda or cuda:N.") from error
    if device.type not in ("cpu", "cuda"):
        raise LLPBenchError(f"device {name!r} is not supported. Choose --device auto, cpu, cuda or cuda:N.")


def pick_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the encoder's precision. Raises `LLPBenchError` for bfloat16 on a CPU, where it is slower than float32."""
    if name == "float32":
        return torch.float32
    if name != "bfloat16":
        raise LLPBenchError(f"precision must be float32 or bfloat16, got {name!r}")
    if device.type == "cpu":
        raise LLPBenchError("bfloat16 needs a GPU, got a CPU. Use --precision float32.")
    return torch.bfloat16


@contextmanager
def _onednn() -> Iterator[None]:
    """Compute float32 products with oneDNN.

    torch selects oneDNN only if rounding to bfloat16 is allowed. On CPUs without AMX, oneDNN never rounds.
    """
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before, matmul.fp32_precision = matmul.fp32_precision, "bf16"
    try:
        yield
    finally:
        matmul.fp32_precision = before


@cache
def _onednn_is_exact() -> bool:
    """Return whether products of oneDNN are as exact as float32; errors of bfloat16 are thousands of times larger."""
    if not torch.cpu._is_avx512_supported() or torch.cpu._is_amx_tile_supported():
        return False
    rows, weight = torch.arange(2.0 * 512 * 96).sin().reshape(2, 512, 96), torch.arange(96.0 * 64).cos().reshape(96, 64)
    weights = weight.expand(2, -1, -1)
    # a batch of members, a single member, and the product of a gradient
    for a, b in ((rows, weights), (rows[0], weight), (rows.mT, rows @ weights)):
        with _onednn():
            error = (a @ b).double() - a.double() @ b.double()
        if error.abs().max() > 1e-5 * b.shape[-2]:
            return False
    return True


@cache
def _processor() -> str:
    try:
        name = re.search(r"^model name.*?:(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return platform.processor() or platform.machine()
    return name[1].strip() if name else platform.machine()


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception says that the GPU or the machine ran out of memory."""
    texts = ("not enough memory", "out of memory", "can't allocate memory")
    told = isinstance(error, RuntimeError) and any(text in str(error) for text in texts)
    return told or isinstance(error, torch.OutOfMemoryError | MemoryError)


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
    if _KEPT_IN not in os.environ:
        os.environ[_KEPT_IN] = str(cache_directory() / "compiled")


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
