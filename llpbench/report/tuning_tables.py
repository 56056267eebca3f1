"""Effect of hyperparameter searches: gains on test rows of other seeds, and the order of methods."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import isfinite

from pandas import DataFrame, concat

from llpbench.core.criteria import METRICS
from llpbench.core.record import TuningRecord
from llpbench.report import wording as words
from llpbench.report.board_tables import name_columns
from llpbench.report.boards import Board, means_over_datasets, summarise
from llpbench.report.report_table import Field, Heading, ReportTable, columns_of, number, rows_of, score, text
from llpbench.report.statistics import interval
from llpbench.results.choices import start_of

_ALL = "all tasks"
_PARTS = ("default", "tuned")


def tuning_gains(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Return tuned minus default for each tuned score; None if nothing was tuned."""
    rows, named = [], name_columns(board)
    for entry, task, tuning in _tuned_scores(board, tunings):
        names = {heading: fields[entry] for heading, fields in named}
        gains = _gain_fields(board, entry, task, tuning)
        rows.append({**names, Heading("task", numeric=False): text(board.titles[task]), **gains})
    if not rows:
        return None
    title = f"Gain from tuning, {words.lowered(words.title(board))}"
    return rows_of(f"tuning-{name}", title, words.caption_of(board, words.caption("tuning", board)), rows)


def _tuned_scores(board: Board, tunings: Sequence[TuningRecord]) -> list[tuple[int, int, TuningRecord]]:
    """Return entry, task and search of each tuned score."""
    searches = {tuning["tuning"]: tuning for tuning in tunings}
    tuned = board.scores["search"][board.scores["search"].notna()]
    return [(entry, task, searches[search]) for (entry, task), search in tuned.items() if search in searches]


def _start_entry(board: Board, task: int, tuning: TuningRecord) -> int | None:
    """Return the entry of the configuration from which a search started; None if it has not run."""
    cells = board.scores["cell"].xs(task, level="task")
    return next(iter(cells.index[(cells == start_of(tuning)) & ~board.entries["is_tuned"]]), None)


def _gain_fields(board: Board, entry: int, task: int, tuning: TuningRecord) -> dict[Heading, Field]:
    criterion, start = board.criterion, _start_entry(board, task, tuning)
    choice, seconds = tuning["best"][criterion.name], tuning["times"].get("total")
    is_percent, sign = METRICS[criterion.name].percent, 1 if criterion.maximise else -1
    digits, scale = (2, 100.0 * sign) if is_percent else (4, 1.0 * sign)
    validation = None if choice["default"] is None else scale * (choice["value"] - choice["default"]) + 0.0
    test = summarise(_paired_differences(board, task, entry, start, criterion.name))
    states = Counter(trial["status"] for trial in tuning["trials"])
    gains = _paired_differences(board, task, entry, start, board.metric.name)
    return {
        Heading("default"): score(None if start is None else board.summary(start, task)),
        Heading("tuned"): score(board.summary(entry, task)),
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


def _paired_differences(board: Board, task: int, tuned: int, default: int | None, metric: str) -> list[float]:
    """Return tuned minus default for the seeds that both have."""
    values = board.values(metric).loc[task]
    return [] if default is None else (values[tuned] - values[default]).dropna().tolist()


def _gain_text(differences: Sequence[float]) -> str:
    """Return the mean of paired differences with its t interval, which fewer than three seeds do not have."""
    summary = summarise(differences)
    if summary is None:
        return words.NOTHING
    low, high = interval(differences)
    return f"{summary.mean:+.2f}" + (f" [{low:+.2f}, {high:+.2f}]" if isfinite(low) else "")


def tuning_order(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Return ranks before and after tuning by task; None if no task has two tuned methods."""
    pairs = _tuned_entries(board, tunings)
    counting = [task for task, counts in enumerate(board.tasks["counts"]) if counts]
    values = {task: _values(board, pairs[task], task) for task in counting if task in pairs}
    values = {task: frame for task, frame in values.items() if len(frame.columns.unique(1)) > 1}
    if not values:
        return None
    ranks = {board.titles[task]: _ranks(board, frame) for task, frame in values.items()}
    if len(values) > 1:
        ranks[_ALL] = _ranks(board, concat([*values.values()], join="inner"))
    marks = board.entries["mark"]

    def order(entry: int) -> tuple[object, ...]:
        tuned = [frame["tuned"].get(entry, float("inf")) for frame in reversed(ranks.values())]
        return (entry not in board.learners, *tuned, board.labels[entry])

    columns = [
        (Heading(title), [_rank_field(entry, frame, mark) for entry, mark in marks.items()])
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
    ).with_rows(sorted({entry for of_task in pairs.values() for entry in of_task}, key=order))


def _tuned_entries(board: Board, tunings: Sequence[TuningRecord]) -> dict[int, dict[int, int]]:
    """Return the tuned entry of each default entry by task. Of several searches the one with most trials counts."""
    found = sorted(_tuned_scores(board, tunings), key=lambda score: (score[2]["spec"]["trials"], score[2]["finished"]))
    tuned: dict[int, dict[int, int]] = defaultdict(dict)
    for entry, task, tuning in found:
        default = _start_entry(board, task, tuning)
        if default is not None:
            tuned[task][default] = entry
    return tuned


def _values(board: Board, tuned_entries: Mapping[int, int], task: int) -> DataFrame:
    """Return runs by (part, default entry), for seeds that more than half of the methods have tuned.

    Methods that lack one of these seeds are skipped.
    """
    learners = {default: tuned for default, tuned in tuned_entries.items() if default in board.learners}
    values = board.values()
    values = values[values.index.get_level_values("task") == task]
    tuned = values[[*learners.values()]].set_axis([*learners], axis="columns")
    both = concat({"default": values[[*learners]], "tuned": tuned}, axis="columns")
    shared = both[2 * tuned.notna().sum(axis="columns") > len(learners)]
    lacking = shared.isna().any().groupby(level=1).any()
    complete = [] if shared.empty else [*lacking.index[~lacking]]
    return shared.loc[:, [(part, entry) for part in _PARTS for entry in complete]]


def _ranks(board: Board, values: DataFrame) -> DataFrame:
    """Return ranks by entry and part. Equal means share the better rank."""
    means = means_over_datasets(board.sign * values, board.tasks["dataset"].tolist()).unstack(level=0)
    return means.rank(method="min", ascending=False).astype(int)


def _rank_field(entry: int, ranks: DataFrame, mark: str) -> Field:
    if entry not in ranks.index:
        return text(mark or words.NOTHING)
    return text(" → ".join(str(int(ranks.at[entry, part])) for part in _PARTS))


def _changed_pairs(ranks: DataFrame) -> str:
    """Return how many pairs of methods change their order: `2 of 10`."""
    pairs = list(itertools.combinations(ranks[[*_PARTS]].itertuples(index=False), 2))
    changed = sum((one[0] - other[0]) * (one[1] - other[1]) < 0 for one, other in pairs)
    return f"{changed} of {len(pairs)}"
