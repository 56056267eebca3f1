"""What is needed to trust a result and to repeat it: code, libraries, hardware, memory."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

import llpbench

_CONTEXT_BYTES = 1.5 * 2**30
"""more than a process takes of a GPU beside its tensors"""

LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "pandas")


@cache
def software_facts() -> dict[str, Any]:
    """`code` (version, commit, dirty) and `libraries`, as a record has them."""
    libraries = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"code": code_facts(), "libraries": {"python": platform.python_version(), **libraries}}


def code_facts() -> dict[str, Any]:
    """Version, git commit and whether the code differs from it; commit null where it is not run from a checkout."""
    root = Path(llpbench.__file__).resolve().parents[1]
    facts: dict[str, Any] = {"version": llpbench.__version__, "commit": None, "dirty": None}
    if (root / ".git").exists():
        code = ("llpbench", "methods", "datasets")
        commit, changes = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "--", *code)
        if commit is not None:
            facts |= {"commit": commit, "dirty": changes != ""}
    return facts


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


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


def is_shared(device: torch.device, threads: int) -> bool:
    """Whether others use the device now, so that times are upper bounds.

    A GPU: somebody else holds memory of it. A CPU: the load of the last minute is that of more than `threads`.
    """
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return total - free - torch.cuda.memory_reserved(device) > _CONTEXT_BYTES
    return os.getloadavg()[0] > threads + 0.5


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def reset_peak_memory(device: torch.device) -> None:
    """Start measuring the peak anew (GPU only: a process's own peak cannot be reset)."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_mb(device: torch.device) -> float:
    """Peak memory in MB since the reset on a GPU; on a CPU the process's, since it started."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if platform.system() != "Darwin" else peak / 2**20


def utc_now() -> str:
    """Now, in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
