"""CPU cores and GPUs of this machine, and shares of a GPU."""

from __future__ import annotations

from dataclasses import dataclass

_SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
_MARGIN = 1.25
"""Factor on memory, since allocators fragment it."""
_UNKNOWN_MEGABYTES = 16_000.0
"""GPU memory reserved for a cell whose memory is unknown."""


@dataclass(frozen=True)
class Resources:
    """Resources that jobs share."""

    cpus: int
    gpus: int = 0

    def slots(self, threads: int) -> int:
        """Return the number of jobs with so many threads that run at a time."""
        return max(self.cpus // threads, 1)


def gpu_share(megabytes: float | None, memory: float) -> float:
    """Return the share of a GPU that a job needs, in steps of 1/8, 1/4, 1/2 and 1.

    `megabytes`: memory of the job, None if unknown; `memory`: megabytes of the GPU.
    """
    share = (_UNKNOWN_MEGABYTES if megabytes is None else megabytes * _MARGIN) / memory
    return next((step for step in _SHARES if share <= step), 1.0)


def available(device: str) -> Resources:
    """Return the resources for cells on a device (see `Environment`)."""
    cpus = usable_cpus()
    if device == "cpu":
        return Resources(cpus)
    import torch

    return Resources(cpus, torch.cuda.device_count())


def usable_cpus() -> int:
    """Return the number of CPU cores that this process may use, within its affinity and its container's quota."""
    from joblib import cpu_count

    return int(cpu_count())
