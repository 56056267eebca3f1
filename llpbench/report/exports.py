"""For machines: any table as CSV and JSON; and all leaderboards at once in long form, as one CSV file.

The long form has one row for each board, row, column and test metric.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from llpbench.core.criteria import METRICS
from llpbench.core.spreadsheets import csv_lines
from llpbench.report.boards import HEADLINE, Board, Column, Leaderboards, Row, Score
from llpbench.report.report_table import ReportTable

SCHEMA = 1
"""of the JSON files; raised when a reader of them would have to change"""

FIELDS = (
    "regime",
    "criterion",
    "bagging",
    "epochs",
    "patience",
    "bags_per_step",
    "rank",
    "role",
    "method",
    "kind",
    "encoder",
    "pretraining",
    "configuration",
    "dataset",
    "bag_size",
    "least_rows",
    "median_rows",
    "most_rows",
    "cell",
    "metric",
    "unit",
    "mean",
    "std",
    "n",
    "n_expected",
    "failed",
    "missing",
    "undefined",
    "stale",
    "best_epoch_median",
    "seconds_median",
)


def to_csv(leaderboards: Leaderboards) -> str:
    """The long form as CSV; what is not known is an empty field."""
    return csv_lines([FIELDS, *([row.get(name) for name in FIELDS] for row in _long(leaderboards))])


def table_csv(table: ReportTable) -> str:
    """A table's values as CSV, a column for each part of a heading; what is not known is an empty field."""
    return csv_lines([table.names, *(row.values() for row in table.values())])


def table_json(table: ReportTable) -> str:
    """A table's values as JSON, one line a row, with its words; what is not known is null."""
    head = {
        "schema": SCHEMA,
        "name": table.name,
        "title": table.title,
        "caption": table.caption,
        "columns": table.names,
        "notes": table.notes,
    }
    lines = [f'"{key}": {_json(value)}' for key, value in head.items()]
    rows = ",\n".join(map(_json, table.values()))
    return "{\n" + ",\n".join([*lines, f'"rows": [\n{rows}\n]']) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _long(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    for board in leaderboards.boards:
        metrics = _metrics(board)
        for row in board.rows:
            for column, score in zip(board.columns, row.scores, strict=True):
                shared = _shared(board, row, column, score)
                for metric in metrics:
                    yield {**shared, **_measured(score, metric)}


def _metrics(board: Board) -> list[str]:
    """The headline first, then every other metric that a run of the board has, in the order of `METRICS`."""
    found = {metric for row in board.rows for score in row.scores for metric in score.values} - {HEADLINE}
    known = [metric for metric in METRICS if metric in found]
    return [HEADLINE, *known, *sorted(found.difference(METRICS))]


def _shared(board: Board, row: Row, column: Column, score: Score) -> dict[str, Any]:
    protocol = board.protocol or {}
    return {
        "regime": board.criterion.regime,
        "criterion": board.criterion.name,
        "bagging": board.bagging,
        "epochs": protocol.get("epochs"),
        "patience": protocol.get("patience"),
        "bags_per_step": protocol.get("bags_per_step"),
        "rank": row.rank,
        "role": row.mark,
        "method": row.contender.method,
        "kind": row.contender.kind,
        "encoder": row.contender.encoder,
        "pretraining": row.contender.pretraining,
        "configuration": row.contender.configuration,
        "dataset": column.dataset,
        "bag_size": column.bag_size,
        **dict(zip(("least_rows", "median_rows", "most_rows"), column.sizes or (None,) * 3, strict=True)),
        "cell": score.cell,
        "n_expected": score.expected,
        "failed": len(score.failures),
        "missing": len(score.missing),
        "stale": len(score.stale),
        "best_epoch_median": score.best_epoch,
        "seconds_median": None if score.seconds is None else round(score.seconds, 3),
    }


def _measured(score: Score, metric: str) -> dict[str, Any]:
    summary = score.summary(metric)
    return {
        "metric": metric,
        "unit": "percent" if metric in METRICS and METRICS[metric].percent else "",
        "mean": None if summary is None else round(summary.mean, 6),
        "std": None if summary is None or summary.std is None else round(summary.std, 6),
        "n": 0 if summary is None else summary.n,
        "undefined": len(score.undefined(metric)),
    }
