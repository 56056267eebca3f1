"""What is tuned and how: a *tuning* is a search for the best hyperparameters of one cell under one validation regime.

Its id is the content hash of its specification, as a cell's is. It trains on a seed of its own, apart from those that
results are reported on, and never predicts a test row. A tuning of the coarse-grained regime never sees a label of a
validation row either: neither what it proposes, nor what it stops early, nor what it chooses depends on one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from llpbench.core.cell import Cell
from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA, GUIDES, Criterion, Regime

TUNING_SEED = 1000
"""of the split and the random streams of every trial, unless another is given"""
SAMPLERS = ("tpe", "random")
TOGETHER = 5
"""trials of one architecture that are proposed together: more would train faster, but know less of one another"""


@dataclass(frozen=True)
class Tuning:
    """Everything that decides the outcome of a search."""

    cell: Cell
    """where it starts: its configuration is the first trial, and every hyperparameter that is not searched is its"""
    regime: Regime
    trials: int
    space: Mapping[str, Mapping[str, Any]]
    """by hyperparameter: `low` and `high` (and `log`), or `choices`; where it means something only `when` others have
    some values: those, by name"""
    sampler: str = "tpe"
    seed: int = TUNING_SEED
    together: int = TOGETHER
    """trials of one architecture that are proposed and trained together"""
    eta: int = 3
    """one in so many trials goes on at each rung; 0: no trial is stopped early"""

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The canonical specification, of JSON types only."""
        return self.search | {"trials": self.trials}

    @cached_property
    def search(self) -> dict[str, Any]:
        """The specification but for the number of trials: a longer search goes on where a shorter one ended."""
        parts = {
            "cell": self.cell.spec,
            "regime": self.regime,
            "space": {name: dict(each) for name, each in self.space.items()},
            "sampler": self.sampler,
            "seed": self.seed,
            "together": self.together,
            "eta": self.eta,
        }
        return json.loads(json.dumps(parts, sort_keys=True))  # type: ignore[no-any-return]

    @staticmethod
    def of(spec: Mapping[str, Any]) -> Tuning:
        """The tuning with this `spec`. Raises `TypeError` if it is none of this version."""
        return Tuning(**{**spec, "cell": Cell.of(spec["cell"])})

    @cached_property
    def id(self) -> str:
        """16 hexadecimal digits: the content hash of `spec`."""
        return _hash(self.spec)

    @cached_property
    def search_id(self) -> str:
        """16 hexadecimal digits: the content hash of `search`."""
        return _hash(self.search)

    @property
    def guide(self) -> Criterion:
        """What guides the search, and decides which trials are stopped early."""
        return CRITERIA[GUIDES[self.regime]]

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria of its regime: each chooses a configuration of its own."""
        return tuple(name for name, each in CRITERIA.items() if each.regime == self.regime)

    @property
    def boards(self) -> tuple[str, ...]:
        """The criteria that leaderboards use."""
        return tuple(name for name in BOARD_CRITERIA if name in self.criteria)

    @property
    def rungs(self) -> tuple[int, ...]:
        """Numbers of epochs after which trials are compared and most of them stopped, ascending."""
        if self.cell.protocol is None or self.eta < 2:
            return ()
        epochs = self.cell.protocol.epochs
        found = (-(-epochs // self.eta**power) for power in (2, 1))
        return tuple(sorted({rung for rung in found if 1 < rung < epochs}))

    def __str__(self) -> str:
        return f"tuning {self.cell}, {self.regime}, {self.trials} trials"


@dataclass(frozen=True)
class Trial:
    """One configuration of a search, and what became of it."""

    number: int
    """0 is the configuration that the search started from"""
    params: Mapping[str, Any]
    """the hyperparameters that were searched here; all others are the cell's"""
    status: str
    """`ok`, `stopped` at a rung, `failed` or `out-of-memory`"""
    reason: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    """by criterion of the regime, the best of all epochs"""
    epochs: int = 0
    """trained, over all stages"""
    rungs: tuple[tuple[int, float | None], ...] = ()
    """epochs and the guide's best value so far, at each rung that it reached"""
    seconds: float = 0.0
    """its share of the time of those that it trained with"""


def _hash(spec: Mapping[str, Any]) -> str:
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
