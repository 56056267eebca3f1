"""Boards for other programs: standings, scores and paired comparisons as rows, and tables in LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pandas import DataFrame

from llpbench.core.criteria import METRICS
from llpbench.core.spreadsheets import csv_lines
from llpbench.report import statistics
from llpbench.report.boards import Board, Leaderboards, Row
from llpbench.report.leaderboard import blocks, plain, standings
from llpbench.report.report_table import ReportTable
from llpbench.report.robustness_ranking import robustness
from llpbench.report.wording import clean
from llpbench.results.frame import shown

MOST_COMPARED = 40
"""Largest number of ranked rows whose pairs are written."""

_LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "⚑": r"$\ast$"}
    | {character: f"\\{character}" for character in "&%$#_{}"}
    | {character: f"\\text{name}{{}}" for character, name in (("<", "less"), (">", "greater"), ("|", "bar"))}
    | {character: f"$\\{name}$" for character, name in (("±", "pm"), ("×", "times"), ("→", "to"), ("·", "cdot"))}
    | {"†": r"$\dagger$", "−": "$-$"}
)

_NAMES = {"mean_mean": "mean", "mean_std": "std", "mean_n": "n"}


def rows_csv(rows: Iterable[dict[str, Any]]) -> str:
    """Return rows (values by heading) as CSV. Unknown values are empty."""
    rows = [*rows]
    headings = [*dict.fromkeys(name for row in rows for name in row)]
    return csv_lines([headings, *([row.get(name) for name in headings] for row in rows)])


def to_latex(table: ReportTable) -> str:
    """Return a table as LaTeX, which needs the package booktabs."""
    frame = DataFrame([[" ".join(field.lines) for field in row] for row in table.rows])
    headings = [_latex(heading.text) for heading in table.headings]
    latex: str = (
        frame.map(_latex)
        .set_axis(headings, axis=1)
        .style.hide(axis="index")
        .to_latex(
            column_format="".join("r" if heading.numeric else "l" for heading in table.headings),
            caption=f"\\textbf{{{_latex(table.title)}}}. {_latex(table.caption)}",
            label=f"tab:{table.name}",
            hrules=True,
        )
    )
    return latex


def _latex(text: str) -> str:
    return clean(text).translate(_LATEX)


def standings_rows(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """Yield one row per board and method: every column of the leaderboard."""
    for board in leaderboards.boards:
        columns = standings(board)
        names = [_NAMES.get(name, name) for name in ("_".join(filter(None, key)) for key in columns)]
        for row, values in zip(board.rows, columns.itertuples(index=False, name=None), strict=True):
            yield {**_row_facts(board, row), **dict(zip(names, map(plain, values), strict=True))}


def long_form(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """Yield one row per board, method, column and metric."""
    for board in leaderboards.boards:
        others = (name for name in METRICS if name != board.metric.name and shown(board.runs, name).notna().any())
        metrics = [board.metric.name, *others]
        done = board.runs[board.runs["status"] == "ok"].groupby(["row", "column"])
        medians = done[["epoch", "seconds"]].median().to_dict("index")
        for place, row in enumerate(board.rows):
            for number, (column, score) in enumerate(zip(board.columns, row.scores, strict=True)):
                median = medians.get((place, number), {})
                seconds = plain(median.get("seconds"))
                facts = {
                    **_row_facts(board, row),
                    "dataset": column.dataset,
                    "bag_size": column.bag_size,
                    "by": column.by,
                    **dict(zip(("least_rows", "median_rows", "most_rows"), column.sizes or (None,) * 3, strict=True)),
                    "cell": score.cell,
                }
                for metric in metrics:
                    mean, std, n = board.summary(place, number, metric) or (None, None, 0)
                    yield {
                        **facts,
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
                        "best_epoch_median": plain(median.get("epoch")),
                        "seconds_median": seconds if seconds is None else round(float(seconds), 3),
                    }


def pairs(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """Yield one row per board and pair of ranked rows: difference with its interval, and p after Holm."""
    for board in leaderboards.boards:
        rows, independent = board.ranked[:MOST_COMPARED], blocks(board, board.ranked)
        if len(rows) < 2 or len(independent) < 2:
            continue
        p = statistics.paired_p(independent)
        for place, row in enumerate(rows):
            for number, other in enumerate(rows[place + 1 :], start=place + 1):
                differences = board.sign * (independent[row] - independent[other])
                low, high = statistics.interval(differences)
                yield {
                    **_row_facts(board, board.rows[row]),
                    "other": board.rows[other].contender.label,
                    "difference": plain(differences.mean()),
                    "low": plain(low),
                    "high": plain(high),
                    "p_t_holm": plain(p[place, number]),
                }


def robustness_rows(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """Yield one row per board and entry of its robustness ranking."""
    for board in leaderboards.boards:
        ranking = robustness(board).rename(columns={"rank": "robustness_rank"})
        for entry, values in zip(ranking.index, ranking.itertuples(index=False, name=None), strict=True):
            yield {**_row_facts(board, board.rows[entry]), **dict(zip(ranking, map(plain, values), strict=True))}


def _row_facts(board: Board, row: Row) -> dict[str, Any]:
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
