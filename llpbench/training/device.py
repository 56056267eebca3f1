"""What a device is and what it allows: choice, precision, memory, and what a record says of it."""

from __future__ import annotations

import ctypes
import os
import platform
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from llpbench.core.errors import LLPBenchError

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

_MALLOPT = {"M_MMAP_MAX": (-4, 0), "M_TRIM_THRESHOLD": (-1, 2**31 - 1), "M_TOP_PAD": (-2, 64 * 2**20)}
"""glibc's numbers and our values: no block is a mapping of its own, nothing is given back, the heap grows by 64 MB"""
_CONTEXT_BYTES = 1.5 * 2**30
"""more than a process takes of a GPU beside its tensors"""


@dataclass(frozen=True)
class Machine:
    """Where a population trains; decides its speed alone."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    compiled: bool = False
    precision: torch.dtype = torch.float32


def pick_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one. Raises if a device is asked for that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise LLPBenchError(f"unknown device {name!r}. Choose --device auto, cpu, cuda or cuda:N.") from error
    if device.type not in ("cpu", "cuda"):
        raise LLPBenchError(f"device {name!r} is not supported. Choose --device auto, cpu, cuda or cuda:N.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise LLPBenchError(
            f"device {name!r} is not there, torch sees {torch.cuda.device_count()} GPUs. Use --device cpu."
        )
    return device


def pick_precision(name: str, device: torch.device) -> torch.dtype:
    """The precision of the encoder. Raises for bfloat16 where no instructions of its own make it quick."""
    if name == "float32":
        return torch.float32
    if name != "bfloat16":
        raise LLPBenchError(f"precision must be float32 or bfloat16, however: {name!r}")
    if device.type == "cpu" and not multiplies_bfloat16():
        raise LLPBenchError(
            "precision bfloat16 needs a GPU, or a CPU with AVX512-BF16 or AMX, which this one lacks. "
            "Use --precision float32."
        )
    return torch.bfloat16


def multiplies_bfloat16() -> bool:
    """Whether this CPU has instructions for products of bfloat16 (five times as fast as float32, else far slower)."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def hardware_facts(device: torch.device, threads: int, compiled: bool, precision: str) -> dict[str, Any]:
    """`hardware`, as a record has it: no host name."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    return {
        "device": device.type,
        "name": name,
        "threads": threads,
        "compiled": compiled,
        "precision": precision,
        "shared": is_shared(device, threads),
    }


def is_shared(device: torch.device, threads: int) -> bool | None:
    """Whether others use the device now, so that times are upper bounds; None where the platform does not tell.

    A GPU: somebody else holds memory of it. A CPU: the load of the last minute is that of more than `threads`.
    """
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return total - free - torch.cuda.memory_reserved(device) > _CONTEXT_BYTES
    return os.getloadavg()[0] > threads + 0.5 if hasattr(os, "getloadavg") else None


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def keep_freed_memory() -> None:
    """Let this process keep the memory that it frees, where its C library is glibc; changes no result.

    A training step needs the megabytes again that the last one has freed; given back to the system, every page of them
    would be mapped and zeroed anew (a third of the time of a step of SAINT).
    """
    if platform.libc_ver()[0] == "glibc":
        for option, value in _MALLOPT.values():
            ctypes.CDLL(None).mallopt(option, value)


def reset_peak_memory(device: torch.device) -> None:
    """Start measuring the peak anew (GPU only: a process's own peak cannot be reset)."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_mb(device: torch.device) -> float | None:
    """Peak memory in MB since the reset on a GPU; on a CPU the process's, since it started.

    None where the platform does not tell.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if platform.system() != "Darwin" else peak / 2**20


def is_out_of_memory(error: Exception) -> bool:
    """Whether an exception says that the GPU's or the machine's memory did not suffice."""
    text = str(error)
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError)
        and ("not enough memory" in text or "out of memory" in text or "can't allocate memory" in text)
    )
