"""How fast this machine is: a few steps of a small known training, so that timings of another machine can be scaled.

It takes seconds, and is kept in the user's cache until the hardware or the software is another. What is measured while
others use the machine counts for that run alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from llpbench.core.cell import Cell, Environment, Protocol
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import replace_file
from llpbench.core.provenance import software_facts
from llpbench.core.registry import ENCODERS
from llpbench.core.source import entry_hash
from llpbench.data.loading import cache_directory, load_table

METHOD, ENCODER, DATASET, BAG_SIZE = "dllp", "mlp", "adult", 256
"""what is trained, on data that the package embeds; `ENCODER` is the one that others are compared with"""

FILE = "calibration.json"
"""in the user's cache"""

_BAGS = 8
_HELD_OUT = 2  # bags
_SECONDS = 1.5
"""after which it is not repeated"""
_EPOCHS = 8
"""of a quick encoder; a slow one has time for a single one"""
TRAINED = 0.8
"""of the rows of a dataset"""


class Calibration:
    """Seconds per value and epoch of the known training with an encoder, measured once."""

    def __init__(self, environment: Environment, say: Callable[[str], None]) -> None:
        """`say` tells somebody who waits what for."""
        self._environment = environment
        self._say = say

    def __call__(self, encoder: str) -> float | None:
        """What is kept, else measured now, on a CPU uncompiled; None if the encoder cannot be trained."""
        from llpbench.training.cells import pick_machine  # torch
        from llpbench.training.device import hardware_facts
        from llpbench.training.specification import make_cell

        cell = make_cell(METHOD, DATASET, bag_size=BAG_SIZE, bagging="random", encoder=encoder)
        environment = replace(self._environment, compile=None)
        machine = pick_machine(cell, environment)
        hardware = hardware_facts(machine.device, environment.threads, machine.compiled, cell.precision)
        shared = hardware.pop("shared")
        facts = {"encoder": encoder, "source": entry_hash(ENCODERS.entry(encoder)), **software_facts(), **hardware}
        key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
        path = cache_directory() / FILE
        kept = _read(path)
        if key not in kept:
            busy = ", and again next time, since others use it now" if shared else ", once"
            self._say(f"measuring how fast this machine is with encoder {encoder}: a few seconds{busy}")
            measured = measure(cell, environment)
            if measured is None or shared:
                return measured
            kept[key] = measured
            with contextlib.suppress(OSError):  # what cannot be kept is measured again
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, json.dumps(kept, indent=1))
        return kept[key]


def measure(cell: Cell, environment: Environment) -> float | None:
    """Seconds per value and epoch of a member on a few bags, without the first step; None if its training fails.

    The quickest of some: what disturbs a machine for a moment is not its speed.
    """
    from llpbench.core.ranges import read_params
    from llpbench.core.registry import METHODS
    from llpbench.data.splits import assign_bags
    from llpbench.data.tasks import build_task
    from llpbench.training.cells import limit_threads, pick_machine, train_population

    table = load_table(DATASET)
    whole = assign_bags(table, cell.bagging, cell.bag_size, seed=0)
    held_out = {name: getattr(whole, name)[:_HELD_OUT] for name in ("validation", "test")}
    split = replace(whole.split, **{name: bags.ravel() for name, bags in held_out.items()})
    task = build_task(table, replace(whole, split=split, train=whole.train[:_BAGS], **held_out))
    declared = METHODS.get(cell.method)
    method = declared(read_params(declared.Params, cell.params, owner=cell.method))
    machine, protocol = pick_machine(cell, environment), Protocol()
    rows = protocol.bags_per_step * cell.bag_size / TRAINED  # of a dataset, for each step
    values = rows * (len(table.numeric_names) + len(table.categorical_names))
    with limit_threads(environment.threads):
        rates: list[float] = []
        epochs, start = 1, time.perf_counter()
        while not rates or time.perf_counter() - start < _SECONDS:
            told = replace(cell, protocol=replace(protocol, epochs=epochs, patience=epochs))
            try:
                (result,) = train_population(told, method, {0: task}, machine, None)
            except LLPBenchError:  # of the encoder: its cells will say so
                return None
            if result.status != "ok":
                return None
            steps = _BAGS // protocol.bags_per_step * epochs - 1
            rates.append(result.times["train"] / (steps * values))
            if 3 * (time.perf_counter() - start) < _SECONDS:
                epochs = _EPOCHS
    return min(rates)


def _read(path: Path) -> dict[str, float]:
    """What is kept; nothing if there is no file or it is damaged."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    whole = isinstance(kept, dict) and all(isinstance(rate, float) for rate in kept.values())
    return kept if whole else {}
