"""A part in a process of its own, which its parent ends when its time is over: what it has written stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.gpu.rows import Box, Rows

PROCESS = "process"
"""key of the row that tells how a part's process ended"""
_GRACE = 2.0
"""seconds in which a part may end by itself after its time"""
_RUNNING: set[subprocess.Popen[bytes]] = set()


def run_part(name: str, rows: Rows, out: Path, device: str, box: Box) -> str:
    """Run a part on a device of torch; returns "" or how it ended before it was through."""
    command = [sys.executable, "-m", __name__, name, str(out), device, rows.device, repr(box.end)]
    environment = os.environ | {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}  # else products are not deterministic
    with (out / "log.txt").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        _RUNNING.add(process)
        try:
            code = process.wait(box.left + _GRACE)
        except subprocess.TimeoutExpired:
            return f"{name}: its time was over; the same command goes on there"
        finally:
            end_children()
    told = "" if code == 0 else f"{name}: its process ended with code {code}, see log.txt"
    rows.add(name, PROCESS, "failed" if told else "ok", {"reason": told, "wrong": [told]})
    return told


def end_children() -> None:
    """End all parts that still run, with what they have started."""
    for process in list(_RUNNING):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _RUNNING.discard(process)


def main() -> None:
    """The part, from inside: name, output folder, device of torch, its name, and when the time is over."""
    name, out, kind, device_name, end = sys.argv[1:]
    import torch

    from benchmarks.gpu import correctness, measures, ray_check
    from llpbench.training import memory
    from llpbench.training.device import keep_compiled_code, pick_device

    rows, box, device = Rows(Path(out), device_name), Box(float(end)), pick_device(kind)
    if name == ray_check.PART:
        ray_check.check_ray(rows, kind, box)
        return
    memory.keep_freed()
    keep_compiled_code()
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("highest")  # no TF32: float32 is compared with a CPU's
    torch.backends.cudnn.allow_tf32 = False
    {correctness.PART: correctness.check_all, measures.PART: measures.measure_all}[name](rows, device, box)


if __name__ == "__main__":
    main()
