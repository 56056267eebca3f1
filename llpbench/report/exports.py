"""For machines: any table as CSV and JSON; all boards as one CSV file of standings, scores or paired comparisons."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from llpbench.core.criteria import METRICS
from llpbench.core.spreadsheets import csv_lines
from llpbench.report import statistics
from llpbench.report.boards import Board, Leaderboards, Row, Score, Summary
from llpbench.report.leaderboard import blocks, compared, plain, standings
from llpbench.report.report_table import ReportTable
from llpbench.results.frame import shown

SCHEMA = 1
"""of the JSON files; raised when a reader of them would have to change"""

_NAMES = {"mean_mean": "mean", "mean_std": "std", "mean_n": "n"}


def table_csv(table: ReportTable) -> str:
    """A table's values as CSV, a column for each part of a heading; what is not known is an empty field."""
    return csv_lines([table.names, *(row.values() for row in table.values())])


def table_json(table: ReportTable) -> str:
    """A table's values as JSON, one line a row, with its words; what is not known is null."""
    head = {name: getattr(table, name) for name in ("name", "title", "caption")}
    lines = {"schema": SCHEMA, **head, "columns": table.names, "notes": dict(table.notes)}
    rows = ",\n".join(map(_json, table.values()))
    text = ",\n".join(f'"{key}": {_json(value)}' for key, value in lines.items())
    return f'{{\n{text},\n"rows": [\n{rows}\n]\n}}\n'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def rows_csv(lines: Iterable[dict[str, Any]]) -> str:
    """Rows by heading as CSV; what is not known is an empty field."""
    rows = [*lines]
    names = [*dict.fromkeys(name for row in rows for name in row)]
    return csv_lines([names, *([row.get(name) for name in names] for row in rows)])


def _of_board(board: Board, row: Row) -> dict[str, Any]:
    protocol, who = board.protocol or {}, row.contender
    return {
        "regime": board.criterion.regime,
        "criterion": board.criterion.name,
        "bagging": board.bagging,
        **{name: protocol.get(name) for name in ("epochs", "patience", "bags_per_step")},
        "rank": row.rank,
        "role": row.mark,
        **{name: getattr(who, name) for name in ("method", "kind", "encoder", "pretraining", "configuration")},
    }


def standings_rows(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """A row for each board and row: every column of the leaderboard."""
    for board in leaderboards.boards:
        found = standings(board)
        names = [_NAMES.get(name, name) for name in ("_".join(filter(None, key)) for key in found)]
        for row, values in zip(board.rows, found.itertuples(index=False, name=None), strict=True):
            yield {**_of_board(board, row), **dict(zip(names, map(plain, values), strict=True))}


def long_form(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """Return one row for each board, row, column and metric."""
    for board in leaderboards.boards:
        own = board.metric.name
        metrics = [own, *(name for name in METRICS if name != own and shown(board.runs, name).notna().any())]
        for place, row in enumerate(board.rows):
            for number, (column, score) in enumerate(zip(board.columns, row.scores, strict=True)):
                sizes = dict(zip(("least_rows", "median_rows", "most_rows"), column.sizes or (None,) * 3, strict=True))
                where = {
                    "dataset": column.dataset,
                    "bag_size": column.bag_size,
                    "by": column.by,
                    **sizes,
                    "cell": score.cell,
                }
                for metric in metrics:
                    measured = _measured(board.summary(place, number, metric), score, metric)
                    yield {**_of_board(board, row), **where, **measured}


def _measured(summary: Summary | None, score: Score, metric: str) -> dict[str, Any]:
    mean, std, n = summary or (None, None, 0)
    return {
        "metric": metric,
        "unit": "percent" if METRICS[metric].percent else "",
        "mean": plain(mean),
        "std": plain(std),
        "n": n,
        "n_expected": score.expected,
        "failed": len(score.failures),
        "missing": len(score.missing),
        "undefined": len(score.succeeded) - n,
        "stale": len(score.stale),
        "best_epoch_median": score.best_epoch,
        "seconds_median": None if score.seconds is None else round(score.seconds, 3),
    }


def pairs(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """A row for each board and pair of ranked rows: difference, share of runs won, and p values after Holm."""
    for board in leaderboards.boards:
        rows = compared(board)
        found = blocks(board, board.ranked)
        p = statistics.comparisons(found)
        if p is None:
            continue
        wins = 100 * statistics.win_rates(board.sign * board.complete[rows])
        signed = statistics.wilcoxon_holm(found) if len(board.datasets) > 1 else None
        for place, row in enumerate(rows):
            for other in rows[place + 1 :]:
                differences = found[row] - found[other]
                low, high = statistics.interval(differences)
                yield {
                    **_of_board(board, board.rows[row]),
                    "other": board.rows[other].contender.label,
                    "difference": plain(board.sign * differences.mean()),
                    "low": plain(min(board.sign * low, board.sign * high)),
                    "high": plain(max(board.sign * low, board.sign * high)),
                    "wins": plain(wins.loc[row, other]),
                    "p_t_holm": plain(p.loc[row, other]),
                    "p_wilcoxon_holm": None if signed is None else plain(signed.loc[row, other]),
                }
