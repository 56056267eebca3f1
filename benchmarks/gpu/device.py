"""What the GPU is called and holds, without taking any of it: a process that asks torch keeps a part of its memory."""

from __future__ import annotations

import subprocess


def gpu() -> tuple[str, float]:
    """Name and megabytes of the first GPU; of torch where there is no `nvidia-smi`."""
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
        name, _, megabytes = told.splitlines()[0].rpartition(",")
        return name.strip(), float(megabytes)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        import torch

        facts = torch.cuda.get_device_properties(0)
        return facts.name, facts.total_memory / 2**20


def name_of(device: str) -> str:
    """The name under which rows of a device of torch are kept."""
    return gpu()[0] if device == "cuda" else "cpu"
