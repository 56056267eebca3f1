"""For machines: any table as CSV and JSON; and all leaderboards at once in long form, as one CSV file.

The long form has one row for each board, row, column and test metric.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from llpbench.core.criteria import METRICS
from llpbench.core.spreadsheets import csv_lines
from llpbench.report.boards import Board, Column, Leaderboards, Row, Score, Summary
from llpbench.report.report_table import ReportTable
from llpbench.results.frame import shown

SCHEMA = 1
"""of the JSON files; raised when a reader of them would have to change"""


def to_csv(leaderboards: Leaderboards) -> str:
    """The long form as CSV; what is not known is an empty field."""
    rows = [*long_form(leaderboards)]
    names = [*(rows[0] if rows else ())]
    return csv_lines([names, *(row.values() for row in rows)])


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
        "notes": dict(table.notes),
    }
    lines = [f'"{key}": {_json(value)}' for key, value in head.items()]
    rows = ",\n".join(map(_json, table.values()))
    return "{\n" + ",\n".join([*lines, f'"rows": [\n{rows}\n]']) + "\n}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def long_form(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """Return one row a board, row, column and metric."""
    for board in leaderboards.boards:
        metrics = _metrics(board)
        for place, row in enumerate(board.rows):
            for number, (column, score) in enumerate(zip(board.columns, row.scores, strict=True)):
                shared = _shared(board, row, column, score)
                for metric in metrics:
                    yield {**shared, **_measured(board.summary(place, number, metric), score, metric)}


def _metrics(board: Board) -> list[str]:
    """Every metric that a run of the board has, in the order of `METRICS`, its own first."""
    own = board.metric.name
    return [own, *(name for name in METRICS if name != own and shown(board.runs, name).notna().any())]


def _shared(board: Board, row: Row, column: Column, score: Score) -> dict[str, Any]:
    protocol, who = board.protocol or {}, row.contender
    return {
        "regime": board.criterion.regime,
        "criterion": board.criterion.name,
        "bagging": board.bagging,
        **{name: protocol.get(name) for name in ("epochs", "patience", "bags_per_step")},
        "rank": row.rank,
        "role": row.mark,
        **{name: getattr(who, name) for name in ("method", "kind", "encoder", "pretraining", "configuration")},
        "dataset": column.dataset,
        "bag_size": column.bag_size,
        **dict(zip(("least_rows", "median_rows", "most_rows"), column.sizes or (None,) * 3, strict=True)),
        "cell": score.cell,
    }


def _measured(summary: Summary | None, score: Score, metric: str) -> dict[str, Any]:
    n = 0 if summary is None else summary.n
    return {
        "metric": metric,
        "unit": "percent" if METRICS[metric].percent else "",
        "mean": None if summary is None else round(summary.mean, 6),
        "std": None if summary is None or summary.std is None else round(summary.std, 6),
        "n": n,
        "n_expected": score.expected,
        "failed": len(score.failures),
        "missing": len(score.missing),
        "undefined": len(score.succeeded) - n,
        "stale": len(score.stale),
        "best_epoch_median": score.best_epoch,
        "seconds_median": None if score.seconds is None else round(score.seconds, 3),
    }
