"""The main memory of this process: keeping freed memory, returning it to the system, and measuring the peak."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import re
from pathlib import Path

try:
    import resource
except ImportError:  # not available on Windows
    resource = None  # type: ignore[assignment]

_MALLOPT = ((-4, 0), (-1, 2**31 - 1), (-2, 64 * 2**20))
"""M_MMAP_MAX, M_TRIM_THRESHOLD and M_TOP_PAD of glibc: nothing mapped apart or returned, the heap grows by 64 MB"""
_STATUS, _PEAK_RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
"""Linux's status of this process, and the file that resets its peak memory"""


def keep_freed() -> None:
    """Let this process keep the memory that it frees, if its C library is glibc. Results do not change.

    A training step needs the memory that the previous step has freed. If it were returned to the system, each page
    would be mapped and zeroed again, which takes a third of the time of a SAINT step.
    """
    if library := _glibc():
        for option, value in _MALLOPT:
            library.mallopt(option, value)


def give_back() -> None:
    """Return freed memory to the system, if the C library is glibc."""
    if library := _glibc():
        library.malloc_trim(0)


def reset_peak() -> None:
    """Reset the peak on Linux. On other systems the peak is measured from the start of the process."""
    with contextlib.suppress(OSError):
        _PEAK_RESET.write_text("5", encoding="ascii")


def peak_mb() -> float | None:
    """Return the peak memory of this process since the reset, in megabytes, including imports; None if unknown."""
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
