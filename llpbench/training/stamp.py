"""What stands in every record of a cell beside its results: what its parts declare, and which code they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench.core.bags import Task
from llpbench.core.cell import Cell
from llpbench.core.provenance import NUMERICS, software_facts
from llpbench.core.record import PROPORTION_BINS
from llpbench.core.registry import METHODS
from llpbench.core.source import cell_sources
from llpbench.data.specs import dataset_spec
from llpbench.training.specification import changed

_METHOD = ("kind", "role", "reference")
_DATASET = ("code", "licence", "rows", "numeric", "categorical", "classes")


def cell_facts(cell: Cell) -> dict[str, Any]:
    """`method`, `dataset`, `sources`, `numerics`, `code` and `libraries`, as a record has them."""
    facts, spec = METHODS.entry(cell.method).facts, dataset_spec(cell.dataset)
    return {
        "method": {name: facts.get(name, "") for name in _METHOD} | {"changed": changed(cell)},
        "dataset": {name: getattr(spec, name) for name in _DATASET},
        "sources": cell_sources(cell.method, cell.dataset, cell.bagging, cell.encoder),
        "numerics": NUMERICS,
        **software_facts(),
    }


def bag_facts(task: Task) -> dict[str, Any]:
    """`bags`, as a record has it: numbers and sizes of bags, and for each class how its proportions are distributed."""
    sizes = task.bags.sizes
    known = task.bags.proportions[task.bags.known]
    bins = np.minimum((known * PROPORTION_BINS).astype(int), PROPORTION_BINS - 1)
    return {
        "number": len(sizes),
        "sizes": [int(sizes.min()), float(np.median(sizes)), int(sizes.max())],
        "validation": len(task.validation.index),
        "test": len(task.test.index),
        "histograms": [np.bincount(each, minlength=PROPORTION_BINS).tolist() for each in bins.T],
    }
