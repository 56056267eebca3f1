"""Your results beside the published ones: joint leaderboards, and differences of repeated runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pandas import Series

from llpbench.core.cell import bagging_text
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.core.text import clean, hint, plural, verb
from llpbench.report.boards import Board
from llpbench.report.html import repeat_command
from llpbench.report.leaderboard import COLUMNS, DEVELOPED_ON
from llpbench.report.overview import Standings
from llpbench.report.statistics import MeanDifference, compared
from llpbench.report.tabulate import Leaderboards
from llpbench.report.wording import bags_words, protocol_text, sentence
from llpbench.results.frame import configuration
from llpbench.results.journal import Contents, agree, contains, dispute, settle, widest
from llpbench.results.merging import SHIPPED, shipped_cells

_MOST_YOURS = 4
"""Entries of yours that are listed."""

_RIVALS = ("dllp", "tabllp-bdc")
"""Methods that yours are compared with by default, if they have run on your tasks; the first of the board is added."""

_PAPER_PRETRAINING = "self+bag"

_MAIN = "core"
"""Published results to compare with if they share a task with yours."""


@dataclass(frozen=True)
class _Comparison:
    """Your results and published ones together."""

    leaderboards: Leaderboards
    """boards with an entry of yours"""
    yours: frozenset[str]
    """ids of your runs that count"""
    differences: tuple[str, ...]
    """differences between your methods and named ones without labels of rows, one line each"""
    remarks: tuple[str, ...]
    """repeated runs, and reasons why results are on different boards; one line each"""

    def ranks(self) -> list[str]:
        """Return the ranks of your methods without labels of rows, or the options that complete their runs."""
        return _on_boards(self.leaderboards, self.yours, lambda board: _ranks(board, self.yours))


def compare(
    yours: Contents, published: Contents, why_stale: Callable[[Any], str] | None = None, *, rivals: Sequence[str] = ()
) -> _Comparison:
    """Compare journals, yours with the runs of a published one on the same datasets, baggings and bag sizes.

    `why_stale`: as from `staleness.comparison`. `rivals`: methods for differences, by default `_RIVALS` and the first
    of the board. Raises `LLPBenchError` for a rival without runs.
    """
    mine = yours.counting
    tasks = {_task_of(record) for record in mine.values()}
    on_tasks = {run: record for run, record in published.counting.items() if _task_of(record) in tasks}
    theirs = _without_ablations(on_tasks, mine)
    pairs = {run: [records[run] for records in (theirs, mine) if run in records] for run in {**theirs, **mine}}
    # of equal results yours counts, which is the last
    both = Contents({run: settle(records, of_any_data=True) for run, records in pairs.items()})
    counting = both.counting
    remarks = [*_repeated(mine, theirs), *_different_protocols(mine.values(), [*theirs.values()])]
    remarks += _disputes([records for run, records in both.runs.items() if run not in counting])
    if left := {_entry_of(record) for run, record in on_tasks.items() if run not in theirs}:
        remarks.append(f"{plural(len(left), 'published ablation')} not ranked.")
    tunings = Contents.joined([published, yours]).tunings
    stale = {name: why_stale(record) for name, record in {**counting, **tunings}.items()} if why_stale else {}
    joint = Leaderboards.of([*counting.values()], tunings=[*tunings.values()], stale=stale)
    older = {run for run in mine if run in theirs and Contents.is_older(mine[run], theirs[run])}
    if older:
        remarks.append(f"{plural(len(older), 'run')} of older code than published. The published results are shown.")
    ours = (run for run in counting if run in mine and run not in older)
    own = frozenset(run for run in ours if counting[run]["status"] == mine[run]["status"])
    boards, unlabelled = (
        tuple(board for board in boards if _entries_of(board, mine.keys()))
        for boards in (joint.boards, joint.unlabelled)
    )
    shown = replace(joint, boards=boards, unlabelled=unlabelled)
    methods = {record["spec"]["method"] for record in counting.values()}
    told = _on_boards(shown, own, lambda board: _named_differences(board, own, rivals, methods))
    return _Comparison(shown, own, tuple(told), tuple(map(clean, dict.fromkeys(remarks))))


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


def _on_boards(leaderboards: Leaderboards, own: Collection[str], told: Callable[[Board], Iterable[str]]) -> list[str]:
    """Return lines on the first board, if possible without labels of rows, of each kind of bags of your runs."""
    groups = leaderboards.groups()
    boards = [*(group["mpiou"] for group in groups if "mpiou" in group), *(next(iter(of.values())) for of in groups)]
    chosen: dict[str, Board] = {}
    values = [board.runs["value"][board.runs["run"].isin([*own])] for board in boards]
    for place in sorted(range(len(boards)), key=lambda place: not values[place].notna().any()):
        if len(values[place]):  # none has a value if all have failed
            chosen.setdefault(boards[place].bagging, boards[place])
    lines = []
    for board in [*chosen.values()] or boards[:1]:
        kind = f"{sentence(bags_words(board.bagging))[:-1]}: " if len(chosen) > 1 else ""
        lines += [f"{kind}{line}" for line in told(board)]
    return lines


def _ranks(board: Board, own: Collection[str]) -> Iterator[str]:
    """Yield the ranks of your methods on a board, best first."""
    ranks = board.entries["rank"]
    entries = sorted(_entries_of(board, own), key=lambda n: (ranks[n] is None, ranks[n] or 0))
    yield from (_rank_line(board, entry) for entry in entries[:_MOST_YOURS])
    if (hidden := len(entries) - _MOST_YOURS) > 0:
        yield f"and {hidden} more of yours"


def _named_differences(
    board: Board, own: Collection[str], rivals: Sequence[str], methods: Collection[str]
) -> Iterator[str]:
    """Yield the differences of your entries from `rivals` on a board. `methods`: those with runs on your tasks.

    Seeds share split and bags, so differences are paired by task and seed. Only your own runs count as yours. If some
    of your methods have no published runs, only these are compared. Datasets on which one of both was developed are
    left out, unless there are no others.
    """
    on_board = board.entries["method"].tolist()
    for name in rivals:
        if name not in methods:
            near = hint(name, methods)
            raise LLPBenchError(f"there are no results of {name!r} on your tasks. {near}Choose other names for --with.")
    first = [on_board[entry] for entry in board.ranked[:1]]
    names = rivals or [name for name in dict.fromkeys((*_RIVALS, *first)) if name in on_board]
    is_own = board.runs["run"].isin([*own])
    values, yours = board.wide(board.runs["value"]), board.wide(board.runs["value"][is_own])
    published = {on_board[entry] for entry in board.runs["entry"][~is_own]}
    entries = _entries_of(board, own)
    for entry in [n for n in entries if on_board[n] not in published] or entries:
        family, labels = {}, {}
        for name in names:
            rival = _rival(board, entry, name)
            if rival is None and name != on_board[entry]:
                missing = f"no run of {name} has its protocol. Add it to --methods."
                yield f"{board.labels[entry]} cannot be compared with {name}: {missing}"
            elif rival is not None:
                gaps = board.sign * (yours[entry] - values[rival]).dropna()
                developed = {*DEVELOPED_ON.get(name, ()), *DEVELOPED_ON.get(on_board[entry], ())}
                datasets = board.of_task(gaps.index.get_level_values(0))
                fair = gaps[[of not in developed for of in datasets]]
                left = len({*datasets} & developed)
                told = f", without {plural(left, 'dataset')} used in development" if left and len(fair) else ""
                used = fair if len(fair) else gaps
                family[name] = board.paired(used)
                if not family[name]:
                    missing = "no seed has run on all common tasks. Give all tasks the same --seeds."
                    yield f"{board.labels[entry]} cannot be compared with {name}: {missing}"
                labels[name] = board.labels[rival], _extent(board, used) + told, not left or len(fair) > 0
        tested, rest = (
            compared({name: gaps for name, gaps in family.items() if gaps and labels[name][-1] == is_tested})
            for is_tested in (True, False)
        )
        number = sum(each.has_interval for each in tested.values())
        for name, difference in {**tested, **rest}.items():
            other, extent, _ = labels[name]
            untested = "not tested: all datasets were used in development"
            verdict = _verdict(difference, number) if name in tested else untested
            yield f"{board.labels[entry]} minus {other}: {difference}, {extent}, {verdict}"


def _rival(board: Board, entry: int, method: str) -> int | None:
    """Return the entry of a method that is most like `entry`; None if there is no other.

    Entries that share tasks come before others, then defaults, then those with the same encoder and pretraining, then
    those with most shared runs.
    """
    mine, values = board.entries.loc[entry], board.values()

    def order(other: int) -> tuple[object, ...]:
        candidate = board.entries.loc[other]
        shared = int((values[entry].notna() & values[other].notna()).sum())
        same_encoder = candidate["encoder"] in (mine["encoder"], None)
        same_pretraining = candidate["pretraining"] == mine["pretraining"]
        return shared > 0, not candidate["configuration"], same_encoder, same_pretraining, shared

    others = board.entries.index[(board.entries["method"] == method) & (board.entries.index != entry)]
    return max(others, key=order, default=None)


def _extent(board: Board, gaps: Series) -> str:
    """Return the number of datasets, if several, and the smallest number of seeds of a task."""
    seeds = gaps.groupby(level=0).size()
    of = f"{plural(len({*board.of_task(seeds.index)}), 'dataset')}, " if len(board.datasets) > 1 else ""
    return f"{of}{plural(int(seeds.min()), 'seed')}" if len(seeds) else "no run in common"


def _verdict(difference: MeanDifference, number: int) -> str:
    """Return whether a difference is significant, or why nothing can be said. `number`: differences of the family."""
    if not difference.has_interval:
        return "too few datasets or seeds for an interval"
    if difference.is_significant:
        return f"significantly {'better' if difference.points > 0 else 'worse'}"
    excludes_0 = difference.low > 0 or difference.high < 0
    return f"not significant{f' after correction for {number} comparisons' if excludes_0 else ''}"


def shared_tasks(yours: Iterable[Record]) -> tuple[str, str]:
    """Return the name of the published results to compare with, and a line that says which tasks they share.

    These are those of core if they share a task with yours, otherwise those that share most.
    """
    tasks = {_task_of(record) for record in yours}
    shared = {name: len(tasks & {_task_of(cast(Record, line)) for line in shipped_cells(name)}) for name in SHIPPED}
    name = _MAIN if shared[_MAIN] else max(shared, key=lambda each: shared[each])
    others = [f"--against {other} has {number}" for other, number in shared.items() if number and other != name]
    told = [f"compared with {name}, which has {shared[name]} of your {plural(len(tasks), 'task')}", *others]
    return name, sentence("; ".join(told))


def _entries_of(board: Board, yours: Collection[str]) -> list[int]:
    return sorted({*board.runs["entry"][board.runs["run"].isin([*yours])]})


def _rank_line(board: Board, entry: int) -> str:
    label, rank, mark = board.entries.loc[entry, ["label", "rank", "mark"]]
    found, values = Standings.of(board).lines, board.counted()[entry]
    missing = [*values.index[values.isna()]]
    if missing:
        number = f"{len(missing)} of the {plural(len(board.counting), 'run')} that other methods have"
        command = _command(board, entry, missing)
        advice = f" Run {command}, with your plugins and output folder." if command else ""
        return f"{label}: no rank, because {number} {verb(len(missing), 'is', 'are')} missing or failed.{advice}"
    mean = f"mean {board.metric.title} {found['mean'][entry]:.2f}"
    own, counting = {*board.runs["task"][board.runs["entry"] == entry]}, {*board.counting_tasks}
    if own - counting:
        mean += f" over {len(own & counting)} of its {len(own)} tasks, as few methods have run on the others"
    (floor,) = COLUMNS["floor"].fields(found.loc[[entry]])
    if not floor.is_empty:
        mean += f", {floor.lines[0]} against the floor"
    if rank is None:
        return f"{label}: {mark}, {mean}"
    line, first = f"{label}: rank {rank} of {len(board.ranked)}, {mean}", board.ranked[0]
    if entry == first:
        return line
    return f"{line}; first is {board.labels[first]} with {found['mean'][first]:.2f}"


def _command(board: Board, entry: int, missing: Sequence[tuple[int, int]]) -> str | None:
    """Return the command that runs the missing (task, seed) of an entry; None if none can express its settings."""
    tasks, seeds = ({*each} for each in zip(*missing, strict=True))
    own, on_tasks = board.runs[board.runs["entry"] == entry], board.runs["run"][board.runs["task"].isin(tasks)]
    options = {"datasets": "dataset", "baggings": "bagging", "bag-sizes": "bag_size"}
    values = {name: {board.records[run]["spec"][key]: None for run in on_tasks} for name, key in options.items()}
    instead = {name: ",".join(map(str, filter(None, of))) for name, of in values.items()}
    instead["seeds"] = ",".join(map(str, sorted(seeds))) if len(seeds) > 1 else f"{min(seeds)}-{min(seeds)}"
    instead["retry"] = "failed" if (own["status"] != "ok").any() else ""
    return repeat_command(board.records[own["run"].iat[0]], instead)


def _task_of(record: Record) -> tuple[str, str, int]:
    """Return dataset, bagging (with the number of bags) and bag size."""
    spec = record["spec"]
    return spec["dataset"], bagging_text(spec["bagging"], spec.get("max_bags")), spec["bag_size"]


def _entry_of(record: Record) -> tuple[str | None, ...]:
    """Return the entry of a board to which a run belongs."""
    spec = record["spec"]
    return spec["method"], spec["encoder"], spec["pretraining"], configuration(record["method"]["changed"], spec)


def _repeated(yours: Mapping[str, Record], published: Mapping[str, Record]) -> Iterator[str]:
    """Yield remarks on the runs that both journals have."""
    pairs = [(published[run], yours[run]) for run in yours if run in published and published[run]["status"] == "ok"]
    both = [pair for pair in pairs if pair[1]["status"] == "ok"]
    if failed := len(pairs) - len(both):
        runs = plural(failed, "run")
        yield f"{runs} failed here but succeeded when published. The published results are shown."
    if both:
        different = [pair for pair in both if not contains(pair[1]["results"], pair[0]["results"])]
        yield f"{plural(len(both), 'run')} in both journals: {len(both) - len(different)} with identical results."
        if close := [pair for pair in different if agree(pair)]:
            yield f"Largest difference: {dispute(max(close, key=lambda pair: widest(pair).points))}"


def _disputes(runs: Sequence[Sequence[Record]]) -> Iterator[str]:
    """Yield remarks on the runs in both journals whose results differ too much to count."""
    apart = [run for run in runs if len({record["data"].get("fingerprint") for record in run} - {None}) > 1]
    if apart:
        datasets = ", ".join(dict.fromkeys(run[-1]["spec"]["dataset"] for run in apart))
        number = plural(len(apart), "run")
        yield f"{number} in both journals used different data ({datasets}), so none counts. Use the published data."
    yield from (dispute(run) for run in runs if run not in apart)


def _different_protocols(yours: Iterable[Record], published: Sequence[Record]) -> Iterator[str]:
    """Yield remarks on your protocols without published results, whose boards have your entries only."""
    if not published:
        yield "Nothing is published for these datasets, baggings and bag sizes."
        return
    protocols = ({protocol_text(record["spec"]["protocol"]) for record in records} for records in (published, yours))
    theirs, mine = (texts - {protocol_text(None)} for texts in protocols)
    for protocol in sorted(mine - theirs) if theirs else ():
        others = f"another protocol ({' and '.join(sorted(theirs))}) than yours ({protocol})"
        yield f"Published networks were trained with {others}. Use theirs to be ranked with them."
