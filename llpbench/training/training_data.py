"""The training sets of a population on the device: what every step of an epoch draws, and the bags it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from llpbench.core.bags import BaggedRows, Bags, FloatArray, IntArray, Rows
from llpbench.core.method import Unit


class TrainingData:
    """Rows, bags and targets of all members, each with a leading dimension [members], on the device from the start."""

    def __init__(self, trains: Sequence[BaggedRows], device: torch.device) -> None:
        """`trains`: one training set a member, of equal shape."""
        self.device = device
        self.rows = stacked_rows([train.rows for train in trains], device)
        self.index = stacked([train.index for train in trains], device)
        self.counts = stacked([train.counts for train in trains], device)
        self.targets = stacked([train.proportions[train.bag_of_row] for train in trains], device).float()

    def set_targets(self, member: int, targets: FloatArray) -> None:
        """Give the rows of a member other targets [rows, classes] than their bags' proportions."""
        self.targets[member] = torch.as_tensor(targets, dtype=torch.float32, device=self.device)

    def units(self, unit: Unit) -> int:
        """Bags or rows of a member."""
        return self.index.shape[1] if unit == "bags" else self.targets.shape[1]

    def steps(self, unit: Unit, per_step: int) -> int:
        """Steps of an epoch."""
        return math.ceil(self.units(unit) / per_step)

    def plan_epoch(
        self, unit: Unit, per_step: int, phases: int, rngs: Sequence[np.random.Generator]
    ) -> tuple[Tensor, Tensor]:
        """What every step draws [members, steps, units] and the keys of its random streams [members, steps, phases].

        Every unit comes once, in random order; a last step that is not full takes units of earlier ones.
        `rngs`: one a member that is still in the stack.
        """
        units, steps = self.units(unit), self.steps(unit, per_step)
        plans, keys = [], []
        for rng in rngs:
            order = rng.permutation(units)
            earlier = order[: (steps - 1) * per_step] if steps > 1 else order
            plans.append(np.concatenate([order, rng.choice(earlier, size=steps * per_step - units)]))
            keys.append(rng.integers(2**32, size=(steps, phases)))
        return stacked(plans, self.device).reshape(-1, steps, per_step), stacked(keys, self.device)

    def take(self, unit: Unit, members: Tensor, drawn: Tensor) -> Bags:
        """The bags, or the rows as bags of one with their own targets, `drawn` [members, units] by some members."""
        slots = members[:, None]
        if unit == "bags":
            index, counts = self.index[slots, drawn], self.counts[slots, drawn]
            proportions = (counts / counts.sum(dim=-1, keepdim=True)).float()
            return Bags(self._rows(slots, index.clamp(min=0)), index >= 0, counts, proportions)
        targets = self.targets[slots, drawn]
        mask = torch.ones_like(drawn, dtype=torch.bool)[..., None]
        return Bags(self._rows(slots, drawn[..., None]), mask, targets.round().long(), targets)

    def _rows(self, slots: Tensor, index: Tensor) -> Rows:
        return Rows(*(value[slots[..., None], index] for value in self.rows))


def stacked(arrays: Sequence[FloatArray | IntArray], device: torch.device) -> Tensor:
    """Arrays of equal shape as one tensor on the device."""
    return torch.from_numpy(np.stack(arrays)).to(device)


def stacked_rows(rows: Sequence[Rows], device: torch.device) -> Rows:
    """Rows of several members as [members, rows, features]."""
    return Rows(*(stacked(parts, device) for parts in zip(*rows, strict=True)))
