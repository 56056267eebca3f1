"""Ecological inference for tables of groups by outcomes, such as votes by ethnic group, from precincts.

Both margins of each precinct are known: people by group and by outcome. The cells of all precincts and of each are
estimated. They add up to both margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from llpbench.blocks.cross_shares import CrossShares, fit_cross_shares
from llpbench.core.bags import FloatArray
from llpbench.core.errors import LLPBenchError
from llpbench.core.seeding import generator
from llpbench.core.text import plural, verb
from llpbench.data.other_frames import as_pandas

NUMBERS = ("people", "count", "count_lower", "count_upper", "count_min", "count_max")
SHARES = ("share", "share_lower", "share_upper", "share_min", "share_max")
_DRAWS, _TAILS = 400, (0.025, 0.975)
_SWEEPS, _CLOSE = 200, 1e-9
_SHARES_OFF = 0.02
"""Largest distance from 1 of the sum of a precinct's shares."""
_PIECE = 20
"""Number of precincts whose intervals are drawn together."""
_MOST_LOCAL = 4.0
"""Largest variance of the logit of one cell of a precinct."""


@dataclass(frozen=True, eq=False)
class CrossTable:
    """Estimated cells of groups by outcomes, made by `cross_table`.

    Examples
    --------
    >>> from llpbench import CrossTable, cross_table
    >>> table = cross_table([[90, 10], [50, 50], [10, 90]], [[80, 20], [55, 45], [28, 72]])
    >>> isinstance(table, CrossTable), list(table.differences.columns[:4])
    (True, ['group', 'other', 'outcome', 'difference'])
    """

    groups: list[str]
    outcomes: list[str]
    precincts: pd.Index
    people: FloatArray
    """[precincts, groups] people by group"""
    counts: FloatArray
    """[precincts, outcomes] people by outcome, with the same totals"""
    weights: FloatArray
    """[precincts] how often each precinct counts"""
    estimates: FloatArray
    """[precincts, groups, outcomes] estimated number of people"""
    fitted: CrossShares
    seed: int

    def __repr__(self) -> str:
        size = f"{plural(len(self.groups), 'group')} x {plural(len(self.outcomes), 'outcome')}"
        return f"<{size}, {plural(len(self.precincts), 'precinct')}>\n{self.shares.round(3)}"

    @property
    def shares(self) -> pd.DataFrame:
        """Estimated share of each outcome (columns) in each group (rows); NaN for a group without people."""
        total = np.tensordot(self.weights, self.estimates, 1)
        with np.errstate(invalid="ignore"):
            return pd.DataFrame(total / total.sum(axis=1, keepdims=True), self.groups, self.outcomes)

    @property
    def goodman(self) -> pd.DataFrame:
        """Shares by Goodman's regression, for comparison. They may be below 0 or above 1."""
        size = self.people.sum(axis=1)
        root = np.sqrt(self.weights / np.maximum(size, 1))[:, None]
        there = self.people.sum(axis=0) > 0
        shares = np.full((len(self.groups), len(self.outcomes)), np.nan)
        shares[there] = np.linalg.lstsq(root * self.people[:, there], root * self.counts, rcond=None)[0]
        return pd.DataFrame(shares, self.groups, self.outcomes)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Cells of all precincts together, a line for each group and outcome.

        `count` and `share` (of the group) with their 95 % intervals (`_lower`, `_upper`), the bounds of Duncan and
        Davis (`_min`, `_max`), outside which the margins allow no value, and `goodman`.
        """
        total = np.tensordot(self.weights, self.estimates, 1)
        bounds = [np.tensordot(self.weights, each, 1) for each in _bounds(self.people, self.counts)]
        found = self._lines(total[None], self._drawn[:, None], [each[None] for each in bounds], pd.Index(["all"]))
        return found.drop(columns="precinct").assign(goodman=self.goodman.to_numpy().ravel())

    @cached_property
    def _drawn(self) -> FloatArray:
        """Draws of the cells of all precincts [draws, groups, outcomes]."""
        total = np.tensordot(self.weights, self.estimates, 1)
        deviations = self.fitted.deviations(_DRAWS, generator(self.seed, "training"))
        return _raked(_moved(total, deviations), total.sum(axis=1), total.sum(axis=0))

    @property
    def differences(self) -> pd.DataFrame:
        """Differences of shares between two groups, a line for each pair and outcome, with 95 % intervals.

        `robustness` is between 0 and 1: a hidden cause that explains less than this share of the variation between
        precincts, both of the outcome and of the first group's size (given the other groups), cannot change the sign
        of the difference. It is the robustness value of Cinelli & Hazlett (2020), applied to ecological inference by
        McCartan & Kuriwaki (2025), with the errors of Goodman's regression.
        """
        there = [place for place, number in enumerate(self.people.sum(axis=0)) if number > 0]
        shares, drawn = self.shares.to_numpy(), self._drawn / self._drawn.sum(axis=2, keepdims=True).clip(min=1e-300)
        lines = []
        for one, other in combinations(there, 2):
            errors = self._errors(one, other, there)
            for k, outcome in enumerate(self.outcomes):
                difference = shares[one, k] - shares[other, k]
                lower, upper = np.quantile(drawn[:, one, k] - drawn[:, other, k], _TAILS)
                f = (difference / errors[k]) ** 2 if errors[k] > 0 else np.nan
                robustness = (np.sqrt(f**2 + 4 * f) - f) / 2
                lines.append((self.groups[one], self.groups[other], outcome, difference, lower, upper, robustness))
        names = ("group", "other", "outcome", "difference", "difference_lower", "difference_upper", "robustness")
        return pd.DataFrame(lines, columns=[*names])

    def _errors(self, one: int, other: int, there: Sequence[int]) -> FloatArray:
        """Return the standard error of the difference between two groups, times the root of the degrees of freedom.

        [outcomes], by least squares of shares of outcomes on shares of groups. NaN with too few precincts.
        """
        size = self.people.sum(axis=1)
        used = (size > 0) & (self.weights > 0)
        root = np.sqrt(self.weights[used] * size[used])[:, None]
        x, y = (root * each[used] / size[used, None] for each in (self.people[:, there], self.counts))
        if len(x) <= len(there):
            return np.full(len(self.outcomes), np.nan)
        slopes, *_ = np.linalg.lstsq(x, y, rcond=None)
        contrast = np.zeros(len(there))
        contrast[there.index(one)], contrast[there.index(other)] = 1.0, -1.0
        variance = contrast @ np.linalg.pinv(x.T @ x) @ contrast
        return np.asarray(np.sqrt(variance * ((y - x @ slopes) ** 2).sum(axis=0)))

    def by_precinct(self) -> pd.DataFrame:
        """Return the cells of each precinct, as `cells`. Intervals include the variation between precincts."""
        rng = generator(self.seed, "training")
        deviations = self.fitted.deviations(_DRAWS, rng)
        found = []
        for start in range(0, len(self.precincts), _PIECE):
            some = slice(start, start + _PIECE)
            estimates, people = self.estimates[some], self.people[some]
            p = self.fitted.shares
            clusters = 1 + np.maximum(people - 1, 0) * self.fitted.rho
            variance = (clusters / np.maximum(people, 1))[:, :, None] / (p * (1 - p)).clip(min=1e-3)
            local = rng.standard_normal((_DRAWS, *estimates.shape)) * np.sqrt(variance.clip(max=_MOST_LOCAL))
            local -= local.mean(axis=3, keepdims=True)
            drawn = _raked(_moved(estimates, deviations[:, None] + local), people, self.counts[some])
            bounds = _bounds(people, self.counts[some])
            found.append(self._lines(estimates, drawn, bounds, self.precincts[some]))
        return pd.concat(found, ignore_index=True)

    def _lines(
        self, estimates: FloatArray, drawn: FloatArray, bounds: Sequence[FloatArray], precincts: pd.Index
    ) -> pd.DataFrame:
        """Return a line for each precinct, group and outcome; `drawn` are [draws, precincts, groups, outcomes]."""
        least, most = bounds
        lower, upper = (np.quantile(drawn, tail, axis=0).clip(least, most) for tail in _TAILS)
        ends = np.minimum(lower, estimates), np.maximum(upper, estimates)
        people = np.broadcast_to(estimates.sum(axis=2, keepdims=True), estimates.shape)
        names = pd.MultiIndex.from_product(
            [precincts, self.groups, self.outcomes], names=["precinct", "group", "outcome"]
        )
        numbers = (people, estimates, *ends, least, most)
        with np.errstate(invalid="ignore"):
            shares = [each / people for each in numbers[1:]]
        values = {name: each.ravel() for name, each in zip((*NUMBERS, *SHARES), (*numbers, *shares), strict=True)}
        return pd.DataFrame(values, index=names).reset_index()


def cross_table(
    groups: Any,
    outcomes: Any,
    *,
    sizes: Any = None,
    rest: str | None = None,
    weights: Any = None,
    random_state: int = 0,
) -> CrossTable:
    """Estimate a table of groups by outcomes from the margins of precincts (ecological inference, R x C).

    Parameters
    ----------
    groups
        Frame or array [precincts, groups] of people by group.
    outcomes
        Frame or array [precincts, outcomes] of people by outcome, such as votes by candidate. Precincts are matched by
        the index of frames.
    sizes
        [precincts] number of people, if both tables have shares instead of counts.
    rest
        Name of an outcome of all people who are not counted, such as "abstained".
    weights
        [precincts] how often each precinct counts.
    random_state
        Seed of the draws of intervals.

    Returns
    -------
    CrossTable
        `shares` (groups x outcomes), `cells` with intervals and bounds, `by_precinct()`, and `goodman`.

    Raises
    ------
    LLPBenchError
        Precincts that do not match, negative or missing numbers, or totals that differ by more than rounding.

    Notes
    -----
    Shares of a group may differ between precincts, but not systematically with the composition of precincts: this
    assumption of all ecological inference cannot be tested with margins alone. On 420 districts of New Zealand with
    known cells, 5 to 8 % of the people are in a wrong cell, and intervals contain the truth for 95 % of the cells
    (docs/elections.md).

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbench import cross_table
    >>> people = pd.DataFrame({"black": [90, 50, 10, 30], "white": [10, 50, 90, 70]})
    >>> votes = pd.DataFrame({"ann": [80, 55, 28, 41], "bob": [20, 45, 72, 59]})
    >>> table = cross_table(people, votes)
    >>> bool(table.shares.loc["black", "ann"] > table.shares.loc["white", "ann"])
    True
    """
    given_groups, given_outcomes = _margin(groups, "groups"), _margin(outcomes, "outcomes")
    given_outcomes = _matched(given_groups, given_outcomes)
    if sizes is not None:
        people = _column(sizes, given_groups.index, "sizes")[:, None]
        given_groups, given_outcomes = (
            _from_shares(each, people, what) for each, what in ((given_groups, "groups"), (given_outcomes, "outcomes"))
        )
    given_outcomes = _with_rest(given_groups, given_outcomes, rest)
    often = np.ones(len(given_groups)) if weights is None else _column(weights, given_groups.index, "weights")
    people, counts = given_groups.to_numpy(dtype=np.float64), given_outcomes.to_numpy(dtype=np.float64)
    counts = counts * (people.sum(axis=1) / np.maximum(counts.sum(axis=1), 1e-300))[:, None]
    used = (people.sum(axis=1) > 0) & (often > 0)
    there = (people[used].sum(axis=0) > 0).nonzero()[0]
    if not used.any() or len(there) < 2:
        raise LLPBenchError(f"groups must have people in at least two groups, got {len(there)}. Check the columns.")
    fitted = fit_cross_shares(people[used][:, there], counts[used], often[used])
    fitted = _of_all_groups(fitted, there, people.shape[1])
    start = people[:, :, None] * fitted.shares
    return CrossTable(
        [*map(str, given_groups.columns)],
        [*map(str, given_outcomes.columns)],
        given_groups.index,
        people,
        counts,
        often,
        _raked(start, people, counts),
        fitted,
        random_state,
    )


def _of_all_groups(fitted: CrossShares, there: FloatArray, number: int) -> CrossShares:
    """Return shares of all groups; those of groups without people are equal, without variance."""
    outcomes = fitted.shares.shape[1]
    shares = np.full((number, outcomes), 1 / outcomes)
    shares[there] = fitted.shares
    places = (there[:, None] * outcomes + np.arange(outcomes)).ravel()
    covariance = np.zeros((number * outcomes, number * outcomes))
    covariance[np.ix_(places, places)] = fitted.covariance
    return CrossShares(shares, fitted.rho, covariance)


def _moved(cells: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return draws of cells whose logits deviate; half a person lets empty cells move."""
    return np.asarray((cells + 0.5 * (cells.sum(axis=-1, keepdims=True) > 0)) * np.exp(deviations.clip(-12, 12)))


def _raked(cells: FloatArray, people: FloatArray, counts: FloatArray) -> FloatArray:
    """Return cells [..., groups, outcomes] scaled to both margins (iterative proportional fitting)."""
    for _ in range(_SWEEPS):
        cells = cells * _ratio(counts, cells.sum(axis=-2))[..., None, :]
        ratio = _ratio(people, cells.sum(axis=-1))
        cells = cells * ratio[..., None]
        if np.abs(ratio - 1)[people + 0 * ratio > 0].max(initial=0.0) < _CLOSE:
            break
    return cells


def _ratio(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.asarray(np.divide(wanted, found, out=np.zeros(found.shape), where=found > 0))


def _bounds(people: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest possible cells [precincts, groups, outcomes] (Duncan & Davis 1953)."""
    others = people.sum(axis=1)[:, None] - people
    return np.maximum(counts[:, None, :] - others[:, :, None], 0.0), np.minimum(people[:, :, None], counts[:, None, :])


def _margin(given: Any, what: str) -> pd.DataFrame:
    """Return one margin as a frame of numbers from 0."""
    given = as_pandas(given)
    frame = given if isinstance(given, pd.DataFrame) else pd.DataFrame(np.asarray(given)).add_prefix(f"{what[:-1]} ")
    if frame.shape[1] < 2 or not len(frame):
        raise LLPBenchError(f"{what} must have a row for each precinct and two columns or more, got {frame.shape}.")
    if frame.columns.has_duplicates or frame.index.has_duplicates:
        names = frame.columns if frame.columns.has_duplicates else frame.index
        raise LLPBenchError(f"{what} must not have {names[names.duplicated()][0]!r} twice. Remove one.")
    numbers = frame.apply(pd.to_numeric, errors="coerce")
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any(axis=None):
        row, column = map(int, np.argwhere(wrong.to_numpy())[0])
        value = str(frame.iloc[row, column])
        raise LLPBenchError(
            f"{what} must be numbers from 0, got {value!r} in column {frame.columns[column]!r} of "
            f"precinct {frame.index[row]!r} ({plural(int(wrong.sum(axis=None)), 'such value')}). Correct these, or "
            "leave the precinct out."
        )
    return numbers.astype(np.float64)


def _matched(groups: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return outcomes with the precincts of groups in their order."""
    lacking = [*groups.index.difference(outcomes.index), *outcomes.index.difference(groups.index)]
    if lacking:
        raise LLPBenchError(
            f"groups and outcomes must be of the same precincts, got {lacking[0]!r} in only one of them "
            f"({plural(len(lacking), 'such precinct')}). Leave these out."
        )
    if both := {*map(str, groups.columns)} & {*map(str, outcomes.columns)}:
        raise LLPBenchError(f"{min(both)!r} must not be both a group and an outcome. Name each column once.")
    return outcomes.loc[groups.index]


def _from_shares(shares: pd.DataFrame, people: FloatArray, what: str) -> pd.DataFrame:
    total = shares.sum(axis=1)
    off = np.flatnonzero(np.abs(total - 1) > _SHARES_OFF)
    if len(off) and what == "groups":
        raise LLPBenchError(
            f"with sizes=, {what} must be shares that add up to 1, got {total.iloc[off[0]]:.6g} for precinct "
            f"{shares.index[off[0]]!r} ({plural(len(off), 'such precinct')}). Leave sizes= out for counts."
        )
    close = np.abs(total - 1) <= _SHARES_OFF
    return shares.div(total.where(close, 1.0), axis=0) * people


def _with_rest(groups: pd.DataFrame, outcomes: pd.DataFrame, rest: str | None) -> pd.DataFrame:
    """Return outcomes with the same totals as groups within rounding; people who are not counted are the `rest`."""
    people, counted = groups.sum(axis=1), outcomes.sum(axis=1)
    slack = 0.5 * (groups.shape[1] + outcomes.shape[1]) + 1e-6 * people
    if rest is not None:
        if rest in (*groups.columns, *outcomes.columns):
            raise LLPBenchError(f"rest must be a new name, got {rest!r}, which is a column.")
        outcomes = outcomes.assign(**{rest: (people - counted).clip(lower=0.0)})
        counted = outcomes.sum(axis=1)
    off = np.flatnonzero(np.abs(people - counted) > slack)
    if len(off):
        first, fewer = off[0], bool((counted <= people + slack).all())
        advice = "Correct the file, or leave these precincts out"
        if fewer:
            advice = 'Name the other people, such as abstained: --rest-as abstained, in Python rest="abstained"'
        raise LLPBenchError(
            f"groups and outcomes of a precinct must have the same total, got {people.iloc[first]:,.10g} and "
            f"{counted.iloc[first]:,.10g} in {groups.index[first]!r}. {plural(len(off), 'precinct')} "
            f"{verb(len(off))} this problem. {advice}."
        )
    return outcomes


def _column(given: Any, precincts: pd.Index, what: str) -> FloatArray:
    """Return a number from 0 for each precinct."""
    given = as_pandas(given)
    if isinstance(given, pd.Series):
        if lacking := [*precincts.difference(given.index)]:
            raise LLPBenchError(f"{what} must be known for every precinct, got none for {lacking[0]!r}. Add it.")
        given = given.loc[precincts]
    numbers = np.asarray(pd.to_numeric(pd.Series(np.asarray(given)), errors="coerce"), dtype=np.float64)
    if len(numbers) != len(precincts) or not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise LLPBenchError(f"{what} must be a number from 0 for each of {len(precincts):,} precincts. Correct them.")
    return numbers
