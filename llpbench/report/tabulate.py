"""Boards of a journal: from the tidy table of runs to entries, tasks and ranks.

A run is a (task, seed). It counts if more than half of the methods have attempted it and an entry has completed
it. An entry without one of these runs has no rank. So no method gains from a failed run, and none
loses its rank because another method ran on more tasks or seeds. Floors are ranked like all entries trained on bags.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from pandas import DataFrame, MultiIndex, Series, isna

from llpbench.core.cell import bagging_text, is_without_labels, without_key
from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA, METRICS, Criterion, Metric
from llpbench.core.record import Record, TuningRecord
from llpbench.report.boards import (
    ENTRY,
    HEADLINE,
    RUN,
    TASK,
    Board,
    Leaderboards,
    entry_label,
    grouped_means,
    means_over_datasets,
    wide,
)
from llpbench.report.origin import origin_of
from llpbench.report.wording import range_text, trials_text
from llpbench.results.frame import (
    MEASURES,
    NO_PROTOCOL,
    NO_STALE_RUNS,
    configuration,
    items,
    settings,
    shown,
    tidy,
)

LABELS = CRITERIA["auc"]
"""Criterion of methods trained on labels, on every board."""

_NAME = ["method", "encoder", "pretraining"]
_DECLARED = ["configuration", "kind", "role", "reference"]
_IDENTITY = [*_NAME, *_DECLARED, "is_tuned"]
"""Columns that distinguish entries."""

Task = tuple[str, int | None, str]
"""Dataset, bag size (None if the bagging decides the sizes) and natural key (usually "")."""


class _Group(NamedTuple):
    """Runs of a bagging and protocol."""

    bagging: str
    max_bags: int
    """0 without a limit"""
    protocol: str
    runs: list[int]
    """lines of the table"""


class _Choice(NamedTuple):
    """A cell of a board. A search chose the configuration if `search` is its id."""

    cell: str
    name: tuple[str, str | None, str]
    declared: tuple[str, str, str, str]
    task: Task
    runs: list[int]
    search: str | None = None
    change: str = ""
    """what has changed since the search"""

    @property
    def entry(self) -> tuple[Any, ...]:
        """Values of `_IDENTITY`."""
        return (*self.name, *self.declared, self.search is not None)


def tabulate(
    records: Sequence[Record],
    *,
    stale: Mapping[str, str] = NO_STALE_RUNS,
    tunings: Sequence[TuningRecord] = (),
    metric: str = HEADLINE,
) -> Leaderboards:
    """Return all boards of some records. Of several records of a run the last one counts.

    A configuration that a search chose by a criterion is an entry on the boards of that criterion only.

    `stale`: what has changed in the code since a run or search, by its id. If a search is stale, so are the runs of its
    choice. `metric`: what boards show and rank by.
    """
    runs = {record["run"]: record for record in records}
    successful = [tuning for tuning in tunings if tuning["status"] == "ok"]
    frame = tidy(runs.values(), stale, tunings, BOARD_CRITERIA)
    maker = _BoardMaker(frame, runs, successful, stale, METRICS[metric])
    boards = [*maker.boards()]
    return Leaderboards(
        tuple(board for board in boards if not is_without_labels(board.bagging)),
        origin_of([*runs.values()]),
        tuple(successful),
        tuple(board for board in boards if is_without_labels(board.bagging) and board.criterion.regime == "coarse"),
    )


class _BoardMaker:
    """Makes boards from the tidy table."""

    def __init__(
        self,
        frame: DataFrame,
        records: Mapping[str, Record],
        tunings: Sequence[TuningRecord],
        stale: Mapping[str, str],
        metric: Metric,
    ) -> None:
        self._records, self._tunings, self._stale, self._metric = records, tunings, stale, metric
        self._lines = {key: line for line, key in enumerate(zip(frame["run"], frame["criterion"], strict=True))}
        unmeasured = np.full(len(MEASURES), np.nan)  # the last line, of runs without the criterion
        self._measures = np.vstack([frame[[*MEASURES]].to_numpy(), unmeasured])
        table = frame.drop(columns=["criterion", "regime", *MEASURES]).drop_duplicates("run", ignore_index=True)
        results = (records[run]["results"].values() for run in table["run"])
        table["is_computed"] = [any(metric.name in result["test"] for result in found) for found in results]
        table["search"] = None
        # all runs of a cell have the declaration of its last seed
        last = table.sort_values("seed", kind="stable").drop_duplicates("cell", keep="last").set_index("cell")
        table[_DECLARED] = last.loc[table["cell"], _DECLARED].to_numpy()
        self._table = table
        self._chosen = last.loc[table["cell"], "chosen"].tolist()
        self._cells, self._seeds = table["cell"].tolist(), table["seed"].tolist()
        self._protocols, self._settings = table["protocol"].tolist(), table["settings"].tolist()
        self._is_ok = (table["status"] == "ok").tolist()
        self._names = [*zip(*(table[name].where(table[name].notna(), None) for name in _NAME), strict=True)]
        self._declared = [*zip(*(table[name] for name in _DECLARED), strict=True)]
        # natural keys are one bagging: each key of a dataset is a task
        kinds, keys = zip(*map(without_key, table["bagging"]), strict=True) if len(table) else ((), ())
        sizes, limits = (table[name].fillna(0).astype(int).tolist() for name in ("bag_size", "max_bags"))
        self._bags = [*zip(kinds, limits, strict=True)]
        self._tasks = [*zip(table["dataset"], (size or None for size in sizes), keys, strict=True)]

    def groups(self) -> list[_Group]:
        """Return the runs of each bagging and protocol, the bagging with most runs first.

        Methods without epochs join every protocol, in the tasks that it has. In tasks where nothing else has run they
        are a separate group. If protocols share a task, direct runs join with the seeds of each protocol.
        """
        seeds: dict[tuple[Any, ...], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        groups: dict[tuple[tuple[str, int], str], list[int]] = defaultdict(list)
        direct = []
        for run, (bags, task, protocol) in enumerate(zip(self._bags, self._tasks, self._protocols, strict=True)):
            if protocol == NO_PROTOCOL:
                direct.append(run)
            else:
                seeds[bags, task][protocol].add(self._seeds[run])
                groups[bags, protocol].append(run)
        for run in direct:
            seed, bags = self._seeds[run], self._bags[run]
            protocols = seeds.get((bags, self._tasks[run]), {NO_PROTOCOL: {seed}})
            for protocol, shared in protocols.items():
                if len(protocols) == 1 or seed in shared:
                    groups[bags, protocol].append(run)
        number = Counter[str]()
        for ((bagging, _), _), members in groups.items():
            number[bagging] += len(members)

        def order(group: _Group) -> tuple[Any, ...]:
            return -number[group.bagging], *group[:2], group.protocol == NO_PROTOCOL, group.protocol

        return sorted((_Group(*bags, protocol, runs) for (bags, protocol), runs in groups.items()), key=order)

    def boards(self) -> Iterator[Board]:
        """Yield all boards. Without epochs all criteria give the same scores, so such a group has one board."""
        direct: set[tuple[str, int]] = set()
        for name in BOARD_CRITERIA:
            for group in self.groups():
                if (group.bagging, group.max_bags) in direct and group.protocol == NO_PROTOCOL:
                    continue
                if (board := self.board(CRITERIA[name], group)) is not None:
                    if group.protocol == NO_PROTOCOL and not is_without_labels(group.bagging):
                        direct.add((group.bagging, group.max_bags))
                    yield board

    def _has_criterion(self, runs: Iterable[int], criterion: Criterion) -> bool:
        """Return whether a run has the criterion; a fine-grained one needs labels of validation rows."""
        names = self._table["run"].tolist()
        done = [names[run] for run in runs if self._is_ok[run]]
        return not done or any((run, criterion.name) in self._lines for run in done)

    def board(self, criterion: Criterion, group: _Group) -> Board | None:
        """Return the board of a group of runs; None if it has no entry."""
        if not self._has_criterion(group.runs, criterion):
            return None
        shown_runs = group.runs
        if criterion.regime == "coarse":  # a control shows what labels are worth, and here no label chooses an epoch
            is_control = (self._table["role"] == "control").tolist()
            shown_runs = [run for run in group.runs if not is_control[run]]
        candidates = [*self._untuned(shown_runs), *self._tuned(criterion, shown_runs)]
        choices = [*{(choice.entry, choice.task): choice for choice in candidates}.values()]
        if not choices:
            return None
        entries = {entry: place for place, entry in enumerate(dict.fromkeys(choice.entry for choice in choices))}
        tasks = sorted({choice.task for choice in choices}, key=lambda task: (task[0], task[1] or 0, task[2]))
        picked = [
            (entries[choice.entry], tasks.index(choice.task), self._seeds[run], run, choice)
            for choice in choices
            for run in choice.runs
        ]
        picked.sort(key=lambda run: run[:3])
        has_labels = self._has_criterion(group.runs, LABELS)
        runs = self._measured([run for *_, run, _ in picked], criterion, has_labels=has_labels)
        runs.insert(0, "entry", [entry for entry, *_ in picked])
        runs.insert(1, "task", [task for _, task, *_ in picked])
        runs["search"] = Series([choice.search for *_, choice in picked], dtype=object)
        runs["stale"] = [
            reason or (f"its search: {choice.change}" if choice.change else "")
            for reason, (*_, choice) in zip(runs["stale"], picked, strict=True)
        ]
        return _ordered(
            Board(
                criterion,
                self._metric,
                bagging_text(group.bagging, group.max_bags or None),
                group.max_bags or None,
                json.loads(group.protocol),
                runs,
                _entries(runs, [*entries]),
                _tasks(runs, tasks),
                MultiIndex.from_arrays([[], []]),
                self._records,
            )
        )

    def _measured(self, runs: Sequence[int], criterion: Criterion, *, has_labels: bool) -> DataFrame:
        """Return the table of some runs, measured at the epoch that the criterion chose.

        Labels choose the epoch of ceilings, if any run has them.
        """
        table = self._table.take(runs).reset_index(drop=True)
        chosen_by = [LABELS if has_labels and role == "ceiling" else criterion for role in table["role"]]
        lines = [self._lines.get((run, by.name), -1) for run, by in zip(table["run"], chosen_by, strict=True)]
        table[[*MEASURES]] = self._measures[lines]
        return table.assign(value=shown(table, self._metric.name))

    def _untuned(self, runs: Iterable[int]) -> list[_Choice]:
        """Return the cells whose configuration no search chose, with texts that distinguish them."""
        by_cell = self._by_cell(run for run in runs if not self._chosen[run])
        firsts = [members[0] for members in by_cell.values()]
        texts = _distinct(
            [self._names[run] for run in firsts],
            [self._tasks[run] for run in firsts],
            [self._declared[run][0] for run in firsts],
            [self._settings[run] for run in firsts],
        )
        return [
            _Choice(cell, self._names[run], (text, *self._declared[run][1:]), self._tasks[run], members)
            for (cell, members), run, text in zip(by_cell.items(), firsts, texts, strict=True)
        ]

    def _tuned(self, criterion: Criterion, group: Iterable[int]) -> Iterator[_Choice]:
        """Yield the cells that a search chose by a criterion, with runs on other seeds than the search's.

        Searches that differ in settings have different entries.
        """
        by_cell = self._by_cell(group)
        choices = []
        for tuning in sorted(self._tunings, key=lambda tuning: (tuning["finished"], tuning["tuning"])):
            if choice := tuning["best"].get(criterion.name):
                seed = tuning["spec"]["seed"]
                if runs := [run for run in by_cell.get(choice["cell"], ()) if self._seeds[run] != seed]:
                    choices.append((tuning, runs))
        specs = [tuning["spec"] for tuning, _ in choices]
        names = [(self._names[runs[0]], trials_text(spec)) for spec, (_, runs) in zip(specs, choices, strict=True)]
        facts = _differing(names, [_search_facts(spec) for spec in specs])
        tasks = [self._tasks[runs[0]] for _, runs in choices]
        texts = _distinct(
            [(name, frozenset(fact)) for name, fact in zip(names, facts, strict=True)],
            tasks,
            [configuration(tuning["method"]["changed"], tuning["spec"]["cell"]) for tuning, _ in choices],
            [settings(spec["cell"]) for spec in specs],
        )
        for (tuning, runs), (name, trials), task, text, fact in zip(choices, names, tasks, texts, facts, strict=True):
            whole = ", ".join(filter(None, (text, f"tuned, {trials}", *sorted(fact))))
            method, search = tuning["method"], tuning["tuning"]
            declared = whole, method["kind"], method["role"], method["reference"] or ""
            yield _Choice(self._cells[runs[0]], name, declared, task, runs, search, self._stale.get(search, ""))

    def _by_cell(self, runs: Iterable[int]) -> dict[str, list[int]]:
        by_cell: dict[str, list[int]] = defaultdict(list)
        for run in runs:
            by_cell[self._cells[run]].append(run)
        return by_cell


def part_of(board: Board, entries: Sequence[int], tasks: Sequence[int]) -> Board:
    """Return the board of some entries and tasks, with their ranks among each other."""
    new_entries, new_tasks = ({old: new for new, old in enumerate(places)} for places in (entries, tasks))
    runs = board.runs[board.runs["entry"].isin(entries) & board.runs["task"].isin(tasks)]
    return _ordered(
        replace(
            board,
            runs=runs.assign(entry=runs["entry"].map(new_entries), task=runs["task"].map(new_tasks)),
            entries=board.entries.take(entries).reset_index(drop=True),
            tasks=board.tasks.take(tasks).reset_index(drop=True),
        )
    )


def _ordered(board: Board) -> Board:
    """Return a board with ranks and marks, its entries in their order."""
    counting = _counting(board)
    ranks, order = _order(board, counting)
    by_entry = Series([ranks.get(entry) for entry in board.entries.index], dtype=object)
    entries = board.entries.assign(rank=by_entry, mark=_marks(board.entries))
    places = {number: place for place, number in enumerate(order)}
    runs = board.runs.assign(entry=[places[entry] for entry in board.runs["entry"]])
    return replace(
        board,
        entries=entries.take(order).reset_index(drop=True)[[*ENTRY]],
        runs=runs.sort_values(["entry", "task", "seed"], ignore_index=True),
        counting=counting,
    )


def _order(board: Board, counting: MultiIndex) -> tuple[dict[int, int], list[int]]:
    """Return ranks by entry, and the order of entries: trained on labels, ranked (best first), unranked."""
    values = board.sign * wide(board.runs, len(board.entries))
    counted = values.reindex(counting)
    lacking = counted.isna().sum()
    means = grouped_means(values).mean()
    complete = [entry for entry in board.learners if len(counted) and not lacking[entry]]
    ranks: dict[int, int] = {}
    if complete:
        ranked = means_over_datasets(counted, board.tasks["dataset"].tolist()).loc[complete]
        ranks = {int(n): int(rank) for n, rank in ranked.rank(method="min", ascending=False).items()}
    learners = {*board.learners}

    def order(entry: int) -> tuple[Any, ...]:
        label = board.labels[entry]
        if entry not in learners:
            return 0, np.inf if isna(means[entry]) else -means[entry], label
        return (1, ranks[entry], label) if entry in ranks else (2, lacking[entry], label)

    return ranks, sorted(board.entries.index, key=order)


def _counting(board: Board) -> MultiIndex:
    """Return the runs that count: attempted by more than half of the methods and completed by at least one entry.

    A method has one vote, no matter how many entries it has. Tuned entries have none.
    """
    names, is_tuned = board.entries["method"], board.entries["is_tuned"]
    voters = {entry for entry in board.learners if not is_tuned[entry]} or {*board.learners}
    methods: dict[tuple[int, int], set[str]] = defaultdict(set)
    done = set()
    for entry, method, value, *run in zip(
        *(board.runs[name].tolist() for name in ("entry", "method", "value", *RUN)), strict=True
    ):
        if entry in voters:
            methods[run[0], run[1]].add(method)
            if not isnan(value):
                done.add((run[0], run[1]))
    number = len({*names[[*voters]]})
    counting = sorted(run for run in done if 2 * len(methods[run]) > number)
    return MultiIndex.from_arrays(np.array(counting, dtype=int).reshape(-1, 2).T, names=RUN)


def _marks(entries: DataFrame) -> list[str]:
    """Return the marks of entries. A ceiling has an encoder, unless no entry of the board has one."""
    has_encoder = entries["encoder"].notna().any()
    return [
        role if role != "ceiling" else "ceiling" if is_plain and (encoder or not has_encoder) else "supervised"
        for role, is_plain, encoder in zip(entries["role"], entries["is_plain"], entries["encoder"], strict=True)
    ]


def _entries(runs: DataFrame, entries: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Return entries without ranks, of runs sorted by entry."""
    frame = DataFrame(entries, columns=_IDENTITY, dtype=object).astype({"is_tuned": bool})
    by_entry = runs.groupby("entry")
    frame["label"] = [entry_label(*entry[:4]) for entry in entries]
    frame["is_default"] = ~(frame["is_tuned"] | (by_entry["changed"].max() != "") | (by_entry["average"].max() != ""))
    frame["ensemble"] = by_entry["ensemble"].max()
    frame["precision"] = by_entry["precision"].first()
    frame["is_plain"] = (frame["pretraining"] == "none") & frame["is_default"] & (frame["ensemble"] == 1)
    return frame


def _tasks(runs: DataFrame, tasks: Sequence[Task]) -> DataFrame:
    """Return the tasks of some runs. Runs that failed early do not know their bags."""
    methods: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for task, seed, method in zip(runs["task"].tolist(), runs["seed"].tolist(), runs["method"], strict=True):
        methods[task][seed].add(method)
    facts = runs.groupby("task").agg(
        {"least_rows": "min", "median_rows": "median", "most_rows": "max", "classes": "first"}
    )
    lines = []
    for place, (task, numbers) in enumerate(zip(tasks, facts.itertuples(index=False, name=None), strict=True)):
        least, middle, most, classes = (None if isnan(number) else number for number in numbers)
        number = len(set().union(*methods[place].values()))
        sizes = None if least is None or middle is None or most is None else (int(least), middle, int(most))
        bags = _bags_text(task, sizes)
        title = f"{task[0]} {bags}"
        lines.append(
            {
                **dict(zip(("dataset", "bag_size", "by"), task, strict=True)),
                "classes": None if classes is None else int(classes),
                "seeds": tuple(sorted(s for s, names in methods[place].items() if 2 * len(names) >= number)),
                **dict(zip(("least_rows", "median_rows", "most_rows"), sizes or (None,) * 3, strict=True)),
                "is_unequal": sizes is not None and sizes[0] != sizes[2],
                "bags": bags,
                "title": title,
            }
        )
    return DataFrame(lines, columns=[*TASK], dtype=object).astype({"is_unequal": bool})


def _bags_text(task: Task, sizes: tuple[int, float, int] | None) -> str:
    """Return the bags of a task: `256`, `1–9–11,660` (smallest, median, largest) or `by zipcode`."""
    _, size, by = task
    if by:
        return f"by {by.replace('+', ' and ')}"
    if sizes is not None and sizes[0] != sizes[2]:
        return f"{sizes[0]:,}–{sizes[1]:,.6g}–{sizes[2]:,}"
    return str(size or (sizes[0] if sizes else "unknown sizes"))


def _distinct(
    names: Sequence[Hashable], tasks: Sequence[Hashable], changed: Sequence[str], whole: Sequence[str]
) -> list[str]:
    """Return texts that distinguish cells of the same name: usually the hyperparameters `changed` from the defaults.

    If these do not distinguish two cells of a task, for example after a change of the defaults, all settings that cells
    of the name do not share are used. `whole`: all settings of a cell, as JSON.
    """
    counts = Counter(zip(names, tasks, changed, strict=True))
    vague = {name for (name, _, _), number in counts.items() if number > 1}
    parts = [items(json.loads(text)) if name in vague else set() for name, text in zip(names, whole, strict=True)]
    return [
        ", ".join(sorted(differing)) if name in vague else text
        for name, differing, text in zip(names, _differing(names, parts), changed, strict=True)
    ]


def _differing(names: Sequence[Hashable], parts: Sequence[set[str]]) -> list[set[str]]:
    """Return the parts of each set that not all sets of its name share."""
    shared: dict[Hashable, set[str]] = {}
    for name, members in zip(names, parts, strict=True):
        shared[name] = shared.get(name, members) & members
    return [members - shared[name] for name, members in zip(names, parts, strict=True)]


def _search_facts(search: Mapping[str, Any]) -> set[str]:
    """Return settings of a search besides its start, number of trials and sampler."""
    spaces = {f"{name} {range_text(space)}" for name, space in search["space"].items()}
    return {*spaces, f"seed {search['seed']}", f"{search['together']} together", f"eta {search['eta']}"}
