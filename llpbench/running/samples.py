"""A sample of recorded runs: which of them trained together, and which cells are drawn."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from llpbench.core.cell import Cell
from llpbench.core.record import Record, TuningRecord
from llpbench.results.staleness import cell_spec

Part = tuple[str, str]
"""what a run is of: `("method", "dllp")`"""


@dataclass(frozen=True)
class Group:
    """Runs of a cell that trained together, failed ones included."""

    cell: Cell
    records: tuple[Record, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(record["seed"] for record in self.records)


def trained_together(records: Iterable[Record]) -> Iterator[Group]:
    """Which runs trained together: of a cell, as many as each says, in the order in which they were finished.

    Left out is what cannot be told: where some of them are missing, and specifications of another version.
    """
    cells: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        if record["members"] > 0:
            cells.setdefault((record["cell"], record["members"]), []).append(record)
    for (cell_id, members), those in cells.items():
        try:
            cell = Cell.of(those[0]["spec"])
        except TypeError:
            continue
        if cell.id != cell_id:
            continue
        those.sort(key=lambda record: (record["finished"], record["seed"]))
        seeds = max(members // cell.ensemble, 1)
        for start in range(0, len(those) - seeds + 1, seeds):
            yield Group(cell, tuple(sorted(those[start : start + seeds], key=lambda record: record["seed"])))


def draw(groups: Mapping[str, list[Group]], number: int, seed: int) -> list[list[Group]]:
    """So many cells, with their groups: the methods, then datasets and so on as evenly as can be, else by chance."""
    rest = sorted(groups.values(), key=lambda each: hashlib.sha256(f"{seed} {each[0].cell.id}".encode()).digest())
    chosen: list[list[Group]] = []
    seen: Counter[Part] = Counter()

    def rarity(each: list[Group]) -> tuple[int, ...]:
        return tuple(seen[part] for part in parts(each[0].records[0]))

    while rest and len(chosen) < number:
        rest.remove(best := min(rest, key=rarity))  # the first of equals
        seen.update(parts(best[0].records[0]))
        chosen.append(best)
    return chosen


def parts(record: Record | TuningRecord) -> list[Part]:
    """What a run or search is of; the parts that a sample is to cover first come first."""
    spec = cell_spec(record)
    names = ("method", "dataset", "bag_size", "encoder", "pretraining", "bagging", "max_bags")
    return [*((name, str(spec.get(name))) for name in names), ("device", str(record["hardware"].get("device")))]
