"""Early stopping with several criteria at once.

All criteria are computed in the same run. Each has its own best epoch, weights and patience. A run ends when all
criteria have settled: none has improved within the patience. So each selects the same epoch as in a run with this
criterion alone. Criteria that do not prolong a run (`Criterion.prolongs`) choose among the epochs until all others
without labels have settled, so that labels have no influence on them.
Epochs of a ramp (`Stage.ramp`) can be selected, but patience counts from its end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from llpbench.core.bags import FloatArray
from llpbench.core.criteria import CRITERIA, GUIDES, Regime


@dataclass(frozen=True)
class Selected:
    """One criterion's selection for one member in a judged stage."""

    epoch: int
    value: float
    """value of the criterion at the epoch; NaN if it was never a number"""
    weights: Tensor
    """[parameters]"""
    curve: FloatArray
    """[epochs] value after each epoch of the stage"""
    training: str = ""
    """validation regime of the training that led to this epoch, if stages run once per regime"""


class Selection:
    """The best epochs and weights of several members, by criterion."""

    def __init__(
        self, members: int, patience: int, theta: Tensor, regimes: Collection[Regime] = tuple(GUIDES), *, ramp: int = 0
    ) -> None:
        """Start with the initial weights `theta` [members, parameters] and all criteria of `regimes`.

        Without labels of validation rows, "coarse" is the only possible regime. Patience does not count the first
        `ramp` epochs.
        """
        self.patience, self._earliest = patience, max(ramp - 1, 0)
        self.criteria = {name: each for name, each in CRITERIA.items() if each.regime in regimes}
        self._prolongs = np.array([each.prolongs for each in self.criteria.values()])
        self._maximise = np.array([each.maximise for each in self.criteria.values()])
        self._is_coarse = np.array([each.regime == "coarse" for each in self.criteria.values()])
        shape = (len(self.criteria), members)
        self.epoch = np.zeros(shape, dtype=np.int64)
        self.value = np.full(shape, np.nan)
        self.settled = np.zeros(shape, dtype=bool)
        self.weights = theta.detach().repeat(len(self.criteria), 1, 1)
        self.curves = np.empty((0, *shape))

    @property
    def done(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether all criteria of a member that prolong training have settled [members]."""
        return np.asarray(self.settled[self._prolongs].all(axis=0))

    def give_up(self, member: int) -> None:
        """Settle all criteria of a member."""
        self.settled[:, member] = True

    def observe(self, epoch: int, criteria: dict[str, FloatArray], theta: Tensor) -> None:
        """Update selections after an epoch: `criteria` by name [members], `theta` [members, parameters]."""
        now = np.stack([criteria[name] for name in self.criteria])
        self.curves = np.concatenate([self.curves, now[None]])
        better = np.where(self._maximise[:, None], now > self.value, now < self.value)  # False for NaN
        improved = ~self.settled & (better | (np.isnan(self.value) & ~np.isnan(now)))
        self.value[improved], self.epoch[improved] = now[improved], epoch
        # a criterion that is still NaN keeps the newest weights, since a later stage may start from them
        undefined = np.isnan(self.value)
        taken = improved | (undefined & ~self.settled)
        since = np.maximum(np.where(undefined, 0, self.epoch), self._earliest)
        self.settled |= epoch - since >= self.patience
        self.settled[~self._prolongs] |= self.settled[self._prolongs & self._is_coarse].all(axis=0)
        self.epoch[taken] = epoch
        if taken.any():
            where = torch.from_numpy(taken).to(theta.device).unsqueeze(-1)
            self.weights = torch.where(where, theta.detach(), self.weights)

    def selected(self, member: int) -> dict[str, Selected]:
        """Return each criterion's selection for a member."""
        return {
            name: Selected(
                epoch=int(self.epoch[row, member]),
                value=float(self.value[row, member]),
                weights=self.weights[row, member],
                curve=self.curves[:, row, member],
            )
            for row, name in enumerate(self.criteria)
        }

    def keep(self, positions: list[int]) -> None:
        """Remove all members except those at some positions."""
        self.epoch, self.value = self.epoch[:, positions], self.value[:, positions]
        self.settled, self.weights = self.settled[:, positions], self.weights[:, positions]
        self.curves = self.curves[:, :, positions]
