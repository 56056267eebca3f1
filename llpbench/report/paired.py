"""Differences between an entry of yours and named ones, paired by task and seed: "is mine better, and how sure?"

An entry is a method with its encoder, pretraining and configuration. A task is a dataset with bags. Methods share the
split and the bags of a seed, so their difference on it is free of the variation between seeds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from pandas import DataFrame, Series

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import hint, plural
from llpbench.report import statistics
from llpbench.report.boards import entry_label
from llpbench.report.wording import interval_text
from llpbench.results.frame import NO_PROTOCOL, shown

ENTRY = ["method", "encoder", "pretraining", "configuration", "protocol"]
"""Columns of the tidy table that name an entry, and the protocol of its training."""

_TASK = ["dataset", "bag_size", "seed"]
"""Columns that pair two runs of one bagging."""


@dataclass(frozen=True)
class PairedDifference:
    """Mean of an entry minus that of another one on the same tasks and seeds."""

    mine: str
    other: str
    points: float
    low: float
    """lower end of the 95 % interval; NaN with fewer than three independent values"""
    high: float
    datasets: int
    seeds: int
    """smallest number of seeds of a dataset"""
    p: float
    """of a paired t test, corrected after Holm for all differences of `mine`; NaN without an interval"""
    compared: int
    """differences of `mine`"""
    maximise: bool = True
    """whether a positive difference is better"""

    def __str__(self) -> str:
        known = self.low == self.low
        text = interval_text(self.points, (self.low, self.high) if known else None, sign="+")
        of = f"{plural(self.datasets, 'dataset')}, " if self.datasets > 1 else ""
        return f"{self.mine} minus {self.other}: {text}, {of}{plural(self.seeds, 'seed')}, {self.verdict}"

    @property
    def verdict(self) -> str:
        """Whether the difference is significant, or why nothing can be said."""
        if self.p != self.p:
            return f"too few {'datasets' if self.datasets > 1 else 'seeds'} for an interval"
        if self.p < 1 - statistics.CONFIDENCE:
            return f"significantly {'better' if (self.points > 0) == self.maximise else 'worse'}"
        corrected = f" after correction for {self.compared} comparisons" if self.low > 0 or self.high < 0 else ""
        return f"not significant{corrected}"


def differences(
    frame: DataFrame, yours: Collection[str], names: Sequence[str], metric: str, *, maximise: bool = True
) -> tuple[list[PairedDifference], list[str]]:
    """Return the differences of your entries from the named methods, and a line for each that is impossible.

    `frame`: tidy runs of one bagging and criterion. `yours`: ids of your runs; only these count as yours. Methods of
    yours that others have run, too, are compared only if all of yours are such. Raises `LLPBenchError` for a method
    without runs.
    """
    runs = frame.assign(value=shown(frame, metric), mine=frame["run"].isin([*yours]))
    runs = runs.dropna(subset="value").fillna({"encoder": "", "bag_size": 0}).round({"value": 9})
    for name in names:
        if name not in {*frame["method"]}:
            near = hint(name, {*frame["method"]})
            raise LLPBenchError(f"there are no results of {name!r} on your tasks. {near}Choose other names for --with.")
    entries = dict([*runs[runs["mine"]].groupby(ENTRY, sort=False)])
    published = {*runs["method"][~runs["mine"]]}
    new = {label: each for label, each in entries.items() if label[0] not in published}
    found: list[PairedDifference] = []
    impossible: list[str] = []
    for entry, mine in (new or entries).items():
        of_entry = []
        for name in names:
            rival = _rival(runs[runs["method"] == name], entry, mine)
            if rival is None:
                if name != entry[0]:
                    impossible.append(
                        f"{entry_label(*entry[:4])} cannot be compared with {name}: no run has its protocol."
                    )
            elif (difference := _difference(entry, mine, *rival)) is not None:
                of_entry.append(difference)
        found += _corrected(of_entry, maximise)
    return found, impossible


def _rival(runs: DataFrame, entry: tuple[str, ...], mine: DataFrame) -> tuple[tuple[str, ...], DataFrame] | None:
    """Return the entry among `runs` that is most like `entry`, with its runs; None if no protocol fits.

    Defaults come before other configurations, then those with the same encoder and pretraining, then those with most
    runs on the tasks of `mine`, then yours before others.
    """
    tasks = {*_pairs(mine).index}

    def order(candidate: tuple[tuple[str, ...], DataFrame]) -> tuple[object, ...]:
        (_, encoder, pretraining, configuration, _), some = candidate
        shared = len(tasks & {*_pairs(some).index})
        alike = encoder in (entry[1], ""), pretraining == entry[2]
        return shared > 0, not configuration, *alike, shared, bool(some["mine"].any())

    fitting = [
        (label, some)
        for label, some in runs.groupby(ENTRY, sort=False)
        if label != entry and (label[4] == entry[4] or NO_PROTOCOL in (label[4], entry[4]))
    ]
    return max(fitting, key=order, default=None)


def _pairs(runs: DataFrame) -> Series:
    """Return values by dataset, bag size and seed; of repeated runs the last one counts."""
    return runs.drop_duplicates(_TASK, keep="last").set_index(_TASK)["value"]


def _difference(
    entry: tuple[str, ...], mine: DataFrame, other: tuple[str, ...], runs: DataFrame
) -> PairedDifference | None:
    """Return the difference between two entries on the tasks and seeds that both have; None without any."""
    gaps = (_pairs(mine) - _pairs(runs)).dropna().unstack("seed")
    if gaps.empty:
        return None
    datasets = [some for _, some in gaps.groupby(level="dataset")]
    of_seeds = [some.dropna(axis="columns").mean() for some in datasets]  # seeds that all tasks of a dataset have
    means = [float(some.mean(axis="columns").mean()) for some in datasets]
    independent = means if len(means) > 1 else [*map(float, of_seeds[0])]
    points = float(np.mean(independent or means))
    low, high = statistics.interval(independent)
    p = statistics.difference_p(independent)
    return PairedDifference(
        entry_label(*entry[:4]), entry_label(*other[:4]), points, low, high, len(means), min(map(len, of_seeds)), p, 1
    )


def _corrected(found: Sequence[PairedDifference], maximise: bool) -> Iterator[PairedDifference]:
    known = [each.p for each in found if each.p == each.p]
    corrected = iter(statistics.holm(np.array(known)).tolist())
    for each in found:
        p = next(corrected) if each.p == each.p else nan
        yield PairedDifference(**(vars(each) | {"p": p, "compared": len(known), "maximise": maximise}))
