"""What tuning changes in the order of methods: the rank of each among the defaults, and among what searches chose."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf

from llpbench.core.record import TuningRecord
from llpbench.report import wording as words
from llpbench.report.board_tables import caption_of, row_fields, row_headings
from llpbench.report.boards import HEADLINE, Board, Column, Row
from llpbench.report.ranking import over_datasets
from llpbench.report.report_table import Field, Heading, ReportTable
from llpbench.report.tuning_tables import start_row

_ALL = "all columns"
_PARTS = ("default", "tuned")


@dataclass(frozen=True)
class _Pair:
    """A method in a column: its default configuration and what was chosen."""

    default: Row
    tuned: Row
    column: int

    @property
    def values(self) -> tuple[Mapping[int, float], Mapping[int, float]]:
        """Of both, by seed."""
        first, second = (row.scores[self.column].values.get(HEADLINE, {}) for row in (self.default, self.tuned))
        return first, second


Means = dict[str, tuple[float, float]]
"""of default and tuned, by the default row's label"""


def tuning_order(board: Board, tunings: Sequence[TuningRecord], name: str) -> ReportTable | None:
    """Ranks before and after tuning, column by column; None unless two methods can be compared in any."""
    pairs = list(_pairs(board, tunings))
    counting = [place for place, column in enumerate(board.columns) if column.counts]
    means = {column: _means([pair for pair in pairs if pair.column == column]) for column in counting}
    means = {column: found for column, found in means.items() if len(found) > 1}
    if not means:
        return None
    compared = {board.columns[column].title: found for column, found in means.items()}
    if len(compared) > 1:
        compared[_ALL] = _over_columns(means, board.columns)
    ranks = {title: _ranks(found) for title, found in compared.items()}
    rows = {pair.default.contender.label: pair.default for pair in pairs}
    shown = replace(board, rows=tuple(rows.values()))

    def place(label: str) -> tuple[float, ...]:
        after = [ranks[title][label][1] if label in ranks[title] else inf for title in reversed(ranks)]
        return (rows[label].contender.role == "ceiling", *after)

    return ReportTable(
        name=f"tuning-order-{name}",
        title=f"Order before and after tuning, {words.lowered(words.title(board))}",
        caption=caption_of(board, words.TUNING_ORDER),
        headings=(*row_headings(shown), *(Heading(title, _PARTS) for title in ranks)),
        rows=tuple(
            (*row_fields(shown, rows[label]), *(_field(rows[label], found.get(label)) for found in ranks.values()))
            for label in sorted(rows, key=lambda label: (*place(label), label))
        ),
        notes={"Pairs of methods that change places": tuple(f"{t}: {_changed(found)}" for t, found in ranks.items())},
    )


def _pairs(board: Board, tunings: Sequence[TuningRecord]) -> Iterator[_Pair]:
    """Every default row with what was chosen instead, by column; of several searches that of most trials."""
    known = {tuning["tuning"]: tuning for tuning in tunings}
    for column in range(len(board.columns)):
        found: dict[str, tuple[tuple[int, str], _Pair]] = {}
        for row in board.rows:
            tuning = known.get(row.scores[column].tuning or "")
            default = None if tuning is None else start_row(board, column, tuning)
            if tuning is None or default is None:
                continue
            size, label = (tuning["spec"]["trials"], tuning["finished"]), default.contender.label
            if label not in found or found[label][0] < size:
                found[label] = size, _Pair(default, row, column)
        yield from (pair for _, pair in found.values())


def _means(pairs: Sequence[_Pair]) -> Means:
    """Of the methods of a column over the seeds that more than half of them have tuned, if they have them all."""
    ranked = [pair for pair in pairs if pair.default.contender.role != "ceiling"]
    number = Counter(seed for pair in ranked for seed in pair.values[1])
    seeds = [seed for seed in sorted(number) if 2 * number[seed] > len(ranked)]
    return {
        pair.default.contender.label: (_mean(pair.values[0], seeds), _mean(pair.values[1], seeds))
        for pair in ranked
        if seeds and all(values.keys() >= {*seeds} for values in pair.values)
    }


def _mean(values: Mapping[int, float], seeds: Sequence[int]) -> float:
    return fsum(values[seed] for seed in seeds) / len(seeds)


def _over_columns(means: Mapping[int, Means], columns: Sequence[Column]) -> Means:
    """Of the methods that are compared in each: over datasets, of the mean over their columns."""
    labels = [label for label in next(iter(means.values())) if all(label in found for found in means.values())]
    parts = {
        label: [over_datasets({c: found[label][part] for c, found in means.items()}, columns) for part in (0, 1)]
        for label in labels
    }
    return {label: (before, after) for label, (before, after) in parts.items()}


def _ranks(means: Means) -> dict[str, tuple[int, int]]:
    """1 for the best, the same for equals."""
    before, after = ([each[place] for each in means.values()] for place in (0, 1))
    return {
        label: (1 + sum(other > first for other in before), 1 + sum(other > second for other in after))
        for label, (first, second) in means.items()
    }


def _field(row: Row, ranks: tuple[int, int] | None) -> Field:
    if ranks is None:
        return Field((row.mark or words.NOTHING,))
    return Field((f"{ranks[0]} → {ranks[1]}",), dict(zip(_PARTS, ranks, strict=True)))


def _changed(ranks: Mapping[str, tuple[int, int]]) -> str:
    """`2 of 10`."""
    pairs = list(itertools.combinations(ranks.values(), 2))
    turned = sum((one[0] - other[0]) * (one[1] - other[1]) < 0 for one, other in pairs)
    return f"{turned} of {len(pairs)}"
