"""What very unequal bags cost: an epoch of Adult by native country and education, beside equal bags.

    python benchmarks/unequal.py

Both have as many rows; the equal bags are as many as the natural ones, so that an epoch has as many steps, or of 256
rows, the benchmark's usual. All are timed in this run, warm, on one thread, the best of several epochs, in turns.
"""

from __future__ import annotations

import time
from dataclasses import replace

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table as Grid

from llpbench.core.bags import Task
from llpbench.core.cell import Cell, Protocol
from llpbench.core.ranges import read_params
from llpbench.core.registry import METHODS
from llpbench.training.cell_runs import make_task
from llpbench.training.device import Machine
from llpbench.training.members import Trainee, encoder_factory
from llpbench.training.population import Population
from llpbench.training.specification import make_cell
from llpbench.training.stage import StageRun

KEY = "column:by=native-country+education"


class Contestant:
    """One method on one kind of bags, ready to run epochs."""

    def __init__(self, cell: Cell, task: Task) -> None:
        declared = METHODS.get(cell.method)
        method = declared(read_params(declared.Params, cell.params, cell.method))
        encoder = encoder_factory(cell, method.params.dropout)
        population = Population([Trainee(0, method, task)], encoder, Protocol(), Machine())
        self.run = StageRun(population, method.stages[-1], population.state)
        self.sizes = task.train.sizes
        plan = self.run.plan(0)
        self.steps = len(plan.widths)
        self.padded = plan.drawn.shape[2] * sum(plan.widths)
        self.best = np.inf
        self.run.run_epoch(0)

    def epoch(self) -> None:
        """Time one epoch."""
        start = time.perf_counter()
        self.run.run_epoch(0)
        self.best = min(self.best, time.perf_counter() - start)


@click.command(help=__doc__)
@click.option("--methods", default="dllp,tabllp-bdc,tabllp-self", help="names, globs or all neural ones")
@click.option("--encoder", default="mlp")
@click.option("--repeats", default=3)
def main(methods: str, encoder: str, repeats: int) -> None:
    """Measure and print ratios."""
    torch.set_num_threads(1)
    grid = Grid(title=f"{encoder}, an epoch of Adult on one thread")
    for heading in (
        "method",
        "bags",
        "least",
        "median",
        "most",
        "steps",
        "rows computed / rows",
        "s",
        "unequal / equal",
    ):
        grid.add_column(heading, justify="left" if heading == "method" else "right")
    for method in METHODS.select(methods):
        usual = make_cell(method, "adult", bag_size=None, bagging=KEY, encoder=encoder)
        natural = make_task(usual, 0, "bags", None)
        size = round(natural.train.sizes.mean())
        cells = [usual] + [replace(usual, bagging="ordered", bag_size=each) for each in (size, 256)]
        contestants = [Contestant(cell, make_task(cell, 0, "bags", None)) for cell in cells]
        for _ in range(repeats):
            for contestant in contestants:
                contestant.epoch()
        for one in contestants:
            least, median, most = (f"{value:,.0f}" for value in np.quantile(one.sizes, [0, 0.5, 1]))
            ratio = "" if one is contestants[0] else f"{contestants[0].best / one.best:.2f}x"
            computed = f"{one.padded / one.sizes.sum():.2f}"
            grid.add_row(
                method, f"{len(one.sizes):,}", least, median, most, str(one.steps), computed, f"{one.best:.2f}", ratio
            )
    Console(width=120).print(grid)


if __name__ == "__main__":
    main()
