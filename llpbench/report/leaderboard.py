"""Columns of leaderboards, such as mean and rank interval: a registry of functions of a board; and the one verdict.

Columns use the runs that count (`tabulate`) and the board's metric. A plugin adds a column with `register_column`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from pandas import DataFrame, Series, isna, read_csv

from llpbench.core import PACKAGE
from llpbench.core.bags import FloatArray
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import fault, plural
from llpbench.report import statistics
from llpbench.report import wording as words
from llpbench.report.boards import REFERENCE, Board, once
from llpbench.report.report_table import Field, Heading
from llpbench.results.frame import MACHINE

_DIGITS = 9

LEARNERS = ("forest", "boosting", "logistic")
"""reference learners; the first one, which needs the fewest labels, defines the column of leaderboards"""

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""numbers of labelled rows"""

_DRAWS = 400
"""bootstrap samples of an interval"""

Compute = Callable[[Board], DataFrame]
"""Function that returns the parts of a column by entry. Missing entries and NaN are unknown."""

Format = Callable[[Mapping[str, Any]], str | Sequence[str]]
"""Function that returns the text (or lines) of the parts of an entry."""


@dataclass(frozen=True)
class LeaderboardColumn:
    """Column of every leaderboard."""

    key: str
    """name in code and in `boards.csv`"""
    title: str
    """heading; `{metric}` and `{level}` are replaced by the board's metric and the confidence level"""
    parts: tuple[str, ...]
    """names of its numbers; the column is unknown where the first one is"""
    compute: Compute
    format: Format
    caption: str = ""
    """one sentence; those of built-in columns are in `templates/captions.j2`"""
    default: bool = True
    """whether the page shows it without a click"""

    def computed(self, board: Board) -> DataFrame:
        """Return its parts by entry. Raises `LLPBenchError` for an error in a plugin's code."""
        return self._call(lambda: self.compute(board).reindex(columns=self.parts))

    def _call(self, function: Callable[[], Any]) -> Any:
        """Return the result of a function. The error of a plugin becomes one line."""
        try:
            return function()
        except Exception as error:
            if self._is_built_in:
                raise
            file = getattr(sys.modules.get(self.compute.__module__), "__file__", None) or self.compute.__module__
            raise LLPBenchError(f"leaderboard column {self.key!r} ({file}) failed: {fault(error, file)}.") from error

    def explained(self, board: Board) -> str:
        """Return the caption."""
        return words.caption(f"column_{self.key}", board.metric) if self._is_built_in else self.caption

    @property
    def _is_built_in(self) -> bool:
        return self.compute.__module__ == __name__

    def heading(self, metric: str) -> Heading:
        """Return the heading on a board ranked by a metric (its title)."""
        return Heading(self.title.format(metric=metric, level=words.LEVEL))

    @property
    def names(self) -> list[str]:
        """Names of its parts in `boards.csv`."""
        prefix = "" if self.key == "mean" else self.key
        return ["_".join(filter(None, (prefix, part))) for part in self.parts]

    def fields(self, lines: DataFrame) -> list[Field]:
        """Return the texts of entries, from lines of `standings` or of `boards.csv`."""
        return [
            self._field(dict(zip(self.parts, of, strict=True))) for of in zip(*map(lines.get, self.names), strict=True)
        ]

    def _field(self, parts: Mapping[str, Any]) -> Field:
        if isna(parts[self.parts[0]]):
            return Field((words.NOTHING,))
        text = self._call(lambda: self.format(parts))
        return Field((text,) if isinstance(text, str) else tuple(text))


COLUMNS: dict[str, LeaderboardColumn] = {}
"""All columns by key, in the order of the leaderboard."""


def register_column(column: LeaderboardColumn) -> LeaderboardColumn:
    """Add a column to every leaderboard. Raises `LLPBenchError` for a key that is taken."""
    if column.key in COLUMNS:
        raise LLPBenchError(f"leaderboard column {column.key!r} is registered already. Choose another key.")
    COLUMNS[column.key] = column
    return column


def _blocks(board: Board, entries: Sequence[int] | None = None) -> DataFrame:
    """Return the values that tests and intervals treat as independent: blocks x entries, larger is better.

    Blocks are means of datasets. A single dataset has its seeds as blocks, if all of its tasks have them.
    """
    values = board.sign * (board.complete if entries is None else board.complete[entries])
    means = board.by_dataset(board.by_task(values)) if len(values) else values
    if len(means) == 1:
        seeds = board.by_seed(values).droplevel(0)
        means = seeds if len(seeds) else means
    return means.round(_DIGITS)


def _is_even(board: Board) -> bool:
    """Return whether `_blocks` use every run that counts: tasks of a single dataset may have different seeds."""
    if len(board.datasets) > 1:
        return True
    seeds = board.counting.to_frame(index=False).groupby("task")["seed"]
    return len({tuple(of_task) for _, of_task in seeds}) == 1


def _floor_of(board: Board, entry: int) -> int | None:
    """Return the floor of an entry's encoder, in its precision if possible, else in float32.

    Entries without an encoder have the floor of the board's first encoder for which it is complete.
    """
    encoders, precisions = board.entries["encoder"].tolist(), board.entries["precision"].tolist()
    own = [encoders[entry]] if encoders[entry] or not board.encoders else [*board.encoders]
    plain = board.entries.index[board.entries["is_plain"] & (board.entries["role"] == "floor")]

    def order(other: int) -> tuple[bool, int, bool, bool]:
        precision, place = precisions[other], own.index(encoders[other])
        return other not in board.complete, place, precision != precisions[entry], precision != REFERENCE

    return min((other for other in plain if encoders[other] in own), key=order, default=None)


def _rank_intervals(board: Board) -> DataFrame:
    independent = _blocks(board, board.ranked)
    if len(independent) < 2 or not _is_even(board):
        return DataFrame(columns=["low", "high"])
    low, high = statistics.rank_intervals(independent)
    return DataFrame({"low": low, "high": high}, index=independent.columns)


_RELATIVES = ("bag-gp-gbdt", "bag-gp", "em-gbdt", "count-gbdt")
"""Methods that contain each other; they are not compared."""

_CHOSEN_ON = "adult bank_marketing california credit diamonds electricity flights_2013 flights_2013_sample letter"
DEVELOPED_ON = dict.fromkeys(_RELATIVES, tuple(_CHOSEN_ON.split()))
"""Datasets that took part in a choice of a method's settings. They do not count in its favour: when it is compared with
others as the first of a board, or by `llpbench compare`."""


@dataclass(frozen=True)
class _Comparisons:
    """Leads of the first ranked entry over the other methods of a board: the one count of significant differences."""

    leads: Mapping[int, statistics.MeanDifference]
    """first entry minus the best entry of each other method, in the order of the board, positive if it is better"""
    over: str
    """the independent units: `15 datasets`, `3 seeds` of a single dataset, or `5 datasets of its development`"""
    left_out: tuple[str, ...]
    """datasets of the board that are not used, because the first method was developed on them"""

    @property
    def is_tested(self) -> bool:
        """Whether there are enough datasets and seeds for tests."""
        return any(lead.p == lead.p for lead in self.leads.values())


@once
def comparisons(board: Board) -> _Comparisons:
    """Return the comparisons of the first entry with the best entry of each other method.

    Floors, parts of the first method and datasets of its development are left out.
    """
    if not board.ranked:
        return _Comparisons({}, "", ())
    methods, roles = board.entries["method"].tolist(), board.entries["role"].tolist()
    first = methods[board.ranked[0]]
    relatives = {first, *(_RELATIVES if first in _RELATIVES else ())}
    rivals: dict[str, int] = {}
    for entry in board.ranked:
        if methods[entry] not in relatives and roles[entry] != "floor":
            rivals.setdefault(methods[entry], entry)
    values = _blocks(board, board.ranked)
    several = len(board.datasets) > 1
    left_out = tuple(name for name in board.datasets if several and name in DEVELOPED_ON.get(first, ()))
    own = len(left_out) == len(values)
    values = values.drop([] if own else [*left_out])
    leads = statistics.compared({entry: [*(values[board.ranked[0]] - values[entry])] for entry in rivals.values()})
    fewest_seeds = board.counting.get_level_values(0).value_counts().min()
    if not _is_even(board):
        means = board.sign * board.mean()["mean"]
        points = {entry: float(means[board.ranked[0]] - means[entry]) for entry in leads}
        leads = {entry: replace(lead, points=points[entry], low=np.nan, high=np.nan) for entry, lead in leads.items()}
    if not several or own or len(values) < statistics.FEWEST_DATASETS or fewest_seeds < statistics.FEWEST_SEEDS:
        leads = {entry: replace(lead, p=np.nan, p_similar=np.nan) for entry, lead in leads.items()}
    over = plural(len(values), "dataset" if several else "seed")
    return _Comparisons(leads, f"{over} of its development" if own else over, () if own else left_out)


def _first(board: Board) -> DataFrame:
    """Return the difference of each compared entry from the first one, with corrected p if it is tested."""
    leads = comparisons(board).leads.items()
    return DataFrame.from_dict({entry: vars(lead.times(-board.sign)) for entry, lead in leads}, orient="index")


def _against_floor(board: Board) -> DataFrame:
    """Return the difference of each entry from the floor of its encoder. The floor itself has none."""
    gains, means = {}, board.by_task(board.complete)
    independent, overall, even = _blocks(board), board.mean()["mean"], _is_even(board)
    for entry in board.complete:
        floor = _floor_of(board, entry)
        if floor is None or floor == entry or floor not in board.complete:
            continue
        gain = board.sign * (independent[entry] - independent[floor])
        low, high = statistics.interval(gain) if even else (np.nan, np.nan)
        gains[entry] = {
            "points": overall[entry] - overall[floor],
            "low": low,
            "high": high,
            "ahead": int((board.sign * (means[entry] - means[floor]) > 0).sum()),
            "of": len(means),
        }
    return DataFrame.from_dict(gains, orient="index")


def _seconds(board: Board) -> DataFrame:
    """Return seconds of training, averaged over datasets, and the share of runs on a GPU if others ran on a CPU."""
    seconds = board.by_dataset(board.by_task(board.costs())).mean()
    place = MACHINE.index("device")
    devices = {machine: float(json.loads(machine)[place] == "cuda") for machine in board.runs["machine"].unique()}
    used = board.wide(board.runs["machine"].map(devices))
    share = used.reindex(index=board.counting, columns=seconds.index).mean()
    return DataFrame({"": seconds, "gpu": share if 0 < share.sum() < len(share) else 0.0})


@cache
def _label_curves() -> DataFrame:
    """Return the published curves, AUC x 100: (learner, dataset, seed) x `SIZES`. Empty if they are not installed.

    They are test AUCs by number of labelled training rows, on the splits of the benchmark
    (`python -m benchmarks.labels_per_bag curves`).
    """
    for folder in (PACKAGE, PACKAGE.parent):
        if (path := folder / "leaderboards" / "core" / "label-curves.csv").is_file():
            return read_csv(path, index_col=["learner", "dataset", "seed"]).rename(columns=int).sort_index() * 100
    return DataFrame(columns=[*SIZES])


def label_worth(scores: DataFrame, bags: Series, learner: str = LEARNERS[0]) -> DataFrame:
    """Return `per_bag` with its interval (`low`, `high`), and `labels` in all bags, by entry.

    `scores`: AUC x 100, (dataset, seed) x entries. `bags`: training bags of each dataset; their geometric mean
    counts. Without curves of all datasets there is no result.
    """
    datasets = [*scores.index.unique(0)]
    curves = _label_curves()
    known = {dataset for name, dataset, _ in curves.index if name == learner}
    if not datasets or not {*datasets} <= known:
        return DataFrame(columns=["per_bag", "low", "high", "labels"])
    of_datasets = [
        (scores.loc[name].to_numpy(), curves.loc[(learner, name)].to_numpy(), np.log(bags[name])) for name in datasets
    ]
    rng = np.random.default_rng(0)

    def again(values: FloatArray) -> Any:
        return values[rng.integers(len(values), size=len(values))].mean(axis=0)

    def worth(rows: Iterable[int], over_seeds: Callable[[FloatArray], Any]) -> tuple[FloatArray, FloatArray]:
        """Return labels in all bags, and per bag, from the rows of `of_datasets`."""
        aucs, of_learner, numbers = zip(*(of_datasets[row] for row in rows), strict=True)
        auc, curve = (np.mean([*map(over_seeds, each)], axis=0) for each in (aucs, of_learner))
        rising = np.maximum.accumulate([50.0, *curve])
        labels = np.exp(np.interp(auc, rising, np.log([1, *SIZES])))  # where the mean curve reaches each AUC
        return labels, labels / np.exp(np.mean(numbers))

    labels, per_bag = worth(range(len(datasets)), partial(np.mean, axis=0))
    drawn = [worth(rng.integers(len(datasets), size=len(datasets)), again)[1] for _ in range(_DRAWS)]
    tail = (1 - statistics.CONFIDENCE) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail), axis=0)
    return DataFrame({"per_bag": per_bag, "low": low, "high": high, "labels": labels}, scores.columns)


def _labels(board: Board) -> DataFrame:
    """Return the number of labels that a bag is worth, of entries that learn from bags.

    Curves are of new rows, so there is none for rows of new bags, on which methods are worse.
    """
    entries = [entry for entry in board.complete if entry in board.learners]
    if board.metric.name != "auc" or not entries or "split=bags" in board.bagging:
        return DataFrame(columns=["per_bag"])
    runs = board.runs[board.runs["task"].isin(board.counting_tasks)]
    by_task = np.log(runs["bags"].where(runs["bags"] > 0)).groupby(runs["task"]).mean()
    bags = np.exp(by_task.groupby(board.of_task(by_task.index)).mean())
    return label_worth(board.by_seed(board.complete[entries]), bags)


def _coverage(board: Board) -> DataFrame:
    """Return the numbers of runs with a score, failed, expected and stale."""
    sums = board.scores.groupby(level="entry")[["values", "failed", "expected", "stale"]].sum()
    return sums.set_axis(["done", "failed", "expected", words.STALE], axis="columns")


def _mean_text(parts: Mapping[str, Any]) -> Sequence[str]:
    if not parts["n"]:
        return f"{parts['mean']:.2f}", "no seed in common"
    return (words.summary_text(parts["mean"], parts["std"], parts["n"]),)


def _floor_text(parts: Mapping[str, Any]) -> Sequence[str]:
    return _interval_of(parts, "points", 1, "+"), f"ahead in {parts['ahead']:.0f}/{parts['of']:.0f}"


def _interval_of(parts: Mapping[str, Any], name: str, digits: int, sign: str = "") -> str:
    """Return the text of a part with its interval, if there is one: `+1.9 [-3.2, 7.0]`."""
    ends = None if isna(parts["low"]) else (parts["low"], parts["high"])
    return statistics.interval_text(parts[name], ends, digits, sign)


def _seconds_text(parts: Mapping[str, Any]) -> Sequence[str]:
    return (words.seconds_text(parts[""]) + (" GPU" if parts["gpu"] else ""),)


def _labels_text(parts: Mapping[str, Any]) -> Sequence[str]:
    more = "more than " if parts["labels"] >= SIZES[-1] else ""
    return more + _interval_of(parts, "per_bag", 1 + (parts["per_bag"] < 0.05)), f"{more}{parts['labels']:,.0f} in all"


def _coverage_text(parts: Mapping[str, Any]) -> Sequence[str]:
    lacking = [f"{parts[what]:.0f} {what}" for what in ("failed", words.STALE) if parts[what]]
    return f"{parts['done']:.0f}/{parts['expected']:.0f}", *lacking


def _first_text(parts: Mapping[str, Any]) -> Sequence[str]:
    return (_interval_of(parts, "points", 1, "+") + (" *" if parts["p"] < 1 - statistics.CONFIDENCE else ""),)


for _column in (
    LeaderboardColumn("mean", "mean {metric}", ("mean", "std", "n"), lambda board: board.mean(), _mean_text),
    LeaderboardColumn(
        "interval",
        "{level} CI of rank",
        ("low", "high"),
        _rank_intervals,
        lambda parts: f"{parts['low']:.0f}–{parts['high']:.0f}",
    ),
    LeaderboardColumn("first", "minus first", ("points", "low", "high", "p", "p_similar"), _first, _first_text),
    LeaderboardColumn("floor", "against floor", ("points", "low", "high", "ahead", "of"), _against_floor, _floor_text),
    LeaderboardColumn("labels", "labels per bag", ("per_bag", "low", "high", "labels"), _labels, _labels_text),
    LeaderboardColumn("seconds", "seconds", ("", "gpu"), _seconds, _seconds_text),
    LeaderboardColumn(
        "coverage", "coverage", ("done", "failed", "expected", words.STALE), _coverage, _coverage_text, default=False
    ),
):
    register_column(_column)
