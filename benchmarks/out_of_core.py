"""What files larger than memory cost: seconds and peak memory of llpbench with --out-of-core.

    python -m benchmarks.out_of_core --rows 1000000,10000000 --threads 1

The table is made up from a seed: 20 columns, a quarter of them categories, in bags of 1,000 rows that are spread over
neighbouring parts of parquet. Each command runs in a process of its own. Files are deleted.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

COLUMNS, BAG, PART = 20, 1000, 1_000_000
GOAL = 100_000_000
"""rows to which seconds are extrapolated"""


def write_parts(folder: Path, rows: int, seed: int = 0) -> Path:
    """Write the parts, and return the table of bags beside them."""
    weights = np.random.default_rng(seed).normal(0, 2 / np.sqrt(COLUMNS), COLUMNS)
    tables = []
    for part in range(rows // PART):
        rng = np.random.default_rng([seed, part])
        bags = np.repeat(np.arange(PART // BAG) + part * (PART // BAG), BAG)
        drift = rng.normal(0, 0.5, (PART // BAG, COLUMNS))[bags - bags[0]]
        values = (drift + rng.normal(size=(PART, COLUMNS))).astype(np.float32)
        label = values @ weights + rng.logistic(size=PART) > 0
        frame = pd.DataFrame(values, columns=[f"x{number}" for number in range(COLUMNS)])
        for number in range(0, COLUMNS, 4):
            edges = [-np.inf, -1, -0.3, 0.3, 1, np.inf]
            frame[f"x{number}"] = pd.cut(values[:, number], edges, labels=list("abcde"))
        order = rng.permutation(PART)
        frame.assign(bag=bags).iloc[order].to_parquet(folder / f"part-{part:04d}.parquet", index=False)
        yes = np.bincount(bags - bags[0], label)
        tables.append(pd.DataFrame({"bag": np.unique(bags), "no": BAG - yes, "yes": yes}).astype(int))
    table = folder.parent / "bags.csv"
    pd.concat(tables).to_csv(table, index=False)
    return table


def measured(command: list[str], threads: int) -> tuple[float, float, float]:
    """Return seconds, processor seconds and peak GB of a command of llpbench."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    code = (
        "import atexit; from llpbench.training import memory; from llpbench.cli.main import main; "
        "atexit.register(lambda: print(memory.peak_mb())); main()"
    )
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        env={**os.environ, **dict.fromkeys(names, str(threads))},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, after = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, float(done.stdout.split()[-1]) / 1000


@click.command(help=__doc__)
@click.option("--rows", default="1000000", help="numbers of rows, whole millions, such as 1000000,10000000")
@click.option("--method", default="auto")
@click.option("--threads", default=1)
@click.option("--most-rows", default=10_000_000, help="rows of the sample of bags that is fitted")
@click.option("--seed", default=0)
def main(rows: str, method: str, threads: int, most_rows: int, seed: int) -> None:
    """Measure and print."""
    table = Table(
        "rows", "step", "seconds", "CPU s", "rows a second", "rows a CPU second", f"CPU s of {GOAL:,}", "peak GB"
    )
    for number in map(int, rows.split(",")):
        with tempfile.TemporaryDirectory(prefix="llpbench-benchmark-") as place:
            parts, model = Path(place) / "parts", str(Path(place) / "model")
            parts.mkdir()
            bags, bag = write_parts(parts, number, seed), ["--bag-column", "bag"]
            given = ["--bags", str(bags), *bag, "--counts", "no,yes", "--method", method]
            other = ["--out", str(Path(place) / "result.parquet")]

            def measure(name: str, command: list[str], number: int = number) -> None:
                seconds, used, peak = measured([*command, "--out-of-core"], threads)
                shown = (seconds, used, number / seconds, number / used, used * GOAL / number)
                click.echo(f"{name}: {seconds:.0f} s, {used:.0f} CPU s, {peak:.2f} GB", err=True)
                table.add_row(f"{number:,}", name, *(f"{value:,.0f}" for value in shown), f"{peak:.2f}")

            measure("fit", ["fit", str(parts), *given, "--most-rows", str(most_rows), "--out", model])
            measure("predict", ["predict", model, str(parts), *other])
            measure("predict --whole-bags", ["predict", model, str(parts), "--whole-bags", *bag, *other])
            measure("estimate", ["estimate", model, str(parts), "--by", "x0", *bag, *other])
    Console().print(table)


if __name__ == "__main__":
    main()
