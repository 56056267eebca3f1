"""Memory of a process: kept while a cell trains, given back after it, and a peak of its own for each."""

from __future__ import annotations

import platform
import subprocess
import sys
import textwrap

import pytest


def measure(code: str) -> list[float]:
    """The numbers that some code prints, in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [float(word) for word in done.stdout.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reset a peak")
def test_peak_memory_counts_from_reset() -> None:
    before, large, kept, small = measure(
        """
        import numpy as np
        from llpbench.training import memory

        memory.keep_freed()
        memory.reset_peak()
        print(memory.peak_mb())
        blocks = [np.ones(10**5) for _ in range(250)]  # 200 MB
        print(memory.peak_mb())
        del blocks
        memory.reset_peak()
        print(memory.peak_mb())
        memory.give_back()
        memory.reset_peak()
        print(memory.peak_mb())
        """
    )
    assert large > before + 180
    assert kept > before + 150, "glibc has kept it"
    assert small < before + 50


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is kept by means of glibc")
def test_allocator_keeps_freed_memory() -> None:
    code = """
        import resource, torch
        from llpbench.training.memory import keep_freed

        def faults():
            for _ in range(20):  # until the heap is large enough for every order in which it splits and joins blocks
                torch.zeros(9 * 2**20) + 1  # 38 MB: what glibc never keeps by itself
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(2):
                torch.zeros(9 * 2**20) + 1
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

        print(faults())
        keep_freed()
        print(faults())
        """
    given_back, kept = measure(code)
    assert kept * 20 < given_back
