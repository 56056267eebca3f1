"""Boards of a journal: from the tidy table of runs to entries, tasks and ranks.

A run is a (task, seed). It counts if more than half of the methods have attempted it and an entry has completed
it. An entry without one of these runs has no rank. So no method gains from a failed run, and none
loses its rank because another method ran on more tasks or seeds. Floors are ranked like all entries trained on bags.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import isnan
from typing import Any

import numpy as np
from pandas import DataFrame, MultiIndex, Series, concat, isna

from llpbench.core.cell import NATURAL, bagging_text, is_without_labels
from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA, METRICS, Criterion, Metric
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import ENTRY, RUN, Board, entry_label
from llpbench.results.frame import MEASURES, NO_PROTOCOL, NO_STALE_RUNS, configuration, items, settings, shown, tidy

LABELS = CRITERIA["auc"]
"""Criterion of methods trained on labels, on every board."""

_NAME = ["method", "encoder", "pretraining"]
_DECLARED = ["configuration", "kind", "role"]
_IDENTITY = [*_NAME, *_DECLARED, "is_tuned"]
"""Columns that distinguish entries."""

_TASK = ["dataset", "bag_size", "by"]
"""Columns that distinguish tasks: `bag_size` is 0 if the bagging decides the sizes, `by` is the natural key, if any."""

_GROUP = ["bagging", "max_bags", "protocol"]
"""Columns that distinguish boards of a criterion. `max_bags` is 0 without a limit."""


_SHORT = {"auc": "fine", "mpiou": "coarse-mpiou", "l1": "coarse-l1"}
"""Criteria in names of files."""

_MOST_COMMITS = 3
"""Largest number of commits that are listed."""


def _origin(runs: Sequence[Record]) -> dict[str, str]:
    """Return the number of runs, and what produced them: texts by heading, none without runs."""
    if not runs:
        return {}
    failed = sum(run["status"] != "ok" for run in runs)
    libraries = DataFrame([run["libraries"] for run in runs]).sort_index(axis="columns")
    used = [f"{name} {' and '.join(sorted({*versions.dropna()}))}" for name, versions in libraries.items()]
    codes = [run["code"] for run in runs]  # without a commit if llpbench was not in a checkout
    of_code = {code["commit"][:10] + ", uncommitted changes" * bool(code["dirty"]) for code in codes if code["commit"]}
    commits = plural(len(of_code), "commit") if len(of_code) > _MOST_COMMITS else "; ".join(sorted(of_code))
    versions = sorted({str(code["version"]) for code in codes})
    machines = [run["hardware"] for run in runs if run["hardware"]]  # those that failed early have none
    devices = {f"{each['name']} ({each['device']}), {plural(each['threads'], 'thread')} a run" for each in machines}
    facts = {
        "Runs": f"{len(runs):,}" + f" ({failed:,} failed)" * (failed > 0),
        "Code": f"llpbench {', '.join(versions)}{f' ({commits})' * bool(commits)}",
        "Libraries": ", ".join(used),
        "Hardware": "; ".join(sorted(devices)),
    }
    return {heading: text for heading, text in facts.items() if text}


@dataclass(frozen=True)
class Leaderboards:
    """All boards of a journal."""

    boards: tuple[Board, ...]
    origin: Mapping[str, str]
    """number of runs and what produced them, by heading"""
    unlabelled: tuple[Board, ...] = ()
    """boards of datasets without labels, which have no ranks"""

    def __repr__(self) -> str:
        return f"<leaderboards: {', '.join(map(repr, (*self.boards, *self.unlabelled))) or 'none'}>"

    @cached_property
    def names(self) -> dict[Board, str]:
        """Unique file names of the boards.

        `fine-ordered` is the board of a bagging with most tasks, `fine-ordered-b2-e100-p10` another protocol, and
        `fine-ordered-direct` the tasks that only methods without epochs have run on.
        """
        counts: Counter[str] = Counter()
        names = {}
        for board in self.boards:
            name = _name_of(board, self.boards)
            counts[name] += 1
            names[board] = name if counts[name] == 1 else f"{name}-{counts[name]}"
        return names

    def groups(self) -> list[dict[str, Board]]:
        """Return boards of the same bagging and protocol by criterion, groups with most successful runs first.

        Boards with a limited number of bags come last.
        """
        groups: dict[tuple[str, str], dict[str, Board]] = defaultdict(dict)
        for board in self.boards:
            groups[board.bagging, json.dumps(board.protocol, sort_keys=True)][board.criterion.name] = board

        def order(group: Mapping[str, Board]) -> tuple[bool, int]:
            board = next(iter(group.values()))
            return board.max_bags is not None, -int((board.runs["status"] == "ok").sum())

        return sorted(groups.values(), key=order)

    def headline_boards(self, most: int | None = 2) -> list[Board]:
        """Return the boards without labels of rows, of the first `most` groups."""
        groups = self.groups()[:most]
        return [group.get("mpiou", next(iter(group.values()))) for group in groups]

    def main_boards(self) -> list[Board]:
        """Return the headline boards, then those of the same groups whose epochs are chosen by validation labels."""
        labelled = (group["auc"] for group in self.groups()[:2] if "auc" in group)
        return [*dict.fromkeys([*self.headline_boards(), *labelled])]

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        *,
        stale: Mapping[str, str] = NO_STALE_RUNS,
        tunings: Sequence[TuningRecord] = (),
        metric: str = words.HEADLINE,
    ) -> Leaderboards:
        """Return all boards of some records. Of several records of a run the last one counts.

        A configuration that a search chose by a criterion is an entry on the boards of that criterion only.

        `stale`: what has changed in the code since a run or search, by its id. If a search is stale, so are the runs of
        its choice. `metric`: what boards show and rank by.
        """
        runs = {record["run"]: record for record in records}
        successful = tuple(tuning for tuning in tunings if tuning["status"] == "ok")
        frame = tidy(runs.values(), stale, tunings, BOARD_CRITERIA)
        source = _Source(runs, frame.set_index(["run", "criterion"])[[*MEASURES]], successful, stale, METRICS[metric])
        boards, direct = [], set()
        for criterion, (group, members) in product(BOARD_CRITERIA, _groups(_runs(frame, runs, metric))):
            # without epochs all criteria give the same scores, so such a group has one board
            board = None if group in direct else source.board(CRITERIA[criterion], group, members)
            if board is not None:
                boards.append(board)
                direct |= {group} if board.protocol is None and not is_without_labels(board.bagging) else set()
        bags_only = [board for board in boards if is_without_labels(board.bagging)]
        return cls(
            tuple(board for board in boards if board not in bags_only),
            _origin([*runs.values()]),
            tuple(
                replace(board, entries=board.entries.assign(rank=None))
                for board in bags_only
                if board.criterion.regime == "coarse"
            ),
        )


def _name_of(board: Board, boards: Sequence[Board]) -> str:
    name = f"{_SHORT[board.criterion.name]}-{_slug(board.bagging)}"
    others = [
        other
        for other in boards
        if other is not board and (other.criterion, other.bagging) == (board.criterion, board.bagging)
    ]
    trained = [other for other in others if other.protocol is not None]
    is_largest = all(len(other.tasks) < len(board.tasks) for other in trained)
    if not others or (board.protocol is not None and is_largest):
        return name
    protocol = "-".join(f"{key[:1]}{value}" for key, value in (board.protocol or {}).items())
    return f"{name}-{_slug(protocol or 'direct')}"


def _runs(frame: DataFrame, records: Mapping[str, Record], metric: str) -> DataFrame:
    """Return a line for each run. All runs of a cell have the declaration of its last seed.

    Natural keys are one bagging: each key of a dataset is a task.
    """
    runs = frame.drop(columns=["criterion", "regime", *MEASURES]).drop_duplicates("run", ignore_index=True)
    results = (records[run]["results"].values() for run in runs["run"])
    runs["is_computed"] = [any(metric in result["test"] for result in found) for found in results]
    last = runs.sort_values("seed", kind="stable").drop_duplicates("cell", keep="last").set_index("cell")
    declared = [*_DECLARED, "chosen"]
    runs[declared] = last.loc[runs["cell"], declared].to_numpy()
    keys = DataFrame([*map(_without_key, runs["bagging"])], runs.index, ["bagging", "by"], dtype=object)
    sizes = runs[["bag_size", "max_bags"]].fillna(0).astype(int)
    return runs.assign(**keys, **sizes)


def _without_key(bagging: str) -> tuple[str, str]:
    """Return the kind of bags and their key: for `column:by=date:split=bags`, `natural:split=bags` and `date`.

    The key is empty for bags of all other baggings.
    """
    name, *options = bagging.split(":")
    keys = [option.removeprefix("by=") for option in options if option.startswith("by=")]
    if name != "column" or len(keys) != 1:
        return bagging, ""
    return ":".join([NATURAL, *(option for option in options if not option.startswith("by="))]), keys[0]


def _groups(runs: DataFrame) -> list[tuple[tuple[str, int, str], DataFrame]]:
    """Return the runs of each bagging, limit of bags and protocol (`_GROUP`), the bagging with most runs first.

    Methods without epochs join every protocol, in the tasks that it has. In tasks where nothing else has run they are a
    separate group. If protocols share a task, a direct run joins those that have its seed, or all if none has it.
    """
    place, is_direct = ["bagging", "max_bags", *_TASK], runs["protocol"] == NO_PROTOCOL
    trained, direct = runs[~is_direct], runs[is_direct].drop(columns="protocol")
    seeds = trained[[*place, "protocol", "seed"]].drop_duplicates()
    protocols = seeds[[*place, "protocol"]].drop_duplicates()
    joined = direct.merge(protocols, on=place, how="left").fillna({"protocol": NO_PROTOCOL})
    has_seed = Series(MultiIndex.from_frame(joined[seeds.columns]).isin(MultiIndex.from_frame(seeds)), joined.index)
    joined = joined[has_seed | ~has_seed.groupby(joined["run"]).transform("any")]
    groups = [*concat([trained, joined], ignore_index=True).groupby(_GROUP)]
    number = Counter[str]()
    for (bagging, *_), members in groups:
        number[bagging] += len(members)

    def order(group: tuple[tuple[str, int, str], DataFrame]) -> tuple[Any, ...]:
        bagging, max_bags, protocol = group[0]
        return -number[bagging], bagging, max_bags, protocol == NO_PROTOCOL, protocol

    return sorted(groups, key=order)


def _tuples(frame: DataFrame, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    yield from frame[[*columns]].itertuples(index=False, name=None)


@dataclass(frozen=True)
class _Source:
    """What boards are made from, besides their runs."""

    records: Mapping[str, Record]
    measures: DataFrame
    """by run and criterion"""
    tunings: Sequence[TuningRecord]
    stale: Mapping[str, str]
    metric: Metric

    def board(self, criterion: Criterion, group: tuple[str, int, str], runs: DataFrame) -> Board | None:
        """Return the board of a group of runs; None if it has no entry."""
        if not self._has(runs, criterion):
            return None
        has_labels = self._has(runs, LABELS)
        if criterion.regime == "coarse":  # a control shows what labels are worth, and here no label chooses an epoch
            runs = runs[runs["role"] != "control"]
        picked = concat([_untuned(runs), *self._tuned(criterion, runs)], ignore_index=True)
        latest = picked.groupby([*_IDENTITY, *_TASK], dropna=False)["search"].transform("last")
        picked = picked[picked["search"].isna() | (picked["search"] == latest)]
        if picked.empty:
            return None
        entries, tasks = picked.groupby(_IDENTITY, dropna=False, sort=False), picked.groupby(_TASK)
        picked = picked.assign(entry=entries.ngroup(), task=tasks.ngroup())
        picked = picked.sort_values(["entry", *RUN], ignore_index=True)
        # labels choose the epoch of ceilings, if any run has them
        by = [LABELS.name if has_labels and role == "ceiling" else criterion.name for role in picked["role"]]
        picked[[*MEASURES]] = self.measures.reindex(MultiIndex.from_arrays([picked["run"], by])).to_numpy()
        bagging, max_bags, protocol = group
        metric = METRICS[criterion.name] if is_without_labels(bagging) else self.metric
        picked["value"] = shown(picked, metric.name)
        board = Board(
            criterion,
            metric,
            bagging_text(bagging, max_bags or None),
            max_bags or None,
            json.loads(protocol),
            picked,
            _entries(picked),
            _tasks(picked),
            MultiIndex.from_arrays([[], []]),
            self.records,
        )
        return _ordered(board)

    def _has(self, runs: DataFrame, criterion: Criterion) -> bool:
        """Return whether a run has the criterion; a fine-grained one needs labels of validation rows."""
        done = runs["run"][runs["status"] == "ok"]
        return done.empty or any((run, criterion.name) in self.measures.index for run in done)

    def _tuned(self, criterion: Criterion, runs: DataFrame) -> Iterator[DataFrame]:
        """Yield the runs of cells that a search chose by a criterion, on other seeds than the search's.

        Searches that differ in settings have different entries.
        """
        choices = []
        for tuning in sorted(self.tunings, key=lambda tuning: (tuning["finished"], tuning["tuning"])):
            if choice := tuning["best"].get(criterion.name):
                found = runs[(runs["cell"] == choice["cell"]) & (runs["seed"] != tuning["spec"]["seed"])]
                choices += [(tuning, found)] if len(found) else []
        specs = [tuning["spec"] for tuning, _ in choices]
        trials = [plural(of["trials"], "trial") + f", {of['sampler']}" * (of["sampler"] != "tpe") for of in specs]
        names = [(next(_tuples(found, _NAME)), text) for (_, found), text in zip(choices, trials, strict=True)]
        searches = [{name: spec[name] for name in ("space", "seed", "together", "eta")} for spec in specs]
        starts = [json.loads(settings(spec["cell"])) for spec in specs]
        facts = _differing(names, [items({**start, **of}) for start, of in zip(starts, searches, strict=True)])
        for (tuning, found), (_, number), fact in zip(choices, names, facts, strict=True):
            method, change = tuning["method"], self.stale.get(tuning["tuning"], "")
            text = configuration(method["changed"], tuning["spec"]["cell"])
            fact -= {*text.split(", ")}
            yield found.assign(
                configuration=", ".join(filter(None, (text, f"tuned, {number}", *sorted(fact)))),
                kind=method["kind"],
                role=method["role"],
                is_tuned=True,
                search=tuning["tuning"],
                stale=found["stale"].where(found["stale"] != "", f"its search: {change}" if change else ""),
            )


def _untuned(runs: DataFrame) -> DataFrame:
    """Return the runs whose configuration no search chose, with texts that distinguish their cells."""
    runs = runs[~runs["chosen"].astype(bool)]
    cells = runs.drop_duplicates("cell")
    texts = _distinct([*_tuples(cells, _NAME)], [*_tuples(cells, _TASK)], cells["configuration"], cells["settings"])
    text_of = dict(zip(cells["cell"], texts, strict=True))
    return runs.assign(configuration=[text_of[cell] for cell in runs["cell"]], is_tuned=False, search=None)


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
    values = board.sign * board.wide(board.runs["value"])
    counted = values.reindex(counting)
    lacking = counted.isna().sum()
    means = board.by_task(values).mean()
    complete = [entry for entry in board.learners if len(counted) and not lacking[entry]]
    ranks: dict[int, int] = {}
    if complete:
        ranked = board.overall(counted).loc[complete]
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
    voters = [entry for entry in board.learners if not is_tuned[entry]] or board.learners
    of_voters = board.runs[board.runs["entry"].isin(voters)]
    runs = of_voters.groupby(RUN).agg({"method": "nunique", "value": "count"})
    counts = (2 * runs["method"] > names[voters].nunique()) & (runs["value"] > 0)
    return runs.index[counts]


def _marks(entries: DataFrame) -> list[str]:
    """Return the marks of entries. A ceiling has an encoder, unless no entry of the board has one."""
    has_encoder = entries["encoder"].notna().any()
    return [
        role if role != "ceiling" else "ceiling" if is_plain and (encoder or not has_encoder) else "supervised"
        for role, is_plain, encoder in zip(entries["role"], entries["is_plain"], entries["encoder"], strict=True)
    ]


def _entries(runs: DataFrame) -> DataFrame:
    """Return entries without ranks, of runs sorted by entry."""
    frame = runs.drop_duplicates("entry", ignore_index=True)[_IDENTITY].astype({"is_tuned": bool})
    by_entry = runs.groupby("entry")
    frame["label"] = [entry_label(*names) for names in _tuples(frame, [*_NAME, "configuration"])]
    frame["is_default"] = ~(frame["is_tuned"] | (by_entry["changed"].max() != "") | (by_entry["average"].max() != ""))
    frame["precision"] = by_entry["precision"].first()
    frame["is_plain"] = (frame["pretraining"] == "none") & frame["is_default"] & (by_entry["ensemble"].max() == 1)
    return frame


def _tasks(runs: DataFrame) -> DataFrame:
    """Return the tasks of some runs. Runs that failed early do not know their bags."""
    voters = runs.groupby(RUN)["method"].nunique()
    expected = voters[2 * voters >= voters.index.get_level_values("task").map(runs.groupby("task")["method"].nunique())]
    facts = {"least_rows": "min", "median_rows": "median", "most_rows": "max", "classes": "first"}
    frame = runs.groupby("task").agg(dict.fromkeys(_TASK, "first") | facts)
    size = [int(rows) if rows > 0 else None for rows in frame["bag_size"]]
    rows = (frame[f"{name}_rows"] for name in ("least", "median", "most"))
    bags = Series([*map(_bags_text, size, frame["by"], *rows)], frame.index, dtype=object)
    tasks = {
        "dataset": frame["dataset"],
        "bag_size": size,
        "by": frame["by"],
        "classes": [None if isnan(number) else int(number) for number in frame["classes"]],
        "seeds": [tuple(seed for of, seed in expected.index if of == task) for task in frame.index],
        "is_unequal": frame["least_rows"] < frame["most_rows"],
        "bags": bags,
        "title": frame["dataset"] + " " + bags,
    }
    return DataFrame(tasks, dtype=object).reset_index(drop=True).astype({"is_unequal": bool})


def _bags_text(size: int | None, by: str, least: float, middle: float, most: float) -> str:
    """Return the bags of a task: `256`, `1–9–11,660` (smallest, median, largest) or `by zipcode`."""
    if by:
        return f"by {by.replace('+', ' and ')}"
    if least < most:
        return f"{least:,.0f}–{middle:,.6g}–{most:,.0f}"
    return str(size or ("unknown sizes" if isnan(least) else int(least)))


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


def _slug(text: str, most: int = 60) -> str:
    """Return a foreign text as part of a file name: lower-case letters, digits and hyphens.

    A longer text is cut and ends in a hash of the whole text, so texts with the same beginning get different names.
    """
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"
    if len(name) <= most:
        return name
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{name[: most - len(mark) - 1].rstrip('-')}-{mark}"
