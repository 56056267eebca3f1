"""Averages of the weights of a stage that is trained without validation (`training/averaging.py`)."""

from __future__ import annotations

import torch
from torch import Tensor

from llpbench.training.averaging import HORIZON


class AveragedWeights:
    """Weights whose predictions are averaged: those after each epoch of the second half, or one moving average."""

    def __init__(self, kind: str, epochs: int, steps: int, theta: Tensor) -> None:
        """`steps` is the number of steps in an epoch, `theta` [members, parameters] the initial weights."""
        self._first = epochs // 2 if kind == "half" else epochs
        self._share = 1 / (HORIZON * steps)
        self._moving = theta.detach().clone() if kind == "ema" else None
        self._snapshots: list[Tensor] = []

    def after_step(self, theta: Tensor) -> None:
        """Move the moving average a small part of the way to the current weights."""
        if self._moving is not None:
            self._moving.lerp_(theta.detach(), self._share)

    def after_epoch(self, epoch: int, theta: Tensor) -> None:
        """Keep the weights after an epoch of the second half."""
        if epoch >= self._first:
            self._snapshots.append(theta.detach().clone())

    @property
    def weights(self) -> Tensor:
        """Weights whose predictions are averaged [members, n, parameters]."""
        return torch.stack(self._snapshots if self._moving is None else [self._moving], dim=1)
