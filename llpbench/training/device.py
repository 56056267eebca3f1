"""What a device is and what it allows: choice, precision, memory, and what a record says of it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from llpbench.core import memory
from llpbench.core.errors import LLPBenchError

_CONTEXT_BYTES = 1.5 * 2**30
"""more than a process takes of a GPU beside its tensors"""


@dataclass(frozen=True)
class Machine:
    """Where a population trains; decides its speed, and how its numbers are rounded."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    compiled: bool = False
    precision: torch.dtype = torch.float32
    recorded: bool = False
    """whether a GPU records a step once and replays it (`recording.py`)"""


def pick_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one. Raises if a device is asked for that is not there."""
    demand_device_name(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise LLPBenchError(
            f"device {name!r} is not there, torch sees {torch.cuda.device_count()} GPUs. Use --device cpu."
        )
    return device


def demand_device_name(name: str) -> None:
    """Raises `LLPBenchError` for what names no device that is supported, whether it is there or not."""
    if name == "auto":
        return
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise LLPBenchError(f"unknown device {name!r}. Choose --device auto, cpu, cuda or cuda:N.") from error
    if device.type not in ("cpu", "cuda"):
        raise LLPBenchError(f"device {name!r} is not supported. Choose --device auto, cpu, cuda or cuda:N.")


def pick_precision(name: str, device: torch.device) -> torch.dtype:
    """The precision of the encoder. Raises for bfloat16 where no instructions of its own make it quick."""
    if name == "float32":
        return torch.float32
    if name != "bfloat16":
        raise LLPBenchError(f"precision must be float32 or bfloat16, got {name!r}")
    if device.type == "cpu" and not multiplies_bfloat16():
        raise LLPBenchError(
            "precision bfloat16 needs a GPU, or a CPU with AVX512-BF16 or AMX, which this one lacks. "
            "Use --precision float32."
        )
    return torch.bfloat16


def multiplies_bfloat16() -> bool:
    """Whether this CPU has instructions for products of bfloat16 (five times as fast as float32, else far slower)."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


@contextmanager
def quick_products(machine: Machine) -> Iterator[None]:
    """Within it, oneDNN multiplies the matrices of what is compiled for a CPU in float32, if it is quick and exact.

    torch leaves float32 to MKL, which uses AVX-512 on Intel's CPUs alone: on AMD's oneDNN is twice as fast. What is
    not compiled stays as torch has it, so that it gives the same bits as ever.
    """
    compiled = machine.compiled and machine.device.type == "cpu" and machine.precision == torch.float32
    if not (compiled and "Intel" not in _processor() and _onednn_is_exact()):
        yield
        return
    with _onednn():
        yield


@contextmanager
def _onednn() -> Iterator[None]:
    """torch gives oneDNN products of float32 only where it might round to bfloat16, for which only AMX is a reason."""
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before, matmul.fp32_precision = matmul.fp32_precision, "bf16"
    try:
        yield
    finally:
        matmul.fp32_precision = before


@cache
def _onednn_is_exact() -> bool:
    """Whether a product by oneDNN has float32's error, not that of bfloat16, which is thousands of times as large."""
    if not torch.cpu._is_avx512_supported() or torch.cpu._is_amx_tile_supported():
        return False
    rows, weight = torch.arange(2.0 * 512 * 96).sin().reshape(2, 512, 96), torch.arange(96.0 * 64).cos().reshape(96, 64)
    weights = weight.expand(2, -1, -1)
    for a, b in ((rows, weights), (rows[0], weight), (rows.mT, rows @ weights)):  # members, one, and a gradient
        with _onednn():
            error = (a @ b).double() - a.double() @ b.double()
        if error.abs().max() > 1e-5 * b.shape[-2]:
            return False
    return True


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


def reset_peak_memory(device: torch.device) -> None:
    """Reset the peak of memory."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        memory.give_back()  # what is left of earlier cells
        memory.reset_peak()


def peak_memory_mb(device: torch.device) -> float | None:
    """Peak memory in MB since the reset: on a GPU of its tensors, on a CPU of the process (`core/memory.py`)."""
    return torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else memory.peak_mb()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that the GPU's or the machine's memory did not suffice."""
    text = str(error)
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError)
        and ("not enough memory" in text or "out of memory" in text or "can't allocate memory" in text)
    )
