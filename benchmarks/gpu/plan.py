"""GPU-minutes for the paper's tables (fine and coarse: nine methods, six datasets, ten seeds), from what was measured.

A finished cell of the campaign counts as it was timed, scaled to seeds. Another takes steps x seconds of a step: the
fastest measured way of DLLP with SAINT, times the cost of the method, times rows and features relative to Adult; epochs
are those of finished cells, else `EPOCHS`; each pays the compilation once. One run serves both tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean

from benchmarks.gpu import measures
from benchmarks.gpu.rows import Row, Rows
from benchmarks.gpu.sizes import Sizes
from llpbench.blocks.pretraining import PretrainingParams
from llpbench.core.cell import Cell
from llpbench.data.specs import built_in_facts
from llpbench.running.planning import expand
from llpbench.running.settings import resolve

EPOCHS = 100
"""of a training, as long as no cell is finished: at most 300, patience 20 for each of several criteria"""
SEEDS = 10
_PAIR_ROWS = 512
"""rows of a step"""


@dataclass(frozen=True)
class Speed:
    """What was measured of DLLP with an encoder."""

    way: str
    members: int
    step: float
    """seconds of a step of all members, on Adult"""
    first: float
    """seconds of the first step: compilation"""


def paper_cells() -> list[Cell]:
    """The cells of both tables, each once."""
    return [one.cell for one in expand(resolve({"study": "fine-grained,coarse-grained"}, preset="paper"))]


def minutes(rows: Rows) -> list[tuple[Cell, float, bool]]:
    """Cells, their GPU-minutes, and whether these were measured; empty where no speed was."""
    speed = _speed(rows)
    if speed is None:
        return []
    done = {row.values["cell"]: row for row in rows.every() if row.values.get("how") == "done" and row.status == "ok"}
    epochs = mean([row.values["epochs"] for row in done.values()] or [EPOCHS])
    found = []
    for cell in paper_cells():
        if cell.id in done:
            values = done[cell.id].values
            found.append((cell, values["seconds"] / 60 * max(SEEDS / values["seeds"], 1.0), True))
        else:
            found.append((cell, _estimate(cell, speed, epochs, rows.last(measures.PART)) / 60, False))
    return found


def summary(rows: Rows, sizes: Sizes) -> Iterator[tuple[str, str]]:
    """A line for the tables, one for each method."""
    found, speed = minutes(rows), _speed(rows)
    if not found or speed is None:
        yield "plan", "no speed was measured"
        return
    total, measured = sum(each for _, each, _ in found), sum(known for _, _, known in found)
    yield (
        "plan: the paper's tables",
        f"{total:,.0f} GPU-minutes, {measured} of {len(found)} cells measured; {speed.way}, {speed.members} members",
    )
    by_method: dict[str, float] = {}
    for cell, each, _ in found:
        name = cell.method + (f" {cell.pretraining}" if cell.pretraining != "none" else "")
        by_method[name] = by_method.get(name, 0.0) + each
    yield "minutes by method", ", ".join(f"{name} {each:,.0f}" for name, each in by_method.items())
    if sizes.campaign:
        yield "rehearsal", "reduced sizes on a CPU: these minutes only show that the plan is made"


def _speed(rows: Rows) -> Speed | None:
    """The fastest way in seed-epochs a second; of SAINT, if it was measured."""
    last = rows.last(measures.PART)
    for encoder in ("saint", "mlp"):
        floor = last.get(f"floor {encoder}")
        ways = [row for row, _ in measures.measurements(rows) if row.values["encoder"] == encoder]
        if floor is not None and ways:
            best = max(ways, key=lambda row: float(row.values["members"]) / float(row.values["seconds"]))
            values = best.values
            step = values["seconds"] / floor.values["steps"] * SEEDS / values["members"]
            return Speed(values["way"], values["members"], step, values["first"])
    return None


def _estimate(cell: Cell, speed: Speed, epochs: float, last: dict[str, Row]) -> float:
    """Seconds of ten seeds of a cell."""
    facts = built_in_facts()
    steps = 0.8 * facts[cell.dataset].rows / _PAIR_ROWS
    wide = (len(facts[cell.dataset].columns) + 1) / (len(facts["adult"].columns) + 1)
    step = speed.step * wide
    seconds = epochs * steps * step * _cost(cell.method, last) + speed.first
    if cell.pretraining != "none":
        seconds += PretrainingParams().epochs * steps * step * _cost("pretraining", last) + speed.first
    return seconds


def _cost(method: str, last: dict[str, Row]) -> float:
    """Of a step, relative to DLLP, as measured with any encoder; 1 where it was not."""
    steps = {key.split()[1]: row.values["seconds"] for key, row in last.items() if key.startswith("step ")}
    return float(steps[method] / steps["dllp"]) if method in steps and "dllp" in steps else 1.0
