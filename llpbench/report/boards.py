"""Boards: the frames from which tables, plots, page, CSV and notebooks are made.

A board compares *entries* (a method with its encoder, pretraining and configuration) on *tasks* (a dataset with its
bags) under one criterion, bagging and protocol. A *score* is the result of an entry on a task, over all seeds. Frames
have one line for each run, entry, task and score. Entries and tasks are named by their position, from 0.

`board.runs` has `entry`, `task`, `value` (the board's metric as shown), `is_computed` (whether the run computed the
metric), `search` (id of the search that chose the configuration, or None) and the columns of `results.frame`.
`board.entries` and `board.tasks` have the columns `ENTRY` and `_TASK`, `board.scores` those of `_SCORE`. For single
values use `board.labels[entry]`, `board.titles[task]` and `board.scores.loc[entry, task]`.
Percentages are times 100.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
from pandas import DataFrame, Index, MultiIndex, RangeIndex, Series

from llpbench.core.criteria import Criterion, Metric
from llpbench.core.record import Record
from llpbench.core.text import plural
from llpbench.results.frame import MACHINE, shown

P = ParamSpec("P")
T = TypeVar("T")

Role = Literal["ceiling", "control", "", "floor"]

UNRANKED = ("ceiling", "control")
"""Roles of methods that are trained on labels of rows."""

HEADLINE = "auc"
"""Default test metric of leaderboards."""

REFERENCE = "float32"
"""Default precision of products."""

FEWEST_DATASETS = 6
"""Smallest number of datasets for tests."""

FEWEST_SEEDS = 3
"""Smallest number of seeds for tests."""

RUN = ["task", "seed"]
"""Index of a run within an entry."""

ENTRY = {
    "method": "name of the method",
    "encoder": "name of the encoder; None for methods without one",
    "pretraining": "name of the pretraining; `none` without one",
    "configuration": "hyperparameters that differ from other entries of the method, or how they were tuned",
    "kind": "`neural` or `direct`",
    "role": "role of the method: `floor`, `ceiling`, `control` or empty",
    "is_tuned": "whether a search chose the configuration, by the board's criterion and for each task",
    "label": "unique name on the board, such as `dllp (mlp, bag, weight=0.1)`",
    "is_default": "whether its hyperparameters are the method's defaults, without a search",
    "precision": "precision of products",
    "is_plain": "whether it is a single default network without pretraining, like floors and ceilings",
    "rank": "None for methods trained on labels, and for entries that lack a run that counts",
    "mark": "the role, but `supervised` for a ceiling that is not plain, or lacks an encoder where others have one",
}
"""Columns of `Board.entries`."""

_TASK = {
    "dataset": "name of the dataset",
    "bag_size": "rows of a bag; None if the bagging decides the sizes of its bags",
    "by": "natural key that defines the bags, such as `native-country+education`; usually empty",
    "classes": "number of classes; None if unknown",
    "seeds": "seeds that a complete score has: those of at least half of the methods",
    "least_rows": "rows of the smallest training bag; None if unknown",
    "most_rows": "rows of the largest training bag; None if unknown",
    "is_unequal": "whether its bags differ in size",
    "bags": "bags in words: `256`, `1–9–11,660` (smallest, median, largest) or `by zipcode`",
    "title": "name in text, such as `adult 256`",
}
"""Columns of `Board.tasks`."""

_SCORE = {
    "mean": "mean of the metric over all seeds with a value",
    "std": "sample standard deviation (n - 1); missing for a single seed",
    "values": "number of runs with a finite value of the metric",
    "failed": "number of failed runs",
    "missing": "number of expected seeds without a run",
    "undefined": "number of successful runs that computed the metric without a finite value",
    "uncomputed": "number of successful runs that did not compute the metric, such as runs older than the metric",
    "stale": "number of runs whose code (or search) has changed since",
    "runs": "number of runs, including failed ones",
    "expected": "number of runs of a complete score",
}
"""Columns of `Board.scores`."""

_MOST_COMMITS = 3
"""Largest number of commits of a version that are listed in a sentence."""

_CHANCE = 50.0
"""AUC times 100 of a constant prediction."""

_DIGITS = 9
"""Decimals to which means are compared, because sums depend on the order of additions."""


def once(function: Callable[Concatenate[Board, P], T]) -> Callable[Concatenate[Board, P], T]:
    """Compute a function of a board once: pages, plots and terminal need the same."""

    @wraps(function)
    def cached(board: Board, /, *args: P.args, **names: P.kwargs) -> T:
        cache: dict[Any, T] = board.__dict__.setdefault("_cache", {})
        key = function, args, *names.items()
        if key not in cache:
            cache[key] = function(board, *args, **names)
        return cache[key]

    return cached


@dataclass(frozen=True, eq=False)
class Board:
    """Comparable entries, in order: methods trained on labels, ranked entries, unranked entries."""

    criterion: Criterion
    metric: Metric
    bagging: str
    """with the number of training bags if it is limited (`cell.bagging_text`)"""
    max_bags: int | None
    """limit of training bags; None without a limit"""
    protocol: Mapping[str, Any] | None
    """limits of training (`cell.Protocol`); None if all methods are without epochs"""
    runs: DataFrame
    """a line for each run, sorted by entry, task and seed"""
    entries: DataFrame
    tasks: DataFrame
    counting: MultiIndex
    """runs (task, seed) that ranks and means use"""
    records: Mapping[str, Record]
    """by run id, for curves, histograms and diagnostics; has other runs, too"""

    def __repr__(self) -> str:
        entries, tasks = plural(len(self.entries), "method"), plural(len(self.tasks), "task")
        return f"<board by {self.criterion.name}, {self.bagging}: {entries}, {tasks}>"

    @property
    def sign(self) -> int:
        """1 if a larger metric is better, else -1."""
        return 1 if self.metric.maximise else -1

    @cached_property
    def labels(self) -> list[str]:
        """Labels of the entries."""
        return [*self.entries["label"]]

    @cached_property
    def titles(self) -> list[str]:
        """Titles of the tasks."""
        return [*self.tasks["title"]]

    @cached_property
    def hardware(self) -> tuple[str, ...]:
        """Devices of its runs, such as `NVIDIA H200 (cuda)`, sorted."""
        return tuple(sorted({device_text(machine) for machine in self.runs["machine"].unique()}))

    @property
    def uses_both(self) -> bool:
        """Whether some runs used a GPU and others a CPU."""
        return len({name.endswith("(cuda)") for name in self.hardware}) > 1

    @property
    def encoders(self) -> tuple[str, ...]:
        """Encoders of its entries, sorted."""
        return tuple(sorted({*self.entries["encoder"]} - {None}))

    @cached_property
    def ranked(self) -> list[int]:
        """Ranked entries, best first."""
        return [*self.entries.index[self.entries["rank"].notna()]]

    @cached_property
    def learners(self) -> list[int]:
        """Entries that are not trained on labels of rows."""
        return [*self.entries.index[~self.entries["role"].isin(UNRANKED)]]

    @cached_property
    def constants(self) -> list[int]:
        """Floors that predict the same for every row: their AUC is that of chance in every run."""
        is_chance = self.counted("auc").eq(_CHANCE).all()
        return [*self.entries.index[(self.entries["mark"] == "floor") & is_chance]]

    @cached_property
    def networks(self) -> list[int]:
        """Ranked networks, best first."""
        return [n for n in self.ranked if self.entries.at[n, "kind"] == "neural" and not self.entries.at[n, "role"]]

    @cached_property
    def counting_tasks(self) -> list[int]:
        """Tasks with a run that counts."""
        return sorted({*self.counting.get_level_values(0)})

    @property
    def datasets(self) -> list[str]:
        """Datasets of the tasks that count, sorted."""
        return sorted({*self.tasks["dataset"][self.counting_tasks]})

    def of_task(self, tasks: Iterable[int]) -> list[str]:
        """Return the dataset of each of some tasks."""
        datasets = self.tasks["dataset"].tolist()
        return [datasets[task] for task in tasks]

    def wide(self, values: Series) -> DataFrame:
        """Return values of runs, whose index is that of `runs` or a part of it: (task, seed) x entries."""
        runs = self.runs.loc[values.index]
        keys = [*zip(runs["task"].tolist(), runs["seed"].tolist(), strict=True)]
        places = {key: place for place, key in enumerate(sorted({*keys}))}
        filled = np.full((len(places), len(self.entries)), np.nan)
        filled[[places[key] for key in keys], runs["entry"].tolist()] = values
        index = MultiIndex.from_arrays(np.array([*places], dtype=int).reshape(-1, 2).T, names=RUN)
        return DataFrame(filled, index, RangeIndex(len(self.entries), name="entry"))

    @once
    def values(self, metric: str | None = None) -> DataFrame:
        """Return a test metric as it is shown: runs (task, seed) x entries."""
        return self.wide(shown(self.runs, metric or self.metric.name))

    def counted(self, metric: str | None = None) -> DataFrame:
        """Return a test metric of the runs that count: (task, seed) x entries."""
        return self.values(metric).reindex(self.counting)

    @cached_property
    def scores(self) -> DataFrame:
        """A line for each entry and task, also without runs; its columns are those of `_SCORE`."""
        runs, pair, seeds = self.runs, ["entry", "task"], self.tasks["seeds"]
        is_done = runs["status"] == "ok"
        is_without = is_done & runs["value"].isna()
        counted = {
            "failed": ~is_done,
            "undefined": is_without & runs["is_computed"],
            "uncomputed": is_without & ~runs["is_computed"],
            "stale": runs["stale"] != "",
            "present": [seed in seeds[task] for task, seed in zip(runs["task"], runs["seed"], strict=True)],
        }
        pairs = MultiIndex.from_product([self.entries.index, self.tasks.index], names=pair)
        values = runs.groupby(pair)["value"].agg(["mean", "std", "count", "size"]).reindex(pairs)
        counts = runs[pair].assign(**counted).groupby(pair).sum().reindex(pairs)
        counts = counts.assign(values=values.pop("count"), runs=values.pop("size")).fillna(0).astype(int)
        expected = np.tile(seeds.map(len).to_numpy(int), len(self.entries))
        counts["missing"] = expected - counts.pop("present")
        counts["expected"] = counts["runs"] + counts["missing"]
        return values.join(counts)

    @cached_property
    def complete(self) -> DataFrame:
        """Board's metric of the entries that have every run that counts: (task, seed) x entries."""
        counted = self.counted()
        return counted.dropna(axis="columns") if len(counted) else counted.iloc[:, :0]

    @cached_property
    def task_means(self) -> DataFrame:
        """Means over the runs that count: tasks x entries. NaN for an entry that lacks one of them."""
        return grouped_means(self.counted(), skip_unknown=False)

    def by_dataset(self, by_task: DataFrame) -> DataFrame:
        """Return means over the tasks of each dataset."""
        return grouped_means(by_task, self.of_task(by_task.index)) if len(by_task) else by_task

    def overall(self, values: DataFrame) -> Series:
        """Return means over datasets of means over their tasks of means over seeds, by entry.

        `values`: (task, seed) x entries.
        """
        return self.by_dataset(grouped_means(values)).mean().round(_DIGITS)

    def paired(self, differences: Series) -> list[float]:
        """Return means of the known differences (task, seed), by dataset or, of a single dataset, by seed."""
        known = differences.dropna()
        tasks, seeds = (known.index.get_level_values(level) for level in (0, 1))
        keys = self.of_task(tasks) if self.tasks["dataset"].nunique() > 1 else [*seeds]
        return [*known.groupby(keys, sort=False).mean()]

    @cached_property
    def leaders(self) -> frozenset[tuple[int, int]]:
        """Pairs (entry, task) of the best score of each task, and of all within one standard deviation of it.

        Ceilings and scores that lack a run are skipped. A best score over a single seed has no standard deviation, so
        its task has no leader.
        """
        counted = (self.sign * self.counted())[self.learners].groupby(level=0)
        means = counted.mean().where(counted.count().eq(counted.size(), axis="index")).dropna(how="all")
        if means.empty:
            return frozenset()
        stds, best = counted.std(), means.idxmax(axis="columns")
        limits = Series({task: means.at[task, entry] - stds.at[task, entry] for task, entry in best.items()})
        leads = means.round(_DIGITS).ge(limits.round(_DIGITS), axis="index").stack()
        return frozenset((entry, task) for task, entry in leads.index[leads])


@dataclass(frozen=True)
class _Origin:
    """Number of runs, and what produced them."""

    runs: int
    failed: int
    code: Mapping[str, Sequence[str]]
    """commits by version of llpbench"""
    libraries: Sequence[str]
    hardware: Sequence[str]

    @classmethod
    def of(cls, runs: Sequence[Record]) -> _Origin:
        """Return the origin of runs. Equal versions, libraries and devices are listed once."""
        libraries: dict[str, set[str]] = defaultdict(set)
        code: dict[str, set[str]] = defaultdict(set)
        for run in runs:
            for library, version in run["libraries"].items():
                libraries[library].add(version)
            commit, dirty = run["code"]["commit"], run["code"]["dirty"]  # no commit if llpbench was not in a checkout
            details = [(commit or "")[:10], "with uncommitted changes" if dirty else ""]
            code[str(run["code"]["version"])] |= {", ".join(filter(None, details))} - {""}
        return cls(
            runs=len(runs),
            failed=sum(run["status"] != "ok" for run in runs),
            code={version: sorted(commits) for version, commits in sorted(code.items())},
            libraries=[f"{name} {' and '.join(sorted(versions))}" for name, versions in sorted(libraries.items())],
            hardware=sorted({_hardware(run["hardware"]) for run in runs}),
        )

    def code_text(self, most: int | None = None) -> str:
        """Return versions with their commits. More than `most` commits are counted instead of listed."""
        texts = []
        for version, commits in self.code.items():
            listed = most is None or len(commits) <= most
            details = ", ".join(commits) if listed else f"{len(commits)} commits"
            texts.append(f"{version} ({details})" if details else version)
        return ", ".join(texts)

    def lines(self) -> list[str]:
        """Return the number of runs with their code, the libraries and the hardware, each as a sentence."""
        runs = plural(self.runs, "run") + (f" ({self.failed:,} failed)" if self.failed else "")
        return [
            f"{runs} by llpbench {self.code_text(_MOST_COMMITS)}.",
            f"Libraries: {', '.join(self.libraries)}.",
            f"Hardware: {'; '.join(self.hardware)}.",
        ]


def device_text(machine: str) -> str:
    """Return the name of a device in the column `machine` of the tidy table: `AMD EPYC (cpu)`."""
    return _device(dict(zip(MACHINE, json.loads(machine), strict=True)))


def _device(hardware: Mapping[str, Any]) -> str:
    """Return the name of a device. Runs that failed early have none."""
    return f"{hardware['name']} ({hardware['device']})" if hardware.get("device") else "none (failed before)"


def _hardware(hardware: Mapping[str, Any]) -> str:
    if not hardware:
        return _device(hardware)
    parts = [_device(hardware), f"{plural(hardware['threads'], 'thread')} a run", hardware["precision"]]
    return ", ".join([*parts, "compiled"] if hardware["compiled"] else parts)


@dataclass(frozen=True)
class Leaderboards:
    """All boards of a journal."""

    boards: tuple[Board, ...]
    origin: _Origin
    unlabelled: tuple[Board, ...] = ()
    """boards of datasets without labels, which have no ranks"""

    def __repr__(self) -> str:
        return f"<leaderboards: {', '.join(map(repr, (*self.boards, *self.unlabelled))) or 'none'}>"

    def groups(self) -> list[dict[str, Board]]:
        """Return boards of the same bagging and protocol by criterion, groups with most runs first.

        Boards with a limited number of bags come last.
        """
        groups: dict[tuple[str, str], dict[str, Board]] = defaultdict(dict)
        for board in self.boards:
            groups[board.bagging, json.dumps(board.protocol, sort_keys=True)][board.criterion.name] = board

        def order(group: Mapping[str, Board]) -> tuple[bool, int]:
            board = next(iter(group.values()))
            return board.max_bags is not None, -len(board.runs)

        return sorted(groups.values(), key=order)

    def headline_boards(self, most: int | None = 2) -> list[Board]:
        """Return the boards without labels of rows, of the `most` groups with most runs."""
        groups = self.groups()[:most]
        return [group.get("mpiou", next(iter(group.values()))) for group in groups]

    def main_boards(self) -> list[Board]:
        """Return the headline boards, then those of the same groups whose epochs are chosen by validation labels."""
        headline = self.headline_boards()
        labelled = [group["auc"] for group in self.groups()[:2] if "auc" in group]
        return [*headline, *(board for board in labelled if board not in headline)]


def entry_label(method: str, encoder: str | None, pretraining: str, configuration: str) -> str:
    """Return the name of an entry: `dllp (mlp, bag, weight=0.1)`."""
    configuration = configuration.replace('numbers="scores"', "normal scores")
    details = ", ".join(filter(None, (encoder, pretraining if pretraining != "none" else "", configuration)))
    return f"{method} ({details})" if details else method


def grouped_means(
    values: DataFrame, groups: Iterable[Hashable] | None = None, *, skip_unknown: bool = True
) -> DataFrame:
    """Return means of groups of rows, sorted by group; by default by the first level of the index, the task.

    Unknown values are skipped, or make the mean unknown. `DataFrame.groupby` does the same, ten times as slowly.
    """
    names = [*(values.index.get_level_values(0) if groups is None else groups)]
    places: dict[Any, int] = {name: place for place, name in enumerate(sorted({*names}))}  # type: ignore[type-var]
    numbers, inverse = values.to_numpy(dtype=float), [places[name] for name in names]
    is_known = ~np.isnan(numbers) | (not skip_unknown)
    sums, counts = np.zeros((2, len(places), numbers.shape[1]))
    np.add.at(sums, inverse, np.where(is_known, numbers, 0.0))
    np.add.at(counts, inverse, is_known)
    with np.errstate(invalid="ignore"):
        return DataFrame(sums / counts, Index([*places]), values.columns)
