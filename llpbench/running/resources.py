"""What this machine offers: CPU cores, GPUs and their memory."""

from __future__ import annotations

from dataclasses import dataclass

_SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
_MARGIN = 1.25  # of memory: allocators fragment
_UNKNOWN_MEGABYTES = 16_000.0
"""what a cell gets whose memory is not known yet"""


@dataclass(frozen=True)
class Resources:
    """What jobs share."""

    cpus: int
    gpus: int = 0
    gpu_megabytes: float = 0.0
    """memory of the smallest GPU"""

    def slots(self, threads: int) -> int:
        """Jobs of so many threads that run at a time."""
        return max(self.cpus // threads, 1)

    def gpu_share(self, megabytes: float | None) -> float:
        """The part of a GPU, in steps of 1/8, 1/4, 1/2 and 1, that holds so many megabytes (None: unknown)."""
        wanted = (_UNKNOWN_MEGABYTES if megabytes is None else megabytes * _MARGIN) / self.gpu_megabytes
        return next((share for share in _SHARES if wanted <= share), 1.0)


def available(device: str) -> Resources:
    """What cells on `device` (as `Environment` names it) may use."""
    cpus = usable_cpus()
    if device == "cpu":
        return Resources(cpus)
    import torch

    memory = [torch.cuda.get_device_properties(number).total_memory for number in range(torch.cuda.device_count())]
    return Resources(cpus, len(memory), min(memory) / 2**20) if memory else Resources(cpus)


def usable_cpus() -> int:
    """CPU cores that this process may use, with regard to affinity and to the quota of a container."""
    from joblib import cpu_count

    return int(cpu_count())
