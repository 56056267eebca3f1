"""What a training step of every neural method costs relative to DLLP, and the assignment's share of a BDC step.

    python benchmarks/methods.py                                       # every method, mlp, bags of 256
    python benchmarks/methods.py --encoder saint --bag-sizes 256,1024 --methods dllp,tabllp-bdc
    python benchmarks/methods.py --device cuda --members 10 --encoder saint --json out.json

On data of Adult's size (39,073 training rows, ordered bags, 2 bags a step). Steps are timed in this run, warm, after
`--trained` epochs, because the time of an assignment depends on what it is given; on a GPU after synchronisation.
Methods with several stages have a row for each; work between epochs (k-means, pseudo-labels) is in its own column, as
seconds each time it is done. Compare the ratios, not the milliseconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.table import Table

from llpbench.blocks import pairing
from llpbench.blocks.pretraining import Pretraining, PretrainingParams
from llpbench.core.bags import Task
from llpbench.core.cell import Cell, Protocol
from llpbench.core.method import DirectMethod, Method, Stage
from llpbench.core.provenance import software_facts
from llpbench.core.ranges import read_params
from llpbench.core.registry import METHODS
from llpbench.training.cell_runs import make_task
from llpbench.training.cohort import Trainee, encoder_factory
from llpbench.training.device import Machine, pick_device, pick_precision
from llpbench.training.population import Population
from llpbench.training.specification import make_cell
from llpbench.training.stage import StageRun


@dataclass(frozen=True)
class Measurement:
    """One stage of one method."""

    method: str
    stage: str
    bag_size: int
    members: int
    milliseconds: float
    """of a step of all members, the best of the repeats"""
    against_dllp: float
    """milliseconds over those of DLLP in the same population"""
    prepare_seconds: float
    """of all members, each time it is done"""
    assignment: float
    """share of the step that the assignment takes; 0 for methods without one"""


@dataclass
class Clock:
    """Seconds spent in assignments."""

    seconds: float = 0.0
    running: bool = False


@contextmanager
def timed_assignments(device: torch.device) -> Iterator[Clock]:
    """Time every call of the assignment operator; what was queued on a GPU before it does not count."""
    clock, original = Clock(), pairing._assign_rows

    def _assign_rows(*arguments: Any) -> Any:
        nested, clock.running = clock.running, True  # its vmap rule calls it again
        synchronise(device)
        start = time.perf_counter()
        found = original(*arguments)
        if not nested:
            clock.seconds += time.perf_counter() - start
            clock.running = False
        return found

    pairing._assign_rows = _assign_rows  # type: ignore[assignment]
    try:
        yield clock
    finally:
        pairing._assign_rows = original


def synchronise(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def neural(name: str) -> bool:
    """Whether a method trains in steps."""
    return not issubclass(METHODS.get(name), DirectMethod)


def make_method(name: str, cell: Cell) -> Method:
    """A method with the hyperparameters of a cell."""
    if name == "pretraining":
        return Pretraining("self+bag", read_params(PretrainingParams, cell.pretraining_params, name))
    declared = METHODS.get(name)
    method: Method = declared(read_params(declared.Params, cell.params, name))
    return method


def adult_population(name: str, encoder: str, bag_size: int, members: int, machine: Machine) -> Population:
    """Untrained members of a method, or of `pretraining`."""
    cell = make_cell(
        "dllp" if name == "pretraining" else name, "adult", bag_size=bag_size, encoder=encoder, pretraining="self+bag"
    )
    method = make_method(name, cell)
    group = [Trainee(seed, method, _task(seed, bag_size, method.supervision)) for seed in range(members)]
    return Population(group, encoder_factory(cell, method.params.dropout), Protocol(), machine)


@cache
def _task(seed: int, bag_size: int, supervision: str) -> Task:
    """The data of a seed: the same for every encoder, and for all methods that see as much."""
    return make_task(make_cell("dllp", "adult", bag_size=bag_size), seed, supervision, None)


def best_of(repeats: int, run: Callable[[], None], device: torch.device) -> float:
    """Seconds of the fastest repeat."""
    seconds = []
    for _ in range(repeats):
        synchronise(device)
        start = time.perf_counter()
        run()
        synchronise(device)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def time_method(
    name: str, encoder: str, bag_size: int, members: int, machine: Machine, trained: int, repeats: int
) -> list[tuple[str, float, float, float]]:
    """Stage, milliseconds a step, seconds of `prepare`, share of the assignment; for each stage."""
    population = adult_population(name, encoder, bag_size, members, machine)
    return [time_stage(population, stage, trained, repeats) for stage in population.method.stages]


def time_stage(population: Population, stage: Stage, trained: int, repeats: int) -> tuple[str, float, float, float]:
    """Return the numbers of `time_method` for one stage, after `trained` epochs."""
    device, method = population.machine.device, population.method
    run = StageRun(population, stage, population.state)
    prepare = best_of(1, lambda: run.prepare(0), device)
    if type(method).prepare is Method.prepare:
        prepare = 0.0
    steps = population.steps(stage)
    for epoch in range(trained):
        run.run_epoch(epoch)

    def next_epoch() -> None:
        run.run_epoch(trained)

    seconds = best_of(repeats, next_epoch, device)
    with timed_assignments(device) as clock:
        with_clock = best_of(1, next_epoch, device)
    return stage.name, 1000 * seconds / steps, prepare, clock.seconds / with_clock


def as_table(rows: list[Measurement], title: str) -> Table:
    """Ratios first."""
    table = Table(title=title)
    for heading in ("method", "stage", "bag size", "vs dllp", "ms/step", "prepare s", "assignment"):
        table.add_column(heading, justify="left" if heading in ("method", "stage") else "right")
    for row in rows:
        table.add_row(
            row.method,
            row.stage,
            str(row.bag_size),
            f"{row.against_dllp:.2f}x",
            f"{row.milliseconds:.1f}",
            f"{row.prepare_seconds:.2f}" if row.prepare_seconds else "",
            f"{100 * row.assignment:.1f} %" if row.assignment else "",
        )
    return table


@click.command(help=__doc__)
@click.option("--methods", default="all", help="names, globs or all; pretraining is always measured with all")
@click.option("--encoder", default="mlp")
@click.option("--bag-sizes", default="256")
@click.option("--members", default=3, help="size of the population")
@click.option("--device", default="auto")
@click.option("--threads", default=1, help="CPU threads")
@click.option("--trained", default=1, help="epochs of training before anything is timed")
@click.option("--repeats", default=3, help="epochs that are timed")
@click.option("--compile/--no-compile", "compiled", default=None, help="default: on a GPU")
@click.option("--precision", default="float32")
@click.option("--json", "target", type=click.Path(path_type=Path), help="write the measurements here too")
def main(
    methods: str,
    encoder: str,
    bag_sizes: str,
    members: int,
    device: str,
    threads: int,
    trained: int,
    repeats: int,
    compiled: bool | None,
    precision: str,
    target: Path | None,
) -> None:
    """Measure and print ratios."""
    torch.set_num_threads(threads)
    where = pick_device(device)
    machine = Machine(where, where.type == "cuda" if compiled is None else compiled, pick_precision(precision, where))
    others = [name for name in METHODS.select(methods) if neural(name) and name != "dllp"]
    names = ["dllp", *others, *(["pretraining"] if methods == "all" else [])]
    console, measured = Console(width=120), []
    for size in (int(part) for part in bag_sizes.split(",")):
        rows: list[Measurement] = []
        for name in names:
            for stage, milliseconds, prepare, share in time_method(
                name, encoder, size, members, machine, trained, repeats
            ):
                dllp = rows[0].milliseconds if rows else milliseconds
                rows.append(Measurement(name, stage, size, members, milliseconds, milliseconds / dllp, prepare, share))
        console.print(
            as_table(
                rows, f"{encoder}, bags of {size}, {members} members, {where.type}, {threads} threads, {precision}"
            )
        )
        measured += rows
    if target is not None:
        facts = {**software_facts(), "hardware": machine.hardware(threads, precision)}
        facts["encoder"] = encoder
        target.write_text(json.dumps({**facts, "measurements": [vars(row) for row in measured]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
