"""The configurations selected by hyperparameter searches, as opposed to those set by a user.

A run's record does not say why it was run: the same cell may be requested by hand and selected by a search. Any cell
that a search selects, or selected before it was repeated (`TuningRecord.former`), counts as a result of tuning. The
exception is the initial cell of a search, which a user has set.
"""

from __future__ import annotations

from collections.abc import Iterable

from llpbench.core.cell import Cell
from llpbench.core.record import TuningRecord


def chosen_by_searches(tunings: Iterable[TuningRecord]) -> set[str]:
    """Return ids of cells that searches have selected, now or earlier, without the initial cells of searches."""
    found: set[str] = set()
    starts = set()
    for tuning in tunings:
        starts.add(start_of(tuning))
        found |= {*(choice["cell"] for choice in tuning["best"].values()), *tuning.get("former", ())}
    return found - starts


def start_of(tuning: TuningRecord) -> str:
    """Return the id of the initial cell of a search."""
    return Cell.of(tuning["spec"]["cell"]).id
