"""Boards for other programs: standings, scores and paired comparisons as lines, and tables in LaTeX."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from pandas import DataFrame

from llpbench.core.criteria import METRICS
from llpbench.core.spreadsheets import csv_lines
from llpbench.report import statistics
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.leaderboard import blocks, plain, standings
from llpbench.report.report_table import ReportTable
from llpbench.report.robustness_ranking import robustness
from llpbench.report.wording import clean
from llpbench.results.frame import shown

MOST_COMPARED = 40
"""Largest number of ranked entries whose pairs are written."""

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
    """Yield a line for each board and entry: every column of the leaderboard."""
    for board in leaderboards.boards:
        columns = standings(board)
        names = [_NAMES.get(name, name) for name in ("_".join(filter(None, key)) for key in columns)]
        for facts, values in zip(_facts(board), columns.itertuples(index=False, name=None), strict=True):
            yield {**facts, **dict(zip(names, map(plain, values), strict=True))}


def long_form(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """Yield a line for each board, entry, task and metric."""
    for board in leaderboards.boards:
        others = (name for name in METRICS if name != board.metric.name and shown(board.runs, name).notna().any())
        metrics = [board.metric.name, *others]
        done = board.runs[board.runs["status"] == "ok"].groupby(["entry", "task"])
        medians = done[["epoch", "seconds"]].median().to_dict("index")
        tasks = board.tasks[["dataset", "bag_size", "by", "least_rows", "median_rows", "most_rows"]].to_dict("records")
        for entry, of_entry in enumerate(_facts(board)):
            for task, of_task in enumerate(tasks):
                median, score = medians.get((entry, task), {}), board.score(entry, task)
                seconds = plain(median.get("seconds"))
                for metric in metrics:
                    mean, std, n = board.summary(entry, task, metric) or (None, None, 0)
                    yield {
                        **of_entry,
                        **of_task,
                        "cell": score.cell,
                        "metric": metric,
                        "unit": "percent" if METRICS[metric].percent else "",
                        "mean": plain(mean),
                        "std": plain(std),
                        "n": n,
                        "n_expected": score.expected,
                        "failed": score.failed,
                        "missing": score.missing,
                        "undefined": score.runs - score.failed - n,
                        "stale": score.stale,
                        "best_epoch_median": plain(median.get("epoch")),
                        "seconds_median": seconds if seconds is None else round(float(seconds), 3),
                    }


def pairs(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """Yield a line for each board and pair of ranked entries: difference with its interval, and p after Holm."""
    for board in leaderboards.boards:
        independent, facts = blocks(board, board.ranked), _facts(board)
        if len(board.ranked) < 2 or len(independent) < 2:
            continue
        p = statistics.paired_p(independent)
        ranked = [*enumerate(board.ranked[:MOST_COMPARED])]
        for (place, entry), (number, other) in itertools.combinations(ranked, 2):
            differences = board.sign * (independent[entry] - independent[other])
            low, high = statistics.interval(differences)
            yield {
                **facts[entry],
                "other": board.labels[other],
                "difference": plain(differences.mean()),
                "low": plain(low),
                "high": plain(high),
                "p_t_holm": plain(p[place, number]),
            }


def robustness_rows(leaderboards: Leaderboards) -> Iterator[dict[str, Any]]:
    """Yield a line for each board and entry of its robustness ranking."""
    for board in leaderboards.boards:
        ranking, facts = robustness(board).rename(columns={"rank": "robustness_rank"}), _facts(board)
        for entry, values in zip(ranking.index, ranking.itertuples(index=False, name=None), strict=True):
            yield {**facts[entry], **dict(zip(ranking, map(plain, values), strict=True))}


def _facts(board: Board) -> list[dict[str, Any]]:
    """Return the values that name an entry and its board, by entry."""
    names = ["rank", "mark", "method", "kind", "encoder", "pretraining", "configuration"]
    of_board = {
        "regime": board.criterion.regime,
        "criterion": board.criterion.name,
        "bagging": board.bagging,
        **{name: (board.protocol or {}).get(name) for name in ("epochs", "patience", "bags_per_step")},
    }
    of_entries = board.entries[names].rename(columns={"mark": "role"}).to_dict("records")
    return [{**of_board, **of_entry} for of_entry in of_entries]
