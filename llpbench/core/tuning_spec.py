"""A *tuning*: a search for the best hyperparameters of one cell under one validation regime.

Like the id of a cell, its id is the content hash of its specification. It trains on its own seed, not on the seeds of
reported results, and never predicts a test row. Coarse-grained tuning does not use labels of validation rows: neither
its proposals, nor its early stopping, nor its choice depends on them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from llpbench.core.cell import Cell, spec_hash
from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA, GUIDES, Criterion, Regime

TUNING_SEED = 1000
"""default seed of the split and the random streams of every trial"""
SAMPLERS = ("tpe", "random")
TOGETHER = 5
"""trials of one architecture that are proposed together; more would train faster but learn less from each other"""


@dataclass(frozen=True)
class Tuning:
    """Everything that determines the outcome of a search."""

    cell: Cell
    """initial configuration: the first trial, and the value of every hyperparameter that is not searched"""
    regime: Regime
    trials: int
    space: Mapping[str, Mapping[str, Any]]
    """search space by hyperparameter: `low` and `high` (and `log`), or `choices`

    `when` has the values of other hyperparameters, by name, for which this one matters.
    """
    sampler: str = "tpe"
    seed: int = TUNING_SEED
    together: int = TOGETHER
    """number of trials of one architecture that are proposed and trained together"""
    eta: int = 3
    """at each rung, one in `eta` trials continues; 0: no trial is stopped early"""

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The canonical specification, of JSON types only."""
        return self.search | {"trials": self.trials}

    @cached_property
    def search(self) -> dict[str, Any]:
        """The specification without the number of trials, so that a longer search continues a shorter one."""
        parts = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "trials"}
        return json.loads(json.dumps({**parts, "cell": self.cell.spec}, sort_keys=True))  # type: ignore[no-any-return]

    @staticmethod
    def of(spec: Mapping[str, Any]) -> Tuning:
        """Return the tuning with this `spec`. Raises `TypeError` if the fields are not those of this version."""
        return Tuning(**{**spec, "cell": Cell.of(spec["cell"])})

    @cached_property
    def id(self) -> str:
        """Content hash of `spec`, 16 hexadecimal digits."""
        return spec_hash(self.spec)

    @cached_property
    def search_id(self) -> str:
        """Content hash of `search`, 16 hexadecimal digits."""
        return spec_hash(self.search)

    @property
    def guide(self) -> Criterion:
        """Criterion that guides the search and decides which trials are stopped early."""
        return CRITERIA[GUIDES[self.regime]]

    @property
    def criteria(self) -> tuple[str, ...]:
        """Criteria of the regime. Each selects its own configuration."""
        return tuple(name for name, each in CRITERIA.items() if each.regime == self.regime)

    @property
    def boards(self) -> tuple[str, ...]:
        """Criteria shown on leaderboards."""
        return tuple(name for name in BOARD_CRITERIA if name in self.criteria)

    @property
    def rungs(self) -> tuple[int, ...]:
        """Numbers of epochs, ascending, after which trials are compared and most of them stopped."""
        if self.cell.protocol is None or self.eta < 2:
            return ()
        epochs = self.cell.protocol.epochs
        found = (-(-epochs // self.eta**power) for power in (2, 1))
        return tuple(sorted({rung for rung in found if 1 < rung < epochs}))

    def __str__(self) -> str:
        return f"tuning {self.cell}, {self.regime}, {self.trials} trials"
