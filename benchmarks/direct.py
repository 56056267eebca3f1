"""What direct methods cost on large tables: seconds, processor seconds and peak memory by rows, bags and columns.

    python -m benchmarks.direct --rows 1000000 --columns 40 --bag-size 1024
    python -m benchmarks.direct --rows 10000000 --methods bag-gp --threads 2

The table is made up, a quarter of its columns categorical, in ordered-looking bags: a bag's features drift with its
number. Each fit runs in a process of its own, so that its peak is its own, the table included.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.special import expit

from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows, Schema
from llpbench.core.registry import METHODS
from llpbench.training import memory

_CHUNK = 1024
"""bags that are made together"""


def chunks(rows: int, columns: int, size: int) -> Iterator[tuple[slice, FloatArray, IntArray, IntArray]]:
    """Rows, their numbers, codes and labels, some bags at a time."""
    rng, bags = np.random.default_rng(0), rows // size
    codes = columns // 4
    slopes = rng.normal(size=columns) * 2 / np.sqrt(columns)
    drift = rng.normal(size=(bags, columns)) * 0.5
    for first in range(0, bags, _CHUNK):
        part = drift[first : first + _CHUNK].repeat(size, axis=0)
        plain = (part + rng.normal(size=part.shape)).astype(np.float32)
        labels = (rng.random(len(plain)) < expit(plain @ slopes + plain[:, 0] * plain[:, 1])).astype(np.int64)
        place = slice(first * size, first * size + len(plain))
        yield place, plain[:, codes:], np.digitize(plain[:, :codes], [-1, -0.3, 0.3, 1]) + 1, labels


def made_up(rows: int, columns: int, size: int) -> tuple[BaggedRows, Schema]:
    """A table without its labels."""
    bags, codes = rows // size, columns // 4
    numeric = np.empty((bags * size, columns - codes), dtype=np.float32)
    categorical = np.empty((bags * size, codes), dtype=np.int64)
    positive = np.empty(bags)
    for place, numbers, levels, labels in chunks(rows, columns, size):
        numeric[place], categorical[place] = numbers, levels
        positive[place.start // size : place.stop // size] = labels.reshape(-1, size).sum(axis=1)
    index = np.arange(bags * size).reshape(bags, size)
    counts = np.stack([size - positive, positive], axis=1)
    train = BaggedRows(Rows(numeric, categorical, np.zeros(numeric.shape, dtype=bool)), index, counts)
    prior = counts.sum(axis=0) / counts.sum()
    return train, Schema(columns - codes, (6,) * codes, 2, tuple(prior.tolist()), rows_per_step=2 * size)


def measure(method: str, rows: int, columns: int, size: int, threads: int) -> tuple[float, float, float]:
    """Seconds of a fit, those that processors worked for it, and the peak of its process in MB."""
    torch.set_num_threads(threads)
    train, schema = made_up(rows, columns, size)
    declared = METHODS.get(method)
    clock, work = time.perf_counter(), time.process_time()
    declared(declared.Params()).fit(train, schema, np.random.default_rng(0))
    return time.perf_counter() - clock, time.process_time() - work, memory.peak_mb() or np.nan


@click.command(help=__doc__)
@click.option("--methods", default="bag-gp,count-gbdt,em-gbdt")
@click.option("--rows", default="250000,1000000")
@click.option("--columns", default="40")
@click.option("--bag-size", default="1024")
@click.option("--threads", default=2)
def main(methods: str, rows: str, columns: str, bag_size: str, threads: int) -> None:
    """Measure and print."""
    table = Table("method", "rows", "columns", "bag size", "bags", "seconds", "CPU seconds", "peak MB", "CPU us a row")
    fresh = multiprocessing.get_context("spawn")
    for method in methods.split(","):
        for n in map(int, rows.split(",")):
            for width in map(int, columns.split(",")):
                for size in map(int, bag_size.split(",")):
                    with fresh.Pool(1) as pool:
                        seconds, work, peak = pool.apply(measure, (method, n, width, size, threads))
                    numbers = (f"{seconds:.1f}", f"{work:.1f}", f"{peak:.0f}", f"{1e6 * work / n:.1f}")
                    table.add_row(method, *map(str, (n, width, size, n // size)), *numbers)
    Console().print(table)


if __name__ == "__main__":
    main()
