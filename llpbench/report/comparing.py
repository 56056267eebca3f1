"""Your results beside the published ones: joint leaderboards, and differences of repeated runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add
from typing import cast

from llpbench.core.cell import bagging_text
from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import clean, plural, some_of, verb
from llpbench.report.boards import HEADLINE, Board, Leaderboards
from llpbench.report.leaderboard import interval_of, standings
from llpbench.report.paired import ENTRY, differences
from llpbench.report.tabulate import tabulate
from llpbench.report.wording import protocol_text, sentence
from llpbench.results.frame import NO_STALE_RUNS, configuration, tidy, value_of
from llpbench.results.journal import agree, contains, dispute, settle
from llpbench.results.merging import SHIPPED, shipped_lines

MOST_YOURS = 4
"""Entries, methods or datasets of yours that are listed."""


RIVALS = ("dllp", "tabllp-bdc")
"""Methods that yours are compared with by default, if they have run on your tasks; the first of the board is added."""

_PAPER_PRETRAINING = "self+bag"

_MAIN = "core"
"""Published results to compare with if they share a task with yours."""


@dataclass(frozen=True)
class Comparison:
    """Your results and published ones together."""

    leaderboards: Leaderboards
    """boards with an entry of yours"""
    yours: frozenset[str]
    """ids of your runs that count"""
    differences: tuple[str, ...]
    """differences between your methods and named ones on the first board, one line each"""
    remarks: tuple[str, ...]
    """repeated runs, and reasons why results are on different boards; one line each"""


def compare(
    yours: Mapping[str, Record],
    published: Mapping[str, Record],
    tunings: Sequence[TuningRecord] = (),
    stale: Mapping[str, str] = NO_STALE_RUNS,
    *,
    rivals: Sequence[str] = (),
    ablations: bool = False,
) -> Comparison:
    """Compare records, by run id, with published ones of the same datasets, baggings and bag sizes.

    `tunings`: searches of both. `stale`: as for `tabulate`. `rivals`: methods for differences; default `RIVALS` and the
    first of the board. `ablations`: also rank published entries that differ from the defaults. Raises `LLPBenchError`
    for a rival without runs.
    """
    tasks = {task_of(record) for record in yours.values()}
    on_tasks = {run: record for run, record in published.items() if task_of(record) in tasks}
    related = on_tasks if ablations else _without_ablations(on_tasks, yours)
    remarks = [*_repeated(yours, related), *_different_protocols(yours.values(), related.values())]
    settled = {run: settle([related[run], record] if run in related else [record]) for run, record in yours.items()}
    disputed = {run: records for run, records in settled.items() if not agree(records)}
    remarks += map(dispute, disputed.values())
    left = [record for run, record in on_tasks.items() if run not in related]
    if ablations_left := tidy(left).groupby(ENTRY[:-1], dropna=False).ngroups:
        remarks.append(f"{plural(ablations_left, 'published ablation')} not ranked: --ablations.")
    counting = {**related, **{run: records[-1] for run, records in settled.items()}}
    counting = {run: record for run, record in counting.items() if run not in disputed}
    joint = tabulate([*counting.values()], tunings=tunings, stale=stale)
    own = frozenset(
        run for run, record in counting.items() if run in yours and record["status"] == yours[run]["status"]
    )
    boards, unlabelled = (
        tuple(board for board in boards if _entries_of(board, yours.keys()))
        for boards in (joint.boards, joint.unlabelled)
    )
    told = tuple(_named_differences(boards[0], counting.values(), own, rivals)) if boards else ()
    return Comparison(
        replace(joint, boards=boards, unlabelled=unlabelled), own, told, tuple(map(clean, dict.fromkeys(remarks)))
    )


def _without_ablations(published: Mapping[str, Record], yours: Mapping[str, Record]) -> dict[str, Record]:
    """Return the runs of default entries: no setting is changed, and the encoder is the most common one.

    Encoders and pretrainings of yours, the pretraining of the paper, and runs that you have repeated stay, too.
    """
    specs, own = ([record["spec"] for record in records.values()] for records in (published, yours))
    common = Counter(spec["encoder"] for spec in specs if spec["encoder"]).most_common(1)
    encoders = {None, *(name for name, _ in common), *(spec["encoder"] for spec in own)}
    pretrainings = {"none", _PAPER_PRETRAINING, *(spec["pretraining"] for spec in own)}
    return {
        run: record
        for run, record in published.items()
        if run in yours
        or (
            record["spec"]["encoder"] in encoders
            and record["spec"]["pretraining"] in pretrainings
            and not configuration(record["method"]["changed"], record["spec"])
        )
    }


def _named_differences(
    board: Board, records: Iterable[Record], own: frozenset[str], rivals: Sequence[str]
) -> Iterator[str]:
    """Yield the differences of your methods from `rivals`, on the tasks of a board and by its criterion."""
    frame = tidy(records, criteria=[board.criterion.name])
    on_board = frame[frame["run"].isin(board.runs["run"])]
    bags = ["bagging", "max_bags"]
    frame = frame.merge(on_board[bags].drop_duplicates(), on=bags)  # other protocols, too
    if not rivals:
        first = board.entries["method"][board.ranked[0]] if board.ranked else ""
        rivals = [name for name in dict.fromkeys((*RIVALS, first)) if name in {*on_board["method"]}]
    found, impossible = differences(frame, own, rivals, board.metric.name, maximise=board.metric.maximise)
    yield from map(str, found[: MOST_YOURS * max(len(rivals), 1)])
    yield from impossible


def shared_tasks(yours: Iterable[Record]) -> tuple[str, str]:
    """Return the name of the published results to compare with, and a line that says which tasks they share.

    These are those of core if they share a task with yours, otherwise those that share most.
    """
    tasks = {task_of(record) for record in yours}
    shared = {name: len(tasks & {task_of(cast(Record, line)) for line in shipped_lines(name)}) for name in SHIPPED}
    name = _MAIN if shared[_MAIN] else max(shared, key=lambda each: shared[each])
    others = [f"--against {other} has {number}" for other, number in shared.items() if number and other != name]
    told = [f"compared with {name}, which has {shared[name]} of your {plural(len(tasks), 'task')}", *others]
    return name, sentence("; ".join(told))


def rank_lines(comparison: Comparison) -> list[str]:
    """Return the ranks of your methods on the first board, or the options that complete their runs."""
    lines: list[str] = []
    for board in comparison.leaderboards.boards[:1]:
        ranks = board.entries["rank"]
        entries = sorted(_entries_of(board, comparison.yours), key=lambda n: (ranks[n] is None, ranks[n] or 0))
        lines += [_rank_line(board, entry) for entry in entries[:MOST_YOURS]]
        if len(entries) > MOST_YOURS:
            lines.append(f"and {len(entries) - MOST_YOURS} more of yours")
    return lines


def _entries_of(board: Board, yours: Collection[str]) -> list[int]:
    return sorted({*board.runs["entry"][board.runs["run"].isin([*yours])]})


def _rank_line(board: Board, entry: int) -> str:
    label, rank, mark = board.entries.loc[entry, ["label", "rank", "mark"]]
    columns, values = standings(board), board.counted()[entry]
    missing = [*values.index[values.isna()]]
    if missing:
        number = f"{len(missing)} of the {plural(len(board.counting), 'run')}"
        return (
            f"{label}: no rank, because {number} that other methods have "
            f"{verb(len(missing), 'is', 'are')} missing or failed. "
            f"Run it with {_options(board, missing)}"
        )
    mean = f"mean {board.metric.title} {columns.at[entry, ('mean', 'mean')]:.2f}"
    floor = columns.loc[entry, "floor"]
    if floor["points"] == floor["points"]:
        mean += f", {interval_of(floor, 'points', 1, '+')} against the floor"
    if rank is None:
        return f"{label}: {mark}, {mean}"
    line, first = f"{label}: rank {rank} of {len(board.ranked)}, {mean}", board.ranked[0]
    if entry == first:
        return line
    return f"{line}; first is {board.labels[first]} with {columns.at[first, ('mean', 'mean')]:.2f}"


def _options(board: Board, missing: Sequence[tuple[int, int]]) -> str:
    """Return the options of a run that has the missing (task, seed)."""
    tasks = board.tasks.loc[[task for task, _ in missing]]
    options: dict[str, Iterable[object]] = {
        "datasets": tasks["dataset"].unique(),
        "bag-sizes": tasks["bag_size"].dropna().unique(),
        "seeds": sorted({seed for _, seed in missing}),
    }
    return " ".join(f"--{name} {','.join(map(str, values))}" for name, values in options.items() if len([*values]))


def task_of(record: Record) -> tuple[str, str, int]:
    """Return dataset, bagging (with the number of bags) and bag size."""
    spec = record["spec"]
    return spec["dataset"], bagging_text(spec["bagging"], spec.get("max_bags")), spec["bag_size"]


def _repeated(yours: Mapping[str, Record], published: Mapping[str, Record]) -> list[str]:
    """Return remarks on the runs that both journals have."""
    shared = [run for run in yours if run in published and published[run]["status"] == "ok"]
    both = [run for run in shared if yours[run]["status"] == "ok"]
    failed = len(shared) - len(both)
    lines = []
    if failed:
        run_text = plural(failed, "run")
        lines.append(f"{run_text} failed here but succeeded when published. The published results are shown.")
    if both:
        gaps = {run: abs(_auc(yours[run]) - _auc(published[run])) for run in both}
        same = sum(contains(yours[run]["results"], published[run]["results"]) for run in both)
        names = (_names(yours[run]["spec"][part] for run in both) for part in ("method", "dataset"))
        line = f"{plural(len(both), 'run')} in both journals ({' on '.join(names)}): {same} with identical results"
        if same < len(both):
            worst = max(both, key=lambda run: gaps[run])
            spec = yours[worst]["spec"]
            where = f"{spec['method']} on {spec['dataset']} {spec['bag_size']}, seed {yours[worst]['seed']}"
            line += f"; the largest difference is {gaps[worst]:.2f} points of AUC ({where})"
        lines.append(f"{line}.")
        reasons = _differences([yours[run] for run in yours if run not in published], published.values())
        if reasons:
            counts = ", ".join(f"{reason} ({number:,})" for reason, number in reasons.items())
            lines.append(f"{plural(reasons.total(), 'run')} only in yours: {counts}.")
    return lines


def _names(names: Iterable[str]) -> str:
    return ", ".join(some_of([*dict.fromkeys(names)], MOST_YOURS))


def _differences(yours: Iterable[Record], published: Iterable[Record]) -> Counter[str]:
    """Count the first respect in which each run differs from all published ones."""
    respects: dict[str, Callable[[Record], object]] = {
        "other datasets or bags": task_of,
        "methods not published there": lambda record: record["spec"]["method"],
        "other seeds": lambda record: record["seed"],
        "other epochs, patience or bags per step": _protocol,
    }

    def prefixes(record: Record) -> Iterator[tuple[object, ...]]:
        return accumulate(((of(record),) for of in respects.values()), add)

    seen = {prefix for record in published for prefix in prefixes(record)}
    return Counter(
        next(
            (what for what, prefix in zip(respects, prefixes(record), strict=True) if prefix not in seen),
            "other settings",
        )
        for record in yours
    )


def _different_protocols(yours: Iterable[Record], published: Iterable[Record]) -> list[str]:
    """Return remarks on your protocols without published results, whose boards have your entries only."""
    published = list(published)
    if not published:
        return ["Nothing is published for these datasets, baggings and bag sizes."]
    theirs = {_protocol(record) for record in published} - {"null"}
    new = {_protocol(record) for record in yours} - theirs - {"null"}
    others = " and ".join(protocol_text(json.loads(other)) for other in sorted(theirs))
    return [
        f"Published networks were trained with another protocol ({others}) than yours "
        f"({protocol_text(json.loads(protocol))}). Use theirs to be ranked with them."
        for protocol in sorted(new)
        if theirs
    ]


def _protocol(record: Record) -> str:
    return json.dumps(record["spec"]["protocol"], sort_keys=True)


def _auc(record: Record) -> float:
    criterion = next((name for name in BOARD_CRITERIA if name in record["results"]), "")
    value = value_of(record, criterion, HEADLINE)
    return float("nan") if value is None else value
