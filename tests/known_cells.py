"""Precincts whose cells of groups by outcomes are known, for the tests of `cross_table`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from llpbench.core.bags import FloatArray

SHARES = np.array([[0.85, 0.10, 0.05], [0.35, 0.50, 0.15], [0.20, 0.20, 0.60]])
GROUPS, OUTCOMES = ["black", "white", "asian"], ["ann", "bob", "abstained"]


def simulated(precincts: int = 60, rho: float = 0.02, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, FloatArray]:
    """People by group, votes, and true cells [precincts, groups, outcomes]; shares vary between precincts."""
    rng = np.random.default_rng(seed)
    people = np.array([rng.multinomial(rng.integers(200, 800), mix) for mix in rng.dirichlet([1.5, 1.5, 1], precincts)])
    cells = np.array(
        [
            [rng.multinomial(number, rng.dirichlet(p * (1 / rho - 1))) for number, p in zip(row, SHARES, strict=True)]
            for row in people
        ]
    )
    index = pd.Index([f"P{number:02}" for number in range(precincts)])
    votes = pd.DataFrame(cells.sum(axis=1), index, OUTCOMES)
    return pd.DataFrame(people, index, GROUPS), votes, cells.astype(np.float64)
