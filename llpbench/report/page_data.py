"""Data of the page's script: the runs behind every score, compressed.

Values that repeat are stored once. The script computes no rank and no mean.
"""

from __future__ import annotations

import gzip
import json
import shlex
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pandas import DataFrame, Series, concat

from llpbench.core.cell import Protocol
from llpbench.core.criteria import METRICS
from llpbench.core.record import Record
from llpbench.report.boards import Board
from llpbench.results.frame import metric_column, shown

DIGITS = 2
"""Decimals of percentages."""

_FINE_DIGITS = 3
"""Decimals of other metrics and of seconds. Megabytes have none."""

FACTS = (
    *("cell", "seed", "status", "reason", "seconds_train", "seconds_warm_up", "seconds_pretraining", "memory_mb"),
    *("finished", "version", "machine"),
)
"""Columns of the tidy table that the script shows for a run."""


def page_data(boards: Sequence[Board], links: Mapping[str, str]) -> dict[str, Any]:
    """Return runs, commands and metrics, and for each board the runs of its scores."""
    frames = [board.runs[["run", *FACTS]] for board in boards]
    runs = concat(frames).drop_duplicates("run") if frames else DataFrame(columns=["run", *FACTS])
    places = {run: place for place, run in enumerate(runs["run"])}
    metrics = [name for name in METRICS if any(board.runs[metric_column(name)].notna().any() for board in boards)]
    tests: dict[tuple[Any, ...], int] = {}
    records = {board.records[run]["cell"]: board.records[run] for board in boards for run in board.runs["run"]}
    return {
        "links": dict(links),
        "metrics": [f"{METRICS[name].title}{' %' if METRICS[name].percent else ''}" for name in metrics],
        "commands": {cell: command(record) for cell, record in records.items()},
        "runs": {name: _interned(_rounded(runs[name], _digits(name))) for name in FACTS},
        "boards": [{"tasks": board.titles, **_board_data(board.runs, places, metrics, tests)} for board in boards],
        "tests": list(tests),
    }


def _board_data(
    runs: DataFrame, places: Mapping[str, int], metrics: Sequence[str], tests: dict[tuple[Any, ...], int]
) -> dict[str, Any]:
    measured = [_rounded(shown(runs, name), DIGITS if METRICS[name].percent else _FINE_DIGITS) for name in metrics]
    by_run = zip(*measured, strict=True) if metrics else iter([()] * len(runs))
    return {
        "entry": runs["entry"].tolist(),
        "task": runs["task"].tolist(),
        "run": [places[run] for run in runs["run"]],
        "epoch": _rounded(runs["epoch"], 0),
        "validation": _rounded(runs["validation"], _FINE_DIGITS),
        "test": [tests.setdefault(values, len(tests)) for values in by_run],
    }


def command(record: Record) -> str | None:
    """Return the command that repeats a cell, without `--seeds`; None if no command can express it."""
    spec, protocol = record["spec"], record["spec"]["protocol"]
    flags = {"methods": spec["method"], "datasets": spec["dataset"], "baggings": spec["bagging"]}
    flags |= {"bag-sizes": spec["bag_size"]} if spec["bag_size"] else {}
    flags |= {"max-bags": spec["max_bags"]} if "max_bags" in spec else {}
    if spec["encoder"] is not None:
        flags |= {"encoders": spec["encoder"], "pretraining": spec["pretraining"]}
    if protocol is not None:
        flags |= {"epochs": protocol["epochs"], "patience": protocol["patience"]}
        if protocol["bags_per_step"] != Protocol().bags_per_step:
            flags |= {"bags-per-step": protocol["bags_per_step"]}
    flags |= {name: spec[name] for name in ("ensemble", "precision", "numbers") if name in spec}
    settings = [
        (
            name if name.startswith("pretraining.") else f"{spec['method']}.{name}",
            "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value),
        )
        for name, value in record["method"]["changed"].items()
    ]
    if any(name.count(".") != 1 or set(value) & set(",=") for name, value in settings):
        return None
    words = [f"--{name} {shlex.quote(str(value))}" for name, value in flags.items()]
    words += [f"--set {shlex.quote(f'{name}={value}')}" for name, value in settings]
    return " ".join(["llpbench run", *words])


def compressed(value: Any) -> str:
    """Return a value as JSON, compressed and in base64, which has no meaning in HTML."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode()


def _digits(name: str) -> int:
    return 0 if name == "memory_mb" else _FINE_DIGITS


def _rounded(values: Series, digits: int) -> list[Any]:
    """Return numbers with at most `digits` decimals, texts unchanged, and None for unknown values."""
    return [
        value if isinstance(value, str) or value is None else None if value != value else _short(value, digits)
        for value in values.tolist()
    ]


def _short(value: float, digits: int) -> float:
    number = round(value, digits)
    return int(number) if number == int(number) else number


def _interned(values: Iterable[Any]) -> dict[str, Any]:
    """Return distinct values, and the index of each value among them."""
    places: dict[Any, int] = {}
    indices = [places.setdefault(value, len(places)) for value in values]
    return {"values": list(places), "at": indices}
