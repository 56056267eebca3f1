"""Cells whose bag size says what happens to them: for executors, which import this file in their processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from factory import make_cell_of, make_record

from llpbench.core.cell import Cell, Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.running.schedule import Job

OnEpoch = Callable[[Epoch], None] | None


def scripted(cell: Cell, seeds: Sequence[int], environment: Environment, on_epoch: OnEpoch) -> list[Record]:
    """A cell whose bag size says what happens to it."""
    time.sleep(0.15)  # longer than a process waits between two reports
    if cell.bag_size in (1, 30):
        os._exit(3)
    if cell.bag_size == 2:
        raise LLPBenchError("bad data")
    if cell.bag_size == 3:
        raise RuntimeError("two\nlines")
    if cell.bag_size == 4 and not Path(environment.data_dir or "").joinpath("again").exists():
        Path(environment.data_dir or "").joinpath("again").touch()
        return [make_record(cell, seed, "out-of-memory") for seed in seeds]
    if cell.bag_size == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    if cell.bag_size == 21:
        os.kill(os.getpid(), signal.SIGSEGV)
    if cell.bag_size == 22:
        raise SystemExit(7)
    if cell.bag_size == 28:
        os.kill(os.getpid(), signal.SIGSTOP)
    if cell.bag_size == 23:
        time.sleep(99)
    if cell.bag_size == 24:
        raise KeyboardInterrupt("by hand")
    if cell.bag_size == 25 and os.fork() == 0:  # and the copy goes on here
        return [make_record(cell, seed, "failed") for seed in seeds]
    if cell.bag_size == 26:
        threading.Thread(target=time.sleep, args=(99,)).start()
        os.closerange(3, 99)
    if cell.bag_size == 27:
        threading.Thread(target=time.sleep, args=(99,)).start()
    assert on_epoch is not None
    on_epoch(Epoch(epoch=7, epochs=9, criterion="auc", value=float("nan"), members=len(seeds)))
    return [make_record(cell, seed) for seed in seeds]


def scripted_slowly(cell: Cell, seeds: Sequence[int], environment: Environment, on_epoch: OnEpoch) -> list[Record]:
    """The same after longer than Ray's executor waits between two reports."""
    time.sleep(0.5)
    return scripted(cell, seeds, environment, on_epoch)


def scripted_jobs(*sizes: int) -> list[Job]:
    return [Job(make_cell_of("bag-mean-linear", size, encoder=None), (0, 1)) for size in sizes]
