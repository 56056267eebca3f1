"""What the page holds as compressed data: the facts of every run, and the tables that are built when they are chosen.

Facts are packed as columns in which what repeats stands once. No rank and no statistic of a board is made of them on
the page: its tables hold what Python has computed. Of other metrics than the board's the page makes means, and of two
rows their differences.
"""

from __future__ import annotations

import gzip
import json
import math
import shlex
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llpbench.core.cell import Protocol
from llpbench.core.criteria import BOARD_CRITERIA, METRICS
from llpbench.core.criteria import CRITERIA as EVERY_CRITERION
from llpbench.core.record import Record
from llpbench.report.report_table import ReportTable
from llpbench.report.statistics import t_quantile
from llpbench.results.frame import value_of

DIGITS = 3
"""of percentages; other metrics have `FINE_DIGITS`"""

FINE_DIGITS = 5

MOST_SEEDS = 100
"""of which a t interval is to be exact"""

CRITERIA = tuple(EVERY_CRITERION[name] for name in BOARD_CRITERIA if name != "l1")
"""of boards on the page: L1 chooses nearly the epochs that mPIoU chooses"""

TIMES_LEFT_OUT = ("data", "evaluate", "test", "total")
"""parts of a run's time that no table shows"""

HASH = 24
"""characters that are enough to recognise one"""


def packed(records: Sequence[Record], headline: str) -> dict[str, Any]:
    """Runs, which are named by their place in `records`, and the cells that they belong to."""
    cells = {record["cell"]: record for record in records}
    keys = sorted({key for record in cells.values() for key in record["spec"]})
    metrics = _metrics(records, headline)
    return {
        "criteria": {each.name: each.title for each in CRITERIA},
        "metrics": [
            {
                "name": name,
                "title": METRICS[name].title,
                "unit": "%" if METRICS[name].percent else "",
                "maximise": METRICS[name].maximise,
            }
            for name in metrics
        ],
        "t": _t_quantiles(),
        "cells": {
            "id": list(cells),
            "spec": {key: _interned([record["spec"].get(key) for record in cells.values()]) for key in keys},
            "method": _interned([record["method"] for record in cells.values()]),
            "command": [command(record) for record in cells.values()],
        },
        **_runs(records, {cell: place for place, cell in enumerate(cells)}, metrics),
    }


def ranges(places: Iterable[int]) -> str:
    """Places of runs in few characters: `0-9 15`."""
    found: list[list[int]] = []
    for place in places:
        if found and place == found[-1][1] + 1:
            found[-1][1] = place
        else:
            found.append([place, place])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in found)


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


def table_data(table: ReportTable) -> dict[str, Any]:
    """A table as people read it: the lines of its fields, by which numbers are sorted, and which of them are bold."""
    return {
        "name": table.name,
        "title": table.title,
        "caption": table.caption,
        "heads": [heading.text for heading in table.headings],
        "numeric": [heading.numeric for heading in table.headings],
        "rows": [["\n".join(field.lines) for field in row] for row in table.rows],
        "bold": [[place for place, field in enumerate(row) if field.strong] for row in table.rows],
        "notes": {what: list(lines) for what, lines in table.notes.items()},
    }


def compressed(value: Any) -> str:
    """JSON, compressed and as base64: a tenth as large; no character of it means anything to HTML."""
    return b64encode(gzip.compress(_json(value).encode("utf-8", "replace"), mtime=0)).decode()


def _t_quantiles() -> list[float]:
    """Quantiles of Student's t with 1, 2, ... degrees of freedom; the last is also that of more."""
    return [round(t_quantile(freedom), 4) for freedom in range(1, MOST_SEEDS)]


def to_json(value: Any) -> str:
    """JSON that no HTML parser takes for the end of its element; `\\u` escapes are the same JSON."""
    return _json(value).translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def _runs(records: Sequence[Record], cells: Mapping[str, int], metrics: Sequence[str]) -> dict[str, Any]:
    """The columns of the runs, and every distinct list of test metrics, which many criteria of a run share."""
    times = sorted({name for record in records for name in record["times"]}.difference(TIMES_LEFT_OUT))
    results: dict[str, Any] = {}
    tests: dict[tuple[float | None, ...], int] = {}
    for criterion in (each.name for each in CRITERIA):
        chosen = [record["results"].get(criterion) for record in records]
        results[criterion] = {
            "epoch": [each and each["epoch"] for each in chosen],
            "validation": [each and _rounded(each["validation"], FINE_DIGITS) for each in chosen],
            "test": [
                each and tests.setdefault(tuple(_measured(record, criterion, name) for name in metrics), len(tests))
                for record, each in zip(records, chosen, strict=True)
            ],
        }
    facts = ("status", "reason", "sources", "numerics", "restamped", "code", "libraries", "hardware")
    return {
        "runs": {
            "cell": [cells[record["cell"]] for record in records],
            "seed": [record["seed"] for record in records],
            **{name: _interned([record.get(name) for record in records]) for name in facts},
            **{
                name: _interned([(record["data"].get(name) or "")[:HASH] for record in records])
                for name in ("fingerprint", "manifest")
            },
            **{
                name: [record[name] for record in records] for name in ("epochs", "parameters", "memory_mb", "finished")
            },
            "times": {name: [_short(record["times"].get(name)) for record in records] for name in times},
            "results": results,
        },
        "tests": list(tests),
    }


def _metrics(records: Sequence[Record], headline: str) -> list[str]:
    """That of the boards first, then every other test metric of the runs, in the order of `METRICS`."""
    found = {name for record in records for chosen in record["results"].values() for name in chosen["test"]}
    return [headline, *(name for name in METRICS if name in found and name != headline)]


def _measured(record: Record, criterion: str, metric: str) -> float | None:
    """A test metric as it is shown."""
    return _rounded(value_of(record, criterion, metric), DIGITS if METRICS[metric].percent else FINE_DIGITS)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, digits)


def _short(seconds: float | None) -> float | None:
    """Four digits, whatever the size."""
    return None if seconds is None or not math.isfinite(seconds) else float(f"{seconds:.4g}")


def _interned(values: Iterable[Any]) -> dict[str, Any]:
    """A column whose values repeat: each distinct one, once, and which of them stands where."""
    distinct: dict[str, Any] = {}
    places: dict[str, int] = {}
    at = []
    for value in values:
        text = _json(value)
        distinct.setdefault(text, value)
        at.append(places.setdefault(text, len(places)))
    return {"values": list(distinct.values()), "at": at}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
