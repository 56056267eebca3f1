"""Estimates of groups in bags: expected counts and shares, intervals, and bounds that hold without a model.

Each line of the result is one group and one class, in one bag or in all bags.

- Estimates are sums of probabilities of rows. These add up to the counts of bags (`bag_effects.added_up`).
- Intervals are quantiles of draws of the number of rows of a class in each group of a bag.
- If features and groups have few combinations, both are from the table of these by classes (`cross_tables.py`).
- Bounds are those of Duncan and Davis (1953). If a bag of n rows has N rows of a class, then a group of m rows has at
  least max(0, N - (n - m)) and at most min(m, N) of them.

In a draw each row has a latent value, the sum of

- its logit in the model, and a deviation of that logit (`logit_draws.py`), because effects of features are uncertain;
- an effect of the row's group, the same in all bags, for what features do not say about the group;
- a multiple of the group's mean logit minus that of all rows, because models of bags tend to shrink effects;
- an effect of the group in this bag, with the standard deviation tau of the effects of bags (`bag_effects.py`);
- logistic noise, for the randomness of the row.

In a bag with n rows of the class, these are the n rows with the largest latent values, so every draw matches all
counts. This is Pareto sampling (Rosen 1997), which is close to independent rows given their sum.

The uncertainty of effects of groups is that of a regression of bags' proportions on their shares of groups (Goodman
1953) and on bags' mean logits without differences between groups, because other features that vary between bags with a
group may act in its place. It has the prior `_EFFECT`, which a group keeps whose share hardly differs between bags. A
bag's information is limited by the randomness of its rows and by tau. More bags do not remove this limit, because
effects of bags may be correlated with shares of groups (`_CONFOUNDED`, the ecological fallacy). Deviations of logits
already include a part of this uncertainty, so half of their variance is subtracted. Draws have heavy tails
(`_DEGREES`), because a few groups are unlike all others. These numbers were chosen on 22 tables with hidden labels and
tested on eight others (`benchmarks/groups.py`, docs/group-estimates.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit

from llpbench.blocks.distinct import Distinct
from llpbench.core.bags import BaggedRows, BoolArray, FloatArray, IntArray, Rows
from llpbench.core.errors import LLPBenchError, argument, warn
from llpbench.core.seeding import generator
from llpbench.core.text import plural
from llpbench.data.reading_bags import as_pandas, column_of_rows
from llpbench.owndata.cross_tables import SHARES, cross_table, shares_among
from llpbench.owndata.logit_draws import Deviations, ProcessDraws

ALL = "all"
"""Name in the column of bags for all bags together."""
NUMBERS = (
    *("rows", "count", "count_lower", "count_upper", "count_min", "count_max"),
    *("share", "share_lower", "share_upper", "share_min", "share_max"),
)
"""Numeric columns of the estimates."""
_MOST_GROUPS = 2_000
_MOST_CATEGORIES, _LEAST_SIZE = 40, 25
"""Largest number of combinations of features and groups, and smallest mean size of bags, for a table of them."""
_TAIL = 0.025
"""Share of draws below the interval, and share above it."""
_NEAR = 0.05
"""An end of an interval is the bound if it is nearer than this part of the distance between bounds: draws seldom reach
bounds, but classes often lack in a group. Chosen on the 22 tables of `benchmarks/groups.py`."""
_WIDE, _OPEN = 0.8, 0.2
"""An interval is uninformative if it covers more than _WIDE of its bounds, and these more than _OPEN of the group."""
_DRAWS = 200
"""Number of draws of the counts of groups."""
_AT_ONCE, _VALUES = 20, 1 << 24
"""Smallest number of draws that are in memory for all rows, and number of their values for few rows."""
_FIRST = 40
"""Number of draws for the variance of deviations in groups."""
_EFFECT = 1.0
"""Prior standard deviation of effects of groups, on logits."""
_CONFOUNDED = 0.5
"""Assumed correlation of the effects of bags with their shares of a group."""
_DEGREES = 4
"""Degrees of freedom of the effects of groups."""
_SHRUNK = 0.4
"""Standard deviation of the factor between true effects of groups and those of the model."""
_TWICE = 0.5
"""Share of the variance of logits' deviations that effects of groups already include."""
_UNKNOWN_TAU = 0.5
"""Standard deviation of effects of bags if there are too few bags to estimate it."""
_LEAST_TAU = 0.05
_LEAST = 1e-6
"""smallest probability of a row"""


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row."""

    of_row: IntArray
    """[rows]"""
    labels: pd.DataFrame
    """[groups, columns] labels of each group"""


def read_groups(by: Any, features: Any) -> Groups:
    """Return the groups that `by` names: a column of `features`, a list of columns, or a label for each row.

    Raises `LLPBenchError` for unknown columns, a wrong number of labels, and names that are columns of the estimates.
    """
    columns = _columns_of(as_pandas(by), features)
    columns.columns = [str(name) for name in columns.columns]
    if taken := [name for name in columns.columns if name in ("class", *NUMBERS)]:
        raise LLPBenchError(
            f"{argument('by')} must not contain {taken[0]!r}, because estimates have such a column. Rename it."
        )
    names = list(columns.columns)
    try:
        of_row = columns.groupby(names, sort=True, dropna=False, observed=True).ngroup().to_numpy()
    except TypeError as error:
        raise LLPBenchError(f"{argument('by')} must have texts or numbers as groups, got {error}.") from error
    first = np.unique(of_row, return_index=True)[1]
    if len(first) > _MOST_GROUPS:
        raise LLPBenchError(
            f"{argument('by')} must give at most {_MOST_GROUPS:,} groups, got {len(first):,}. Use fewer columns, or "
            "columns with fewer values, such as age groups."
        )
    return Groups(of_row.astype(np.int64), columns.iloc[first].reset_index(drop=True))


def _columns_of(by: Any, features: Any) -> pd.DataFrame:
    known = list(features.columns) if isinstance(features, pd.DataFrame) else []
    names = [by] if isinstance(by, str) else by if isinstance(by, list | tuple) else []
    named = bool(names) and all(isinstance(name, str) for name in names)
    if named and (len(names) != len(features) or set(names) <= {*known}):
        if absent := [name for name in names if name not in known]:
            raise LLPBenchError(
                f"{argument('by')} must name columns of {argument('X')}, got {absent[0]!r}. Its columns are "
                f"{', '.join(map(str, known[:10]))}{', ...' * (len(known) > 10)}."
            )
        if len({*names}) < len(names):
            raise LLPBenchError(f"{argument('by')} must name each column once, got {names!r}.")
        return features[[*names]].reset_index(drop=True)
    if isinstance(by, pd.DataFrame):
        columns = {name: by.iloc[:, place] for place, name in enumerate(by.columns)}
    elif np.ndim(by) == 1:
        columns = {"group" if getattr(by, "name", None) is None else by.name: by}
    else:
        raise LLPBenchError(
            f"{argument('by')} must be a column, a list of columns or a label for each row, got {by!r}."
        )
    advice = "Give the group of each row."
    return pd.DataFrame(
        {name: column_of_rows(each, features, "by", advice).infer_objects() for name, each in columns.items()}
    )


def _bounds(grouped: _GroupedRows, counts: ClassCounts) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest possible number of rows of a class, by cell [cells]."""
    size = grouped.cell_sizes.astype(np.float64)
    if not counts.exact:
        return np.zeros_like(size), size
    number = counts.numbers[grouped.bag_of_cell]
    others = grouped.bag_sizes[grouped.bag_of_cell] - size
    known = np.isfinite(number)
    least = np.where(known, np.maximum(number - others, 0.0), 0.0)
    return least, np.where(known, np.minimum(number, size), size)


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Estimates of one class in some cells, or in groups."""

    sizes: FloatArray
    count: FloatArray
    lower: FloatArray
    upper: FloatArray
    least: FloatArray
    most: FloatArray
    shares: tuple[FloatArray, ...] | None = None
    """shares with intervals and bounds, if not among all classes"""

    def of_others(self) -> _Estimates:
        """Return the estimates of the other class, if there are two."""
        ends = self.sizes - self.upper, self.sizes - self.lower, self.sizes - self.most, self.sizes - self.least
        return _Estimates(self.sizes, self.sizes - self.count, *ends)

    def columns(self) -> dict[str, Any]:
        """Return the columns of `NUMBERS` by name."""
        counts = (self.count, self.lower, self.upper, self.least, self.most)
        shares = self.shares or (each / self.sizes for each in counts)
        return {NUMBERS[0]: self.sizes.astype(np.int64), **dict(zip(NUMBERS[1:], (*counts, *shares), strict=True))}


def _estimates(sizes: Any, count: FloatArray, drawn: FloatArray, least: FloatArray, most: FloatArray) -> _Estimates:
    count = np.clip(count, least, most)
    lower = np.quantile(drawn, _TAIL, axis=1, method="lower").clip(least, most)
    upper = np.quantile(drawn, 1 - _TAIL, axis=1, method="higher").clip(least, most)
    ends = _reaching(np.minimum(lower, count), np.maximum(upper, count), least, most)
    return _Estimates(np.asarray(sizes, dtype=np.float64), count, *ends, least, most)


def _among(among: Sequence[int] | None, found: list[_Estimates], drawn: Sequence[FloatArray]) -> list[_Estimates]:
    """Return the estimates of the classes `among`, with shares among these. `drawn` are counts [cells, draws]."""
    if among is None:
        return found
    counts, least, most = (np.stack([getattr(each, name) for each in found], -1) for name in ("count", "least", "most"))
    draws = np.moveaxis(np.stack(drawn, axis=-1), 1, 0)
    share, lower, upper, *ends = shares_among(among, counts, draws, least, most, found[0].sizes[:, None])
    shares = (share, *_reaching(lower, upper, *ends), *ends)
    return [replace(found[label], shares=tuple(each[:, label] for each in shares)) for label in among]


def _reaching(
    lower: FloatArray, upper: FloatArray, least: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals, those near a bound moved to it."""
    near = _NEAR * (most - least)
    return np.where(lower - least < near, least, lower), np.where(most - upper < near, most, upper)


@dataclass(frozen=True, eq=False)
class BagPiece:
    """Rows of some whole bags, ordered by bag."""

    bags: slice
    rows: Rows
    sizes: IntArray
    """[bags] number of rows"""
    group_of_row: IntArray
    proba: FloatArray
    """[rows, classes] probabilities that add up to the counts of bags"""

    def grouped(self, groups: int) -> _GroupedRows:
        """Return the cells of these rows."""
        bags = len(self.sizes)
        return _GroupedRows(np.repeat(np.arange(bags), self.sizes), self.group_of_row, bags, groups)


def group_estimates(
    groups: pd.DataFrame,
    bags: Sequence[Hashable],
    bag_names: Sequence[str],
    classes: Sequence[Hashable],
    pieces: Callable[[], Iterable[BagPiece]],
    counts: Sequence[ClassCounts],
    draws: ProcessDraws,
    *,
    tau: float,
    seed: int,
    among: Sequence[int] | None = None,
) -> Iterator[pd.DataFrame]:
    """Yield a line for each bag, group and class, piece by piece. The last table is of all bags (`ALL`).

    Parameters
    ----------
    groups : [groups, columns] labels of each group
    bags : names of bags
    bag_names : columns that name a bag
    classes : names of classes, in the order of the columns of probabilities
    pieces : all rows, read twice
    counts : counts by bag, for each class
    draws : posterior draws of logits
    tau : standard deviation of the effects of bags on logits
    seed : random seed of the draws
    among : positions of the classes that have shares and lines, at least two; None: all
    """
    if taken := [name for name in bag_names if name in groups.columns or name in ("class", *NUMBERS)]:
        raise LLPBenchError(
            f"columns of bags, groups and estimates must differ in name, got {taken[0]!r} twice. Rename the column."
        )
    _require_no_total(bags)
    labels = range(1, 2) if len(classes) == 2 else range(len(classes))
    named = [classes[label] for label in (range(len(classes)) if among is None else among)]
    streams = [generator(seed, "group estimates", label) for label in labels]
    effects = [
        _EffectsOfGroups(len(groups), counts[label], tau, draws(label, _FIRST, rng))
        for label, rng in zip(labels, streams, strict=True)
    ]
    for piece in pieces():
        grouped = piece.grouped(len(groups))
        for label, effect in zip(labels, effects, strict=True):
            effect.add(grouped, piece.bags, piece.rows, piece.proba[:, label])
    of_groups = [effect.draws(rng) for effect, rng in zip(effects, streams, strict=True)]
    deviations = [draws(label, _DRAWS, rng) for label, rng in zip(labels, streams, strict=True)]
    keys = [name if isinstance(name, tuple) else (name,) for name in bags]
    of_bag = pd.DataFrame(
        {name: pd.Series([key[place] for key in keys], dtype=object) for place, name in enumerate(bag_names)}
    )
    sizes = np.zeros(len(groups))
    totals: list[list[Any]] = [[0.0, 0.0, 0.0, 0.0] for _ in labels]
    for piece in pieces():
        grouped, inside, drawns = piece.grouped(len(groups)), [], []
        sizes += grouped.by_group(grouped.cell_sizes)
        for place, label in enumerate(labels):
            rng = generator(seed, "group estimates", label, piece.bags.start)
            own, proba = counts[label].some(piece.bags), piece.proba[:, label]
            drawn = _drawn_counts(
                grouped, piece.rows, proba, own, deviations[place], of_groups[place], effects[place].tau, rng
            )
            least, most = _bounds(grouped, own)
            count = grouped.by_cell(proba).clip(least, most)
            inside.append(_estimates(grouped.cell_sizes, count, drawn, least, most))
            drawns += [drawn] if among is not None else []
            sums = [grouped.by_group(each) for each in (count, drawn, least, most)]
            totals[place] = [total + more for total, more in zip(totals[place], sums, strict=True)]
        names = of_bag.iloc[piece.bags.start + grouped.bag_of_cell], groups.iloc[grouped.group_of_cell]
        yield _lines(*names, named, _among(among, inside, drawns))
    overall = _among(among, [_estimates(sizes, *total) for total in totals], [total[1] for total in totals])
    top = pd.DataFrame({name: [ALL] * len(groups) for name in bag_names}, dtype=object)
    found = _lines(top, groups, named, overall)
    _warn_of_wide(found, [*groups.columns])
    yield found


def _require_no_total(bags: Sequence[Hashable]) -> None:
    """Raise `LLPBenchError` for a bag with the name of all bags together."""
    if {ALL, (ALL,)}.intersection(bags):
        raise LLPBenchError(f"a bag must not be called {ALL!r}, which names all bags together. Rename this bag.")


def table_estimates(
    groups: Groups,
    bags: Sequence[Hashable],
    bag_names: Sequence[str],
    classes: Sequence[Hashable],
    whole: BaggedRows,
    *,
    seed: int,
    among: Sequence[int] | None = None,
) -> pd.DataFrame | None:
    """Return the lines of `group_estimates` from the table of rows' categories by classes, those of all bags first.

    A category is a combination of features and group. `groups` are of the rows of `whole`, whose counts are exact.
    None if there are many categories, or if bags are small.
    """
    columns = [groups.of_row, *whole.rows.categorical.T, *whole.rows.numeric.T, *whole.rows.missing.T]
    same = Distinct.of(columns, fewest=0)
    if same is None or len(same.first) > _MOST_CATEGORIES or whole.sizes.mean() < _LEAST_SIZE or len(same.first) < 2:
        return None
    _require_no_total(bags)
    people = np.zeros((len(bags), len(same.first)))
    np.add.at(people, (whole.bag_of_row, same.place), 1)
    joined = [f"group {number}" for number in groups.of_row[same.first]]
    some = [*range(len(classes))] if among is None else among
    outcomes = [f"outcome {label}" for label in some]
    counts = whole.proportions * whole.sizes[:, None]
    table = cross_table(people, counts, join=joined, among=outcomes, random_state=seed)
    cells = pd.concat([table.cells.assign(precinct=-1), table.by_precinct()], ignore_index=True)
    cells = cells.assign(rows=cells["people"].round())[cells["people"] > 0.5]
    least, most = (cells[name].to_numpy() for name in ("count_min", "count_max"))
    ends = np.floor(cells["count_lower"]).clip(least), np.ceil(cells["count_upper"]).clip(upper=most)
    lower, upper = _reaching(ends[0].to_numpy(), ends[1].to_numpy(), least, most)
    cells = cells.assign(count_lower=lower, count_upper=upper)
    shares = (lower / cells["rows"], upper / cells["rows"])
    if among is not None:
        shares = _reaching(*(cells[name] for name in SHARES[1:]))
    cells = cells.assign(share_lower=shares[0], share_upper=shares[1])
    keys = [name if isinstance(name, tuple) else (name,) for name in bags] + [(ALL,) * len(bag_names)]
    places = cells["precinct"].astype(np.int64).to_numpy()
    found = pd.DataFrame(
        {name: pd.Series([keys[at][place] for at in places], dtype=object) for place, name in enumerate(bag_names)}
    )
    of_line = cells["group"].str.removeprefix("group ").astype(np.int64).to_numpy()
    found = pd.concat([found, groups.labels.iloc[of_line].reset_index(drop=True)], axis=1)
    found["class"] = np.array([*classes])[cells["outcome"].str.removeprefix("outcome ").astype(np.int64)]
    found = found.assign(**cells[[*NUMBERS]].reset_index(drop=True))
    order = np.lexsort((np.tile(np.arange(len(some)), len(found) // len(some)), of_line, places))
    found = found.iloc[order].reset_index(drop=True).astype({"rows": np.int64})
    _warn_of_wide(found[: len(some) * len(groups.labels)], [*groups.labels.columns])
    return found


def of_people(found: pd.DataFrame, ratio: float) -> pd.DataFrame:
    """Convert estimates of repeated rows to estimates of people. `ratio` is the number of repeated rows per person."""
    numbers = {name: found[name] / ratio for name in NUMBERS if not name.startswith("share")}
    return found.assign(**{**numbers, "rows": numbers["rows"].round().astype(np.int64)})


def _lines(
    of_bag: pd.DataFrame, of_group: pd.DataFrame, classes: Sequence[Hashable], found: Sequence[_Estimates]
) -> pd.DataFrame:
    """Return a table with a line for each entry and class, ordered by entry. Of all two classes, `found` has one."""
    if len(found) == 1:
        found = [found[0].of_others(), found[0]]
    names = pd.concat([of_bag.reset_index(drop=True), of_group.reset_index(drop=True)], axis=1)
    parts = [names.assign(**{"class": label}, **each.columns()) for label, each in zip(classes, found, strict=True)]
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)


def _warn_of_wide(found: pd.DataFrame, names: Sequence[str]) -> None:
    """Warn about groups whose intervals, in the lines of all bags, are nearly as wide as their bounds."""
    room = found["count_max"] - found["count_min"]
    wide = (room > _OPEN * found["rows"]) & (found["count_upper"] - found["count_lower"] > _WIDE * room)
    groups = found.loc[wide, [*names]].drop_duplicates()
    if not len(groups):
        return
    some = [" ".join(map(str, labels)) for labels in groups.head(3).itertuples(index=False)]
    warn(
        "uncertain groups",
        f"intervals of {plural(len(groups), 'group')} ({', '.join(some)}{', ...' if len(groups) > 3 else ''}) are "
        "nearly as wide as the bounds: the bags contain almost no information about these groups.",
    )


@dataclass(frozen=True, eq=False)
class _GroupedRows:
    """Rows of groups in bags. A cell is a group in a bag that has rows."""

    bag_of_row: IntArray
    """[rows]"""
    group_of_row: IntArray
    """[rows]"""
    bags: int
    groups: int

    @cached_property
    def _cells(self) -> tuple[IntArray, IntArray]:
        numbers, cell_of_row = np.unique(self.bag_of_row * self.groups + self.group_of_row, return_inverse=True)
        return np.asarray(numbers, dtype=np.int64), np.asarray(cell_of_row, dtype=np.int64)

    @property
    def cell_of_row(self) -> IntArray:
        """[rows]"""
        return self._cells[1]

    @property
    def bag_of_cell(self) -> IntArray:
        """[cells], in ascending order"""
        return self._cells[0] // self.groups

    @property
    def group_of_cell(self) -> IntArray:
        """[cells]"""
        return self._cells[0] % self.groups

    @cached_property
    def cell_sizes(self) -> IntArray:
        """[cells] number of rows"""
        return self.by_cell(np.ones(len(self.bag_of_row))).astype(np.int64)

    @cached_property
    def bag_sizes(self) -> IntArray:
        """[bags] number of rows"""
        return np.bincount(self.bag_of_row, minlength=self.bags).astype(np.int64)

    def by_cell(self, values: FloatArray) -> FloatArray:
        """Return the sums of `values` [rows] in each cell."""
        return np.asarray(np.bincount(self.cell_of_row, values, len(self._cells[0])), dtype=np.float64)

    def by_group(self, values: FloatArray | IntArray) -> FloatArray:
        """Return the sums of `values` [cells, ...] in each group [groups, ...]."""
        sums = np.zeros((self.groups, *values.shape[1:]))
        np.add.at(sums, self.group_of_cell, values)
        return sums

    @cached_property
    def order(self) -> IntArray:
        """[rows] positions of rows, bag by bag"""
        return np.argsort(self.bag_of_row, kind="stable")


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Number of rows of one class in each bag."""

    numbers: FloatArray
    """[bags]; NaN if not known"""
    noise: float = 0.0
    """standard deviation of the noise of the numbers"""
    of_rows: bool = True
    """True if these rows were counted; False if the rows are a sample, or other rows with these shares"""

    @property
    def exact(self) -> bool:
        """Whether the numbers are exact counts of these rows."""
        return self.of_rows and not self.noise

    def some(self, bags: slice) -> ClassCounts:
        """Return the counts of some bags."""
        return replace(self, numbers=self.numbers[bags])

    def drawn(self, sizes: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return whole numbers [bags] between 0 and `sizes`, NaN if not known."""
        known = np.isfinite(self.numbers)
        share = np.clip(np.where(known, self.numbers, 0.0) / sizes, 0.0, 1.0)
        if not self.of_rows:
            found = rng.binomial(sizes, share).astype(np.float64)
        else:
            found = share * sizes + self.noise * rng.standard_normal(len(sizes))
            found = np.floor(found + 1e-9 + (1 - 2e-9) * rng.random(len(sizes)))  # stochastic rounding
        return np.where(known, found.clip(0, sizes), np.nan)


class _EffectsOfGroups:
    """Effects of groups on the logits of one class: sums from one pass over pieces of whole bags, then draws."""

    def __init__(self, groups: int, counts: ClassCounts, tau: float, deviations: Deviations) -> None:
        """`tau` is the standard deviation of effects of bags (NaN: not known); `deviations` are `_FIRST` draws."""
        self.tau = max(tau, _LEAST_TAU) if np.isfinite(tau) else _UNKNOWN_TAU
        self._known, self._deviations = np.isfinite(counts.numbers), deviations
        self._rows, self._logits, self._away = np.zeros(groups), np.zeros(groups), np.zeros((groups, _FIRST))
        self._inner, self._sums, self._weight = np.zeros((groups + 1,) * 2), np.zeros(groups + 1), 0.0

    def add(self, grouped: _GroupedRows, bags: slice, rows: Rows, proba: FloatArray) -> None:
        """Add some `bags`; `proba` [rows] are probabilities of the class, which add up to the counts of bags."""
        sizes, of_row, logits = grouped.bag_sizes, grouped.group_of_row, _logits(proba)
        self._rows += np.bincount(of_row, minlength=grouped.groups)
        self._logits += np.bincount(of_row, logits, grouped.groups)
        for away, sums in zip(self._deviations(rows, slice(None)).T, self._away.T, strict=True):
            sums += np.bincount(of_row, away, grouped.groups)
        shares = np.zeros((grouped.bags, grouped.groups))
        shares[grouped.bag_of_cell, grouped.group_of_cell] = grouped.cell_sizes / sizes[grouped.bag_of_cell]
        means = np.bincount(grouped.bag_of_row, logits, grouped.bags) / sizes
        variance = np.bincount(grouped.bag_of_row, proba * (1 - proba), grouped.bags) / sizes
        noise = 1 / (sizes * np.maximum(variance, 1e-3))
        weight = self._known[bags] / (noise + self.tau**2 * max(1.0, _CONFOUNDED**2 * self._known.sum()))
        regressors = np.column_stack([shares, means])
        self._inner += (regressors * weight[:, None]).T @ regressors
        self._sums += weight @ regressors
        self._weight += weight.sum()

    def draws(self, rng: np.random.Generator) -> FloatArray:
        """Return draws of the effects [groups, `_DRAWS`]."""
        means = self._logits / self._rows - self._logits.sum() / self._rows.sum()
        root = self._root(means)
        away = self._away / self._rows[:, None] - self._away.sum(axis=0) / self._rows.sum()
        twice = (away**2).mean(axis=1) / np.maximum((root**2).sum(axis=1), 1e-12)
        root = root * np.sqrt(1 - _TWICE * twice.clip(0, 1))[:, None]
        heavy = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, _DRAWS))
        drawn = (root @ rng.standard_normal((root.shape[1], _DRAWS))) * heavy
        return np.asarray(drawn + _SHRUNK * means[:, None] * rng.standard_normal(_DRAWS))

    def _root(self, means: FloatArray) -> FloatArray:
        """Return R [groups, factors], where R R' is the covariance of effects of groups, on logits."""
        groups = len(means)
        without = np.eye(groups + 1)  # bags' mean logits without differences between groups
        without[:groups, -1] = -means
        centred = self._inner - np.outer(self._sums, self._sums) / max(self._weight, 1e-12)
        prior = np.append(np.full(groups, _EFFECT), _SHRUNK)
        values, vectors = np.linalg.eigh(np.diag(1 / prior**2) + without.T @ centred @ without)
        root = (vectors / np.sqrt(values))[:groups]  # whatever the other features' factor is
        return np.asarray(root - self._rows / self._rows.sum() @ root)  # counts determine the common part of all groups


def _drawn_counts(
    grouped: _GroupedRows,
    rows: Rows,
    proba: FloatArray,
    counts: ClassCounts,
    deviations: Deviations,
    effects: FloatArray,
    tau: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Return draws [cells, draws] of the number of rows of a class in some whole bags.

    `proba` [rows] are probabilities of the class, which add up to the `counts` of these bags. `effects` [groups, draws]
    and `tau` are those of `_EffectsOfGroups`.
    """
    logits, found = _logits(proba), np.empty((len(grouped.cell_sizes), _DRAWS))
    at_once = max(_AT_ONCE, _VALUES // len(logits))
    for start in range(0, _DRAWS, at_once):
        for draw, away in enumerate(deviations(rows, slice(start, start + at_once)).T, start):
            of_cell = effects[grouped.group_of_cell, draw] + tau * rng.standard_normal(len(found))
            of_bag = tau * rng.standard_normal(grouped.bags)  # only needed if the count is not known
            latent = logits + away + of_cell[grouped.cell_of_row] + of_bag[grouped.bag_of_row]
            latent += rng.logistic(size=len(logits))
            chosen = _chosen(grouped, latent, counts.drawn(grouped.bag_sizes, rng))
            found[:, draw] = grouped.by_cell(chosen.astype(np.float64))
    return found


def _logits(proba: FloatArray) -> FloatArray:
    return np.asarray(logit(proba.clip(_LEAST, 1 - _LEAST)))


def _chosen(grouped: _GroupedRows, latent: FloatArray, numbers: FloatArray) -> BoolArray:
    """Return the rows of the class [rows]: the largest values of each bag, or those above 0 if its count is unknown."""
    bags, order = grouped.bag_of_row, grouped.order
    within = np.lexsort((-latent[order], bags[order]))
    sorted_rows = order[within]
    starts = np.cumsum(grouped.bag_sizes) - grouped.bag_sizes
    rank = np.empty(len(latent))
    rank[sorted_rows] = np.arange(len(latent)) - starts[bags[sorted_rows]]
    number = numbers[bags]
    return np.asarray(np.where(np.isnan(number), latent > 0, rank < number))
