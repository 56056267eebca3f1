"""What `LLPClassifier` costs on large tables: processor seconds and peak memory of fit, predict and score_bags.

    python -m benchmarks.own_data --bags unequal --classes 2 --methods bag-mean-linear,count-gbdt,dllp
    python -m benchmarks.own_data --bags 100 --rows 1000000 --classes 10
    python -m benchmarks.own_data --bags 8 --rows 12000 --columns 48 --methods auto --threads 1

The table is made up, a quarter of its columns categorical. `--bags unequal`: 50,000 bags of 1 to 20 rows beside one of
100,000; a number: bags of about as many rows. Each method runs in a process of its own. Processor seconds are of all
threads. Threads that wait for each other count, which beside other work is most of them. So compare versions on one
thread.
"""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import click
import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from llpbench import LLPClassifier
from llpbench.training import memory

COLUMNS = 20


def made_up(rows: int, bags: str, classes: int, columns: int = COLUMNS) -> tuple[pd.DataFrame, Any, Any]:
    """Features, the bag of each row and its label, which no learner is told."""
    rng = np.random.default_rng(0)
    if bags == "unequal":
        sizes = np.append(rng.integers(1, 21, 50_000), 100_000)
    else:
        sizes = np.full(rows // int(bags), int(bags))
    of_row = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    drift = rng.normal(0, 0.5, (len(sizes), columns)).astype(np.float32)
    plain = drift[of_row] + rng.normal(size=(len(of_row), columns)).astype(np.float32)
    scores = plain @ rng.normal(0, 2 / np.sqrt(columns), (columns, classes)) + rng.gumbel(size=(len(of_row), classes))
    frame = pd.DataFrame({f"x{number}": plain[:, number] for number in range(columns)})
    for number in range(0, columns, 4):
        frame[f"x{number}"] = pd.cut(plain[:, number], [-np.inf, -1, -0.3, 0.3, 1, np.inf], labels=list("abcde"))
    return frame, of_row, scores.argmax(axis=1)


def measure(
    method: str, params: dict[str, Any], table_of: tuple[int, str, int, int], threads: int, settings: dict[str, Any]
) -> Any:
    """Return rows, bags, seconds of fit, processor seconds of fit, predict_proba and score_bags, peak MB, and AUC.

    `table_of` are rows, bags, classes and columns. The peak is of the process before the fit and after.
    """
    torch.set_num_threads(threads)
    frame, of_row, labels = made_up(*table_of)
    classes = table_of[2]
    table = pd.crosstab(of_row, labels)
    before = memory.peak_mb() or np.nan
    start, clock = time.perf_counter(), [time.process_time()]
    model = LLPClassifier(method, params=params, n_jobs=threads, **settings).fit(frame, of_row, counts=table)
    clock.append(time.process_time())
    wall = time.perf_counter() - start
    proba = model.predict_proba(frame)
    clock.append(time.process_time())
    model.score_bags(frame, of_row, counts=table)
    clock.append(time.process_time())
    peak = memory.peak_mb() or np.nan
    auc = roc_auc_score(labels, proba[:, 1] if classes == 2 else proba, multi_class="ovr")
    return len(frame), len(table), wall, *np.diff(clock), before, peak, auc


@click.command(help=__doc__)
@click.option("--methods", default="bag-mean-linear,bag-gp,count-gbdt,bag-gp-gbdt,dllp")
@click.option("--rows", default=1_000_000)
@click.option("--bags", default="unequal", help="unequal, or rows a bag")
@click.option("--classes", default=2)
@click.option("--columns", default=COLUMNS)
@click.option("--trees", default=800, help="of count-gbdt, bag-gp-gbdt and auto")
@click.option("--epochs", default=5, help="of networks")
@click.option("--bags-per-step", default=64, help="of networks")
@click.option("--threads", default=2)
def main(
    methods: str,
    rows: int,
    bags: str,
    classes: int,
    columns: int,
    trees: int,
    epochs: int,
    bags_per_step: int,
    threads: int,
) -> None:
    """Measure and print."""
    times = ("fit s", "fit CPU s", "predict CPU s", "score CPU s")
    grid = Table("method", "rows", "bags", *times, "MB before", "peak MB", "AUC")
    fresh = multiprocessing.get_context("spawn")
    settings = {"epochs": epochs, "bags_per_step": bags_per_step}
    for method in methods.split(","):
        params = {"trees": trees} if method in ("count-gbdt", "bag-gp-gbdt", "auto") else {}
        with fresh.Pool(1) as pool:
            found = pool.apply(measure, (method, params, (rows, bags, classes, columns), threads, settings))
        cells = [f"{value:,}" for value in found[:2]] + [f"{value:.1f}" for value in found[2:6]]
        grid.add_row(method, *cells, *(f"{value:,.0f}" for value in found[6:8]), f"{100 * found[8]:.1f}")
        Console(width=120).print(grid.columns[0].header, method, *found)
    Console(width=120).print(grid)


if __name__ == "__main__":
    main()
