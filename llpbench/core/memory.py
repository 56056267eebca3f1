"""The main memory of this process: what it keeps, what it gives back, and the most that it has taken."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import re
from pathlib import Path

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

_MALLOPT = {"M_MMAP_MAX": (-4, 0), "M_TRIM_THRESHOLD": (-1, 2**31 - 1), "M_TOP_PAD": (-2, 64 * 2**20)}
"""glibc's numbers and our values: no block is a mapping of its own, nothing is given back, the heap grows by 64 MB"""
_STATUS, _PEAK_RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
"""where Linux tells of this process, and what resets the peak of its memory"""


def keep_freed() -> None:
    """Let this process keep the memory that it frees, where its C library is glibc; changes no result.

    A training step needs the megabytes again that the last one has freed; given back to the system, every page of them
    would be mapped and zeroed again (a third of the time of a step of SAINT).
    """
    if library := _glibc():
        for option, value in _MALLOPT.values():
            library.mallopt(option, value)


def give_back() -> None:
    """Give back what was freed and kept, where the C library is glibc."""
    if library := _glibc():
        library.malloc_trim(0)


def reset_peak() -> None:
    """Reset the peak on Linux; elsewhere the peak counts since the process began."""
    with contextlib.suppress(OSError):
        _PEAK_RESET.write_text("5", encoding="ascii")


def peak_mb() -> float | None:
    """Most megabytes that this process has held since the reset, with all that it imports; None if nobody knows."""
    with contextlib.suppress(OSError):
        told = re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
        if told:
            return int(told[1]) / 1024
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if platform.system() != "Darwin" else peak / 2**20


def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
