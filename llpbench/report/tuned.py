"""Tuned configurations as files: each is read back by `--config`, and runs what a criterion has chosen."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import replace_file
from llpbench.core.record import TuningRecord

FOLDER = "tuned"
"""inside an output folder"""


def write_configurations(records: Iterable[TuningRecord], out: Path) -> list[Path]:
    """One file for each board criterion and column, with the configurations of all methods that were tuned there."""
    files: dict[str, tuple[Mapping[str, Any], dict[str, dict[str, Any]]]] = {}
    chosen: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for record in records:
        cell = record["spec"]["cell"]
        for criterion in BOARD_CRITERIA:
            if criterion in record["best"]:
                name = _name(criterion, cell)
                chosen[name][cell["method"]] = record["best"][criterion]["params"]
                files[name] = cell, chosen[name]
    try:
        paths = []
        for name, (cell, params) in sorted(files.items()):
            (out / FOLDER).mkdir(parents=True, exist_ok=True)
            replace_file(out / FOLDER / name, _toml(cell, params))
            paths.append(out / FOLDER / name)
    except OSError as error:
        reason = error.strerror or error
        raise LLPBenchError(
            f"configurations cannot be written into {str(out)!r}: {reason}. Choose another --out."
        ) from error
    return paths


def _name(criterion: str, cell: Mapping[str, Any]) -> str:
    bagging = cell["bagging"].partition(":")[0]  # its options can be longer than a file's name may be
    parts = [criterion, cell["dataset"], bagging, cell["bag_size"], cell["encoder"], cell["pretraining"]]
    return "-".join(str(part) for part in parts if part not in (None, 0, "none")) + ".toml"


def _toml(cell: Mapping[str, Any], params: Mapping[str, Mapping[str, Any]]) -> str:
    settings: dict[str, Any] = {
        "methods": ",".join(sorted(params)),
        "datasets": cell["dataset"],
        "baggings": cell["bagging"],
        "bag-sizes": cell["bag_size"] or None,
        "encoders": cell["encoder"],
        "pretraining": cell["pretraining"],
        **{name: (cell["protocol"] or {}).get(name) for name in ("epochs", "patience")},
        "precision": cell.get("precision"),
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items() if value is not None]
    for method in sorted(params):
        lines += ["", f"[set.{method}]"]
        lines += [
            f"{name} = {json.dumps('none' if value is None else value)}" for name, value in params[method].items()
        ]
    return "\n".join(lines) + "\n"
