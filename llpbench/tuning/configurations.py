"""Tuned configurations as files. `--config` reads such a file and runs the configurations that a criterion chose."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import replace_file
from llpbench.core.record import TuningRecord
from llpbench.core.text import slug

FOLDER = "tuned"
"""folder of these files, inside an output folder"""


def write_configurations(records: Iterable[TuningRecord], out: Path) -> list[Path]:
    """Write a file for each board criterion and setting, with the configurations of all methods tuned in the setting.

    A setting is a cell's specification without method and hyperparameters. If a method was searched several times in a
    setting, the last search counts. Raises `LLPBenchError` if a file cannot be written.
    """
    chosen: defaultdict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for record in sorted(records, key=lambda record: record["finished"]):
        own = {name: value for name, value in record["spec"]["cell"].items() if name not in ("method", "params")}
        setting = json.dumps(own, sort_keys=True)
        for criterion in BOARD_CRITERIA:
            if criterion in record["best"]:
                chosen[criterion, setting][record["spec"]["cell"]["method"]] = record["best"][criterion]["params"]
    names = Counter(_name(criterion, json.loads(setting)) for criterion, setting in chosen)
    paths = []
    try:
        for (criterion, setting), params in sorted(chosen.items()):
            cell = json.loads(setting)
            name = _name(criterion, cell)
            more = "" if names[name] == 1 else f"-{hashlib.sha256(setting.encode()).hexdigest()[:8]}"
            paths.append(out / FOLDER / f"{name}{more}.toml")
            paths[-1].parent.mkdir(parents=True, exist_ok=True)
            replace_file(paths[-1], _toml(cell, params))
    except OSError as error:
        reason = error.strerror or error
        told = f"configurations cannot be written into {str(out)!r}: {reason}. Choose another --out."
        raise LLPBenchError(told) from error
    return paths


def _name(criterion: str, cell: Mapping[str, Any]) -> str:
    """Return a short file name, which is unique for most settings."""
    bagging = cell["bagging"].partition(":")[0]
    parts = [criterion, cell["dataset"], bagging, cell["bag_size"], cell["encoder"], cell["pretraining"]]
    kind = "direct" if cell["protocol"] is None else None
    return slug("-".join(str(part) for part in (*parts, kind) if part not in (None, 0, "none")), most=120)


def _toml(cell: Mapping[str, Any], params: Mapping[str, Mapping[str, Any]]) -> str:
    settings: dict[str, Any] = {
        "methods": ",".join(sorted(params)),
        "datasets": cell["dataset"],
        "baggings": cell["bagging"],
        "bag-sizes": cell["bag_size"] or None,
        "max-bags": cell.get("max_bags"),
        "encoders": cell["encoder"],
        "pretraining": cell["pretraining"],
        **{name: (cell["protocol"] or {}).get(name) for name in ("epochs", "patience")},
        "precision": cell.get("precision"),
        "numbers": cell.get("numbers"),
    }
    lines = [f"{name} = {_value(value)}" for name, value in settings.items() if value is not None]
    if cell["pretraining_params"]:
        params = {**params, "pretraining": cell["pretraining_params"]}
    for method in sorted(params):
        lines += ["", f"[set.{method if _BARE.fullmatch(method) else _value(method)}]"]
        lines += [f"{name} = {_value('none' if value is None else value)}" for name, value in params[method].items()]
    return "\n".join(lines) + "\n"


_BARE = re.compile(r"[A-Za-z0-9_-]+")
"""keys that need no quotes in TOML"""


def _value(value: Any) -> str:
    """Return a value, or a key in quotes, as TOML, which is JSON except for infinite numbers and rare characters."""
    if value in (math.inf, -math.inf):
        return str(value)
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return text.encode("utf-8", "replace").decode("utf-8")  # an unusual journal may contain half a character
