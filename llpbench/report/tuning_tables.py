"""Effect of hyperparameter searches: gains on test rows of other seeds, and the order of methods."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite

from pandas import DataFrame, concat

from llpbench.core.criteria import METRICS
from llpbench.core.record import TuningRecord
from llpbench.report import wording as words
from llpbench.report.board_tables import name_columns
from llpbench.report.boards import Board, Row, Score, means_over_datasets, summarise
from llpbench.report.report_table import Field, Heading, ReportTable, columns_of, number, rows_of, score, text
from llpbench.report.statistics import interval
from llpbench.results.choices import start_of
from llpbench.results.frame import value_of

_ALL = "all columns"
_PARTS = ("default", "tuned")


def tuning_gains(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Return tuned minus default for each tuned row and column; None if nothing was tuned."""
    rows, named = [], name_columns(board)
    searches = {tuning["tuning"]: tuning for tuning in tunings}
    for place, row in enumerate(board.rows):
        for index, column in enumerate(board.columns):
            if tuning := searches.get(row.scores[index].tuning or ""):
                names = {heading: fields[place] for heading, fields in named}
                start = _start_row(board, index, tuning)
                default = None if start is None else board.rows[start].scores[index]
                gains = _gain_fields(board, row.scores[index], default, tuning)
                rows.append({**names, Heading("column", numeric=False): text(column.title), **gains})
    if not rows:
        return None
    title = f"Gain from tuning, {words.lowered(words.title(board))}"
    return rows_of(f"tuning-{name}", title, words.caption_of(board, words.caption("tuning", board)), rows)


def _start_row(board: Board, column: int, tuning: TuningRecord) -> int | None:
    """Return the row of the configuration from which a search started; None if it has not run."""
    start = start_of(tuning)
    rows = (n for n, row in enumerate(board.rows) if row.scores[column].cell == start and not row.contender.tuned)
    return next(rows, None)


def _gain_fields(board: Board, tuned: Score, default: Score | None, tuning: TuningRecord) -> dict[Heading, Field]:
    criterion = board.criterion
    choice, seconds = tuning["best"][criterion.name], tuning["times"].get("total")
    is_percent, sign = METRICS[criterion.name].percent, 1 if criterion.maximise else -1
    digits, scale = (2, 100.0 * sign) if is_percent else (4, 1.0 * sign)
    validation = None if choice["default"] is None else scale * (choice["value"] - choice["default"]) + 0.0
    test = summarise(_paired_differences(tuned, default, criterion.name, criterion.name))
    states = Counter(trial["status"] for trial in tuning["trials"])
    gains = _paired_differences(tuned, default, criterion.name, board.metric.name)
    return {
        Heading("default"): score(None if default is None else default.headline),
        Heading("tuned"): score(tuned.headline),
        Heading("gain"): text(_gain_text(gains)),
        Heading(f"validation gain ({criterion.name})"): number(validation, digits),
        Heading(f"test gain ({criterion.name})"): number(None if test is None else sign * test.mean + 0.0, digits),
        Heading("chosen trial"): number(choice["trial"]),
        Heading("trials"): number(len(tuning["trials"])),
        Heading("stopped"): number(states["stopped"]),
        Heading("failed"): number(states["failed"] + states["out-of-memory"]),
        Heading("epochs"): number(tuning["epochs"] or None),
        Heading("minutes"): number(None if seconds is None else float(seconds) / 60, 1),
    }


def _paired_differences(tuned: Score, default: Score | None, criterion: str, metric: str) -> list[float]:
    """Return tuned minus default for the seeds that both have."""
    runs = {} if default is None else default.runs
    pairs = [
        [value_of(run, criterion, metric) for run in (tuned.runs[seed], runs[seed])]
        for seed in sorted(tuned.runs.keys() & runs.keys())
    ]
    return [after - before for after, before in pairs if after is not None and before is not None]


def _gain_text(differences: Sequence[float]) -> str:
    """Return the mean of paired differences with its t interval, which fewer than three seeds do not have."""
    summary = summarise(differences)
    if summary is None:
        return words.NOTHING
    low, high = interval(differences)
    return f"{summary.mean:+.2f}" + (f" [{low:+.2f}, {high:+.2f}]" if isfinite(low) else "")


def tuning_order(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Return ranks before and after tuning by column; None if no column has two tuned methods."""
    if not any(row.contender.tuned for row in board.rows):
        return None
    pairs = [_tuned_rows(board, column, tunings) for column in range(len(board.columns))]
    counting = [place for place, column in enumerate(board.columns) if column.counts]
    values = {column: _values(board, pairs[column], column) for column in counting}
    values = {column: frame for column, frame in values.items() if len(frame.columns.unique(1)) > 1}
    if not values:
        return None
    ranks = {board.columns[column].title: _ranks(board, frame) for column, frame in values.items()}
    if len(values) > 1:
        ranks[_ALL] = _ranks(board, concat([*values.values()], join="inner"))
    rows = list(dict.fromkeys(default for column in pairs for default in column))

    def order(row: int) -> tuple[object, ...]:
        tuned = [frame["tuned"].get(row, float("inf")) for frame in reversed(ranks.values())]
        return (board.rows[row].contender.role == "ceiling", *tuned, board.rows[row].contender.label)

    columns = [
        (Heading(title), [_rank_field(row, frame, place) for place, row in enumerate(board.rows)])
        for title, frame in ranks.items()
    ]
    return columns_of(
        f"tuning-order-{name}",
        f"Order before and after tuning, {words.lowered(words.title(board))}",
        words.caption_of(board, words.caption("tuning_order", board)),
        [*name_columns(board), *columns],
        {
            "Pairs of methods that change places": [
                f"{title}: {_changed_pairs(frame)}" for title, frame in ranks.items()
            ]
        },
    ).with_rows(sorted(rows, key=order))


def _tuned_rows(board: Board, column: int, tunings: Sequence[TuningRecord]) -> Mapping[int, int]:
    """Return the tuned row of each default row in a column. Of several searches the one with most trials counts."""
    searches = {tuning["tuning"]: tuning for tuning in tunings}
    tuned_rows: dict[int, int] = {}
    sizes: dict[int, tuple[int, str]] = {}
    for place, row in enumerate(board.rows):
        tuning = searches.get(row.scores[column].tuning or "")
        default = None if tuning is None else _start_row(board, column, tuning)
        if tuning is not None and default is not None:
            size = tuning["spec"]["trials"], tuning["finished"]
            if default not in sizes or sizes[default] < size:
                sizes[default], tuned_rows[default] = size, place
    return tuned_rows


def _values(board: Board, tuned_rows: Mapping[int, int], column: int) -> DataFrame:
    """Return runs by (part, default row), for seeds that more than half of the methods have tuned.

    Methods that lack one of these seeds are skipped.
    """
    learners = {default: tuned for default, tuned in tuned_rows.items() if default in board.learners}
    values = board.values()
    values = values[values.index.get_level_values("column") == column]
    tuned = values[[*learners.values()]].set_axis([*learners], axis="columns")
    both = concat({"default": values[[*learners]], "tuned": tuned}, axis="columns")
    shared = both[2 * tuned.notna().sum(axis="columns") > len(learners)]
    lacking = shared.isna().any().groupby(level=1).any()
    complete = [] if shared.empty else [*lacking.index[~lacking]]
    return shared.loc[:, [(part, row) for part in _PARTS for row in complete]]


def _ranks(board: Board, values: DataFrame) -> DataFrame:
    """Return ranks by row and part. Equal means share the better rank."""
    means = means_over_datasets(board.sign * values, [column.dataset for column in board.columns]).unstack(level=0)
    return means.rank(method="min", ascending=False).astype(int)


def _rank_field(row: Row, ranks: DataFrame, place: int) -> Field:
    if place not in ranks.index:
        return text(row.mark or words.NOTHING)
    return text(" → ".join(str(int(ranks.at[place, part])) for part in _PARTS))


def _changed_pairs(ranks: DataFrame) -> str:
    """Return how many pairs of methods change their order: `2 of 10`."""
    pairs = list(itertools.combinations(ranks[[*_PARTS]].itertuples(index=False), 2))
    changed = sum((one[0] - other[0]) * (one[1] - other[1]) < 0 for one, other in pairs)
    return f"{changed} of {len(pairs)}"
