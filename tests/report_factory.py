"""Synthetic journal records: each test says only what it is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from llpbench.core.provenance import NUMERICS
from llpbench.core.record import SCHEMA, CriterionResult, Record

PROTOCOL = {"epochs": 300, "patience": 20, "bags_per_step": 2}

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
    """A run that succeeded with test AUC `auc` under every criterion, or with those of `aucs`, by criterion."""
    spec = {
        "method": method,
        "dataset": dataset,
        "bagging": bagging,
        "bag_size": bag_size,
        "encoder": encoder,
        "params": dict(params or {}),
        "encoder_params": {},
        "pretraining": pretraining,
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
        "method": {"kind": "neural" if encoder else "direct", "role": role, "reference": "", "changed": {}},
        "dataset": {"code": "", "licence": "", "rows": None, "numeric": None, "categorical": None, "classes": None},
        "status": "ok",
        "reason": "",
        "results": {criterion: _selected(value, encoder) for criterion, value in aucs.items()},
        "curves": {},
        "epochs": 40 if encoder else 0,
        "parameters": 1000,
        "times": {"data": 0.5, "train": 3.0, "evaluate": 0.5, "total": 4.0},
        "memory_mb": 100.0,
        "members": 3,
        "data": {"fingerprint": f"table of {dataset}", "manifest": f"{dataset} {bagging} {bag_size} {seed}"},
        "bags": {},
        "sources": {},
        "numerics": NUMERICS,
        "code": {"version": "0.1.0", "commit": "0123456789abcdef", "dirty": False},
        "libraries": {"torch": "2.13.0", "numpy": "2.4.6"},
        "hardware": {"device": "cpu", "name": "EPYC", "threads": 1, "compiled": False, "precision": "float32"},
        "finished": "2026-01-01T00:00:00Z",
    }
    result.update(changes)  # type: ignore[typeddict-item]
    return result


def failed(method: str = "dllp", reason: str = "loss became NaN in epoch 4", **facts: Any) -> Record:
    """A run that failed."""
    return record(method, status="failed", reason=reason, results={}, **facts)


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
