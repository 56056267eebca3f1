"""Estimates of groups in bags: expected counts and shares, intervals, and bounds that hold without a model.

Each line of the result is one group and one class, in one bag or in all bags.

- Estimates are sums of probabilities of rows. These add up to the counts of bags (`bag_effects.added_up`).
- Intervals are quantiles of draws of the number of rows of a class in each group of a bag.
- If features and groups have few combinations, both are from the table of these by classes (`cross_tables.py`).
- Bounds are those of Duncan and Davis (1953, `bounds.py`).

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

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.special import logit

from llpbench.blocks.distinct import Distinct
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.core.errors import LLPBenchError, argument, warn
from llpbench.core.method import Predictor
from llpbench.core.seeding import generator
from llpbench.core.text import one_line, plural
from llpbench.data.reading_bags import as_pandas, column_of_rows
from llpbench.owndata.bag_effects import KnownBags, added_up, piece_of, pieces
from llpbench.owndata.bounds import duncan_davis, interval, shares_among
from llpbench.owndata.cross_tables import SHARES, CrossTable
from llpbench.owndata.logit_draws import Deviations, ProcessDraws
from llpbench.owndata.storing import BagFacts

ALL = "all"
"""Name in the column of bags for all bags together."""
NUMBERS = ("rows", *(f"{what}{end}" for what in ("count", "share") for end in ("", "_lower", "_upper", "_min", "_max")))
"""Numeric columns of the estimates."""
_MOST_GROUPS = 2_000
_MOST_CATEGORIES, _LEAST_SIZE = 40, 25
"""Largest number of combinations of features and groups, and smallest mean size of bags, for a table of them."""
_NEAR = 0.05
"""An end of an interval is the bound if it is nearer than this part of the distance between bounds: draws seldom reach
bounds, but classes often lack in a group. Chosen on the 22 tables of `benchmarks/groups.py`."""
_WIDE, _OPEN = 0.8, 0.2
"""An interval is uninformative if it covers more than _WIDE of its bounds, and these more than _OPEN of the group."""
_DRAWS = 200  # number of draws of the counts of groups
_AT_ONCE, _VALUES = 20, 1 << 24
"""Smallest number of draws that are in memory for all rows, and number of their values for few rows."""
_FIRST = 40  # number of draws for the variance of deviations in groups
_EFFECT = 1.0  # prior standard deviation of effects of groups, on logits
_CONFOUNDED = 0.5  # assumed correlation of the effects of bags with their shares of a group
_DEGREES = 4  # degrees of freedom of the effects of groups
_SHRUNK = 0.4  # standard deviation of the factor between true effects of groups and those of the model
_TWICE = 0.5  # share of the variance of logits' deviations that effects of groups already include
_UNKNOWN_TAU = 0.5  # standard deviation of effects of bags if there are too few bags to estimate it
_LEAST_TAU = 0.05
_LEAST = 1e-6  # smallest probability of a row
_PIECES_IN_MEMORY = 16  # number of pieces of whole bags whose rows and predictions are kept for the second reading
_Posterior = tuple[Deviations, FloatArray, float]
"""Deviations of rows, drawn effects of groups, and the standard deviation of effects of bags."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row."""

    of_row: IntArray  # [rows]
    labels: pd.DataFrame  # [groups, columns] labels of each group

    @classmethod
    def read(cls, by: Any, features: Any) -> Self:
        """Return the groups that `by` names: a column of `features`, a list of columns, or a label for each row.

        Raises `LLPBenchError` for unknown columns, a wrong number of labels, and names of columns of the estimates.
        """
        columns = _columns_of(as_pandas(by), features)
        columns.columns = names = [str(name) for name in columns.columns]
        if len({*names}) < len(names):
            raise LLPBenchError(f"{argument('by')} must name each column once, got {', '.join(names)}.")
        if taken := [name for name in names if name in ("class", *NUMBERS)]:
            raise LLPBenchError(f"{argument('by')} must not contain {taken[0]!r}, a column of estimates. Rename it.")
        try:
            of_row = columns.groupby(names, sort=True, dropna=False, observed=True).ngroup().to_numpy()
        except TypeError as error:
            raise LLPBenchError(f"{argument('by')} must have texts or numbers as groups, got {error}.") from error
        first = np.unique(of_row, return_index=True)[1]
        if len(first) > _MOST_GROUPS:
            most = f"{argument('by')} must give at most {_MOST_GROUPS:,} groups, got {len(first):,}"
            raise LLPBenchError(f"{most}. Use fewer columns, or columns with fewer values, such as age groups.")
        return cls(of_row.astype(np.int64), columns.iloc[first].reset_index(drop=True))


def _columns_of(by: Any, features: Any) -> pd.DataFrame:
    known = list(features.columns) if isinstance(features, pd.DataFrame) else []
    names = [by] if isinstance(by, str) else by if isinstance(by, list | tuple) else []
    named = bool(names) and all(isinstance(name, str) for name in names)
    if named and (len(names) != len(features) or set(names) <= {*known}):
        if absent := [name for name in names if name not in known]:
            wrong = f"{argument('by')} must name columns of {argument('X')}, got {absent[0]!r}"
            raise LLPBenchError(f"{wrong}. Columns are {', '.join(map(str, known[:10]))}{', ...' * (len(known) > 10)}.")
        return features[[*names]].reset_index(drop=True)
    if isinstance(by, pd.DataFrame):
        columns = [(name, by.iloc[:, place]) for place, name in enumerate(by.columns)]
    elif np.ndim(by) == 1:
        columns = [("group" if getattr(by, "name", None) is None else by.name, by)]
    else:
        got = one_line(repr(by), 80)
        raise LLPBenchError(f"{argument('by')} must be a column, some columns or a label for each row, got {got}.")
    entries = [column_of_rows(each, features, "by", "Give all groups.").rename(name) for name, each in columns]
    return pd.concat(entries, axis=1).infer_objects()


def _bounds(cells: _Cells, counts: _ClassCounts) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest possible number of rows of a class, by cell [cells]."""
    size = cells.sizes
    number = counts.numbers[cells.bag] if counts.of_rows and not counts.noise else np.full(len(size), np.nan)
    least, most = duncan_davis(size, number, cells.bag_sizes[cells.bag])
    return np.where(np.isnan(number), 0.0, least), np.where(np.isnan(number), size, most)


@dataclass(frozen=True, eq=False)
class GroupEstimates:
    """Estimates of groups of rows in bags: a line for each group and class, in all bags (`ALL`) and in each bag."""

    groups: Groups  # groups of the rows of whole bags
    bags: Sequence[Hashable]
    bag_names: Sequence[str]  # columns that name a bag
    classes: Sequence[Hashable]  # names, in the order of the columns of probabilities
    among: Sequence[int] | None  # positions of the classes that have shares and lines, at least two; None: all
    weights: FloatArray  # [rows] number of rows that each row counts as, nearly 1
    ratio: float  # number of rows per person, if rows are repeated by weight
    sizes: FloatArray  # [bags] sums of `weights`
    seed: int  # random seed of the draws

    def __post_init__(self) -> None:
        """Raise `LLPBenchError` for columns with the same name, and for a bag with the name of all bags together."""
        if taken := [name for name in self.bag_names if name in (*self.groups.labels.columns, "class", *NUMBERS)]:
            raise LLPBenchError(f"columns of bags, groups and estimates must differ, got {taken[0]!r}. Rename it.")
        if {ALL, (ALL,) * len(self.bag_names)}.intersection(self.bags):
            raise LLPBenchError(f"a bag must not be called {ALL!r}, which names all bags together. Rename this bag.")

    @property
    def _chosen(self) -> Sequence[int]:
        return range(len(self.classes)) if self.among is None else self.among

    def _names_of(self, bags: IntArray) -> pd.DataFrame:
        """Return the columns that name bags, given by position; -1 is all bags together."""
        keys = [name if isinstance(name, tuple) else (name,) for name in self.bags] + [(ALL,) * len(self.bag_names)]
        return pd.DataFrame([keys[bag] for bag in bags], columns=[*self.bag_names], dtype=object)

    def _finished(self, found: pd.DataFrame) -> pd.DataFrame:
        """Return the lines of people, those of all bags first. Warn about groups with wide intervals."""
        _warn_of_wide(found[: len(self._chosen) * len(self.groups.labels)], [*self.groups.labels.columns])
        numbers = {name: found[name] / self.ratio for name in NUMBERS if not name.startswith("share")}
        return found.assign(**{**numbers, "rows": _as_whole(numbers["rows"])})

    def from_table(self, whole: BaggedRows) -> pd.DataFrame | None:
        """Return estimates from the table of rows' categories by classes; None for many categories or small bags.

        A category is a combination of features and group. The counts of `whole` bags are exact.
        """
        groups = self.groups
        columns = [groups.of_row, *whole.rows.categorical.T, *whole.rows.numeric.T, *whole.rows.missing.T]
        same = Distinct.of(columns, fewest=0)
        if same is None or not 2 <= len(same.first) <= _MOST_CATEGORIES or whole.sizes.mean() < _LEAST_SIZE:
            return None
        inside = pd.crosstab(whole.bag_of_row, same.place, self.weights, aggfunc="sum").fillna(0.0)
        people = pd.DataFrame(inside.to_numpy(float), columns=groups.of_row[same.first])
        counts = pd.DataFrame(whole.proportions * self.sizes[:, None], columns=[*self.classes])
        facts = {"weights": np.ones(len(people)), "covariates": np.zeros((len(people), 0)), "seed": self.seed}
        table = CrossTable.of(people, counts, among=np.array(self._chosen), **facts)
        table.warn_if_curved("bags")
        cells = pd.concat([table.cells.assign(precinct=-1), table.by_precinct()], ignore_index=True)
        cells = cells.assign(rows=_as_whole(cells["people"]))[cells["people"] > 0]
        least, most = (cells[name].to_numpy() for name in ("count_min", "count_max"))
        ends = np.floor(cells["count_lower"]).clip(least), np.ceil(cells["count_upper"]).clip(upper=most)
        lower, upper = _reaching(ends[0].to_numpy(), ends[1].to_numpy(), least, most)
        shares = (lower / cells["rows"], upper / cells["rows"])
        if self.among is not None:
            shares = _reaching(*(cells[name] for name in SHARES[1:]))
        cells = cells.assign(count_lower=lower, count_upper=upper, share_lower=shares[0], share_upper=shares[1])
        bag, group, label = (cells[name].to_numpy() for name in ("precinct", "group", "outcome"))
        found = pd.concat([self._names_of(bag), groups.labels.iloc[group].reset_index(drop=True)], axis=1)
        found = found.assign(**{"class": label}, **cells[[*NUMBERS]].reset_index(drop=True))
        return self._finished(found.iloc[np.lexsort((group, bag))].reset_index(drop=True))

    def from_draws(
        self, whole: BaggedRows, draws: ProcessDraws, known: KnownBags, predicted: Predictor, facts: BagFacts
    ) -> pd.DataFrame:
        """Return estimates from posterior `draws` of the logits of rows. `known`, `facts`: of the bags of the fit."""
        groups = len(self.groups.labels)
        starts = np.append(0, np.cumsum(whole.sizes))

        @lru_cache(_PIECES_IN_MEMORY)
        def piece(first: int, stop: int) -> tuple[Rows, _Cells, FloatArray]:
            """Return the rows of some bags, and probabilities that add up to their counts."""
            at = whole.bag_by_bag[starts[first] : starts[stop]]
            rows = Rows(*(np.asarray(part[at]) for part in whole.rows))
            some = piece_of(whole, slice(first, stop), rows)
            chosen = np.flatnonzero(some.known[some.bag_of_row])
            proba = added_up(predicted(rows), some.where_known(), chosen, known.spread, self.weights[at])
            return rows, _Cells(some.sizes, self.groups.of_row[at], groups, self.weights[at]), proba

        numbers = np.where(whole.known[:, None], whole.proportions * self.sizes[:, None], np.nan)
        counts = [_ClassCounts(number, facts.deviation * self.ratio, facts.of_rows) for number in numbers.T]
        labels = range(1, 2) if len(self.classes) == 2 else range(len(self.classes))
        streams = [generator(self.seed, "group estimates", label) for label in labels]
        pairs, tau, parts = [*zip(labels, streams, strict=True)], known.deviation, pieces(whole.sizes)
        effects = [_EffectsOfGroups(groups, counts[label], tau, draws(label, _FIRST, rng)) for label, rng in pairs]
        for bags in parts:
            rows, cells, proba = piece(bags.start, bags.stop)
            for label, effect in zip(labels, effects, strict=True):
                effect.add(cells, bags, rows, proba[:, label])
        of_groups = [effect.draws(rng) for effect, rng in zip(effects, streams, strict=True)]
        deviations = [draws(label, _DRAWS, rng) for label, rng in pairs]
        sizes, found = np.zeros(groups), []
        totals: list[list[Any]] = [[0.0, 0.0, 0.0, 0.0] for _ in labels]
        for bags in parts:
            rows, cells, proba = piece(bags.start, bags.stop)
            inside, drawns = [], []
            sizes += cells.by_group(cells.sizes)
            for place, label in enumerate(labels):
                rng = generator(self.seed, "group estimates", label, bags.start)
                own = replace(counts[label], numbers=counts[label].numbers[bags])
                posterior = deviations[place], of_groups[place], effects[place].tau
                drawn = _drawn_counts(cells, rows, proba[:, label], own, posterior, rng)
                least, most = _bounds(cells, own)
                count = cells.by_cell(proba[:, label]).clip(least, most)
                inside.append(_estimates(count, drawn, least, most))
                drawns += [drawn] if self.among is not None else []
                sums = [cells.by_group(each) for each in (count, drawn, least, most)]
                totals[place] = [total + more for total, more in zip(totals[place], sums, strict=True)]
            found.append(self._lines(bags.start + cells.bag, cells.group, cells.sizes, inside, drawns))
        overall = [_estimates(*total) for total in totals]
        top = self._lines(np.full(groups, -1), np.arange(groups), sizes, overall, [total[1] for total in totals])
        return self._finished(pd.concat([top, *found], ignore_index=True))

    def _lines(
        self, bags: IntArray, groups: IntArray, sizes: Any, found: Sequence[FloatArray], drawn: Sequence[FloatArray]
    ) -> pd.DataFrame:
        """Return a line for each entry (a bag and a group) and class. `found`, `drawn`: by class (of two, the last)."""
        numbers, people = np.stack(found, axis=-1), np.asarray(sizes, dtype=np.float64)[:, None]
        if len(self.classes) == 2:
            numbers = np.concatenate([people - numbers[[0, 2, 1, 4, 3]], numbers], axis=-1)
        shares = numbers / people
        if self.among is not None:
            draws = np.moveaxis(np.stack(drawn, axis=-1), 1, 0)
            share, lower, upper, *ends = shares_among(self.among, numbers[0], draws, numbers[3], numbers[4], people)
            shares = np.stack([share, *_reaching(lower, upper, *ends), *ends])
        chosen = list(self._chosen)
        named = pd.concat([self._names_of(bags), self.groups.labels.iloc[groups].reset_index(drop=True)], axis=1)
        named = named.iloc[np.repeat(np.arange(len(named)), len(chosen))].reset_index(drop=True)
        values = [each[:, chosen].ravel() for each in (np.broadcast_to(people, shares[0].shape), *numbers, *shares)]
        labels = np.tile([self.classes[label] for label in chosen], len(bags))
        return named.assign(**{"class": labels}, **dict(zip(NUMBERS, values, strict=True)))


def _as_whole(numbers: pd.Series) -> pd.Series:
    """Return whole numbers if all are, except for rounding errors; else the same numbers."""
    whole = numbers.round().astype(np.int64)
    return whole if np.allclose(numbers, whole, rtol=1e-9, atol=1e-9) else numbers


def _estimates(count: FloatArray, drawn: FloatArray, least: FloatArray, most: FloatArray) -> FloatArray:
    """Return counts, both ends of their intervals, and both bounds [5, entries], from draws [entries, draws]."""
    count = np.clip(count, least, most)
    ends = interval(count, drawn.T, least, most, methods=("lower", "higher"))
    return np.stack([count, *_reaching(*ends, least, most), least, most])


def _reaching(
    lower: FloatArray, upper: FloatArray, least: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    near = _NEAR * (most - least)
    return np.where(lower - least < near, least, lower), np.where(most - upper < near, most, upper)


def _warn_of_wide(found: pd.DataFrame, names: Sequence[str]) -> None:
    room = found["count_max"] - found["count_min"]
    wide = (room > _OPEN * found["rows"]) & (found["count_upper"] - found["count_lower"] > _WIDE * room)
    if len(groups := found.loc[wide, [*names]].drop_duplicates()):
        some = [" ".join(map(str, labels)) for labels in groups.head(3).itertuples(index=False)]
        told = f"intervals of {plural(len(groups), 'group')} ({', '.join(some)}{', ...' * (len(groups) > 3)}) are "
        told += "nearly as wide as the bounds: the bags contain almost no information about these groups."
        warn("uncertain groups", told)


class _Cells:
    """Rows of some whole bags, bag by bag. A cell is a group in a bag that has rows."""

    def __init__(self, bag_rows: IntArray, group_of_row: IntArray, groups: int, weights: FloatArray) -> None:
        self.bag_rows, self.group_of_row, self.groups, self.weights = bag_rows, group_of_row, groups, weights
        self.bag_of_row = np.repeat(np.arange(len(bag_rows)), bag_rows)
        numbers, self.of_row = np.unique(self.bag_of_row * groups + group_of_row, return_inverse=True)
        self.bag, self.group = np.divmod(numbers, groups)  # [cells], bags in ascending order
        sums = (np.bincount(of, weights).astype(np.float64) for of in (self.of_row, self.bag_of_row))
        self.sizes, self.bag_sizes = sums

    def by_cell(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.of_row, self.weights * values), dtype=np.float64)

    def by_group(self, values: FloatArray | IntArray) -> FloatArray:
        """Return the sums of `values` [cells, ...] in each group [groups, ...]."""
        sums = np.zeros((self.groups, *values.shape[1:]))
        np.add.at(sums, self.group, values)
        return sums


@dataclass(frozen=True, eq=False)
class _ClassCounts:
    """Number of rows of one class in each bag."""

    numbers: FloatArray  # [bags]; NaN if not known
    noise: float = 0.0  # standard deviation of the noise of the numbers
    of_rows: bool = True  # whether these rows were counted, not a sample of them, or other rows with these shares

    def drawn(self, rows: IntArray, sizes: FloatArray, rng: Generator) -> FloatArray:
        """Return numbers of `rows` [bags], whole but for their weights, which add up to `sizes`; NaN if not known."""
        known, unit = np.isfinite(self.numbers), sizes / rows
        share = np.clip(np.where(known, self.numbers, 0.0) / sizes, 0.0, 1.0)
        if not self.of_rows:
            found = rng.binomial(rows, share).astype(np.float64)
        else:
            found = (share * sizes + self.noise * rng.standard_normal(len(sizes))) / unit
            found = np.floor(found + 1e-9 + (1 - 2e-9) * rng.random(len(sizes)))  # stochastic rounding
        return np.where(known, (unit * found).clip(0, sizes), np.nan)


class _EffectsOfGroups:
    """Effects of groups on the logits of one class: sums from one pass over pieces of whole bags, then draws."""

    def __init__(self, groups: int, counts: _ClassCounts, tau: float, deviations: Deviations) -> None:
        """`tau` is the standard deviation of effects of bags (NaN: not known); `deviations` are `_FIRST` draws."""
        self.tau = max(tau, _LEAST_TAU) if np.isfinite(tau) else _UNKNOWN_TAU
        self._known, self._deviations = np.isfinite(counts.numbers), deviations
        self._rows, self._logits, self._away = np.zeros(groups), np.zeros(groups), np.zeros((groups, _FIRST))
        self._inner, self._sums, self._weight = np.zeros((groups + 1,) * 2), np.zeros(groups + 1), 0.0

    def add(self, cells: _Cells, bags: slice, rows: Rows, proba: FloatArray) -> None:
        """Add some `bags`; `proba` [rows] are probabilities of the class, which add up to the counts of bags."""
        logits = logit(proba.clip(_LEAST, 1 - _LEAST))
        sizes, of_row, weights = cells.bag_sizes, cells.group_of_row, cells.weights
        self._rows += np.bincount(of_row, weights, cells.groups)
        self._logits += np.bincount(of_row, weights * logits, cells.groups)
        for away, sums in zip(self._deviations(rows, slice(None)).T, self._away.T, strict=True):
            sums += np.bincount(of_row, weights * away, cells.groups)
        shares = np.zeros((len(sizes), cells.groups))
        shares[cells.bag, cells.group] = cells.sizes / sizes[cells.bag]
        means = np.bincount(cells.bag_of_row, weights * logits) / sizes
        variance = np.bincount(cells.bag_of_row, weights * proba * (1 - proba)) / sizes
        noise = 1 / (sizes * np.maximum(variance, 1e-3))
        weight = self._known[bags] / (noise + self.tau**2 * max(1.0, _CONFOUNDED**2 * self._known.sum()))
        regressors = np.column_stack([shares, means])
        self._inner += (regressors * weight[:, None]).T @ regressors
        self._sums += weight @ regressors
        self._weight += weight.sum()

    def draws(self, rng: Generator) -> FloatArray:
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
    cells: _Cells, rows: Rows, proba: FloatArray, counts: _ClassCounts, posterior: _Posterior, rng: Generator
) -> FloatArray:
    """Return draws [cells, draws] of the number of rows of a class."""
    deviations, effects, tau = posterior
    logits, found = logit(proba.clip(_LEAST, 1 - _LEAST)), np.empty((len(cells.sizes), _DRAWS))
    at_once = max(_AT_ONCE, _VALUES // len(logits))
    for start in range(0, _DRAWS, at_once):
        for draw, away in enumerate(deviations(rows, slice(start, start + at_once)).T, start):
            of_cell = effects[cells.group, draw] + tau * rng.standard_normal(len(found))
            of_bag = tau * rng.standard_normal(len(cells.bag_sizes))  # only needed if the count is not known
            latent = logits + away + of_cell[cells.of_row] + of_bag[cells.bag_of_row]
            latent += rng.logistic(size=len(logits))
            found[:, draw] = cells.by_cell(_chosen(cells, latent, counts.drawn(cells.bag_rows, cells.bag_sizes, rng)))
    return found


def _chosen(cells: _Cells, latent: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return the part [rows] of each row that is of the class.

    These are the largest values of each bag, whose weights add up to its number, or those above 0 if this is unknown.
    """
    bags, weights, above = cells.bag_of_row, cells.weights, np.empty(len(latent))
    order = np.lexsort((-latent, bags))
    above[order] = np.cumsum(weights[order]) - weights[order]
    above -= (np.cumsum(cells.bag_sizes) - cells.bag_sizes)[bags]
    number = numbers[bags]
    return np.where(np.isnan(number), latent > 0, ((number - above) / weights).clip(0, 1))
