"""Compressed data of the page: the runs behind every row, from the tidy table of each board.

Facts are packed as columns in which what repeats stands once. No rank and no mean of a board is made of them: tables of
the page hold what Python has computed.
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

DIGITS = 3
"""of percentages; other metrics and seconds have `FINE_DIGITS`"""

FINE_DIGITS = 4

FACTS = ("cell", "seed", "status", "reason", "seconds_train", "seconds_warm_up", "seconds_pretraining", "memory_mb")
"""columns of the tidy table that a run has, beside those of its origin"""

ORIGIN = ("finished", "version", "machine")


def page_data(boards: Sequence[Board], links: Mapping[str, str]) -> dict[str, Any]:
    """Runs, cells and metrics, and by board which run stands in which row and column."""
    by_board = [board.runs.sort_values(["row", "column", "seed"]) for board in boards]
    every = [own for own in by_board if len(own)]
    runs = concat([own[["run", *FACTS, *ORIGIN]] for own in every]).drop_duplicates("run") if every else DataFrame()
    places = {run: place for place, run in enumerate(runs["run"])} if len(runs) else {}
    metrics = [name for name in METRICS if any(own[metric_column(name)].notna().any() for own in every)]
    tests: dict[tuple[Any, ...], int] = {}
    records = {
        run["cell"]: run for board in boards for row in board.rows for s in row.scores for run in s.runs.values()
    }
    return {
        "links": dict(links),
        "metrics": [f"{METRICS[name].title}{' %' if METRICS[name].percent else ''}" for name in metrics],
        "commands": {cell: command(record) for cell, record in records.items()},
        "runs": {name: _interned(_rounded(runs[name], FINE_DIGITS)) for name in (*FACTS, *ORIGIN)} if len(runs) else {},
        "boards": [
            {"columns": [column.title for column in board.columns], **_of_board(own, places, metrics, tests)}
            for board, own in zip(boards, by_board, strict=True)
        ],
        "tests": list(tests),
    }


def _of_board(
    runs: DataFrame, places: Mapping[str, int], metrics: Sequence[str], tests: dict[tuple[Any, ...], int]
) -> dict[str, Any]:
    measured = [_rounded(shown(runs, name), DIGITS if METRICS[name].percent else FINE_DIGITS) for name in metrics]
    by_run = zip(*measured, strict=True) if metrics else iter([()] * len(runs))
    return {
        "row": runs["row"].tolist(),
        "column": runs["column"].tolist(),
        "run": [places[run] for run in runs["run"]],
        "epoch": _rounded(runs["epoch"], 0),
        "validation": _rounded(runs["validation"], FINE_DIGITS),
        "test": [tests.setdefault(values, len(tests)) for values in by_run],
    }


def command(record: Record) -> str | None:
    """The shell command that runs a cell again, but for `--seeds`; None if no command says its specification."""
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
    """JSON, compressed and as base64: a tenth as large; no character of it means anything to HTML."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode()


def _rounded(values: Series, digits: int) -> list[Any]:
    """Numbers with so many digits after the point, whole ones without any, None where unknown; texts as they are."""
    return [
        value if isinstance(value, str) or value is None else None if value != value else _short(value, digits)
        for value in values.tolist()
    ]


def _short(value: float, digits: int) -> float:
    number = round(value, digits)
    return int(number) if number == int(number) else number


def _interned(values: Iterable[Any]) -> dict[str, Any]:
    """A column whose values repeat: each distinct one, once, and which of them stands where."""
    places: dict[Any, int] = {}
    at = [places.setdefault(value, len(places)) for value in values]
    return {"values": list(places), "at": at}
