"""What boards say beside their scores: gaps, robustness, time and memory, and tests, each as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import fsum
from statistics import median
from typing import TYPE_CHECKING

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.board_tables import OWN_SIZES, caption_of, places_of, row_fields, row_headings
from llpbench.report.boards import HEADLINE, Board, Row, Score, Summary, summarise
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, number, score, text
from llpbench.report.standings import Standings

if TYPE_CHECKING:
    from pandas import DataFrame


def selection_gap(fine: Board, coarse: Board, name: str) -> ReportTable:
    """What selecting epochs by proportions instead of labels costs: fine minus coarse, run by run."""

    def gaps(row: Row, column: int) -> Summary | None:
        other = next((each for each in coarse.rows if each.contender == row.contender), None)
        if other is None:
            return None
        key = fine.columns[column].key
        there = next((n for n, each in enumerate(coarse.columns) if each.key == key), None)
        if there is None:
            return None
        first, second = (of.values.get(HEADLINE, {}) for of in (row.scores[column], other.scores[there]))
        return summarise([first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())])

    neural = [row for row in fine.rows if row.contender.kind != "direct"]
    return _by_column(
        fine,
        neural,
        gaps,
        name=f"selection-gap-{name}",
        title=f"Selection gap, {fine.bagging} bags: AUC by labels minus AUC by {coarse.criterion.title}",
        caption=words.SELECTION_GAP,
    )


def gap_closed(board: Board, name: str) -> ReportTable:
    """How much of the way from the floor to the ceiling each row goes, column by column."""
    found = Standings(board)
    columns = sorted({column for column, _ in found.runs})
    rows = []
    for row in board.rows:
        gaps = found.gaps_closed(row)
        each = (number(gaps.get(column), 0) for column in columns)
        rows.append((*row_fields(board, row), number(found.gap_closed(row), 0), *each))
    titles = [Heading(board.columns[column].title) for column in columns]
    return ReportTable(
        name=f"gap-closed-{name}",
        title=f"Gap closed between floor and ceiling, {words.lowered(words.title(board))}",
        caption=caption_of(board, words.GAP_CLOSED),
        headings=(*row_headings(board), Heading("mean"), *titles),
        rows=tuple(rows),
    )


def robustness(board: Board, name: str) -> ReportTable | None:
    """How much a method depends on the seed: the paper's ranking by standard deviation; None with too few rows."""
    from llpbench.report import statistics

    found = Standings(board)
    stds = found.spreads
    if stds is None:
        return None
    ranks = statistics.robustness(stds)
    ordered = sorted(found.ranked, key=lambda row: (float(ranks[row.contender.label]), row.contender.label))
    return ReportTable(
        name=f"robustness-{name}",
        title=f"Robustness, {words.lowered(words.title(board))}",
        caption=caption_of(board, words.ROBUSTNESS),
        headings=(
            *row_headings(board),
            Heading("mean rank of std"),
            *(Heading(board.columns[column].title, ("std",)) for column in stds.columns),
        ),
        rows=tuple(
            (
                *row_fields(board, row),
                number(float(ranks[row.contender.label]), 3),
                *(Field((f"{std:.2f}",), {"std": float(std)}) for std in stds.loc[row.contender.label]),
            )
            for row in ordered
        ),
    )


def timing(board: Board, bag_size: int, name: str) -> ReportTable:
    """What a run costs, training and prediction apart."""
    places = places_of(board, bag_size)
    rows = [row for row in board.rows if any(row.scores[i].succeeded for i in places)]
    return ReportTable(
        name=f"timing-{name}-{bag_size or OWN_SIZES}",
        title=f"Time and memory, {board.bagging} {words.bags_text(bag_size)}, {words.protocol_text(board.protocol)}",
        caption=caption_of(board, words.TIMING),
        headings=(
            *row_headings(board),
            *(Heading(f"{board.columns[i].dataset}, train s") for i in places),
            *(Heading(what) for what in ("predict s", "warm-up s", "pretrain s", "memory MB", "parameters", "epochs")),
            Heading("shared", ("runs", "of")),
        ),
        rows=tuple(
            (
                *row_fields(board, row),
                *(_seconds(row.scores[i]) for i in places),
                *_costs(row, places),
            )
            for row in rows
        ),
    )


def _seconds(of: Score) -> Field:
    """Of training steps; seeds that trained together have the same, so there is no spread to show."""
    seconds = [run["times"]["train"] for run in of.runs.values() if run["status"] == "ok" and "train" in run["times"]]
    return number(median(seconds) if seconds else None, 1)


def _costs(row: Row, places: Sequence[int]) -> Iterator[Field]:
    runs = [run for i in places for run in row.scores[i].runs.values() if run["status"] == "ok"]
    for what, digits in (("predict", 3), ("warm-up", 2), ("pretraining", 1)):
        known = [run["times"][what] for run in runs if run["times"].get(what) is not None]
        yield number(median(known) if known else None, digits)
    yield number(max((run["memory_mb"] for run in runs if run["memory_mb"] is not None), default=None), 0)
    yield number(max((run["parameters"] for run in runs), default=None))
    yield number(median(run["epochs"] for run in runs) if row.contender.kind != "direct" else None, 0)
    marks = [run["hardware"].get("shared") for run in runs]
    shared = sum(mark is True for mark in marks)
    unknown = "?" if None in marks else ""
    yield Field((f"{shared}/{len(runs)}{unknown}",), {"runs": None if unknown else shared, "of": len(runs)})


def statistics_tables(board: Board, name: str) -> list[ReportTable]:
    """Win rates and p values of the ranked rows against one another; what needs more than there is, is left out."""
    found = Standings(board)
    friedman = found.friedman
    note = (
        words.NO_FRIEDMAN
        if friedman is None
        else (
            f"Friedman: chi² = {friedman.statistic:.2f}, p = {friedman.p:.2g} over {friedman.blocks} columns; "
            f"Nemenyi's critical difference of mean ranks at 0.05: {friedman.critical_difference:.2f}."
        )
    )
    if len(found.compared) < len(found.ranked):
        note += f" Of {len(found.ranked):,} ranked methods the first {len(found.compared)} are compared."
    tables = []
    if found.win_rates is not None:
        caption = f"{words.WIN_RATES} {note}"
        title = f"Win rates in percent, {words.lowered(words.title(board))}"
        tables.append(_matrix(found.win_rates, 100, 0, f"wins-{name}", title, caption_of(board, caption)))
    if found.wilcoxon is not None:
        title = f"Wilcoxon-Holm p values, {words.lowered(words.title(board))}"
        caption = caption_of(board, words.WILCOXON)
        tables.append(_matrix(found.wilcoxon, 1, 3, f"wilcoxon-{name}", title, caption))
    return tables


def _matrix(frame: DataFrame, times: float, digits: int, name: str, title: str, caption: str) -> ReportTable:
    labels = [str(label) for label in frame.index]
    rows = []
    for row in labels:
        values = (None if row == column else times * float(frame.loc[row, column]) for column in labels)
        rows.append((text(row), *(number(value, digits) for value in values)))
    headings = (Heading("row against column", numeric=False), *map(Heading, labels))
    return ReportTable(name, title, caption, headings, tuple(rows))


def _by_column(
    board: Board,
    rows: Sequence[Row],
    measure: Callable[[Row, int], Summary | None],
    *,
    name: str,
    title: str,
    caption: str,
) -> ReportTable:
    """A summary of each row in each column, and its mean over the columns that count."""
    found = {row.contender: [measure(row, column) for column in range(len(board.columns))] for row in rows}
    shared = sorted({column for column, _ in Standings(board).runs})
    return ReportTable(
        name=name,
        title=title,
        caption=caption_of(board, f"{caption} Mean: over {plural(len(shared), 'column')} that most methods have."),
        headings=(
            *row_headings(board),
            Heading("mean"),
            *(Heading(column.title, SCORE) for column in board.columns),
        ),
        rows=tuple(
            (*row_fields(board, row), number(_mean(found[row.contender], shared)), *map(score, found[row.contender]))
            for row in rows
        ),
    )


def _mean(values: Sequence[Summary | None], columns: Sequence[int]) -> float | None:
    """None unless there is a value in each of the columns."""
    chosen = [value.mean for column in columns if (value := values[column]) is not None]
    return fsum(chosen) / len(chosen) if chosen and len(chosen) == len(columns) else None
