"""Writing records: a seed's outcome, the declared facts of its cell, and the version of the code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llpbench.core.bags import FloatArray, Task
from llpbench.core.cell import Cell
from llpbench.core.code_versions import cell_versions
from llpbench.core.provenance import NUMERICS, software_facts, utc_now
from llpbench.core.record import SCHEMA, CriterionResult, Record, Status
from llpbench.core.registry import METHODS
from llpbench.data.facts import Facts
from llpbench.data.specs import dataset_spec
from llpbench.training.bag_facts import bag_facts
from llpbench.training.specification import changed

Predicted = Mapping[str, Mapping[str, FloatArray]]
"""probabilities [rows, classes] by criterion and part (validation, test)"""

_METHOD = ("kind", "role", "reference")


@dataclass
class SeedResult:
    """The outcome of one seed, before it becomes a record."""

    seed: int
    status: Status = "ok"
    reason: str = ""
    results: dict[str, CriterionResult] = field(default_factory=dict)
    curves: dict[str, list[float | None]] = field(default_factory=dict)
    earlier_curves: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    epochs: int = 0
    parameters: int = 0
    members: int = 1
    times: dict[str, float] = field(default_factory=dict)
    memory_mb: float | None = None
    predicted: Predicted = field(default_factory=dict)
    """predictions, which are not in the journal (`training/saved_predictions.py`); empty unless they are saved"""


def cell_facts(cell: Cell) -> dict[str, Any]:
    """Return the record's `method`, `dataset`, `versions`, `numerics`, `code` and `libraries`."""
    facts, spec = METHODS.entry(cell.method).facts, dataset_spec(cell.dataset)
    return {
        "method": {name: facts.get(name, "") for name in _METHOD} | {"changed": changed(cell)},
        "dataset": {"code": spec.code, "licence": spec.licence, **_sizes(spec.facts)},
        "versions": cell_versions(cell.method, cell.dataset, cell.bagging, cell.encoder),
        "numerics": NUMERICS,
        **software_facts(),
    }


def _sizes(facts: Facts | None) -> dict[str, int | None]:
    """Return numbers of rows, features and classes, None if they are unknown without the table."""
    if facts is None:
        return dict.fromkeys(("rows", "numeric", "categorical", "classes"))
    features = {"numeric": len(facts.numeric), "categorical": len(facts.categorical)}
    return {"rows": facts.rows, **features, "classes": len(facts.classes) or None}


def write_down(
    cell: Cell, result: SeedResult, task: Task | None, data_seconds: float, shared: dict[str, Any]
) -> Record:
    """Return the journal's line of one run. `task`: None if the cell failed as a whole."""
    times = result.times if task is None else {"data": data_seconds} | result.times
    record: Record = {
        "schema": SCHEMA,
        "run": cell.run_id(result.seed),
        "cell": cell.id,
        "seed": result.seed,
        "spec": cell.spec,
        "status": result.status,
        "reason": result.reason,
        "results": result.results if result.status == "ok" else {},
        "curves": result.curves,
        "epochs": result.epochs,
        "parameters": result.parameters,
        "times": {name: round(seconds, 4) for name, seconds in times.items()},
        "memory_mb": None if result.memory_mb is None else round(result.memory_mb, 1),
        "members": result.members,
        "data": {} if task is None else {"fingerprint": task.fingerprint, "manifest": task.manifest},
        "bags": {} if task is None else bag_facts(task),
        "finished": utc_now(),
        **shared,  # type: ignore[typeddict-item]
    }
    if result.earlier_curves:
        record["earlier_curves"] = result.earlier_curves
    return record


def rounded(curve: FloatArray) -> list[float | None]:
    """Return values as the journal stores them: to four digits, None unless finite."""
    return [round(value, 4) if math.isfinite(value) else None for value in curve.tolist()]
