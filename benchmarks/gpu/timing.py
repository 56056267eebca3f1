"""Training steps on data of Adult's size (39,073 training rows, ordered bags of 256, 2 bags a step), and their times.

A population is compared with what a careful author would write for one member: one `nn.Module`, `torch.optim.AdamW`,
data on the device, nothing stacked or compiled, the batches gathered in the same way, one synchronisation an epoch.
Both are timed warm, on the same steps, with compilation and warm-up apart; on a GPU after synchronisation. Weights are
untrained, and what methods prepare between epochs, such as pseudo-labels, is not timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from llpbench.blocks.losses import proportion_loss
from llpbench.blocks.pretraining import Pretraining, PretrainingParams
from llpbench.core.bags import Bags, Task
from llpbench.core.cell import Cell, Protocol
from llpbench.core.method import DirectMethod, Method
from llpbench.core.model import Model, Random
from llpbench.core.ranges import read_params
from llpbench.core.registry import METHODS
from llpbench.training.cell_runs import make_task
from llpbench.training.cohort import Trainee, encoder_factory
from llpbench.training.device import Machine
from llpbench.training.population import Population
from llpbench.training.specification import make_cell
from llpbench.training.stage import CLIP, StageRun
from llpbench.training.training_data import EpochPlan


@dataclass(frozen=True)
class Measurement:
    """One way of training some members of DLLP with one encoder."""

    encoder: str
    way: str
    members: int
    seconds: float
    """per epoch of all members, the best of the repeats"""
    first: float
    """seconds of the first step: compilation and warm-up"""
    memory_mb: float | None
    """peak of the GPU, or of the process so far"""


WAYS = {
    "stacked": Machine(),
    "compiled": Machine(compiled=True),
    "recorded": Machine(recorded=True),
    "compiled-recorded": Machine(compiled=True, recorded=True),
}
WAYS |= {f"{name}-bfloat16": replace(machine, precision=torch.bfloat16) for name, machine in WAYS.items()}
"""of training a population: compiled, recorded (on a GPU), and the precision of products"""


def neural(name: str) -> bool:
    """Whether a method trains in steps."""
    return not issubclass(METHODS.get(name), DirectMethod)


def make_subject(name: str, encoder: str, bag_size: int) -> tuple[Cell, Method]:
    """Return a cell on Adult and its method, or `pretraining`, with default hyperparameters."""
    method = "dllp" if name == "pretraining" else name
    cell = make_cell(method, "adult", bag_size=bag_size, encoder=encoder, pretraining="self+bag")
    if name == "pretraining":
        return cell, Pretraining("self+bag", read_params(PretrainingParams, cell.pretraining_params, name))
    declared = METHODS.get(name)
    return cell, declared(read_params(declared.Params, cell.params, name))


def adult_population(name: str, encoder: str, members: int, machine: Machine) -> Population:
    """Untrained members of a method, or of `pretraining`."""
    cell, method = make_subject(name, encoder, 256)
    group = [Trainee(seed, method, _task(seed, method.supervision)) for seed in range(members)]
    return Population(group, encoder_factory(cell, method.params.dropout), Protocol(), machine)


@cache
def _task(seed: int, supervision: str) -> Task:
    """The data of a seed: the same for every encoder, and for all methods that see as much."""
    return make_task(make_cell("dllp", "adult", bag_size=256), seed, supervision, None)


def synchronise(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def stepping(run: StageRun, plan: EpochPlan, progress: Tensor) -> Callable[[int], None]:
    """Return a function that trains a number of steps, and waits for them."""

    def run_steps(number: int) -> None:
        for step in range(number):
            losses = run.step(plan, step, progress)
        losses.cpu()

    return run_steps


def time_epochs(run_steps: Callable[[int], None], steps: int, epoch_steps: int, repeats: int) -> tuple[float, float]:
    """Seconds of an epoch, from the best of several runs of at most `steps` steps, and of the first step."""
    steps = min(steps, epoch_steps)
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


def time_population(
    encoder: str, way: str, members: int, device: torch.device, steps: int, repeats: int
) -> Measurement:
    """The population as the engine runs it."""
    machine = replace(WAYS[way], device=device)
    machine.reset_peak_memory()
    population = adult_population("dllp", encoder, members, machine)
    run = StageRun(population, population.method.stages[0], population.state)
    plan = run.plan(0)
    run_steps = stepping(run, plan, torch.zeros(4, device=device))
    seconds, first = time_epochs(run_steps, steps, plan.drawn.shape[1], repeats)
    return Measurement(encoder, way, members, seconds, first, machine.peak_memory_mb())


def eager_loss(single: Population, run: StageRun, plan: EpochPlan, step: int) -> Tensor:
    """The loss of a step of the network of a population of one, in plain eager PyTorch."""
    drawn, width = plan.drawn[:, step], plan.widths[step]
    stacked = single.data.take("bags", run.slots, drawn, width, single.state.targets)
    bags: Bags = tree_map(itemgetter(0), stacked)
    model = Model(single.stack.template, Random(plan.keys[0, step, 0]))
    return proportion_loss(model.log_proba(bags), bags)


def time_sequential(encoder: str, device: torch.device, steps: int, repeats: int) -> Measurement:
    """One member in plain eager PyTorch."""
    machine = Machine(device)
    machine.reset_peak_memory()
    single = adult_population("dllp", encoder, 1, machine)
    network = single.stack.template
    optimiser = torch.optim.AdamW(network.parameters(), lr=single.method.learning_rate)
    run = StageRun(single, single.method.stages[0], single.state)
    plan = run.plan(0)

    def run_steps(number: int) -> None:
        for step in range(number):
            optimiser.zero_grad()
            loss = eager_loss(single, run, plan, step)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimiser.step()
        loss.detach().cpu()

    seconds, first = time_epochs(run_steps, steps, plan.drawn.shape[1], repeats)
    return Measurement(encoder, "one at a time, eager", 1, seconds, first, machine.peak_memory_mb())
