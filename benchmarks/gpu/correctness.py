"""Is what a GPU computes right? Each method takes a few steps on toy data, in several ways that must agree.

Losses are compared relative to themselves (below 1: absolutely), first gradients by the norm of their difference.
Float32 differs by rounding, for a GPU adds up in another order. Starting weights moved by 1e-6 of themselves did the
same on a CPU: mostly losses changed by 1e-6 and gradients by 1e-5, but in a few cases a ReLU or a pair of an assignment
went the other way, which changed a loss by 2e-4 and a gradient by 1e-2. The tolerances are a few times that. Bfloat16
has 8 bits: on a CPU it changed losses by up to 7e-3 and gradients by up to 0.13.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import torch

from benchmarks.gpu.rows import Box, Rows, Values
from benchmarks.gpu.sizes import sizes_for
from benchmarks.gpu.timing import neural
from benchmarks.gpu.traces import Distance, Subject, Trace, distance, identical, select
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import METHODS
from llpbench.core.text import one_line
from llpbench.training.device import Machine, pick_precision

PART = "correctness"

LOSS, GRADIENT = 1e-3, 3e-2
"""tolerance of float32: across devices, among others or alone, compiled or not"""
LOSS_16, GRADIENT_16 = 5e-2, 0.3
"""of bfloat16 against float32 on the same device"""

WITH_SAINT = ("tabllp-bdc", "llp-vat", "pretraining", "dllp", "supervised", "selfclr-llp")

_CPU_LACKS = {("llp-vat", "mlp")}
"""bfloat16 that torch cannot do on a CPU: second derivatives of a layer norm whose input and weights differ in type"""


def subjects() -> list[str]:
    """`method encoder`: the most intricate first, should time run out."""
    networks = [*WITH_SAINT, *(name for name in METHODS.names() if neural(name) and name not in WITH_SAINT)]
    return [*(f"{name} mlp" for name in networks), *(f"{name} saint" for name in WITH_SAINT)]


def check_all(rows: Rows, device: torch.device, box: Box) -> None:
    """Write a row for every subject, until the time is over."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # nobody reads it
    sizes = sizes_for(device.type)
    compiled = [f"{name} mlp compiled" for name in sizes.compiled_checks]
    for key in rows.to_do(PART, [*subjects(), *compiled]):
        if box.left <= 0:
            return
        rows.add(PART, key, "started")
        clock = time.perf_counter()
        try:
            values = check_compiled(key, device) if key in compiled else check(key, device)
        except Exception as error:  # one subject must not end the others
            rows.add(PART, key, "failed", {"wrong": [one_line(error)]})
            continue
        values["seconds"] = time.perf_counter() - clock
        rows.add(PART, key, "failed" if values["wrong"] else "ok", values)


def check(key: str, device: torch.device) -> Values:
    """The checks of one method with one encoder; `wrong` names those that failed."""
    name, encoder = key.split()
    sizes = sizes_for(device.type)
    seeds, steps = list(range(sizes.check_members)), sizes.check_steps
    subject, machine = Subject(name, encoder), Machine(device)
    reference = subject.trace(seeds, Machine(), steps)
    found = subject.trace(seeds, machine, steps)
    alone = subject.trace(seeds[-1:], machine, steps)
    distances = {"against CPU": distance(reference, found), "alone": distance(select(found, len(seeds) - 1), alone)}
    values: Values = {what: vars(apart) for what, apart in distances.items()}
    wrong = [what for what, apart in distances.items() if not within(apart, LOSS, GRADIENT)]
    if device.type == "cuda":
        recorded = subject.trace(seeds, replace(machine, recorded=True), steps)
        values["recorded"] = "identical" if identical(found, recorded) else "differs"
        wrong += ["recorded"] if values["recorded"] == "differs" else []
    if not subject.sees_labels:
        values["permuted"] = _permuted(subject, machine, found, seeds, steps)
        wrong += [f"permuted: {values['permuted']}"] if values["permuted"] != "identical" else []
    if _has_bfloat16(name, encoder, device):
        short = distance(found, subject.trace(seeds, Machine(device, precision=torch.bfloat16), steps))
        values["bfloat16"] = vars(short)
        wrong += [] if within(short, LOSS_16, GRADIENT_16) else ["bfloat16"]
    return values | {"wrong": wrong}


def check_compiled(key: str, device: torch.device) -> Values:
    """Compiled steps against eager ones on the same device."""
    name, encoder, _ = key.split()
    sizes = sizes_for(device.type)
    seeds, steps, subject = list(range(sizes.check_members)), sizes.check_steps, Subject(name, encoder)
    eager = subject.trace(seeds, Machine(device), steps)
    apart = distance(eager, subject.trace(seeds, Machine(device, compiled=True), steps))
    return {"compiled": vars(apart), "wrong": [] if within(apart, LOSS, GRADIENT) else ["compiled"]}


def within(apart: Distance, loss: float, gradient: float) -> bool:
    """Whether a distance is within its tolerance; NaN is not."""
    return apart.loss <= loss and apart.gradient <= gradient


def summary(rows: Rows) -> Iterator[tuple[str, str]]:
    """What was found, in a line for each kind of check."""
    found = [row for row in rows.last(PART).values() if row.status in ("ok", "failed")]
    if not found:
        yield "correctness", "nothing was checked"
        return
    for what, loss, gradient in (
        ("against CPU", LOSS, GRADIENT),
        ("alone", LOSS, GRADIENT),
        ("compiled", LOSS, GRADIENT),
        ("bfloat16", LOSS_16, GRADIENT_16),
    ):
        apart = [row.values[what] for row in found if what in row.values]
        if apart:
            worst = f"loss {max(each['loss'] for each in apart):.1e}, gradient {max(e['gradient'] for e in apart):.1e}"
            yield f"{what}, {len(apart)} subjects", f"{worst} (tolerance {loss:g}, {gradient:g})"
    recorded = [row.values["recorded"] for row in found if "recorded" in row.values]
    if recorded:
        yield "recorded steps", f"{recorded.count('identical')} of {len(recorded)} bit-identical"
    permuted = [row.values["permuted"] for row in found if "permuted" in row.values]
    yield "labels permuted within bags", f"{permuted.count('identical')} of {len(permuted)} bit-identical"
    for row in found:
        if row.status == "failed":
            yield f"FAILED {row.key}", "; ".join(row.values["wrong"])


def _permuted(subject: Subject, machine: Machine, found: Trace, seeds: list[int], steps: int) -> str:
    """`identical`, or how a training with permuted labels differs."""
    if identical(found, subject.trace(seeds, machine, steps, permuted=True)):
        return "identical"
    if identical(found, subject.trace(seeds, machine, steps)):
        return "differs: a label reaches the method"
    return "differs, as does the same training repeated: the device is not deterministic"


def _has_bfloat16(name: str, encoder: str, device: torch.device) -> bool:
    if device.type == "cpu" and (name, encoder) in _CPU_LACKS:
        return False
    try:
        pick_precision("bfloat16", device)
    except LLPBenchError:
        return False
    return True
