"""Predictions of members in chunks of rows, and their criteria on the validation split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from llpbench.core.bags import Bags, FloatArray, Holdout, Rows
from llpbench.core.metrics import validation_criteria
from llpbench.training.objective import OfMember, Weights, explained, log_proba
from llpbench.training.training_data import stacked, stacked_rows


class Prediction:
    """Evaluation of functions of rows, a chunk at a time, without gradients or randomness."""

    def __init__(self, members: Callable[..., Any], prior: Tensor, rows_at_once: int, filled: bool = False) -> None:
        """`members` maps a function over members (`MemberMap`); `prior` [members, classes].

        `rows_at_once`: size of a chunk; an encoder with row interaction gets as many rows as in training. `filled`: all
        chunks have this size, as compiled code requires; the last one is padded and masked.
        """
        self._members, self._prior, self._rows_at_once, self._filled = members, prior, rows_at_once, filled

    def __call__(self, function: OfMember, weights: Weights, slots: Tensor, rows: Rows, where: Tensor) -> Tensor:
        """Return `function` [n, rows, ...] of members `slots` [n] with `weights` [n], on rows `where` [n] of `rows`."""
        with torch.no_grad(), explained():
            chunks = [self._members(function, weights, bags) for bags in self.chunks(rows, slots, where)]
        return torch.cat(chunks, dim=-2).squeeze(1)[:, : rows.numeric.shape[1]]

    def chunks(self, rows: Rows, slots: Tensor, where: Tensor) -> Iterator[Bags]:
        """Yield chunks of each member's rows, each as one bag [n, 1, size] without known counts."""
        prior, number = self._prior[slots], rows.numeric.shape[1]
        for start in range(0, number, self._rows_at_once):
            end = start + self._rows_at_once
            at = torch.arange(start, end if self._filled else min(end, number), device=prior.device)
            part = Rows(*(value[where[:, None], at.clamp(max=number - 1)].unsqueeze(1) for value in rows))
            mask = (at < number).expand(part.numeric.shape[:-1])
            known = torch.zeros(mask.shape[:-1], dtype=torch.bool, device=prior.device)
            yield Bags(part, mask, torch.zeros_like(prior[:, None]), prior[:, None], known, prior)


class Validation:
    """The validation splits of all members, on the device."""

    def __init__(self, holdouts: Sequence[Holdout], device: torch.device) -> None:
        self._rows = stacked_rows([holdout.rows for holdout in holdouts], device)
        labels = [holdout.labels for holdout in holdouts if holdout.labels is not None]
        self._labels = stacked(labels, device) if len(labels) == len(holdouts) else None
        self._bags = [
            stacked([getattr(holdout, part) for holdout in holdouts], device)
            for part in ("index", "proportions", "known")
        ]

    def criteria(self, predict: Prediction, weights: Weights, slots: Tensor) -> dict[str, FloatArray]:
        """Return every validation criterion that the splits allow, by name: [members]."""
        proba = predict(log_proba, weights, slots, self._rows, slots).double().exp()
        labels = None if self._labels is None else self._labels[slots]
        values = validation_criteria(proba, labels, *(part[slots] for part in self._bags))
        return {name: np.asarray(value.cpu()) for name, value in values.items()}

    @property
    def labelled(self) -> bool:
        """Whether fine-grained criteria are available."""
        return self._labels is not None
