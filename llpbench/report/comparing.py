"""One's own results beside the published ones: the same leaderboards, and whether shared runs were repeated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from llpbench.core.cell import bagging_text
from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import clean, plural
from llpbench.report.boards import HEADLINE, Board, Leaderboards
from llpbench.report.leaderboard import interval_of, standings
from llpbench.report.tabulate import tabulate
from llpbench.report.wording import protocol_text
from llpbench.results.frame import NO_STALE_RUNS, value_of
from llpbench.results.journal import agree, contains, settle
from llpbench.results.merging import disputes


@dataclass(frozen=True)
class Comparison:
    """Own and published results together."""

    leaderboards: Leaderboards
    """of every dataset, bagging and bag size that one's own journal has: those boards that one's own runs are on"""
    own: frozenset[str]
    """ids of your own cells"""
    remarks: tuple[str, ...]
    """what became of runs that both have, and what keeps boards apart; one line each"""


def compare(
    own: Mapping[str, Record],
    published: Mapping[str, Record],
    tunings: Sequence[TuningRecord] = (),
    stale: Mapping[str, str] = NO_STALE_RUNS,
) -> Comparison:
    """Own records, by run id, with the published ones of the same datasets, baggings and bag sizes.

    `tunings`: searches of either, whose choices are rows of the criteria that chose them alone. `stale`: as for
    `tabulate`.
    """
    tasks = {_task(record) for record in own.values()}
    near = {run: record for run, record in published.items() if _task(record) in tasks}
    remarks = [*_repeated(own, near), *_apart(own.values(), near.values())]
    settled = {run: settle([near[run], record] if run in near else [record]) for run, record in own.items()}
    disputed = {run: records for run, records in settled.items() if not agree(records)}
    remarks += disputes(disputed.values())
    counting = {**near, **{run: records[-1] for run, records in settled.items()}}
    found = tabulate([each for run, each in counting.items() if run not in disputed], tunings=tunings, stale=stale)
    cells = frozenset(record["cell"] for record in own.values())
    boards, unlabelled = (
        tuple(board for board in some if any(score.cell in cells for row in board.rows for score in row.scores))
        for some in (found.boards, found.unlabelled)
    )
    leaderboards = replace(found, boards=boards, unlabelled=unlabelled)
    return Comparison(leaderboards, cells, tuple(map(clean, remarks)))


def own_lines(found: Comparison) -> list[str]:
    """Ranks of at most five of your methods on the first board, or the options that complete their runs."""
    for board in found.leaderboards.boards[:1]:
        places = [n for n, row in enumerate(board.rows) if any(score.cell in found.own for score in row.scores)]
        places.sort(key=lambda n: (board.rows[n].rank is None, board.rows[n].rank or 0))
        lines = [_own_line(board, place) for place in places[:_MOST_OWN]]
        return [*lines, f"and {plural(len(places) - _MOST_OWN, 'more row')} of yours"] if places[_MOST_OWN:] else lines
    return []


_MOST_OWN = 4
"""own rows that are named, so that with their number there are at most five lines"""


def _own_line(board: Board, place: int) -> str:
    row, found = board.rows[place], standings(board).loc[place]
    label, columns = row.contender.label, board.columns
    missing = [(column, seed) for column, seed in board.counting if seed not in row.scores[column].values]
    if missing:
        options = {
            "datasets": dict.fromkeys(columns[column].dataset for column, _ in missing),
            "bag-sizes": dict.fromkeys(columns[column].bag_size for column, _ in missing if columns[column].bag_size),
            "seeds": sorted({seed for _, seed in missing}),
        }
        flags = " ".join(f"--{name} {','.join(map(str, values))}" for name, values in options.items() if values)
        number = f"{len(missing)} of {plural(len(board.counting), 'run')}"
        return f"{label}: no rank, because {number} that other methods have are missing. Run it with {flags}"
    mean = f"mean {board.metric.title} {found['mean', 'mean']:.2f}"
    gain = found["floor", "points"]
    gained = f", {interval_of(found['floor'], 'points', 1, '+')} against the floor" if gain == gain else ""
    if row.rank is None:
        return f"{label}: {row.mark}, {mean}{gained}"
    first = board.rows[board.ranked[0]]
    best = f"; first is {first.contender.label} with {standings(board).at[board.ranked[0], ('mean', 'mean')]:.2f}"
    return f"{label}: rank {row.rank} of {len(board.ranked)}, {mean}{gained}{best if row is not first else ''}"


def _task(record: Record) -> tuple[str, str, int]:
    """Dataset, bagging (with the number of bags) and bag size: what methods are compared on."""
    spec = record["spec"]
    return spec["dataset"], bagging_text(spec["bagging"], spec.get("max_bags")), spec["bag_size"]


def _repeated(own: Mapping[str, Record], published: Mapping[str, Record]) -> list[str]:
    """Comparison of the runs that both journals have."""
    both = [run for run in own if run in published and own[run]["status"] == published[run]["status"] == "ok"]
    failed = [run for run in own if run in published and own[run]["status"] != "ok" == published[run]["status"]]
    lines = [f"{plural(len(failed), 'run')} failed here that succeeded when published: the published ones are shown."]
    lines = lines if failed else []
    if not both:
        return lines
    gaps = {run: abs(_auc(own[run]) - _auc(published[run])) for run in both}
    same = [run for run in both if contains(own[run]["results"], published[run]["results"])]
    worst = max(both, key=lambda run: gaps[run])
    line = f"{plural(len(both), 'run')} in both journals: {len(same)} with identical results"
    if len(same) < len(both):
        spec = own[worst]["spec"]
        where = f"{spec['method']} on {spec['dataset']} {spec['bag_size']}, seed {own[worst]['seed']}"
        line += f"; the largest difference is {gaps[worst]:.2f} points of AUC ({where})"
    return [*lines, line + "."]


def _apart(own: Iterable[Record], published: Iterable[Record]) -> list[str]:
    """Your protocols without published results: they have their own boards."""
    published = list(published)
    if not published:
        return ["Nothing is published for these datasets, baggings and bag sizes."]
    theirs = {_protocol(record) for record in published} - {"null"}
    mine = {_protocol(record) for record in own} - {"null"}
    return [
        f"No published network was trained with your protocol ({protocol_text(json.loads(protocol))}), but with "
        f"{' and '.join(protocol_text(json.loads(other)) for other in sorted(theirs))}: "
        "use that to stand in one leaderboard with them."
        for protocol in sorted(mine - theirs)
        if theirs
    ]


def _protocol(record: Record) -> str:
    return json.dumps(record["spec"]["protocol"], sort_keys=True)


def _auc(record: Record) -> float:
    criterion = next((name for name in BOARD_CRITERIA if name in record["results"]), "")
    value = value_of(record, criterion, HEADLINE)
    return float("nan") if value is None else value
