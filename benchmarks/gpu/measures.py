"""How fast is a GPU? DLLP on data of Adult's size (`timing.py`), in several ways.

Beside each time stands the least that the same step can take: by arithmetic (its products at the speed of one large
product, measured here) and by bytes (what it must write and read, at the speed of a copy). Compilation and warm-up are
in the first step, which is timed apart. The cost of a method is relative to DLLP, uncompiled, in the same population;
the share of assignments is that of an uncompiled step of TabLLP-BDC.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.gpu.rows import Box, Row, Rows, Values
from benchmarks.gpu.sizes import Sizes, sizes_for
from benchmarks.gpu.timing import (
    WAYS,
    adult_population,
    best_of,
    eager_loss,
    neural,
    stepping,
    time_epochs,
    time_population,
    time_sequential,
    timed_assignments,
)
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import METHODS
from llpbench.core.text import one_line
from llpbench.training.device import Machine, pick_precision
from llpbench.training.population import Population
from llpbench.training.stage import StageRun

PART = "measures"
PEAKS = "peaks"

_STATE_BYTES = 32.0
"""a parameter is written and read in each step: itself, its gradient, and both running means, 4 bytes each"""
_REPEATS = 5
"""of a product and of a copy"""
_SLOW_STEP = 1.0
"""second; where a step takes longer, one is enough"""


def keys(sizes: Sizes) -> list[str]:
    """Return measurements, most important first: each way with the first sizes of populations, costs, the rest."""
    pairs = [(way, members) for members in sizes.members for way in sizes.ways]
    telling, rest = [p for p in pairs if p[1] in sizes.members[:2]], [p for p in pairs if p[1] in sizes.members[2:]]
    found = [PEAKS]
    for encoder in sizes.encoders:
        found += [f"floor {encoder}", f"eager {encoder} 1", *(f"{way} {encoder} {n}" for way, n in telling)]
    first = sizes.encoders[0]
    found += [
        f"assignment {first}",
        *(f"step {name} {first}" for name in ["pretraining", *filter(neural, METHODS.names())]),
    ]
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
    if what == PEAKS:
        return peaks(device)
    if what == "assignment":
        return _assignment(rest[0], max(sizes.members), device)
    if what == "step":
        return {"seconds": _step_seconds(rest[0], rest[1], max(sizes.members), device)}
    if what == "floor":
        return work_of_step(rest[0], device)
    if what == "eager":
        return vars(time_sequential(rest[0], device, sizes.steps, sizes.repeats))
    pick_precision(str(WAYS[what].precision).removeprefix("torch."), device)
    return vars(time_population(rest[0], what, int(rest[1]), device, sizes.steps, sizes.repeats))


def peaks(device: torch.device) -> Values:
    """Operations a second of a large product, in float32 and bfloat16, and bytes a second of a copy."""
    size, megabytes = (8192, 1024) if device.type == "cuda" else (512, 64)
    found: Values = {}
    for precision in (torch.float32, torch.bfloat16):
        a = torch.randn(size, size, device=device, dtype=precision)
        found[str(precision).removeprefix("torch.")] = 2 * size**3 / best_of(_REPEATS, lambda a=a: a @ a, device)
    source = torch.zeros(megabytes * 2**20, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    found["bytes"] = 2 * source.numel() / best_of(_REPEATS, lambda: target.copy_(source), device)
    return found


def work_of_step(encoder: str, device: torch.device) -> Values:
    """Operations of the products, and bytes that must be written and read, of a step of one member."""
    from torch.autograd.graph import saved_tensors_hooks
    from torch.utils.flop_counter import FlopCounterMode

    single = adult_population("dllp", encoder, 1, Machine(device))
    run = StageRun(single, single.method.stages[0], single.state)
    plan = run.plan(0)
    kept: dict[int, int] = {}

    def keep(value: torch.Tensor) -> torch.Tensor:
        kept[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        return value

    with FlopCounterMode(display=False) as counter, saved_tensors_hooks(keep, lambda value: value):
        eager_loss(single, run, plan, 0).backward()  # type: ignore[no-untyped-call]
    parameters = single.stack.theta.shape[1]
    return {
        "operations": counter.get_total_flops(),
        "bytes": 2 * sum(kept.values()) + _STATE_BYTES * parameters,
        "steps": plan.drawn.shape[1],
        "parameters": parameters,
    }


def floors(row: Row, last: dict[str, Row]) -> tuple[float, float] | None:
    """Seconds an epoch of a measured row by arithmetic and by bytes; None where its floor is not known."""
    work, peak = last.get(f"floor {row.values['encoder']}"), last.get(PEAKS)
    if work is None or peak is None or work.status != "ok" or peak.status != "ok":
        return None
    precision = "bfloat16" if "bfloat16" in row.values["way"] else "float32"
    times = row.values["members"] * work.values["steps"]
    return (
        times * work.values["operations"] / peak.values[precision],
        times * work.values["bytes"] / peak.values["bytes"],
    )


def measurements(rows: Rows) -> Iterator[tuple[Row, tuple[float, float] | None]]:
    """The rows of populations and of eager training, with their floors."""
    last = rows.last(PART)
    for row in last.values():
        if row.status == "ok" and "way" in row.values:
            yield row, floors(row, last)


def _assignment(encoder: str, members: int, device: torch.device) -> Values:
    """Of an uncompiled step of TabLLP-BDC, a compiled one has the same assignments."""
    population = adult_population("tabllp-bdc", encoder, members, Machine(device))
    stage = population.method.stages[0]
    run = StageRun(population, stage, population.state)
    run.prepare(0)
    seconds = best_of(1, lambda: run.run_epoch(0), device)
    with timed_assignments(device) as clock:
        with_clock = best_of(1, lambda: run.run_epoch(0), device)
    milliseconds = 1000 * seconds / population.steps(stage)
    return {"milliseconds": milliseconds, "share": clock.seconds / with_clock, "members": members}


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
