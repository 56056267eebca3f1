"""The training sets of a population on the device: the draws of an epoch and the bags of a step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from llpbench.core.bags import BaggedRows, Bags, IntArray, Rows
from llpbench.core.method import Unit
from llpbench.core.seeding import generator

LARGEST_RATIO = 1.5
"""largest ratio of the longest to the shortest bag in a step, to limit padding, if enough bags have similar sizes"""


class EpochPlan(NamedTuple):
    """The draws of all steps of an epoch."""

    drawn: Tensor
    """[members, steps, units] numbers of bags or rows"""
    keys: Tensor
    """[members, steps, phases] keys of the random streams"""
    widths: tuple[int, ...]
    """length of each step's bags with padding, equal for all members"""


class _Targets(NamedTuple):
    """Training targets of single rows, for stages of rows."""

    values: Tensor
    """[members, rows, classes] float32"""
    known: Tensor
    """[members, rows] bool"""


def _buckets(sizes: IntArray, per_step: int) -> list[IntArray]:
    """Group bags of `sizes` [bags] into buckets of similar size, to limit padding. Bags of a bucket may share a step.

    Bags of equal size form one bucket. Otherwise bags are taken from the longest down. A bucket ends at a bag shorter
    than 1/`LARGEST_RATIO` of its longest, after more bags have filled its last step. Only the last bucket may leave a
    gap.
    """
    if sizes.min() == sizes.max():
        return [np.arange(len(sizes))]
    order = np.argsort(-sizes, kind="stable")
    found, start = [], 0
    while start < len(order):
        end, longest = start + 1, sizes[order[start]]
        while end < len(order) and (LARGEST_RATIO * sizes[order[end]] >= longest or (end - start) % per_step):
            end += 1
        found.append(order[start:end])
        start = end
    return found


def profile(train: BaggedRows, per_step: int) -> tuple[tuple[int, int], ...]:
    """Return number of bags and longest size of each bucket. They must be equal for all members of a population."""
    return tuple((len(bucket), int(train.sizes[bucket].max())) for bucket in _buckets(train.sizes, per_step))


class TrainingData:
    """Rows and bags of all members on the device, each with a leading dimension [members]."""

    def __init__(self, trains: Sequence[BaggedRows], device: torch.device) -> None:
        """`trains` has one training set for each member, all of equal shape and `profile`."""
        self.device = device
        self.rows = stacked_rows([train.rows for train in trains], device)
        self._sizes = [train.sizes for train in trains]
        self._bucketed: dict[int, list[list[IntArray]]] = {}
        """buckets of each member, by the number of bags in a step"""
        # bag by bag without padding, which would need much memory if bags are unequal
        self._row = stacked([train.bag_by_bag for train in trains], device)
        self._first = stacked([np.cumsum(train.sizes) - train.sizes for train in trains], device)
        self._size = stacked(self._sizes, device)
        given = [np.where(train.known[:, None], train.counts, 0.0) for train in trains]
        self._counts = stacked(given, device).float()
        self._proportions = stacked([train.proportions for train in trains], device).float()
        self._known = stacked([train.known for train in trains], device)
        self.prior = stacked([train.prior for train in trains], device).float()
        """[members, classes]"""
        self._bag_of_row = stacked([train.bag_of_row for train in trains], device)

    def targets(self) -> _Targets:
        """Return the targets of rows, the proportions of their bags."""
        members = torch.arange(len(self._row), device=self.device)[:, None]
        return _Targets(self._proportions[members, self._bag_of_row], self._known[members, self._bag_of_row])

    def steps(self, unit: Unit, per_step: int) -> int:
        """Return the steps of an epoch."""
        return len(self._widths(unit, per_step, 0))

    def plan_epoch(
        self, unit: Unit, per_step: int, phases: int, streams: Mapping[int, np.random.Generator], epoch: int = 0
    ) -> EpochPlan:
        """Draw an epoch for some members (by number), each from its own stream.

        Every unit occurs once, in random order. An incomplete last step is filled with units of earlier steps. Bags of
        unequal size share a step only within `_buckets`. The order of these steps is random and equal for all members.
        """
        widths = self._widths(unit, per_step, next(iter(streams)))
        steps = np.arange(len(widths))
        if len(set(widths.tolist())) > 1:
            steps = generator(epoch, "order of steps", len(widths)).permutation(len(widths))
        plans, keys = [], []
        for slot, rng in streams.items():
            groups = self._buckets(unit, per_step, slot)
            plans.append(np.concatenate([bucket[_draw(len(bucket), per_step, rng, unit)] for bucket in groups])[steps])
            keys.append(rng.integers(2**32, size=(len(steps), phases)))
        return EpochPlan(stacked(plans, self.device), stacked(keys, self.device), tuple(widths[steps].tolist()))

    def take(self, unit: Unit, members: Tensor, drawn: Tensor, width: int, targets: _Targets) -> Bags:
        """Return the bags `drawn` [members, units] by some members, or rows as bags of one row with their targets."""
        slots = members[:, None]
        prior = self.prior[members]
        if unit == "bags":
            inside = torch.arange(width, device=self.device) < self._size[slots, drawn][..., None]
            position = self._first[slots, drawn][..., None] + torch.arange(width, device=self.device)
            index = self._row[slots[..., None], torch.where(inside, position, 0)]
            counts, proportions = self._counts[slots, drawn], self._proportions[slots, drawn]
            return Bags(self._rows(slots, index), inside, counts, proportions, self._known[slots, drawn], prior)
        values, known = targets.values[slots, drawn], targets.known[slots, drawn]
        mask = torch.ones_like(drawn, dtype=torch.bool)[..., None]
        return Bags(self._rows(slots, drawn[..., None]), mask, values, values, known, prior)

    def _buckets(self, unit: Unit, per_step: int, slot: int) -> list[IntArray]:
        if unit == "rows":
            return [np.arange(self._row.shape[1])]
        if per_step not in self._bucketed:
            self._bucketed[per_step] = [_buckets(sizes, per_step) for sizes in self._sizes]
        return self._bucketed[per_step][slot]

    def _widths(self, unit: Unit, per_step: int, slot: int) -> IntArray:
        """Return the length of the longest bag in each step's bucket [steps], bucket by bucket; 1 for rows."""
        groups = self._buckets(unit, per_step, slot)
        longest = [int(self._sizes[slot][bucket].max()) if unit == "bags" else 1 for bucket in groups]
        return np.repeat(longest, [math.ceil(len(bucket) / per_step) for bucket in groups])

    def _rows(self, slots: Tensor, index: Tensor) -> Rows:
        return Rows(*(value[slots[..., None], index] for value in self.rows))


def _draw(units: int, per_step: int, rng: np.random.Generator, unit: Unit) -> IntArray:
    """Return all numbers below `units` in random order, and others again to fill the last of [steps, per_step].

    A step has no bag twice, unless there are fewer bags than places. Rows may repeat.
    """
    steps = math.ceil(units / per_step)
    order = rng.permutation(units)
    earlier = order[: (steps - 1) * per_step] if steps > 1 else order
    missing = steps * per_step - units
    again = rng.choice(earlier, size=missing, replace=unit == "rows" or not 1 < missing <= len(earlier))
    return np.concatenate([order, again]).reshape(steps, per_step)


def stacked(arrays: Sequence[NDArray[Any]], device: torch.device) -> Tensor:
    """Return arrays of equal shape as one tensor on the device."""
    return torch.from_numpy(np.stack(arrays)).to(device)


def stacked_rows(rows: Sequence[Rows], device: torch.device) -> Rows:
    """Return rows of several members as [members, rows, features]."""
    return Rows(*(stacked(parts, device) for parts in zip(*rows, strict=True)))


@dataclass
class State:
    """Everything that training changes, for all members."""

    weights: Tensor
    """[members, parameters] initial weights of the next stage"""
    buffers: dict[str, Tensor]
    """by name, [members, ...]"""
    targets: _Targets
    """targets of single rows"""
    rngs: list[np.random.Generator]

    def fork(self, targets: _Targets) -> State:
        """Return an independent copy of the state, with other targets, that shares the random streams."""
        buffers = {name: value.clone() for name, value in self.buffers.items()}
        return State(self.weights.clone(), buffers, targets, self.rngs)
