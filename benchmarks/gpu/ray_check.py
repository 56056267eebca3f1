"""Two cells at once on one GPU by Ray Tune, with fractions by need: equal to inline, and a killed worker is retried.

Seed 0 of both cells runs inline first, which tells how much memory a member takes: Ray then gives each cell that share
of the GPU. Seed 1 runs inline and by Ray; while Ray runs, one worker is killed. Both must give the same results: bit
by bit on a CPU, within a tolerance on a GPU, where sums of several threads have no fixed order.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.gpu.device import gpu
from benchmarks.gpu.rows import Box, Rows, Values
from llpbench.core.cell import Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.core.text import one_line
from llpbench.results.journal import FILE, TOLERANCE, Contents
from llpbench.running import runner
from llpbench.running.cluster import Nodes
from llpbench.running.display import Display
from llpbench.running.executors import Resources
from llpbench.running.schedule import Job
from llpbench.running.settings import Settings, resolve

PART = "ray"
KEY = "two cells at once"
EPOCHS = {"cpu": 12, "cuda": 100}
"""enough for the kill to come in the middle"""
_WORKER = b"llpbench.running.worker"


class _Watch(Display):
    """Notes when jobs run, and kills one worker in the middle of the first epoch that is reported."""

    def __init__(self, console: Console, *, kill: bool) -> None:
        super().__init__(console, live=False)
        self._kill = kill
        self._at_work: set[str] = set()
        self.most = 0
        """jobs that ran at one time"""
        self.killed: list[int] = []
        self.said: list[str] = []

    def say(self, text: str, *, warning: bool = False) -> None:
        self.said.append(text)
        super().say(text, warning=warning)

    def started(self, job: Job) -> None:
        self._at_work.add(job.id)
        self.most = max(self.most, len(self._at_work))
        super().started(job)

    def progressed(self, job: Job, epoch: Epoch) -> None:
        super().progressed(job, epoch)
        if self._kill and self.most > 1 and not self.killed:
            self.killed = kill_a_worker()

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        self._at_work.discard(job.id)
        super().finished(job, records)


def check_ray(rows: Rows, device: str, box: Box) -> None:
    """Write the row of this check."""
    if KEY not in rows.to_do(PART, [KEY]):
        return
    if importlib.util.find_spec("ray") is None:
        rows.add(PART, KEY, "skipped", {"reason": "Ray is not installed"})
        return
    rows.add(PART, KEY, "started")
    folder = Path(tempfile.mkdtemp(prefix="llpbench-ray-check-"))
    try:
        values = _compare(folder, device, box, EPOCHS[device])
        if values["wrong"] and not box.left:
            return  # it did not end
        rows.add(PART, KEY, "failed" if values["wrong"] else "ok", values)
    except LLPBenchError as error:
        rows.add(PART, KEY, "failed", {"wrong": [one_line(error)]})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compare(folder: Path, device: str, box: Box, epochs: int) -> Values:
    inline, by_ray = folder / "inline", folder / "ray"
    flags = {"methods": "dllp,tabllp-bdc", "encoders": "mlp", "max-bags": "8", "device": device}
    flags |= {"epochs": str(epochs), "patience": str(epochs)}
    base = replace(resolve(flags), out=inline, executor="inline")
    console = Console(stderr=True, highlight=False)
    clock = time.perf_counter()
    _run(replace(base, seeds=(0,)), _Watch(console, kill=False), box)
    shutil.copytree(inline, by_ray)
    _run(replace(base, seeds=(1,)), _Watch(console, kill=False), box)
    seconds = {"inline s": time.perf_counter() - clock}
    watch, clock = _Watch(console, kill=True), time.perf_counter()
    settings = replace(base, seeds=(1,), out=by_ray, executor="ray", cell_timeout=box.left)
    shares = _shares(settings)
    _run(settings, watch, box)
    seconds["ray s"] = time.perf_counter() - clock
    return {"shares": shares, "killed": watch.killed, "most at once": watch.most, **seconds} | _verdict(
        Contents.read(inline / FILE).records, Contents.read(by_ray / FILE).records, watch, exact=device == "cpu"
    )


def _verdict(one: dict[str, Record], other: dict[str, Record], watch: _Watch, *, exact: bool) -> Values:
    """Return the largest difference between the runs of seed 1, and the faults."""
    runs = [run for run, record in one.items() if record["seed"] == 1]
    wrong = []
    if watch.most < 2:
        wrong.append("no two cells ran at one time")
    if not watch.killed or not any("once more" in text for text in watch.said):
        wrong.append("no worker was killed and retried")
    bad = [run for run in runs if run not in other or other[run]["status"] != "ok" or one[run]["status"] != "ok"]
    if bad or len(runs) != 2:
        return {"wrong": [*wrong, f"runs that are missing or failed: {', '.join(bad) or 'all'}"]}
    names = [(run, name) for run in runs for name in one[run]["results"]]
    apart = max(abs(_auc(one[run], name) - _auc(other[run], name)) for run, name in names)
    if apart > (0.0 if exact else TOLERANCE):
        wrong.append(f"test AUC differs by {apart:.2g}")
    return {"apart": apart, "wrong": wrong}


def _auc(record: Record, criterion: str) -> float:
    """Test AUC at the epoch of a criterion."""
    return float(record["results"][criterion]["test"]["auc"] or 0.0)


def _run(settings: Settings, watch: _Watch, box: Box) -> None:
    runner.run(replace(settings, time_budget=max(box.left, 1.0)), watch)


def _shares(settings: Settings) -> list[float]:
    """Of the GPU, for each cell, as the executor chooses them; 0 without a GPU."""
    if not Resources.of(settings.device).gpus:
        return [0.0, 0.0]
    nodes, records = Nodes((), gpu()[1]), Contents.read(settings.out / FILE).records.values()
    return [nodes.gpu_share(record["memory_mb"]) for record in records]


def kill_a_worker() -> list[int]:
    """Kill the youngest worker process below this one; its number."""
    workers = [number for number in _descendants(os.getpid()) if _WORKER in _command(number)]
    for number in sorted(workers)[-1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
            return [number]
    return []


def _descendants(process: int) -> list[int]:
    """Processes that a process has started, and those that these have."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [process]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _command(process: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""
