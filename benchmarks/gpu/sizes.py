"""How much of each part is done: all of it on a GPU, a rehearsal of the same code on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sizes:
    """Reduced on a CPU, so that every part runs within its share of a few minutes."""

    members: tuple[int, ...] = (10, 1, 3)
    """sizes of populations that are measured, the most telling first"""
    encoders: tuple[str, ...] = ("saint", "mlp")
    ways: tuple[str, ...] = (
        "recorded",
        "compiled-recorded",
        "compiled-recorded-bfloat16",
        "recorded-bfloat16",
        "stacked",
        "compiled",
    )
    steps: int = 20
    """training steps of a repeat"""
    repeats: int = 3
    check_members: int = 3
    check_steps: int = 3
    compiled_checks: tuple[str, ...] = ("dllp", "tabllp-bdc", "llp-vat")
    """methods whose compiled steps are compared with eager ones"""
    seeds: int = 10
    """of a cell of the campaign"""
    campaign: Mapping[str, str] = field(default_factory=dict)
    """options of `llpbench run` that differ from `--preset paper`"""


FULL = Sizes()
REHEARSAL = Sizes(
    members=(2, 1),
    encoders=("mlp", "saint"),
    ways=("stacked",),
    steps=2,
    repeats=1,
    check_members=2,
    check_steps=2,
    compiled_checks=(),
    seeds=2,
    campaign={"epochs": "1", "patience": "1", "max-bags": "4", "set": "pretraining.epochs=1"},
)


def sizes_for(device: str) -> Sizes:
    """`device` is of torch: `cuda`, or `cpu` for a rehearsal."""
    return FULL if device == "cuda" else REHEARSAL
