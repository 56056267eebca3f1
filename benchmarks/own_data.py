"""What `LLPClassifier` costs on large tables: processor seconds and peak memory of fit, predict and score_bags.

    python -m benchmarks.own_data --bags unequal --classes 2 --methods bag-mean-linear,count-gbdt,dllp
    python -m benchmarks.own_data --bags 100 --rows 1000000 --classes 10

The table is made up, 20 columns, a quarter of them categorical. `--bags unequal`: 50,000 bags of 1 to 20 rows beside
one of 100,000; a number: bags of about as many rows. Each method runs in a process of its own.
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
from llpbench.core import memory

COLUMNS = 20


def made_up(rows: int, bags: str, classes: int) -> tuple[pd.DataFrame, Any, Any]:
    """Features, the bag of each row and its label, which no learner is told."""
    rng = np.random.default_rng(0)
    if bags == "unequal":
        sizes = np.append(rng.integers(1, 21, 50_000), 100_000)
    else:
        sizes = np.full(rows // int(bags), int(bags))
    of_row = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    drift = rng.normal(0, 0.5, (len(sizes), COLUMNS)).astype(np.float32)
    plain = drift[of_row] + rng.normal(size=(len(of_row), COLUMNS)).astype(np.float32)
    scores = plain @ rng.normal(0, 2 / np.sqrt(COLUMNS), (COLUMNS, classes)) + rng.gumbel(size=(len(of_row), classes))
    frame = pd.DataFrame({f"x{number}": plain[:, number] for number in range(COLUMNS)})
    for number in range(0, COLUMNS, 4):
        frame[f"x{number}"] = pd.cut(plain[:, number], [-np.inf, -1, -0.3, 0.3, 1, np.inf], labels=list("abcde"))
    return frame, of_row, scores.argmax(axis=1)


def measure(
    method: str, params: dict[str, Any], rows: int, bags: str, classes: int, threads: int, settings: dict[str, Any]
) -> Any:
    """Rows, bags, processor seconds of fit, predict_proba and score_bags, peak MB before the fit and after, and AUC."""
    torch.set_num_threads(threads)
    frame, of_row, labels = made_up(rows, bags, classes)
    table = pd.crosstab(of_row, labels)
    before = memory.peak_mb() or np.nan
    clock = [time.process_time()]
    model = LLPClassifier(method, params=params, **settings).fit(frame, of_row, counts=table)
    clock.append(time.process_time())
    proba = model.predict_proba(frame)
    clock.append(time.process_time())
    model.score_bags(frame, of_row, counts=table)
    clock.append(time.process_time())
    peak = memory.peak_mb() or np.nan
    auc = roc_auc_score(labels, proba[:, 1] if classes == 2 else proba, multi_class="ovr")
    return len(frame), len(table), *np.diff(clock), before, peak, auc


@click.command(help=__doc__)
@click.option("--methods", default="bag-mean-linear,bag-gp,count-gbdt,bag-gp-gbdt,dllp")
@click.option("--rows", default=1_000_000)
@click.option("--bags", default="unequal", help="unequal, or rows a bag")
@click.option("--classes", default=2)
@click.option("--trees", default=800, help="of count-gbdt and bag-gp-gbdt")
@click.option("--epochs", default=5, help="of networks")
@click.option("--bags-per-step", default=64, help="of networks")
@click.option("--threads", default=2)
def main(
    methods: str, rows: int, bags: str, classes: int, trees: int, epochs: int, bags_per_step: int, threads: int
) -> None:
    """Measure and print."""
    columns = ("method", "rows", "bags", "fit CPU s", "predict CPU s", "score CPU s", "MB before", "peak MB", "AUC")
    grid = Table(*columns)
    fresh = multiprocessing.get_context("spawn")
    settings = {"epochs": epochs, "bags_per_step": bags_per_step}
    for method in methods.split(","):
        params = {"trees": trees} if method in ("count-gbdt", "bag-gp-gbdt") else {}
        with fresh.Pool(1) as pool:
            found = pool.apply(measure, (method, params, rows, bags, classes, threads, settings))
        cells = [f"{value:,}" for value in found[:2]] + [f"{value:.1f}" for value in found[2:5]]
        grid.add_row(method, *cells, *(f"{value:,.0f}" for value in found[5:7]), f"{100 * found[7]:.1f}")
        Console(width=120).print(grid.columns[0].header, method, *found)
    Console(width=120).print(grid)


if __name__ == "__main__":
    main()
