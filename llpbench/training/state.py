"""What training changes: the state that one stage hands to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from llpbench.training.training_data import Targets


@dataclass
class State:
    """What training changes, of all members."""

    weights: Tensor
    """[members, parameters] what the next stage starts from"""
    buffers: dict[str, Tensor]
    """by name, [members, ...]"""
    targets: Targets
    """what single rows are trained on"""
    rngs: list[np.random.Generator]

    def fork(self) -> State:
        """A state that may go another way, with the same random streams."""
        return State(
            self.weights.clone(),
            {name: value.clone() for name, value in self.buffers.items()},
            Targets(*(part.clone() for part in self.targets)),
            self.rngs,
        )
