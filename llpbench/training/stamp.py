"""Writing records: a seed's outcome, the declared facts of its cell, and the version of the code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from llpbench.core.bags import FloatArray, Task
from llpbench.core.cell import Cell
from llpbench.core.provenance import NUMERICS, cell_versions, software_facts
from llpbench.core.record import PROPORTION_BINS, SCHEMA, CriterionResult, Record, Status
from llpbench.core.registry import METHODS
from llpbench.data.specs import dataset_spec
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
    epochs: int = 0
    parameters: int = 0
    members: int = 1
    times: dict[str, float] = field(default_factory=dict)
    memory_mb: float | None = None
    predicted: Predicted = field(default_factory=dict)
    """predictions, which are not in the journal (`training/judging.py`); empty unless they are saved"""

    def record(self, cell: Cell, task: Task | None, data_seconds: float, shared: dict[str, Any]) -> Record:
        """Return the journal's line of one run. `task`: None if the cell failed as a whole."""
        times = self.times if task is None else {"data": data_seconds} | self.times
        return {
            "schema": SCHEMA,
            "run": cell.run_id(self.seed),
            "cell": cell.id,
            "seed": self.seed,
            "spec": cell.spec,
            "status": self.status,
            "reason": self.reason,
            "results": self.results if self.status == "ok" else {},
            "curves": self.curves,
            "epochs": self.epochs,
            "parameters": self.parameters,
            "times": {name: round(seconds, 4) for name, seconds in times.items()},
            "memory_mb": None if self.memory_mb is None else round(self.memory_mb, 1),
            "members": self.members,
            "data": {} if task is None else {"fingerprint": task.fingerprint, "manifest": task.manifest},
            "bags": {} if task is None else _bag_facts(task),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            **shared,  # type: ignore[typeddict-item]
        }


def cell_facts(cell: Cell) -> dict[str, Any]:
    """Return the record's `method`, `dataset`, `versions`, `numerics`, `code` and `libraries`."""
    facts, spec = METHODS.entry(cell.method).facts, dataset_spec(cell.dataset)
    sizes: dict[str, int | None] = dict.fromkeys(("rows", "numeric", "categorical", "classes"))  # need the table
    if (of := spec.facts) is not None:
        sizes = {"rows": of.rows, "numeric": len(of.numeric), "categorical": len(of.categorical)}
        sizes["classes"] = len(of.classes) or None
    return {
        "method": {name: facts.get(name, "") for name in _METHOD} | {"changed": changed(cell)},
        "dataset": {"code": spec.code, "licence": spec.licence, **sizes},
        "versions": cell_versions(cell.method, cell.dataset, cell.bagging, cell.encoder),
        "numerics": NUMERICS,
        **software_facts(),
    }


def _bag_facts(task: Task) -> dict[str, Any]:
    """Return the record's `bags`: numbers and sizes of bags, and a histogram of proportions for each class."""
    sizes = task.bags.sizes
    known = task.bags.proportions[task.bags.known]
    bins = np.minimum((known * PROPORTION_BINS).astype(int), PROPORTION_BINS - 1)
    facts = {
        "number": len(sizes),
        "sizes": [int(sizes.min()), float(np.median(sizes)), int(sizes.max())],
        "validation": len(task.validation.index),
        "test": len(task.test.index),
        "histograms": [np.bincount(each, minlength=PROPORTION_BINS).tolist() for each in bins.T],
    }
    return facts if task.dropped is None else facts | {"dropped": task.dropped}
