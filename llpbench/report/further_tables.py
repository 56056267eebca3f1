"""What boards say beside their scores: gaps, calibration, robustness, time and memory, and tests, each as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from statistics import median
from typing import Any

import numpy as np
from pandas import DataFrame, Series

from llpbench.core.record import Record
from llpbench.core.text import plural
from llpbench.report import leaderboard, statistics
from llpbench.report import wording as words
from llpbench.report.board_tables import OWN_SIZES, caption_of, names, places_of, ranks
from llpbench.report.boards import FEW_BAGS, Board, Row, Summary, summarise
from llpbench.report.leaderboard import GAP, gap_text, interval_of, mean, plain, spans, standings
from llpbench.report.report_table import (
    SCORE,
    Field,
    Heading,
    ReportTable,
    TableColumn,
    columns_of,
    number,
    score,
    text,
)
from llpbench.results.frame import value_of


def _summaries(found: DataFrame, rows: int, digits: int = 2, times: float = 1.0) -> list[Field]:
    """Of means with their spread, by place of the row."""
    known = found.reindex(range(rows)).to_numpy(dtype=float)
    return [
        score(
            Summary(times * value, times * std if isfinite(std) else None, int(n)) if isfinite(value) else None,
            digits=digits,
        )
        for value, std, n in known
    ]


def _column_scores(board: Board, metric: str, columns: Iterable[int], digits: int = 2) -> list[TableColumn]:
    """The scores of a metric in the runs that count, a table column a column."""
    return [
        (
            Heading(board.columns[column].title, SCORE),
            [score(board.spread(row, column, metric), digits=digits) for row in range(len(board.rows))],
        )
        for column in columns
    ]


def _over(board: Board) -> dict[str, Any]:
    return {"columns": plural(len(board.counting_columns), "column"), "runs": len(board.counting)}


def selection_gap(fine: Board, coarse: Board, name: str) -> ReportTable:
    """What selecting epochs by proportions instead of labels costs: fine minus coarse, run by run."""
    there = {coarse.columns[column].key for column in coarse.counting_columns}
    shared = [column for column in fine.counting_columns if fine.columns[column].key in there]
    gaps = _gaps(fine, coarse)
    rows = [place for place, row in enumerate(fine.rows) if row.contender.kind != "direct"]
    means = [_mean_field(fine, gaps[row].reindex(fine.counting), shared) for row in range(len(fine.rows))]
    known = {column: own.to_numpy().T for column, own in gaps.groupby(level=0)}
    by_column = [
        (
            Heading(f"{column.title}{'' if column.key in there else f' {FEW_BAGS}'}", SCORE),
            [score(summarise(own[~np.isnan(own)].tolist())) for own in known.get(place, np.empty((len(fine.rows), 0)))],
        )
        for place, column in enumerate(fine.columns)
    ]
    return columns_of(
        f"selection-gap-{name}",
        f"Selection gap, {words.bags_words(fine.bagging)}: {fine.metric.title} by labels minus {fine.metric.title} by "
        f"{coarse.criterion.title}",
        caption_of(
            fine,
            words.datasets_text(len({fine.columns[c].dataset for c in shared})),
            words.caption("selection_gap", fine, columns=plural(len(shared), "column")),
            words.validation_text(coarse, coarse.columns),
            words.columns_text(coarse.columns),
        ),
        [*names(fine), (Heading("mean", ("points", "low", "high")), means), *by_column],
    ).with_rows(rows)


def _gaps(fine: Board, coarse: Board) -> DataFrame:
    """Runs (column, seed) by rows. Rows of labels have the same epochs on every board, but their runs know both."""
    theirs = {
        (row.contender, column.key, seed): value_of(run, coarse.criterion.name, coarse.metric.name)
        for row in coarse.rows
        for column, of in zip(coarse.columns, row.scores, strict=True)
        for seed, run in of.runs.items()
    }
    ours = fine.values()
    keys = [(fine.columns[column].key, seed) for column, seed in ours.index]
    others = {n: [theirs.get((row.contender, *key)) for key in keys] for n, row in enumerate(fine.rows)}
    return ours - DataFrame(others, index=ours.index, dtype=float)


def _mean_field(board: Board, gaps: Series, columns: Sequence[int]) -> Field:
    """Mean over datasets with its interval; unknown unless there is a value for each run."""
    own = gaps[gaps.index.get_level_values("column").isin(columns)]
    if own.empty or own.isna().any():
        return number(None)
    datasets = own.groupby([board.columns[c].dataset for c in own.index.get_level_values(0)])
    if datasets.ngroups > 1:
        means = own.groupby(level=0).mean()
        blocks = means.groupby([board.columns[c].dataset for c in means.index]).mean()
        found = float(blocks.mean())
    else:
        seeds = own.groupby(level="seed")
        blocks = seeds.mean()[seeds.size() == len(columns)]
        found = float(own.groupby(level=0).mean().mean())
    low, high = statistics.interval(blocks)
    parts = {"points": found, "low": low, "high": high}
    return Field((interval_of(parts, "points", 2),), {name: plain(value) for name, value in parts.items()})


def gap_closed(board: Board, name: str) -> ReportTable:
    """How much of the way from the floor to the ceiling each row goes, column by column."""
    found = standings(board)["gap"]
    together = [
        Field((gap_text(parts),), {part: plain(parts[part]) for part in GAP})
        if isfinite(parts["percent"])
        else number(None)
        for parts in found.to_dict("records")
    ]
    each = [{column: span.percent for column, span in spans(board, row).items()} for row in range(len(board.rows))]
    columns = [
        (Heading(board.columns[column].title), [number(own.get(column), 0) for own in each])
        for column in board.counting_columns
    ]
    return columns_of(
        f"gap-closed-{name}",
        f"Gap closed between floor and ceiling, {words.lowered(words.title(board))}",
        caption_of(board, words.datasets_text(len(board.datasets)), words.caption("gap_closed", board)),
        [*names(board), (Heading("together", GAP), together), *columns],
    )


def known_bags(board: Board, name: str) -> ReportTable | None:
    """What knowing the bag of a test row adds; None where no run says it."""
    metric, rows = "auc-known-bags", len(board.rows)
    columns = board.has(metric)
    if not columns:
        return None
    alone = mean(board, "auc").reindex(range(rows))["mean"]
    overall = _beside(_summaries(mean(board, metric), rows), [*alone])
    by_column = [
        (
            heading,
            _beside(
                fields,
                [spread and spread.mean for row in range(rows) for spread in (board.spread(row, column, "auc"),)],
            ),
        )
        for column, (heading, fields) in zip(columns, _column_scores(board, metric, columns), strict=True)
    ]
    return columns_of(
        f"known-bags-{name}",
        f"Rows of known bags, {words.lowered(words.title(board))}",
        caption_of(board, words.datasets_text(len(board.datasets)), words.caption("known_bags", **_over(board))),
        [
            *names(board),
            (Heading("mean AUC", SCORE), overall),
            (Heading("log loss", SCORE), _summaries(mean(board, "log-loss-known-bags"), rows, 3)),
            *by_column,
        ],
    )


def _beside(fields: Sequence[Field], alone: Sequence[float | None]) -> list[Field]:
    """Scores, with what features alone give below."""
    return [
        Field((*field.lines, f"alone {known:.2f}"), field.values)
        if field.values["n"] and known is not None and isfinite(known)
        else field
        for field, known in zip(fields, alone, strict=True)
    ]


def whole_bags(board: Board, name: str) -> ReportTable | None:
    """What rows of whole bags get that add up to the bags' counts; None where no run says it."""
    columns = board.has("auc-whole-bags")
    if not columns:
        return None
    shown = {"mean AUC": ("auc", 2), "accuracy": ("accuracy", 2), "Brier score": ("brier", 3)}
    return columns_of(
        f"whole-bags-{name}",
        f"Disaggregation of training bags, {words.lowered(words.title(board))}",
        caption_of(board, words.datasets_text(len(board.datasets)), words.caption("whole_bags", **_over(board))),
        [
            *names(board),
            *(
                (Heading(title, SCORE), _summaries(mean(board, f"{metric}-whole-bags"), len(board.rows), digits))
                for title, (metric, digits) in shown.items()
            ),
            *_column_scores(board, "auc-whole-bags", columns),
        ],
    )


def calibration(board: Board, name: str) -> ReportTable:
    """Whether the probabilities of each row mean what they say."""
    rows = len(board.rows)
    shown = {"log loss": ("log-loss", 3, 1), "Brier score": ("brier", 3, 1), "calibration error": ("ece", 1, 100)}
    return columns_of(
        f"calibration-{name}",
        f"Calibration, {words.lowered(words.title(board))}",
        caption_of(board, words.datasets_text(len(board.datasets)), words.caption("calibration", **_over(board))),
        [
            *ranks(board),
            *names(board),
            *(
                (Heading(title, SCORE), _summaries(mean(board, metric), rows, digits, times))
                for title, (metric, digits, times) in shown.items()
            ),
            *_column_scores(board, "brier", board.counting_columns, 3),
        ],
    )


def robustness(board: Board, name: str) -> ReportTable | None:
    """How much a method depends on the seed: the paper's ranking by standard deviation; None with too few rows."""
    stds = leaderboard.spreads(board)
    if stds is None:
        return None
    means = statistics.robustness(stds)
    ordered = sorted(board.ranked, key=lambda place: (means[place], board.rows[place].contender.label))
    every = stds.reindex(range(len(board.rows))).round(6)
    columns = [
        (
            Heading(board.columns[column].title, ("std",)),
            [Field((f"{std:.2f}",), {"std": std}) for std in every[column].tolist()],
        )
        for column in stds.columns
    ]
    overall = [number(means.get(place), 3) for place in range(len(board.rows))]
    return columns_of(
        f"robustness-{name}",
        f"Robustness, {words.lowered(words.title(board))}",
        caption_of(board, words.caption("robustness")),
        [*names(board), (Heading("mean rank of std"), overall), *columns],
    ).with_rows(ordered)


def timing(board: Board, bag_size: int, name: str) -> ReportTable:
    """What a run costs, training and prediction apart."""
    places = places_of(board, bag_size)
    bags = f"{board.bagging} {words.bags_text(bag_size)}" if bag_size else words.bags_words(board.bagging)
    done = board.runs[(board.runs["status"] == "ok") & board.runs["column"].isin(places)]
    rows = range(len(board.rows))
    medians = done.groupby("row")[["seconds_predict", "seconds_warm_up", "seconds_pretraining"]].median()
    most = done.groupby("row")[["memory_mb", "parameters"]].max()
    # of training steps: seeds that trained together have the same, so there is no spread to show
    train = done.groupby(["row", "column"])["seconds_train"].median().unstack().reindex(index=rows, columns=places)

    def shown(title: str, values: Series, digits: int) -> TableColumn:
        known = values.reindex(rows)
        return Heading(title), [number(None if value != value else float(value), digits) for value in known]

    runs = {
        place: [run for n in places for run in row.scores[n].runs.values() if run["status"] == "ok"]
        for place, row in enumerate(board.rows)
    }
    parameters = [number(None if value != value else int(value)) for value in most["parameters"].reindex(rows)]
    return columns_of(
        f"timing-{name}-{bag_size or OWN_SIZES}",
        f"Time and memory, {bags}, {words.protocol_text(board.protocol)}",
        caption_of(board, words.caption("timing")),
        [
            *names(board),
            *(shown(f"{board.columns[place].dataset}, train s", train[place], 1) for place in places),
            shown("predict s", medians["seconds_predict"], 3),
            shown("warm-up s", medians["seconds_warm_up"], 2),
            shown("pretrain s", medians["seconds_pretraining"], 1),
            shown("memory MB", most["memory_mb"], 0),
            (Heading("parameters"), parameters),
            (Heading("epochs", ("number", "stages")), [_epochs(board.rows[place], runs[place]) for place in rows]),
            (Heading("shared", ("runs", "of")), [_shared(runs[place]) for place in rows]),
        ],
    ).with_rows([place for place in rows if runs[place]])


def _epochs(row: Row, runs: Sequence[Record]) -> Field:
    """Trained in a run, over all of its stages."""
    if row.contender.kind == "direct" or not runs:
        return number(None)
    epochs = float(median(run["epochs"] for run in runs))
    stages = max(sum(part.startswith("stage ") for part in run["times"]) for run in runs)
    shown = f"{epochs:.0f}" + (f" in {stages} stages" if stages > 1 else "")
    return Field((shown,), {"number": epochs, "stages": stages})


def _shared(runs: Sequence[Record]) -> Field:
    marks = [run["hardware"].get("shared") for run in runs]
    shared, unknown = sum(mark is True for mark in marks), "?" if None in marks else ""
    return Field((f"{shared}/{len(runs)}{unknown}",), {"runs": None if unknown else shared, "of": len(runs)})


def statistics_tables(board: Board, name: str) -> list[ReportTable]:
    """Win rates and p values of the ranked rows against one another; what needs more than there is, is left out."""
    if not board.ranked:
        return []
    rows = leaderboard.compared(board)
    datasets = leaderboard.ranked_dataset_means(board)
    note = words.caption("friedman", friedman=statistics.friedman(datasets))
    if len(rows) < len(board.ranked):
        note += f" Of {len(board.ranked):,} ranked methods the first {len(rows)} are compared."
    few = words.datasets_text(len(board.datasets))
    tables = []
    if len(board.ranked) > 1:
        rates = 100 * statistics.win_rates(board.sign * board.complete[rows])
        title = f"Win rates in percent, {words.lowered(words.title(board))}"
        caption = caption_of(board, words.caption("win_rates"), few, note)
        tables.append(_matrix(board, rates, 0, f"wins-{name}", title, caption))
    pairs = leaderboard.blocks(board, board.ranked)
    if len(board.ranked) <= statistics.MOST_METHODS and (p := statistics.comparisons(pairs)) is not None:
        title = f"Paired comparisons, p values, {words.lowered(words.title(board))}"
        caption = caption_of(board, few, words.caption("comparisons"))
        tables.append(_matrix(board, p.loc[rows, rows], 3, f"comparisons-{name}", title, caption))
    if (p := statistics.wilcoxon_holm(datasets[rows])) is not None:
        title = f"Wilcoxon-Holm p values, {words.lowered(words.title(board))}"
        tables.append(_matrix(board, p, 3, f"wilcoxon-{name}", title, caption_of(board, words.caption("wilcoxon"))))
    return tables


def _matrix(board: Board, frame: DataFrame, digits: int, name: str, title: str, caption: str) -> ReportTable:
    labels = [board.rows[place].contender.label for place in frame.index]
    columns = [
        (
            Heading(label),
            [number(None if n == column else float(value), digits) for n, value in enumerate(frame.iloc[:, column])],
        )
        for column, label in enumerate(labels)
    ]
    return columns_of(
        name, title, caption, [(Heading("row against column", numeric=False), [*map(text, labels)]), *columns]
    )
