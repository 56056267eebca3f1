"""How fast is a GPU? DLLP on data of Adult's size (`timing.py`), in several ways.

Compilation and warm-up are in the first step, which is timed apart. The cost of a method is relative to DLLP,
uncompiled, in the same population.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import torch

from benchmarks.gpu.rows import Box, Rows, Values
from benchmarks.gpu.sizes import Sizes, sizes_for
from benchmarks.gpu.timing import (
    WAYS,
    adult_population,
    neural,
    stepping,
    time_epochs,
    time_population,
    time_sequential,
)
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import METHODS
from llpbench.core.text import one_line
from llpbench.training.device import Machine, pick_precision
from llpbench.training.population import Population
from llpbench.training.stage import StageRun

PART = "measures"

_SLOW_STEP = 1.0
"""second; where a step takes longer, one is enough"""


def keys(sizes: Sizes) -> list[str]:
    """Return measurements, most important first: each way with the first sizes of populations, costs, the rest."""
    pairs = [(way, members) for members in sizes.members for way in sizes.ways]
    telling, rest = [p for p in pairs if p[1] in sizes.members[:2]], [p for p in pairs if p[1] in sizes.members[2:]]
    found = []
    for encoder in sizes.encoders:
        found += [f"eager {encoder} 1", *(f"{way} {encoder} {n}" for way, n in telling)]
    found += [f"step {name} {sizes.encoders[0]}" for name in ["pretraining", *filter(neural, METHODS.names())]]
    return [*found, *(f"{way} {encoder} {n}" for encoder in sizes.encoders for way, n in rest)]


def measure_all(rows: Rows, device: torch.device, box: Box) -> None:
    """Write a row for every key, until the time is over."""
    sizes = sizes_for(device.type)
    for key in rows.to_do(PART, keys(sizes)):
        if box.left <= 0:
            return
        rows.add(PART, key, "started")
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
        try:
            rows.add(PART, key, "ok", _measure(key, sizes, device))
        except LLPBenchError as error:
            rows.add(PART, key, "skipped", {"reason": str(error)})
        except Exception as error:  # one measure must not end the others
            rows.add(PART, key, "failed", {"reason": one_line(error)})


def _measure(key: str, sizes: Sizes, device: torch.device) -> Values:
    what, *rest = key.split()
    if what == "step":
        return {"seconds": _step_seconds(rest[0], rest[1], max(sizes.members), device)}
    if what == "eager":
        return vars(time_sequential(rest[0], device, sizes.steps, sizes.repeats))
    pick_precision(str(WAYS[what].precision).removeprefix("torch."), device)
    return vars(time_population(rest[0], what, int(rest[1]), device, sizes.steps, sizes.repeats))


def _step_seconds(name: str, encoder: str, members: int, device: torch.device) -> float:
    """Seconds of an uncompiled step of all members, mean over the stages of a method."""
    population = adult_population(name, encoder, members, Machine(device))
    return sum(_stage_seconds(population, stage) for stage in population.method.stages) / len(population.method.stages)


def _stage_seconds(population: Population, stage: Any) -> float:
    run = StageRun(population, stage, population.state)
    progress = torch.tensor([9.0, 10.0, 9.0, 10.0], device=population.machine.device)
    run_steps = stepping(run, run.plan(0), progress)
    clock = time.perf_counter()
    run_steps(1)
    if time.perf_counter() - clock > _SLOW_STEP:
        return time.perf_counter() - clock
    seconds, _ = time_epochs(run_steps, 2, 2, 1)
    return seconds / 2
