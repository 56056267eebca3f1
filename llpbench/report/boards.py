"""Boards: the frames from which tables, plots, page, CSV and notebooks are made.

A board compares *entries* (a method with its encoder, pretraining and configuration) on *tasks* (a dataset with its
bags) under one criterion, bagging and protocol. A *score* is the result of an entry on a task, over all seeds. Frames
have one line for each run, entry, task and score. Entries and tasks are named by their position, from 0.

`board.runs` has `entry`, `task`, `value` (the board's metric as shown), `is_computed` (whether the run computed the
metric), `search` (id of the search that chose the configuration, or None) and the columns of `results.frame`.
`board.entries` and `board.tasks` have the columns `ENTRY` and `_TASK`, `board.scores` those of `_SCORE`. For single
values use `board.labels[entry]`, `board.titles[task]` and `board.scores.loc[entry, task]`.
Metrics are times 100.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from pandas import DataFrame, Index, MultiIndex, RangeIndex, Series

from llpbench.core.criteria import Criterion, Metric
from llpbench.core.record import Record
from llpbench.core.text import one_line, plural, some_of
from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.results.frame import shown

P = ParamSpec("P")
T = TypeVar("T")

UNRANKED = ("ceiling", "control")
"""Roles of methods that are trained on labels of rows."""

REFERENCE = "float32"
"""Default precision of products."""

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
    def hardware(self) -> list[str]:
        """Devices of its runs, such as `NVIDIA H200 (cuda)`, sorted."""
        return words.device_texts(self.runs["machine"])

    @cached_property
    def training(self) -> str:
        """Its protocol in words, as its networks were trained."""
        return words.protocol_text(self.protocol, {*self.runs["average"][self.runs["max_epochs"].notna()]})

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

    def by_task(self, values: DataFrame) -> DataFrame:
        """Return means over the known seeds of each task, of values (task, seed) x entries."""
        return _grouped_means(values)

    def by_dataset(self, by_task: DataFrame) -> DataFrame:
        """Return means over the tasks of each dataset."""
        return _grouped_means(by_task, self.of_task(by_task.index)) if len(by_task) else by_task

    def overall(self, values: DataFrame) -> Series:
        """Return means over datasets of means over their tasks of means over seeds, by entry.

        `values`: (task, seed) x entries.
        """
        return self.by_dataset(self.by_task(values)).mean().round(_DIGITS)

    def paired(self, differences: Series) -> list[float]:
        """Return means of the known differences (task, seed), by dataset or, of a single dataset, by seed.

        They are means over tasks of means over seeds. All tasks of a single dataset have its seeds.
        """
        known = differences.dropna().to_frame()
        several = len({*self.of_task(known.index.get_level_values(0))}) > 1
        return [*(self.by_dataset(self.by_task(known)) if several else self.by_seed(known)).squeeze(axis="columns")]

    @cached_property
    def leaders(self) -> frozenset[tuple[int, int]]:
        """Pairs (entry, task) of the best score of each task, and of all within one standard deviation of it.

        Ceilings and scores that lack a run that counts are skipped. A best score over a single seed has no standard
        deviation, so its task has no leader.
        """
        counted = self.counted()[self.learners].groupby(level=0)
        is_known = counted.count().eq(counted.size(), axis="index")
        means, stds = (self.scores[what].unstack("entry") for what in ("mean", "std"))
        means = (self.sign * means).reindex_like(is_known).where(is_known).dropna(how="all")
        if means.empty:
            return frozenset()
        best = means.idxmax(axis="columns")
        limits = Series({task: means.at[task, entry] - stds.at[task, entry] for task, entry in best.items()})
        leads = means.round(_DIGITS).ge(limits.round(_DIGITS), axis="index").stack()
        return frozenset((entry, task) for task, entry in leads.index[leads])

    @once
    def mean(self, metric: str | None = None) -> DataFrame:
        """Return the mean over datasets and its standard deviation over seeds, of entries with every run that counts.

        Seeds of a dataset share its split at every bag size, so they are paired. Seeds of different datasets are
        independent, so their variances add.
        """
        counted = self.counted(metric).dropna(axis="columns")
        if counted.empty:
            return DataFrame({"mean": [], "std": [], "n": []})
        paired = self.by_seed(counted).groupby(level=0)
        stds = paired.std().round(_DIGITS + 3).reindex(self.datasets)
        spread = np.sqrt((stds**2).sum(skipna=False)) / len(stds)
        n = int(paired.size().reindex(self.datasets, fill_value=0).min())
        return DataFrame({"mean": self.overall(counted), "std": spread, "n": n})

    def by_seed(self, counted: DataFrame) -> DataFrame:
        """Return means over the tasks of a dataset, by (dataset, seed), for seeds that all of its tasks have."""
        tasks, seeds = (counted.index.get_level_values(level) for level in (0, 1))
        pairs = [*zip(self.of_task(tasks), seeds, strict=True)]
        number = Counter(self.of_task(tasks.unique()))
        numbers, means = Counter(pairs), _grouped_means(counted, pairs)
        return means[[numbers[pair] == number[pair[0]] for pair in means.index]]

    def costs(self, clock: str = "seconds_training") -> DataFrame:
        """Return seconds of training of the runs that count, (task, seed) x entries, if all of them were recorded."""
        seconds = self.wide(self.runs[clock])
        return seconds.reindex(index=self.counting, columns=self.complete.columns).dropna(axis="columns")

    def robustness(self) -> DataFrame:
        """Return the robustness ranking: one row per entry, by its position on the board, best first.

        `mean_rank`: mean rank of the standard deviation over seeds within each task; `std` and `mean`: mean standard
        deviation and mean of the board's metric, averaged over the tasks of a dataset, then over datasets; `tasks`:
        their number; `rank`: entries with equal mean ranks share it. Runs that count are used. Entries trained on
        labels, constant predictions and `unrankable` entries are left out.
        """
        stds = self._deviations.dropna(axis="columns")
        means = self.counted()[stds.columns].groupby(level=0).mean().loc[stds.index]
        ranking = DataFrame(
            {
                "mean_rank": statistics.robustness(stds.T, self.of_task(stds.index)),
                "std": self.by_dataset(stds).mean(),
                "mean": self.by_dataset(means).mean(),
                "tasks": len(stds),
            }
        )
        ranking.insert(0, "rank", ranking["mean_rank"].round(_DIGITS).rank(method="min").astype(int))
        return ranking.sort_values(["rank", "std"], kind="stable")

    @property
    def unrankable(self) -> list[int]:
        """Entries that lack a standard deviation, two seeds, on a task where others have one."""
        stds = self._deviations
        return [*stds.columns[stds.isna().any()]]

    @cached_property
    def _deviations(self) -> DataFrame:
        """Standard deviations over seeds, tasks x entries. Tasks on which no entry has two seeds are left out."""
        values = self.counted()[[entry for entry in self.learners if entry not in self.constants]]
        stds = values.groupby(level=0).std().round(_DIGITS).dropna(axis="index", how="all")
        return stds if len(stds) else stds[[]]

    def setting(self) -> str:
        """Return protocol, encoders, number of seeds and hardware."""
        several = "encoders" if len(self.encoders) > 1 else "encoder"
        encoders = f"{several} {', '.join(self.encoders)}" if self.encoders else "no encoder"
        numbers = sorted({*self.scores["expected"]}) or [0]
        seeds = plural(numbers[-1], "seed")
        if numbers[0] != numbers[-1]:
            seeds = f"{numbers[0]} to {seeds} (varies by task and method)"
        return " · ".join([self.training, encoders, seeds, *self.hardware])

    def tasks_text(self) -> str:
        """Return notes on several classes, bags of different sizes and tasks that do not count."""
        tasks = self.tasks
        unequal = next(iter(tasks["bags"][tasks["is_unequal"] & (tasks["by"] == "")]), "")
        several = tasks[tasks["classes"].fillna(2) > 2]
        classes = words.caption("classes", several=dict(zip(several["dataset"], several["classes"], strict=True)))
        unusual = words.caption("unequal_bags", unequal=unequal) if unequal else ""
        return " ".join(filter(None, (classes, unusual)))

    def datasets_text(self, *, named: int = 0) -> str:
        """Return the number of datasets behind the ranks, with their names if they are at most `named`.

        A caption says if they are few.
        """
        names = self.datasets if len(self.datasets) <= named else ()
        return words.caption("datasets", number=len(self.datasets), names=names)

    @cached_property
    def notes(self) -> dict[str, tuple[str, ...]]:
        """All notes by their heading."""
        makers = {
            words.FAILED: _failures,
            words.WITHOUT_VALUE: _runs_without_value,
            words.STALE_NOTE: _stale_runs,
            words.DIFFERENT_DATA: _mixed_data,
        }
        return {heading: tuple(make(self)) for heading, make in makers.items()}


def _failures(board: Board) -> Iterator[str]:
    """Yield a line for each entry, task and reason."""
    failed = board.runs[board.runs["status"] != "ok"]
    reasons = failed["reason"].map(lambda reason: one_line(reason) or "no reason was given")
    return _of_runs(board, failed, reasons.where(failed["status"] == "failed", failed["status"] + ": " + reasons))


def _runs_without_value(board: Board) -> Iterator[str]:
    """Yield a line on all runs that did not compute the metric, and one for each score in which it is undefined."""
    runs, title = board.runs, board.metric.title
    without = runs[(runs["status"] == "ok") & runs["value"].isna()]
    older = without[~without["is_computed"]]
    if len(older):
        labels = some_of([board.labels[entry] for entry in older["entry"].unique()], 3)
        yield (
            f"{plural(len(older), 'run')} of {', '.join(labels)}: {title} was not computed. "
            "To repeat older runs: llpbench run ... --retry done"
        )
    undefined = without[without["is_computed"]]
    yield from _of_runs(board, undefined, [f"{title} is undefined"] * len(undefined))


def _of_runs(board: Board, runs: DataFrame, texts: Iterable[str]) -> Iterator[str]:
    """Yield each text with the entry, task and seeds of its runs."""
    for (entry, task, text), of in runs.assign(text=[*texts]).groupby(["entry", "task", "text"], sort=False):
        seeds = f"seed{'s' if len(of) > 1 else ''} {', '.join(map(str, of['seed']))}"
        yield f"{board.labels[entry]} on {board.titles[task]}, {seeds}: {text}"


def _stale_runs(board: Board) -> Iterator[str]:
    """Yield a line for each entry and change of the code; a single line if all runs share the change."""
    reasons = {*board.runs["stale"]}
    if len(board.runs) > 1 and len(reasons) == 1 and "" not in reasons:
        yield f"all {len(board.runs):,} runs: {reasons.pop()}"
        return
    stale = board.runs[board.runs["stale"] != ""]
    for (entry, reason), runs in stale.groupby(["entry", "stale"], sort=False):
        titles = ", ".join(board.titles[task] for task in runs["task"].unique())
        yield f"{board.labels[entry]} on {titles} ({plural(len(runs), 'run')}): {reason}"


def _mixed_data(board: Board) -> Iterator[str]:
    """Yield a line for each dataset with different tables, and for each seed with different bags."""
    data = DataFrame([board.records[run]["data"] for run in board.runs["run"]], board.runs.index)
    data = data.reindex(columns=["fingerprint", "manifest"])
    tasks = board.tasks.loc[board.runs["task"], ["dataset", "bag_size", "by"]].itertuples(index=False, name=None)
    names = [f"{name} by {key}" if key else f"{name} {size}" if size else name for name, size, key in tasks]
    seeds = [f"{name}, seed {seed}" for name, seed in zip(names, board.runs["seed"], strict=True)]
    for column, kind, places in (
        ("fingerprint", "versions of the data", board.runs["dataset"]),
        ("manifest", "assignments to bags", seeds),
    ):
        numbers = data[column].groupby(places).nunique()
        for name, number in numbers[numbers > 1].items():
            yield f"{name}: its runs saw {number} different {kind}, so they cannot be compared"


def entry_label(method: str, encoder: str | None, pretraining: str, configuration: str) -> str:
    """Return the name of an entry: `dllp (mlp, bag, weight=0.1)`."""
    configuration = configuration.replace('numbers="scores"', "normal scores")
    details = ", ".join(filter(None, (encoder, pretraining if pretraining != "none" else "", configuration)))
    return f"{method} ({details})" if details else method


def _grouped_means(values: DataFrame, groups: Iterable[Hashable] | None = None) -> DataFrame:
    """Return means of groups of rows, sorted by group; by default by the first level of the index, the task.

    Unknown values are skipped. `DataFrame.groupby` does the same, ten times as slowly.
    """
    names = [*(values.index.get_level_values(0) if groups is None else groups)]
    places: dict[Any, int] = {name: place for place, name in enumerate(sorted({*names}))}  # type: ignore[type-var]
    numbers, inverse = values.to_numpy(dtype=float), [places[name] for name in names]
    is_known = ~np.isnan(numbers)
    sums, counts = np.zeros((2, len(places), numbers.shape[1]))
    np.add.at(sums, inverse, np.where(is_known, numbers, 0.0))
    np.add.at(counts, inverse, is_known)
    with np.errstate(invalid="ignore"):
        return DataFrame(sums / counts, Index([*places]), values.columns)
