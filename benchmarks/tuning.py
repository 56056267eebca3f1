"""Trials of a search as one population against one at a time, in one run: trials a minute.

    python -m benchmarks.tuning                                   # MLP and SAINT, five trials
    python -m benchmarks.tuning --encoders mlp --together 1,2,5,10 --epochs 10

The job is DLLP on Adult in ordered bags of 256; the trials differ in learning rate and weight decay, none is stopped at
a rung, all train for as many epochs. Compare the ratios, not the minutes.
"""

from __future__ import annotations

import time

import click
import torch
from rich.console import Console
from rich.table import Table

from llpbench.core.cell import Protocol
from llpbench.core.tuning_spec import Trial, Tuning
from llpbench.training import memory
from llpbench.training.cell_runs import make_task
from llpbench.training.device import Machine, pick_device
from llpbench.training.specification import make_cell
from llpbench.tuning.space import search_space
from llpbench.tuning.trials import Bench, without_test


def trials_a_minute(encoder: str, together: int, epochs: int, machine: Machine) -> float:
    """That are made when so many train as one population."""
    cell = make_cell("dllp", "adult", bag_size=256, encoder=encoder, protocol=Protocol(epochs, epochs))
    tuning = Tuning(cell, "fine", together, search_space("dllp"), eta=0)
    bench = Bench(tuning, without_test(make_task(cell, tuning.seed, "bags", None), tuning), machine)
    rates = [1e-4 * 1.2**number for number in range(together)]
    asked = [Trial(number, {"learning_rate": rate}, "asked") for number, rate in enumerate(rates)]
    clock = time.perf_counter()
    made = bench.make(asked)
    assert all(trial.status == "ok" for trial in made)
    return 60 * together / (time.perf_counter() - clock)


@click.command(help=__doc__)
@click.option("--encoders", default="mlp,saint")
@click.option("--together", default="1,5", help="trials that train as one population")
@click.option("--epochs", default=5)
@click.option("--device", default="auto")
@click.option("--threads", default=1)
def main(encoders: str, together: str, epochs: int, device: str, threads: int) -> None:
    """Measure and print ratios."""
    torch.set_num_threads(threads)
    memory.keep_freed()
    where = pick_device(device)
    table = Table(title=f"DLLP on Adult, {epochs} epochs a trial, {where.type}, {threads} threads")
    for heading in ("encoder", "together", "trials a minute", "vs one at a time"):
        table.add_column(heading, justify="left" if heading == "encoder" else "right")
    for encoder in encoders.split(","):
        rates = {
            number: trials_a_minute(encoder, number, epochs, Machine(where, where.type == "cuda"))
            for number in sorted({1, *map(int, together.split(","))})
        }
        for number, rate in rates.items():
            table.add_row(encoder, str(number), f"{rate:.2f}", f"{rate / rates[1]:.2f}x")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
