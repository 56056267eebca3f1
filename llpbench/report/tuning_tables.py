"""What tuning changes: gains on test rows of new seeds and in the search itself, and the order of methods."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite

from pandas import DataFrame, concat

from llpbench.core.criteria import METRICS
from llpbench.core.record import TuningRecord
from llpbench.report import wording as words
from llpbench.report.board_tables import caption_of, names
from llpbench.report.boards import Board, Row, Score, means_over_datasets, summarise
from llpbench.report.leaderboard import plain
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, columns_of, number, rows_of, score, text
from llpbench.report.statistics import interval
from llpbench.results.choices import start_of
from llpbench.results.frame import value_of

_ALL = "all columns"
_PARTS = ("default", "tuned")


def tuning_gains(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Tuned minus default, column by column, and what it took; None if nothing on the board was tuned."""
    rows, named = [], names(board)
    searches = {tuning["tuning"]: tuning for tuning in tunings}
    for place, row in enumerate(board.rows):
        for index, column in enumerate(board.columns):
            if tuning := searches.get(row.scores[index].tuning or ""):
                who = {heading: fields[place] for heading, fields in named}
                default = _start_row(board, index, tuning)
                before = None if default is None else board.rows[default].scores[index]
                gains = _gains(board, row.scores[index], before, tuning)
                rows.append({**who, Heading("column", numeric=False): text(column.title), **gains})
    if not rows:
        return None
    title = f"Gain from tuning, {words.lowered(words.title(board))}"
    return rows_of(f"tuning-{name}", title, caption_of(board, words.caption("tuning", board)), rows)


def _start_row(board: Board, index: int, tuning: TuningRecord) -> int | None:
    """The row that has, in a column, what a search started from; None if that has not run."""
    start = start_of(tuning)
    rows = (n for n, row in enumerate(board.rows) if row.scores[index].cell == start and not row.contender.tuned)
    return next(rows, None)


def _gains(board: Board, tuned: Score, before: Score | None, tuning: TuningRecord) -> dict[Heading, Field]:
    criterion = board.criterion
    choice, times = tuning["best"][criterion.name], tuning["times"].get("total")
    digits = 2 if METRICS[criterion.name].percent else 4
    scale = (100.0 if METRICS[criterion.name].percent else 1.0) * (1 if criterion.maximise else -1)
    validation = None if choice["default"] is None else scale * (choice["value"] - choice["default"]) + 0.0
    test = summarise(_paired(tuned, before, criterion.name, criterion.name))
    states = Counter(trial["status"] for trial in tuning["trials"])
    return {
        Heading("default", SCORE): score(None if before is None else before.headline),
        Heading("tuned", SCORE): score(tuned.headline),
        Heading("gain", ("mean", "low", "high")): _gain(_paired(tuned, before, criterion.name, board.metric.name)),
        Heading(f"validation gain ({criterion.name})"): number(validation, digits),
        Heading(f"test gain ({criterion.name})"): number(
            None if test is None else (1 if criterion.maximise else -1) * test.mean + 0.0, digits
        ),
        Heading("chosen trial"): number(choice["trial"]),
        Heading("trials"): number(len(tuning["trials"])),
        Heading("stopped"): number(states["stopped"]),
        Heading("failed"): number(states["failed"] + states["out-of-memory"]),
        Heading("epochs"): number(tuning["epochs"] or None),
        Heading("minutes"): number(None if times is None else float(times) / 60, 1),
    }


def _paired(tuned: Score, before: Score | None, criterion: str, metric: str) -> list[float]:
    """Differences of the seeds that both have."""
    runs = {} if before is None else before.runs
    pairs = [
        [value_of(run, criterion, metric) for run in (tuned.runs[seed], runs[seed])]
        for seed in sorted(tuned.runs.keys() & runs.keys())
    ]
    return [one - other for one, other in pairs if one is not None and other is not None]


def _gain(differences: Sequence[float]) -> Field:
    """Mean of the paired differences with its t interval; without an interval for a single seed."""
    summary = summarise(differences)
    if summary is None:
        return Field((words.NOTHING,))
    low, high = interval(differences)
    if not isfinite(low):
        return Field((f"{summary.mean:+.2f}",), {"mean": plain(summary.mean)})
    shown = f"{summary.mean:+.2f} [{low:+.2f}, {high:+.2f}]"
    return Field((shown,), {"mean": plain(summary.mean), "low": plain(low), "high": plain(high)})


def tuning_order(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Ranks before and after tuning, column by column; None unless two methods can be compared in any."""
    if not any(row.contender.tuned for row in board.rows):
        return None
    pairs = [_pairs(board, column, tunings) for column in range(len(board.columns))]
    counting = [place for place, column in enumerate(board.columns) if column.counts]
    values = {column: _values(board, pairs[column], column) for column in counting}
    values = {column: found for column, found in values.items() if len(found.columns.unique(1)) > 1}
    if not values:
        return None
    ranks = {board.columns[column].title: _ranks(board, found) for column, found in values.items()}
    if len(values) > 1:
        ranks[_ALL] = _ranks(board, concat([*values.values()], join="inner"))
    rows = list(dict.fromkeys(default for own in pairs for default in own))

    def place(row: int) -> tuple[object, ...]:
        after = [found["tuned"].get(row, float("inf")) for found in reversed(ranks.values())]
        return (board.rows[row].contender.role == "ceiling", *after, board.rows[row].contender.label)

    columns = [
        (Heading(title, _PARTS), [_ranked(row, found, n) for n, row in enumerate(board.rows)])
        for title, found in ranks.items()
    ]
    return columns_of(
        f"tuning-order-{name}",
        f"Order before and after tuning, {words.lowered(words.title(board))}",
        caption_of(board, words.caption("tuning_order", board)),
        [*names(board), *columns],
        {"Pairs of methods that change places": tuple(f"{title}: {_changed(each)}" for title, each in ranks.items())},
    ).with_rows(sorted(rows, key=place))


def _pairs(board: Board, column: int, tunings: Sequence[TuningRecord]) -> Mapping[int, int]:
    """By default row what was chosen instead, in a column; of several searches that of most trials."""
    searches = {tuning["tuning"]: tuning for tuning in tunings}
    found: dict[int, tuple[tuple[int, str], int]] = {}
    for row, each in enumerate(board.rows):
        tuning = searches.get(each.scores[column].tuning or "")
        default = None if tuning is None else _start_row(board, column, tuning)
        if tuning is not None and default is not None:
            size = tuning["spec"]["trials"], tuning["finished"]
            if default not in found or found[default][0] < size:
                found[default] = size, row
    return {default: row for default, (_, row) in found.items()}


def _values(board: Board, pairs: Mapping[int, int], column: int) -> DataFrame:
    """Runs by (part, default row) of the methods of a column over the seeds that more than half of them have tuned, if
    they have them all."""
    learners = {default: tuned for default, tuned in pairs.items() if default in board.learners}
    every = board.values()
    every = every[every.index.get_level_values("column") == column]
    parts = {"default": every[[*learners]], "tuned": every[[*learners.values()]].set_axis([*learners], axis="columns")}
    both = concat(parts, axis="columns")
    shared = both[2 * parts["tuned"].notna().sum(axis="columns") > len(learners)]
    lacking = shared.isna().any().groupby(level=1).any()
    kept = [] if shared.empty else [*lacking.index[~lacking]]
    return shared.loc[:, [(part, row) for part in _PARTS for row in kept]]


def _ranks(board: Board, values: DataFrame) -> DataFrame:
    """By row and part: 1 for the best mean, the same for equals."""
    means = means_over_datasets(board.sign * values, [column.dataset for column in board.columns]).unstack(level=0)
    return means.rank(method="min", ascending=False).astype(int)


def _ranked(row: Row, ranks: DataFrame, place: int) -> Field:
    if place not in ranks.index:
        return Field((row.mark or words.NOTHING,))
    before, after = (int(ranks.at[place, part]) for part in _PARTS)
    return Field((f"{before} → {after}",), {"default": before, "tuned": after})


def _changed(ranks: DataFrame) -> str:
    """`2 of 10`."""
    pairs = list(itertools.combinations(ranks[[*_PARTS]].itertuples(index=False), 2))
    turned = sum((one[0] - other[0]) * (one[1] - other[1]) < 0 for one, other in pairs)
    return f"{turned} of {len(pairs)}"
