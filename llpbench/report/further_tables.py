"""What boards say beside their scores: gaps, robustness, time and memory, and tests, each as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING

from llpbench.core.record import Record
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.board_tables import GAP, OWN_SIZES, caption_of, gap_field, places_of, row_fields, row_headings
from llpbench.report.boards import FEW_BAGS, HEADLINE, Board, Row, Score, Summary, summarise, values_of
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, number, score, text

if TYPE_CHECKING:
    from pandas import DataFrame

    from llpbench.report.standings import Standings


def selection_gap(fine: Board, coarse: Board, name: str) -> ReportTable:
    """What selecting epochs by proportions instead of labels costs: fine minus coarse, run by run."""
    here, there = fine.standings, {column.key: column for column in coarse.standings.counting}
    columns = [c for c in here.columns if fine.columns[c].key in there]
    rows = []
    for row in fine.rows:
        if row.contender.kind == "direct":
            continue
        other = next((each for each in coarse.rows if each.contender == row.contender), None)
        gaps = [_gaps(row, other, fine, coarse, column) for column in range(len(fine.columns))]
        runs = [
            (row.contender.label, fine.columns[c].dataset, fine.columns[c].bag_size, seed, gaps[c].get(seed))
            for c, seed in sorted(here.runs)
            if c in columns
        ]
        rows.append((*row_fields(fine, row), _mean_field(runs), *(score(summarise([*each.values()])) for each in gaps)))
    titles = [f"{column.title}{'' if column.key in there else f' {FEW_BAGS}'}" for column in fine.columns]
    return ReportTable(
        name=f"selection-gap-{name}",
        title=f"Selection gap, {words.bags_words(fine.bagging)}: AUC by labels minus AUC by {coarse.criterion.title}",
        caption=caption_of(
            fine,
            words.datasets_text(len({fine.columns[c].dataset for c in columns})),
            words.SELECTION_GAP.format(columns=plural(len(columns), "column")),
            words.validation_text(coarse, coarse.columns),
            words.columns_text(coarse.columns),
        ),
        headings=(
            *row_headings(fine),
            Heading("mean", ("points", "low", "high")),
            *(Heading(title, SCORE) for title in titles),
        ),
        rows=tuple(rows),
    )


def _gaps(row: Row, other: Row | None, fine: Board, coarse: Board, column: int) -> dict[int, float]:
    """By seed. A row of labels has the epochs that labels choose on every board, but its runs know both."""
    key = fine.columns[column].key
    place = next((n for n, each in enumerate(coarse.columns) if each.key == key), None)
    if other is None or place is None:
        return {}
    first = row.scores[column].values.get(HEADLINE, {})
    second = values_of(other.scores[place].runs, coarse.criterion).get(HEADLINE, {})
    return {seed: first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())}


def _mean_field(runs: Sequence[tuple[str, str, int, int, float | None]]) -> Field:
    """Mean over datasets with its interval; unknown unless there is a value for each run."""
    from pandas import DataFrame

    from llpbench.report import statistics

    if not runs or any(run[-1] is None for run in runs):
        return number(None)
    frame = DataFrame(runs, columns=["method", *statistics.RUN, "value"])
    mean = statistics.dataset_means(frame).iloc[:, 0].mean()
    low, high = statistics.interval(statistics.blocks(frame).iloc[:, 0])
    known = (low, high) if isfinite(low) else None
    values = {"points": mean, "low": low, "high": high} if known else {"points": mean}
    return Field((words.interval_text(mean, known, 2),), {part: round(float(each), 6) for part, each in values.items()})


def gap_closed(board: Board, name: str) -> ReportTable:
    """How much of the way from the floor to the ceiling each row goes, column by column."""
    found = board.standings
    rows = []
    for row in board.rows:
        gaps = found.gaps_closed(row)
        each = (number(gaps.get(column), 0) for column in found.columns)
        rows.append((*row_fields(board, row), gap_field(found.gap(row)), *each))
    titles = [Heading(board.columns[column].title) for column in found.columns]
    return ReportTable(
        name=f"gap-closed-{name}",
        title=f"Gap closed between floor and ceiling, {words.lowered(words.title(board))}",
        caption=caption_of(board, words.datasets_text(len(found.datasets)), words.GAP_CLOSED),
        headings=(*row_headings(board), Heading("together", GAP), *titles),
        rows=tuple(rows),
    )


def known_bags(board: Board, name: str) -> ReportTable | None:
    """What knowing the bag of a test row adds; None where no run says it."""
    found = board.standings
    metric, loss = "auc-known-bags", "log-loss-known-bags"
    columns = _telling(found, metric)
    if not columns:
        return None
    rows = [
        (
            *row_fields(board, row),
            _above(found.mean(row, metric), found.mean(row)),
            score(found.mean(row, loss), digits=3),
            *(_above(found.spread(row, column, metric), found.spread(row, column)) for column in columns),
        )
        for row in board.rows
    ]
    return ReportTable(
        name=f"known-bags-{name}",
        title=f"Rows of known bags, {words.lowered(words.title(board))}",
        caption=caption_of(
            board, words.datasets_text(len(found.datasets)), words.KNOWN_BAGS.format(runs=len(found.runs))
        ),
        headings=(
            *row_headings(board),
            Heading("mean AUC", SCORE),
            Heading("log loss", SCORE),
            *(Heading(board.columns[column].title, SCORE) for column in columns),
        ),
        rows=tuple(rows),
    )


def whole_bags(board: Board, name: str) -> ReportTable | None:
    """What rows of whole bags get that add up to the bags' counts; None where no run says it."""
    found = board.standings
    columns = _telling(found, "auc-whole-bags")
    if not columns:
        return None
    shown = {"mean AUC": 2, "accuracy": 2, "Brier score": 3}
    metrics = [f"{metric}-whole-bags" for metric in ("auc", "accuracy", "brier")]
    rows = [
        (
            *row_fields(board, row),
            *(
                score(found.mean(row, metric), digits=digits)
                for metric, digits in zip(metrics, shown.values(), strict=True)
            ),
            *(score(found.spread(row, column, metrics[0])) for column in columns),
        )
        for row in board.rows
    ]
    return ReportTable(
        name=f"whole-bags-{name}",
        title=f"Disaggregation of training bags, {words.lowered(words.title(board))}",
        caption=caption_of(
            board, words.datasets_text(len(found.datasets)), words.WHOLE_BAGS.format(runs=len(found.runs))
        ),
        headings=(
            *row_headings(board),
            *(Heading(what, SCORE) for what in (*shown, *(board.columns[column].title for column in columns))),
        ),
        rows=tuple(rows),
    )


def _telling(found: Standings, metric: str) -> list[int]:
    """The columns in which some run has the metric."""
    return [c for c in found.columns if any(row.scores[c].summary(metric) for row in found.board.rows)]


def _above(known: Summary | None, plain: Summary | None) -> Field:
    return score(known, *([f"alone {plain.mean:.2f}"] if known and plain else []))


def calibration(board: Board, name: str) -> ReportTable:
    """Whether the probabilities of each row mean what they say."""
    found = board.standings
    columns = [Heading(board.columns[column].title, SCORE) for column in found.columns]
    rows = []
    for row in board.rows:
        error = found.mean(row, "ece")
        percent = None if error is None else Summary(100 * error.mean, error.std and 100 * error.std, error.n)
        whole = [score(found.mean(row, metric), digits=3) for metric in ("log-loss", "brier")]
        each = [score(found.spread(row, column, "brier"), digits=3) for column in found.columns]
        rows.append((text(words.rank_text(row)), *row_fields(board, row), *whole, score(percent, digits=1), *each))
    headings = [Heading(title, SCORE) for title in ("log loss", "Brier score", "calibration error")]
    return ReportTable(
        name=f"calibration-{name}",
        title=f"Calibration, {words.lowered(words.title(board))}",
        caption=caption_of(
            board,
            words.datasets_text(len(found.datasets)),
            words.CALIBRATION.format(columns=plural(len(found.columns), "column"), runs=len(found.runs)),
        ),
        headings=(Heading("rank"), *row_headings(board), *headings, *columns),
        rows=tuple(rows),
    )


def robustness(board: Board, name: str) -> ReportTable | None:
    """How much a method depends on the seed: the paper's ranking by standard deviation; None with too few rows."""
    from llpbench.report import statistics

    found = board.standings
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
    bags = f"{board.bagging} {words.bags_text(bag_size)}" if bag_size else words.bags_words(board.bagging)
    return ReportTable(
        name=f"timing-{name}-{bag_size or OWN_SIZES}",
        title=f"Time and memory, {bags}, {words.protocol_text(board.protocol)}",
        caption=caption_of(board, words.TIMING),
        headings=(
            *row_headings(board),
            *(Heading(f"{board.columns[i].dataset}, train s") for i in places),
            *(Heading(what) for what in ("predict s", "warm-up s", "pretrain s", "memory MB", "parameters")),
            Heading("epochs", ("number", "stages")),
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
    yield _epochs(runs) if row.contender.kind != "direct" else number(None)
    marks = [run["hardware"].get("shared") for run in runs]
    shared = sum(mark is True for mark in marks)
    unknown = "?" if None in marks else ""
    yield Field((f"{shared}/{len(runs)}{unknown}",), {"runs": None if unknown else shared, "of": len(runs)})


def _epochs(runs: Sequence[Record]) -> Field:
    """Trained in a run, over all of its stages."""
    epochs = float(median(run["epochs"] for run in runs))
    stages = max(sum(part.startswith("stage ") for part in run["times"]) for run in runs)
    return Field(
        (f"{epochs:.0f}" + (f" in {stages} stages" if stages > 1 else ""),), {"number": epochs, "stages": stages}
    )


def statistics_tables(board: Board, name: str) -> list[ReportTable]:
    """Win rates and p values of the ranked rows against one another; what needs more than there is, is left out."""
    found = board.standings
    friedman = found.friedman
    note = (
        words.NO_FRIEDMAN
        if friedman is None
        else (
            f"Friedman: chi² = {friedman.statistic:.2f}, p = {friedman.p:.2g} over {friedman.datasets} datasets; "
            f"Nemenyi's critical difference of mean ranks at 0.05: {friedman.critical_difference:.2f}."
        )
    )
    if len(found.compared) < len(found.ranked):
        note += f" Of {len(found.ranked):,} ranked methods the first {len(found.compared)} are compared."
    note = f"{words.datasets_text(len(found.datasets))} {note}"
    tables = []
    if found.win_rates is not None:
        caption = f"{words.WIN_RATES} {note}"
        title = f"Win rates in percent, {words.lowered(words.title(board))}"
        tables.append(_matrix(found.win_rates, 100, 0, f"wins-{name}", title, caption_of(board, caption)))
    if found.comparisons is not None:
        title = f"Paired comparisons, p values, {words.lowered(words.title(board))}"
        caption = f"{words.datasets_text(len(found.datasets))} {words.COMPARISONS}"
        tables.append(_matrix(found.comparisons, 1, 3, f"comparisons-{name}", title, caption_of(board, caption)))
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
