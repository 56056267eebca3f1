"""What a device allows, and what this process does with its memory."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys, torch
from llpbench.core.memory import keep_freed

if sys.argv[1] == "kept":
    keep_freed()
for _ in range(8):  # until the heap is large enough
    torch.zeros(2**24) + 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    torch.zeros(2**24) + 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is kept by means of glibc")
def test_freed_memory_is_kept() -> None:
    faults = {
        way: int(subprocess.run([sys.executable, "-c", FAULTS, way], capture_output=True, check=True).stdout)
        for way in ("kept", "given-back")
    }
    assert faults["kept"] * 20 < faults["given-back"]
