"""The training state that one stage hands to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from llpbench.training.training_data import Targets


@dataclass
class State:
    """Everything that training changes, for all members."""

    weights: Tensor
    """[members, parameters] initial weights of the next stage"""
    buffers: dict[str, Tensor]
    """by name, [members, ...]"""
    targets: Targets
    """targets of single rows"""
    rngs: list[np.random.Generator]

    def fork(self) -> State:
        """Return an independent copy of the state that shares the random streams."""
        return State(
            self.weights.clone(),
            {name: value.clone() for name, value in self.buffers.items()},
            Targets(*(part.clone() for part in self.targets)),
            self.rngs,
        )
