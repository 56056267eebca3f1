"""Speed and memory of a population against the same network trained one member at a time in eager PyTorch.

    python benchmarks/population.py                       # every encoder, 1, 2, 5 and 10 members
    python benchmarks/population.py --encoders saint --members 1,10 --device cuda
    python benchmarks/population.py --encoders saint --members 1,3 --ways stacked,compiled,compiled-bfloat16 --threads 1

The job is DLLP on data of Adult's size (39,073 training rows, 6 numbers, 8 categories, ordered bags of 256, 2 bags a
step). The baseline is what a careful author would write: one `nn.Module`, `torch.optim.AdamW`, data on the device,
nothing stacked or compiled, the batches gathered in the same way, one synchronisation an epoch. Both are timed in this
run, warm, on the same steps, with compilation and warm-up apart; on a GPU after synchronisation. It prints ratios
("predict": of predicting the validation rows): compare those, not the seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from pathlib import Path

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.utils._pytree import tree_map

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import Bags, Task
from llpbench.core.cell import Protocol
from llpbench.core.method import MethodParams
from llpbench.core.model import Model, Random
from llpbench.core.provenance import software_facts
from llpbench.core.ranges import read_params
from llpbench.core.registry import ENCODERS
from llpbench.methods.dllp import DLLP
from llpbench.training import memory
from llpbench.training.cell_runs import make_task
from llpbench.training.cohort import Prediction, Trainee, encoder_factory
from llpbench.training.device import Machine, pick_device, pick_precision
from llpbench.training.population import Population
from llpbench.training.specification import make_cell
from llpbench.training.stage import CLIP, StageRun
from llpbench.training.training_data import EpochPlan


@dataclass(frozen=True)
class Measurement:
    """One way of training some members of one encoder."""

    encoder: str
    way: str
    members: int
    seconds: float
    """per epoch of all members, the best of the repeats"""
    first: float
    """seconds of the first step: compilation and warm-up"""
    predict: float
    """seconds to predict the validation rows of all members, the best of the repeats"""
    memory_mb: float | None
    """peak of the GPU, or of the process so far"""

    @property
    def seed_epochs(self) -> float:
        """seed-epochs a second"""
        return self.members / self.seconds


WAYS = {
    "stacked": Machine(),
    "compiled": Machine(compiled=True),
    "recorded": Machine(recorded=True),
    "compiled-recorded": Machine(compiled=True, recorded=True),
}
WAYS |= {f"{name}-bfloat16": replace(machine, precision=torch.bfloat16) for name, machine in WAYS.items()}
"""of training a population: compiled, recorded (on a GPU), and the precision of products"""


@cache
def adult_task(seed: int) -> Task:
    """The data of a seed: the same for every encoder."""
    return make_task(make_cell("dllp", "adult", bag_size=256), seed, "bags", None)


class Job:
    """DLLP with one encoder, ready to be trained in any way."""

    def __init__(self, encoder: str, machine: Machine) -> None:
        cell = make_cell("dllp", "adult", bag_size=256, encoder=encoder)
        self.machine = machine
        self.name = encoder
        self.method = DLLP(read_params(MethodParams, cell.params, "dllp"))
        self.cell = cell

    def population(self, members: int, machine: Machine | None = None) -> Population:
        return Population(
            [Trainee(seed, self.method, adult_task(seed)) for seed in range(members)],
            encoder_factory(self.cell, self.method.params.dropout),
            Protocol(),
            machine or self.machine,
        )


def time_epochs(run_steps: Callable[[int], None], steps: int, epoch_steps: int, repeats: int) -> tuple[float, float]:
    """Seconds of an epoch, from the best of several runs of `steps` steps, and of the first step."""
    clock = time.perf_counter()
    run_steps(1)
    first = time.perf_counter() - clock
    run_steps(2)
    best = np.inf
    for _ in range(repeats):
        clock = time.perf_counter()
        run_steps(steps)
        best = min(best, time.perf_counter() - clock)
    return best / steps * epoch_steps, first


def time_prediction(population: Population, predict: Prediction, repeats: int) -> float:
    """Seconds to judge the validation rows once, the best of several, warm."""
    slots = torch.arange(len(population.members), device=population.machine.device)
    weights = population.weights(population.state.weights, slots, population.state.buffers)
    best = np.inf
    for _ in range(repeats + 1):
        clock = time.perf_counter()
        population.validation.criteria(predict, weights, slots)
        best = min(best, time.perf_counter() - clock)
    return best


def time_population(job: Job, way: str, members: int, steps: int, repeats: int) -> Measurement:
    """The population as the engine runs it."""
    job.machine.reset_peak_memory()
    population = job.population(members, replace(WAYS[way], device=job.machine.device))
    run = StageRun(population, job.method.stages[0], population.state)
    plan, progress = run.plan(0), torch.zeros(4, device=job.machine.device)

    def run_steps(number: int) -> None:
        for step in range(number):
            losses = run.step(plan, step, progress)
        losses.cpu()

    epoch_steps = plan.drawn.shape[1]
    seconds, first = time_epochs(run_steps, min(steps, epoch_steps), epoch_steps, repeats)
    predict = time_prediction(population, population.judging, repeats)
    return Measurement(job.name, way, members, seconds, first, predict, job.machine.peak_memory_mb())


def eager_loss(single: Population, run: StageRun, plan: EpochPlan, step: int) -> Tensor:
    """The loss of a step of the network of a population of one, in plain eager PyTorch."""
    drawn, width = plan.drawn[:, step], plan.widths[step]
    stacked = single.data.take("bags", run.slots, drawn, width, single.state.targets)
    bags: Bags = tree_map(itemgetter(0), stacked)
    model = Model(single.stack.template, Random(plan.keys[0, step, 0]))
    return proportion_loss(model.log_proba(bags), bags)


def time_sequential(job: Job, steps: int, repeats: int) -> Measurement:
    """One member in plain eager PyTorch."""
    job.machine.reset_peak_memory()
    single = job.population(1, Machine(job.machine.device))
    network = single.stack.template
    optimiser = torch.optim.AdamW(network.parameters(), lr=job.method.learning_rate)
    run = StageRun(single, job.method.stages[0], single.state)
    plan = run.plan(0)

    def run_steps(number: int) -> None:
        for step in range(number):
            optimiser.zero_grad()
            loss = eager_loss(single, run, plan, step)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimiser.step()
        loss.detach().cpu()

    epoch_steps = plan.drawn.shape[1]
    seconds, first = time_epochs(run_steps, min(steps, epoch_steps), epoch_steps, repeats)
    predict = time_prediction(single, single.prediction, repeats)
    return Measurement(job.name, "one at a time, eager", 1, seconds, first, predict, job.machine.peak_memory_mb())


def as_table(rows: list[Measurement], title: str) -> Table:
    """Ratios to the first row, the baseline, and to the population of one member that is trained in the same way."""
    table = Table(title=title)
    numbers = ("members", "s/epoch", "seed-epochs/s", "vs eager", "vs 1 member", "memory MB", "first step s", "predict")
    for heading in ("encoder", "way", *numbers):
        table.add_column(heading, justify="right" if heading in numbers else "left", no_wrap=True)
    baseline, *populations = rows
    for row in rows:
        same = (other for other in populations if other.way == row.way)
        alone = next((other.seconds for other in same if other.members == 1), float("nan"))
        table.add_row(
            row.encoder,
            row.way,
            str(row.members),
            f"{row.seconds:.2f}",
            f"{row.seed_epochs:.3f}",
            f"{row.seed_epochs / baseline.seed_epochs:.2f}x",
            "" if row is baseline else f"{row.seconds / alone:.2f}x",
            "unknown" if row.memory_mb is None else f"{row.memory_mb:,.0f}",
            f"{row.first:.1f}",
            f"{baseline.predict * row.members / row.predict:.2f}x",
        )
    return table


@click.command(help=__doc__)
@click.option("--encoders", default="all", help="names, globs or all")
@click.option("--members", default="1,2,5,10", help="population sizes")
@click.option("--device", default="auto")
@click.option("--threads", default=2, help="CPU threads")
@click.option("--steps", default=20, help="training steps a repeat")
@click.option("--repeats", default=3)
@click.option("--ways", default=None, help=f"of {', '.join(WAYS)}; default: stacked, on a GPU recorded")
@click.option("--json", "target", type=click.Path(path_type=Path), help="write the measurements here too")
def main(
    encoders: str,
    members: str,
    device: str,
    threads: int,
    steps: int,
    repeats: int,
    ways: str | None,
    target: Path | None,
) -> None:
    """Measure and print ratios."""
    memory.keep_freed()  # as every run does
    torch.set_num_threads(threads)
    where = pick_device(device)
    chosen = (ways or ("recorded" if where.type == "cuda" else "stacked")).split(",")
    for way in chosen:
        if way not in WAYS:
            raise click.BadParameter(f"{way!r} is none of {', '.join(WAYS)}", param_hint="--ways")
        pick_precision(str(WAYS[way].precision).removeprefix("torch."), where)
    console = Console(width=150)
    measured: list[Measurement] = []
    for encoder in ENCODERS.select(encoders):
        job = Job(encoder, Machine(where))
        rows = [time_sequential(job, steps, repeats)]
        rows += [
            time_population(job, way, int(number), steps, repeats) for way in chosen for number in members.split(",")
        ]
        console.print(as_table(rows, f"DLLP on Adult, ordered bags of 256, {where.type}, {threads} threads"))
        measured += rows
    if target is not None:
        facts = {**software_facts(), "hardware": Machine(where).hardware(threads, "float32")}
        target.write_text(json.dumps({**facts, "measurements": [vars(row) for row in measured]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
