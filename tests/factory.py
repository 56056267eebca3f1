"""Records of runs that never were, whole as the journal has them: each test says only what it is about."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, cast

from llpbench.core.cell import Cell, Protocol, Tuning
from llpbench.core.criteria import Regime
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import PROPORTION_BINS, SCHEMA, Chosen, CriterionResult, Record, Status, TuningRecord
from llpbench.results.journal import Contents

PROTOCOL = {"epochs": 300, "patience": 20, "bags_per_step": 2}

FACTS = ("rows", "numeric", "categorical", "classes")

DATASETS = {
    name: {"code": code, "licence": "CC BY 4.0", **dict(zip(FACTS, numbers, strict=True))}
    for name, code, numbers in (("adult", "AD", (48842, 6, 8, 2)), ("bank-marketing", "BA", (45211, 7, 9, 2)))
}
"""declared facts of real datasets; other datasets have none"""

HISTOGRAMS = [[*counts, *[0] * (PROPORTION_BINS - 4)] for counts in ([2, 3, 5, 10], [10, 5, 3, 2])]

HARDWARE = {"device": "cpu", "name": "EPYC", "threads": 1, "compiled": False, "precision": "float32"}

OTHERS = {"accuracy": 0.8, "l1": 0.25}
"""further test metrics that every run has"""


def make_cell_of(method: str = "dllp", size: int = 256, dataset: str = "adult", encoder: str | None = "mlp") -> Cell:
    """A cell without any declarations behind it."""
    return Cell(method, dataset, "ordered", size, encoder, protocol=Protocol() if encoder else None)


def make_record(cell: Cell, seed: int = 0, status: Status = "ok", seconds: float = 1.0, **changes: Any) -> Record:
    """A run of a cell, alone; if it succeeded, with test AUC 0.9 by every criterion. `changes` replace whole fields."""
    worked, neural = status == "ok", cell.encoder is not None
    changed, place = dict(cell.params), f"{cell.dataset} {cell.bagging}"
    whole = Record(
        schema=SCHEMA,
        run=cell.run_id(seed),
        cell=cell.id,
        seed=seed,
        spec=cell.spec,
        method={"kind": "neural" if neural else "direct", "role": "", "reference": "", "changed": changed},
        dataset=DATASETS.get(cell.dataset, {"code": "", "licence": "", **dict.fromkeys(FACTS)}),
        status=status,
        reason="" if worked else "bad luck",
        results={name: _selected(0.9, neural) for name in ("auc", "mpiou", "l1")} if worked else {},
        curves={name: [0.5, 0.7, 0.6] for name in ("auc", "mpiou", "l1")} if worked and neural else {},
        epochs=40 if neural else 0,
        parameters=1000,
        times={"total": seconds},
        memory_mb=100.0,
        members=1,
        bags={"number": 20, "sizes": [cell.bag_size or 5] * 3, "validation": 20, "test": 3, "histograms": HISTOGRAMS},
        data={"fingerprint": f"table of {cell.dataset}", "manifest": f"{place} {cell.bag_size} {seed}"},
        versions={"method": "1", "dataset": "1", "bagging": "1", "encoder": "1" if cell.encoder else None},
        numerics=NUMERICS,
        code={"version": "0.1.0", "commit": "0123456789abcdef", "dirty": False},
        libraries={"torch": "2.13.0", "numpy": "2.4.6"},
        hardware={**HARDWARE},
        finished="2026-01-01T00:00:00Z",
    )
    assert changes.keys() <= Record.__annotations__.keys(), f"a record has no {changes.keys() - Record.__annotations__}"
    return cast(Record, {**whole, **changes})


def record(method: str = "dllp", auc: float | None = 0.9, *, seed: int = 0, role: str = "", **more: Any) -> Record:
    """A run that succeeded among three, with test AUC `auc` by every criterion, or with those of `aucs`, by criterion.

    `more`: fields of its cell (`params`: what differs from the defaults; `protocol`: a dictionary), and whole fields of
    the record.
    """
    usual = {"dataset": "adult", "bagging": "ordered", "bag_size": 64, "encoder": "mlp", "protocol": PROTOCOL}
    given = {"aucs": dict.fromkeys(("auc", "mpiou", "l1"), auc), **usual, **more}
    facts = {each.name: given.pop(each.name) for each in fields(Cell) if each.name in given}
    neural = facts["encoder"] is not None
    trained = Protocol(**facts["protocol"]) if neural and facts["protocol"] else None
    cell, aucs = Cell(method, **{**facts, "protocol": trained}), given.pop("aucs")
    usual = {
        "method": {**make_record(cell)["method"], "role": role},
        "times": {"data": 0.5, "train": 3.0, "evaluate": 0.5, "total": 4.0},
        "members": 3,
        "results": {criterion: _selected(value, neural) for criterion, value in aucs.items()},
        "curves": {criterion: [0.5, 0.7, 0.6] for criterion in aucs} if neural else {},
    }
    return make_record(cell, seed, **{**usual, **given})


def failed(method: str = "dllp", reason: str = "loss became NaN in epoch 4", **facts: Any) -> Record:
    """A run that failed."""
    return record(method, status="failed", reason=reason, results={}, curves={}, **facts)


def runs(method: str, *aucs: float | None, **facts: Any) -> list[Record]:
    """One run for each AUC, seeds from 0."""
    return [record(method, auc, seed=seed, **facts) for seed, auc in enumerate(aucs)]


def fine_alone(records: Iterable[Record]) -> list[Record]:
    """The same runs with the fine-grained criterion alone: one board instead of three, in a third of the time."""
    kept: list[Any] = []
    for run in records:
        judged = {name: result for name, result in run["results"].items() if name == "auc"}
        curves = {name: curve for name, curve in run["curves"].items() if name == "auc"}
        kept.append({**run, "results": judged, "curves": curves})
    return kept


def searched(
    start: Cell, regime: Regime, best: Mapping[str, tuple[Cell, float, float | None]], trials: int = 10, **how: Any
) -> TuningRecord:
    """A search that began at a cell; `best`: by criterion the cell that it has chosen, its value and that of `start`.

    Of ten trials four went through, five were stopped and one failed. `how`: fields of `Tuning`.
    """
    tuning, run = Tuning(start, regime, trials, **{"space": {}, **how}), make_record(start)
    shared = ("schema", "method", "dataset", "memory_mb", "versions", "numerics", "code", "libraries", "hardware")
    made = {
        **{name: run[name] for name in (*shared, "finished")},  # type: ignore[literal-required]
        "times": {"total": 120.0},
        "best": {
            name: Chosen(trial=3, cell=cell.id, params=dict(cell.params), value=value, default=base)
            for name, (cell, value, base) in best.items()
        },
        "trials": [
            {"params": {}, "values": {}, "epochs": 9, "rungs": [[3, 0.5]], "seconds": 12.0}
            | {"number": number, "status": status, "reason": "bad luck" * (status == "failed")}
            for number, status in enumerate(["ok"] * 4 + ["stopped"] * 5 + ["failed"])
        ],
    }
    facts = {"tuning": tuning.id, "spec": tuning.spec, "status": "ok", "reason": "", "epochs": 99}
    return cast(TuningRecord, made | facts)


def contents_of(*records: Record | TuningRecord) -> Contents:
    """Return the content of a journal with some records, in this order."""
    contents = Contents({})
    contents.add(*records)
    return contents


def by_run(*records: Record) -> dict[str, Record]:
    return {each["run"]: each for each in records}


MISSING = object()
"""stands for a field that `changed` removes"""


def changed(whole: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a record with other values at some paths with dots, or with none there."""
    made: Any = copy.deepcopy(dict(whole))
    for path, value in changes.items():
        *parents, last = path.split(".")
        inner = made
        for name in parents:
            inner = inner[int(name) if isinstance(inner, list) else name]
        if value is MISSING:
            del inner[last]
        else:
            inner[last] = value
    return cast(dict[str, Any], made)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value, with each of its keys."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


def _selected(auc: float | None, neural: bool) -> CriterionResult:
    return {"epoch": 19 if neural else None, "validation": auc, "test": {"auc": auc, **OTHERS}, "diagnostics": {}}
