"""What searches for hyperparameters have chosen, and which cells are therefore nobody's own.

A run's record does not say what it was made for: the same cell may be asked for by hand and chosen by a search. What a
search has chosen, and chose before it was made again (`TuningRecord.former`), is a result of tuning wherever it is
found, unless it is where a search starts, which somebody has set.
"""

from __future__ import annotations

from collections.abc import Iterable

from llpbench.core.cell import Cell
from llpbench.core.record import TuningRecord


def chosen_by_searches(tunings: Iterable[TuningRecord]) -> set[str]:
    """Ids of the cells that searches have chosen, now or formerly, but for those that searches start from."""
    found: set[str] = set()
    starts = set()
    for tuning in tunings:
        starts.add(start_of(tuning))
        found |= {*(choice["cell"] for choice in tuning["best"].values()), *tuning.get("former", ())}
    return found - starts


def start_of(tuning: TuningRecord) -> str:
    """Id of the cell that a search starts from."""
    return Cell.of(tuning["spec"]["cell"]).id
