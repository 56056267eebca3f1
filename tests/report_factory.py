"""Synthetic journal records: each test says only what it is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from llpbench.core.provenance import NUMERICS
from llpbench.core.record import PROPORTION_BINS, SCHEMA, CriterionResult, Record

PROTOCOL = {"epochs": 300, "patience": 20, "bags_per_step": 2}

FACTS = ("rows", "numeric", "categorical", "classes")

DATASETS = {
    name: {"code": code, "licence": licence, **dict(zip(FACTS, numbers, strict=True))}
    for name, code, licence, numbers in (
        ("adult", "AD", "CC BY 4.0", (48842, 6, 8, 2)),
        ("bank-marketing", "BA", "CC BY 4.0", (45211, 7, 9, 2)),
    )
}
"""what is declared of real datasets; of others nothing"""

HISTOGRAMS = [[*counts, *[0] * (PROPORTION_BINS - 4)] for counts in ([2, 3, 5, 10], [10, 5, 3, 2])]

OTHER_METRICS = {"accuracy": 0.8, "l1": 0.25}
"""further test metrics that every run has"""


def record(
    method: str = "dllp",
    auc: float | None = 0.9,
    *,
    seed: int = 0,
    dataset: str = "adult",
    bag_size: int = 64,
    bagging: str = "ordered",
    encoder: str | None = "mlp",
    pretraining: str = "none",
    params: Mapping[str, Any] | None = None,
    protocol: Mapping[str, Any] | None = PROTOCOL,
    role: str = "",
    aucs: Mapping[str, float | None] | None = None,
    **changes: Any,
) -> Record:
    """A run that succeeded with test AUC `auc` under every criterion, or with those of `aucs`, by criterion.

    `params` are what differs from the defaults; `changes` replace whole fields of the record.
    """
    spec = {
        "method": method,
        "dataset": dataset,
        "bagging": bagging,
        "bag_size": bag_size,
        "encoder": encoder,
        "params": dict(params or {}),
        "encoder_params": {},
        "pretraining": pretraining,
        "pretraining_params": {},
        "protocol": dict(protocol) if encoder and protocol else None,
    }
    cell = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
    aucs = dict.fromkeys(("auc", "mpiou", "l1"), auc) if aucs is None else aucs
    result: Record = {
        "schema": SCHEMA,
        "run": f"{cell}-{seed}",
        "cell": cell,
        "seed": seed,
        "spec": spec,
        "method": {
            "kind": "neural" if encoder else "direct",
            "role": role,
            "reference": "",
            "changed": dict(params or {}),
        },
        "dataset": DATASETS.get(dataset, {"code": "", "licence": "", **dict.fromkeys(FACTS)}),
        "status": "ok",
        "reason": "",
        "results": {criterion: _selected(value, encoder) for criterion, value in aucs.items()},
        "curves": {criterion: [0.5, 0.7, 0.6] for criterion in aucs} if encoder else {},
        "epochs": 40 if encoder else 0,
        "parameters": 1000,
        "times": {"data": 0.5, "train": 3.0, "evaluate": 0.5, "total": 4.0},
        "memory_mb": 100.0,
        "members": 3,
        "bags": {"number": 20, "sizes": [bag_size or 5] * 3, "validation": 3, "test": 3, "histograms": HISTOGRAMS},
        "data": {"fingerprint": f"table of {dataset}", "manifest": f"{dataset} {bagging} {bag_size} {seed}"},
        "sources": {"method": f"{method} 1", "dataset": f"{dataset} 1", "bagging": f"{bagging} 1", "encoder": encoder},
        "numerics": NUMERICS,
        "code": {"version": "0.1.0", "commit": "0123456789abcdef", "dirty": False},
        "libraries": {"torch": "2.13.0", "numpy": "2.4.6"},
        "hardware": {
            "device": "cpu",
            "name": "EPYC",
            "threads": 1,
            "compiled": False,
            "precision": "float32",
            "shared": False,
        },
        "finished": "2026-01-01T00:00:00Z",
    }
    result.update(changes)  # type: ignore[typeddict-item]
    return result


def failed(method: str = "dllp", reason: str = "loss became NaN in epoch 4", **facts: Any) -> Record:
    """A run that failed."""
    return record(method, status="failed", reason=reason, results={}, curves={}, **facts)


def runs(method: str, *aucs: float | None, **facts: Any) -> list[Record]:
    """One run for each AUC, seeds from 0."""
    return [record(method, auc, seed=seed, **facts) for seed, auc in enumerate(aucs)]


def _selected(auc: float | None, encoder: str | None) -> CriterionResult:
    return {
        "epoch": 19 if encoder else None,
        "validation": auc,
        "test": {"auc": auc, **OTHER_METRICS},
        "diagnostics": {},
    }
