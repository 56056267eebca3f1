"""Pretrained encoders: computed once, stored beside the journal, and shared by all methods that start from them.

A file's name is the hash of everything that determines its content: data, bags, seed, encoder, tasks, hyperparameters,
precision, and the versions of encoder and engine. The method is not included. The content starts with a checksum, so a
damaged or incomplete file is computed again.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor

from llpbench.blocks.pretraining import Pretraining, PretrainingParams
from llpbench.core.bags import Task
from llpbench.core.cell import Cell, Epoch
from llpbench.core.files import explained_failure, replace_file
from llpbench.core.provenance import NUMERICS
from llpbench.core.ranges import read_params
from llpbench.core.registry import ENCODERS
from llpbench.training.cohort import Trainee, encoder_factory, populations
from llpbench.training.device import Machine
from llpbench.training.population import Population

_PURPOSE = "pretraining"
"""name of the random streams of pretraining; later training uses others"""


@dataclass(frozen=True)
class Pretrained:
    """A pretrained encoder."""

    weights: Mapping[str, Tensor]
    """weights by parameter name, such as `encoder.0.weight`"""
    seconds: float
    """time that pretraining took when first computed"""


@dataclass(frozen=True)
class Pretrainer:
    """Provider of pretrained encoder weights for a cell: read from the folder, or computed now."""

    cell: Cell
    tasks: dict[int, Task]
    """tasks by seed; they always have bags, even for methods trained on labels"""
    folder: Path | None
    machine: Machine
    on_epoch: Callable[[Epoch], None] | None = None

    def __call__(self, seeds: Sequence[int]) -> dict[int, Pretrained]:
        """Return the pretrained encoder of each seed; compute those that are not in the folder.

        Raises `RuntimeError` if pretraining diverges.
        """
        tasks, folder = {seed: self.tasks[seed] for seed in seeds}, self.folder
        if folder is None:
            return self.compute(tasks)
        files = {seed: folder / f"{_key(self.cell, seed, task)}.pt" for seed, task in tasks.items()}
        unsaved = f"pretrained weights cannot be saved in {str(folder)!r}"
        with explained_failure(unsaved):
            folder.mkdir(parents=True, exist_ok=True)
            # cells that share weights wait here until the first of them has computed the weights
            lock = FileLock(min(files.values()).with_suffix(".lock")).acquire()
        with lock:
            with explained_failure(unsaved):
                stored = {seed: _read(file) for seed, file in files.items()}
            missing = {seed: tasks[seed] for seed, weights in stored.items() if weights is None}
            computed = self.compute(missing) if missing else {}
            with explained_failure(unsaved):
                for seed, weights in computed.items():
                    _write(files[seed], weights)
        return {seed: weights for seed, weights in (stored | computed).items() if weights is not None}

    def compute(self, tasks: dict[int, Task]) -> dict[int, Pretrained]:
        """Pretrain some seeds; seeds with equal numbers of rows and bags train as one population."""
        assert self.cell.protocol is not None
        params = read_params(PretrainingParams, self.cell.pretraining_params, owner="pretraining")
        encoder = encoder_factory(self.cell, params.dropout)
        pretrained: dict[int, Pretrained] = {}
        for group in populations(tasks, self.cell.protocol.bags_per_step):
            clock, method = time.perf_counter(), Pretraining(self.cell.pretraining, params)
            members = [Trainee(seed, method, task) for seed, task in group.items()]
            population = Population(members, encoder, self.cell.protocol, self.machine, _PURPOSE)
            for seed, outcome in zip(group, population.train(self.on_epoch), strict=True):
                if outcome.failure:
                    raise RuntimeError(f"pretraining of seed {seed}: {outcome.failure}")
            seconds = (time.perf_counter() - clock) / len(group)
            parameters = population.stack.parameters(population.state.weights)
            weights = {name: value.cpu() for name, value in parameters.items() if name.startswith("encoder.")}
            for number, seed in enumerate(group):
                pretrained[seed] = Pretrained({name: v[number].clone() for name, v in weights.items()}, seconds)
        return pretrained


def _key(cell: Cell, seed: int, task: Task) -> str:
    """Return 32 hexadecimal digits: the content hash of one seed's pretraining."""
    assert cell.protocol is not None
    assert cell.encoder is not None
    content: dict[str, Any] = {
        "numerics": NUMERICS,
        "seed": seed,
        "data": task.fingerprint,
        "bags": task.manifest,
        "bags_per_step": cell.protocol.bags_per_step,
        "encoder": cell.encoder,
        "encoder_version": ENCODERS.entry(cell.encoder).version,
        "encoder_params": dict(cell.encoder_params),
        "tasks": cell.pretraining,
        "params": dict(cell.pretraining_params),
    }
    if cell.precision != "float32":
        content["precision"] = cell.precision
    if cell.numbers != "z":
        content["numbers"] = cell.numbers
    if cell.average:
        content["validation_bags"] = True
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _write(path: Path, pretrained: Pretrained) -> None:
    """Write a file completely or not at all."""
    buffer = io.BytesIO()
    torch.save({"weights": dict(pretrained.weights), "seconds": pretrained.seconds}, buffer)
    payload = buffer.getvalue()
    replace_file(path, hashlib.sha256(payload).digest() + payload)


def _read(path: Path) -> Pretrained | None:
    """Return a file's content; None if it does not exist or is damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    checksum, payload = content[:32], content[32:]
    if hashlib.sha256(payload).digest() != checksum:
        return None
    try:
        stored = torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu")
        return Pretrained(stored["weights"], stored["seconds"])
    except (pickle.UnpicklingError, RuntimeError, KeyError, TypeError):
        return None  # undamaged, but in another format
