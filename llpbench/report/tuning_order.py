"""How tuning changes the order of methods: the rank of each among default configurations and among tuned ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from pandas import DataFrame, concat

from llpbench.core.record import TuningRecord
from llpbench.report import wording as words
from llpbench.report.board_tables import caption_of, names
from llpbench.report.boards import Board, Row, means_over_datasets
from llpbench.report.report_table import Field, Heading, ReportTable, columns_of
from llpbench.report.tuning_tables import start_row

_ALL = "all columns"
_PARTS = ("default", "tuned")


def tuning_order(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Ranks before and after tuning, column by column; None unless two methods can be compared in any."""
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
        (Heading(title, _PARTS), [_field(row, found, n) for n, row in enumerate(board.rows)])
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
    known = {tuning["tuning"]: tuning for tuning in tunings}
    found: dict[int, tuple[tuple[int, str], int]] = {}
    for row, each in enumerate(board.rows):
        tuning = known.get(each.scores[column].tuning or "")
        default = None if tuning is None else start_row(board, column, tuning)
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


def _field(row: Row, ranks: DataFrame, place: int) -> Field:
    if place not in ranks.index:
        return Field((row.mark or words.NOTHING,))
    before, after = (int(ranks.at[place, part]) for part in _PARTS)
    return Field((f"{before} → {after}",), {"default": before, "tuned": after})


def _changed(ranks: DataFrame) -> str:
    """`2 of 10`."""
    pairs = list(itertools.combinations(ranks[[*_PARTS]].itertuples(index=False), 2))
    turned = sum((one[0] - other[0]) * (one[1] - other[1]) < 0 for one, other in pairs)
    return f"{turned} of {len(pairs)}"
