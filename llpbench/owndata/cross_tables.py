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
from scipy import stats

from llpbench.blocks.cross_shares import CrossLikelihood, CrossShares
from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import LLPBenchError, argument, either, warn
from llpbench.core.seeding import generator
from llpbench.core.text import plural, verb
from llpbench.data.reading_bags import as_pandas

NUMBERS = ("people", "count", "count_lower", "count_upper", "count_min", "count_max")
SHARES = ("share", "share_lower", "share_upper", "share_min", "share_max")
_DRAWS, _TAILS = 400, (0.025, 0.975)
_SWEEPS, _CLOSE = 200, 1e-9
_SHARES_OFF = 0.02
"""Largest distance from 1 of the sum of a precinct's shares."""
_FEWEST_OF_TOTAL, _FEWEST_ALIKE = 3, 5
"""Number of precincts from which a total of the others, and from which equal totals of all, are no coincidence."""
_OF_TOTAL = 0.002
"""Largest distance of a line of totals from the sums of precincts, as a share of all people."""
_PIECE = 20
"""Number of precincts whose intervals are drawn together."""
_MOST_LOCAL = 4.0
"""Largest variance of the logit of one cell of a precinct."""
_CURVED = 1e-4
"""Probability of a test below which a warning is given."""


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
    """[precincts, columns] people by column of the given groups"""
    counts: FloatArray
    """[precincts, outcomes] people by outcome, with the same totals"""
    weights: FloatArray
    """[precincts] how often each precinct counts"""
    covariates: FloatArray
    """[precincts, covariates] with mean 0 and unit variance"""
    estimates: FloatArray
    """[precincts, columns, outcomes] estimated number of people"""
    fitted: CrossShares
    joined: FloatArray
    """[groups, columns] 1 where a column belongs to a group"""
    among: IntArray
    """positions of the outcomes that have shares"""
    seed: int

    def __repr__(self) -> str:
        size = f"{plural(len(self.groups), 'group')} x {plural(len(self.outcomes), 'outcome')}"
        return f"<{size}, {plural(len(self.precincts), 'precinct')}>\n{self.shares.round(3)}"

    @property
    def shares(self) -> pd.DataFrame:
        """Estimated share of each outcome (columns) in each group (rows); NaN for a group without people."""
        names = [self.outcomes[place] for place in self.among]
        return pd.DataFrame(self._shares(self._total)[:, self.among], self.groups, names)

    @property
    def goodman(self) -> pd.DataFrame:
        """Shares by Goodman's regression, for comparison. They may be below 0 or above 1."""
        shares = np.full((len(self.groups), len(self.outcomes)), np.nan)
        shares[self._there] = self._regression(rho=0.0).slopes
        return pd.DataFrame(self._shares(shares), self.groups, self.outcomes)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Cells of all precincts together, a line for each group and outcome.

        `count` and `share` (of the group) with their 95 % intervals (`_lower`, `_upper`), the bounds of Duncan and
        Davis (`_min`, `_max`), outside which the margins allow no value, and `goodman`.
        """
        bounds = [np.tensordot(self.weights, each, 1)[None] for each in self._bounds(slice(None))]
        found = self._lines(self._total[None], self._drawn[:, None], bounds, pd.Index(["all"]))
        goodman = self.goodman.to_numpy()[:, self.among].ravel()
        return found.drop(columns="precinct").assign(goodman=goodman)

    @property
    def differences(self) -> pd.DataFrame:
        """Differences of shares of all people between two groups, for each pair and outcome, with 95 % intervals.

        `robustness` is between 0 and 1: a hidden cause that explains less than this share of the variation between
        precincts, both of the outcome and of the first group's size (given the other groups and the covariates),
        cannot change the sign of the difference. It is the robustness value of Cinelli & Hazlett (2020), applied to
        ecological inference by McCartan & Kuriwaki (2025), with the errors of Goodman's regression.

        `shift` is the change of the difference in Goodman's regression when covariates are added. `shift_p` is the
        probability of a shift of this size if the assumption holds without covariates (Hausman 1978).
        """
        shares, drawn = (self._shares(each, of=slice(None)) for each in (self._total, self._drawn))
        with_covariates, without = self._regression(covariates=True), self._regression()
        there, lines = self._there.tolist(), []
        for one, other in combinations(there, 2):
            contrast = np.isin(there, one) * 1.0 - np.isin(there, other)
            (slope, error, degrees), (plain, plain_error, _) = (
                each.contrast(contrast) for each in (with_covariates, without)
            )
            difference = shares[one] - shares[other]
            lower, upper = np.quantile(drawn[:, one] - drawn[:, other], _TAILS, axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                f = (difference / error) ** 2 / degrees
                robustness = np.where(error > 0, (np.sqrt(f**2 + 4 * f) - f) / 2, np.nan)
                p = 2 * stats.norm.sf(np.abs(slope - plain) / np.sqrt(np.maximum(error**2 - plain_error**2, 1e-12)))
            values = (difference, lower, upper, robustness, slope - plain, p)
            lines += [
                (self.groups[one], self.groups[other], *line) for line in zip(self.outcomes, *values, strict=True)
            ]
        names = ("difference", "difference_lower", "difference_upper", "robustness", "shift", "shift_p")
        found = pd.DataFrame(lines, columns=["group", "other", "outcome", *names])
        return found if self.covariates.shape[1] else found.drop(columns=["shift", "shift_p"])

    @property
    def curvature(self) -> pd.Series:
        """Probability of a test for each outcome, small if shares of groups change with a precinct's composition.

        Under the assumption of all ecological inference, an outcome's expected share is linear in the shares of groups.
        The test (Ramsey 1969) adds the square of the fitted share. It sees neither a hidden cause that acts on all
        groups alike, nor which groups change.
        """
        plain = self._regression(covariates=True)
        fitted, found = plain.design @ plain.slopes, []
        for k in range(len(self.outcomes)):
            more = _Regression(np.column_stack([plain.design, fitted[:, k] ** 2]), plain.values[:, [k]], plain.weights)
            slope, error, degrees = more.contrast(np.eye(more.design.shape[1])[-1])
            found.append(2 * stats.t.sf(abs(slope[0] / error[0]), degrees) if error[0] > 0 else np.nan)
        return pd.Series(found, self.outcomes, dtype=np.float64)

    def by_precinct(self) -> pd.DataFrame:
        """Return the cells of each precinct, as `cells`. Intervals include the variation between precincts."""
        rng, found = generator(self.seed, "training"), []
        deviations = self.fitted.deviations(_DRAWS, rng)
        for start in range(0, len(self.precincts), _PIECE):
            some = slice(start, start + _PIECE)
            estimates, people, p = self.estimates[some], self.people[some], self.fitted.shares[some]
            clusters = 1 + np.maximum(people - 1, 0) * self.fitted.rho
            variance = (clusters / np.maximum(people, 1))[:, :, None] / (p * (1 - p)).clip(min=1e-3)
            local = rng.standard_normal((_DRAWS, *estimates.shape)) * np.sqrt(variance.clip(max=_MOST_LOCAL))
            local -= local.mean(axis=3, keepdims=True)
            drawn = _raked(_moved(estimates, deviations[:, None] + local), people, self.counts[some])
            found.append(self._lines(estimates, drawn, self._bounds(some), self.precincts[some]))
        return pd.concat(found, ignore_index=True)

    @property
    def _total(self) -> FloatArray:
        """Cells of all precincts [columns, outcomes]."""
        return np.asarray(np.tensordot(self.weights, self.estimates, 1))

    @cached_property
    def _drawn(self) -> FloatArray:
        """Draws of the cells of all precincts [draws, columns, outcomes]."""
        deviations = self.fitted.deviations(_DRAWS, generator(self.seed, "training"))
        return _raked(_moved(self._total, deviations), self._total.sum(axis=1), self._total.sum(axis=0))

    def _shares(self, cells: FloatArray, of: IntArray | slice | None = None) -> FloatArray:
        """Return shares of groups [..., groups, outcomes] from cells of their columns, or from cells of groups.

        Shares are of the people with the outcomes `of` (default: `among`).
        """
        cells = self.joined @ cells if cells.shape[-2] == self.joined.shape[1] else cells
        with np.errstate(invalid="ignore"):
            return np.asarray(cells / cells[..., self.among if of is None else of].sum(axis=-1, keepdims=True))

    def _bounds(self, some: slice) -> tuple[FloatArray, FloatArray]:
        return _bounds(self.people[some] @ self.joined.T, self.counts[some])

    @property
    def _there(self) -> IntArray:
        """Positions of the groups with people."""
        return np.flatnonzero(self.joined @ self.people.sum(axis=0) > 0)

    def _regression(self, *, covariates: bool = False, rho: float | None = None) -> _Regression:
        """Return the regression of shares of outcomes on shares of groups, with the fitted variance of precincts."""
        size, rho = self.people.sum(axis=1), self.fitted.rho if rho is None else rho
        used = (size > 0) & (self.weights > 0)
        x, y = ((each[used] / size[used, None]) for each in (self.people @ self.joined.T[:, self._there], self.counts))
        design = np.column_stack([x, self.covariates[used]]) if covariates else x
        return _Regression(design, y, self.weights[used] * size[used] / (1 + (size[used] - 1) * rho))

    def _lines(
        self, estimates: FloatArray, drawn: FloatArray, bounds: Sequence[FloatArray], precincts: pd.Index
    ) -> pd.DataFrame:
        """Return a line for each precinct, group and outcome; `drawn` are [draws, precincts, columns, outcomes]."""
        (least, most), (estimates, drawn) = bounds, (self.joined @ each for each in (estimates, drawn))
        people = np.broadcast_to(estimates.sum(axis=2, keepdims=True), estimates.shape)
        numbers = (estimates, *_interval(estimates, drawn, least, most), least, most)
        shares = shares_among(self.among, estimates, drawn, least, most, people)
        names = [precincts, self.groups, [self.outcomes[place] for place in self.among]]
        index = pd.MultiIndex.from_product(names, names=["precinct", "group", "outcome"])
        values = zip((*NUMBERS, *SHARES), (people, *numbers, *shares), strict=True)
        return pd.DataFrame({name: each[..., self.among].ravel() for name, each in values}, index=index).reset_index()


@dataclass(frozen=True, eq=False)
class _Regression:
    """Weighted least squares of several outcomes."""

    design: FloatArray
    """[precincts, regressors]"""
    values: FloatArray
    """[precincts, outcomes]"""
    weights: FloatArray
    """[precincts]"""

    @cached_property
    def slopes(self) -> FloatArray:
        """[regressors, outcomes]"""
        root = np.sqrt(self.weights)[:, None]
        return np.asarray(np.linalg.lstsq(root * self.design, root * self.values, rcond=None)[0])

    def contrast(self, contrast: FloatArray) -> tuple[FloatArray, FloatArray, int]:
        """Return a contrast of the first slopes [outcomes], its standard errors, and the degrees of freedom."""
        contrast = np.pad(contrast, (0, self.design.shape[1] - len(contrast)))
        degrees = len(self.design) - self.design.shape[1]
        if degrees <= 0:
            return contrast @ self.slopes, np.full(self.values.shape[1], np.nan), 0
        variance = contrast @ np.linalg.pinv((self.design.T * self.weights) @ self.design) @ contrast
        left = self.weights @ (self.values - self.design @ self.slopes) ** 2
        return contrast @ self.slopes, np.asarray(np.sqrt(variance * left / degrees)), degrees


def cross_table(
    groups: Any,
    outcomes: Any,
    *,
    sizes: Any = None,
    rest: str | None = None,
    weights: Any = None,
    covariates: Any = None,
    join: Sequence[str] | None = None,
    among: Sequence[str] | None = None,
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
    covariates
        Frame or array [precincts, columns] of numbers, such as median income. Their effects on outcomes are the same
        for all groups.
    join
        Name of the group of each column of groups, to add up columns such as "women 18 to 30" and "women over 30".
    among
        Outcomes that have shares, such as all but "abstained". Differences are always of all people.
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

    Warns
    -----
    LLPBenchWarning
        Shares of groups change with the composition of precincts, as far as a test can see it (`curvature`).

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
    margins = [_numbers(groups, "groups")]
    precincts = margins[0].index
    margins.append(_numbers(outcomes, "outcomes", precincts))
    for what, margin in zip(("groups", "outcomes"), margins, strict=True):
        if margin.shape[1] + (what == "outcomes" and rest is not None) < 2 or not len(margin):
            other = f" For an outcome of all other people, use {argument('rest=')}." if what == "outcomes" else ""
            raise LLPBenchError(
                f"{what} must have a row for each precinct and two columns or more, got {len(margin)} x "
                f"{margin.shape[1]}.{other}"
            )
    if both := {*map(str, margins[0].columns)} & {*map(str, margins[1].columns)}:
        raise LLPBenchError(f"{min(both)!r} must not be both a group and an outcome. Name each column once.")
    _require_no_total(*margins)
    if sizes is None:
        _require_people(*margins)
    else:
        totals = [each.sum(axis=1) for each in margins]
        whole = 100 if _add_up(totals[0], 100) else 1
        off = np.flatnonzero(np.abs(totals[0] / whole - 1) > _SHARES_OFF)
        if len(off):
            raise LLPBenchError(
                f"with {argument('sizes=')}, groups must be shares that add up to 1, or percentages, got "
                f"{totals[0].iloc[off[0]]:.6g} for precinct {precincts.tolist()[off[0]]!r} "
                f"({plural(len(off), 'such precinct')}). Leave {argument('sizes=')} out for counts."
            )
        margins = [margins[0] / whole, margins[1] / (100 if totals[1].max() > 1 + _SHARES_OFF else 1)]
        totals = [each.sum(axis=1) for each in margins]
        number = _numbers(sizes, "sizes", precincts).iloc[:, 0]
        units = [number / total.where(np.abs(total - 1) <= _SHARES_OFF, 1.0) for total in totals]
        margins = [each.mul(unit, axis=0) for each, unit in zip(margins, units, strict=True)]
    _require_no_line_of_totals(pd.concat(margins, axis=1))
    margins[1] = _with_rest(margins[0], margins[1], rest)
    people, counts = (each.to_numpy() for each in margins)
    size = people.sum(axis=1)
    counts = counts * (size / np.maximum(counts.sum(axis=1), 1e-300))[:, None]
    often = np.ones(len(people)) if weights is None else _numbers(weights, "weights", precincts).to_numpy()[:, 0]
    if (there := int((often @ people > 0).sum())) < 2:
        raise LLPBenchError(f"groups must have people in at least two groups, got {there}. Check the columns.")
    z = np.zeros((len(people), 0))
    if covariates is not None:
        z = _numbers(covariates, "covariates", precincts, least=-np.inf).to_numpy()
        z = z - np.average(z, axis=0, weights=often * size)
        spread = np.sqrt(np.average(z**2, axis=0, weights=often * size))
        z = z / np.where(spread > 0, spread, 1.0)
    fitted = CrossLikelihood(people, counts, often, z).maximum()
    names = [*map(str, margins[0].columns if join is None else join)]
    if len(names) != people.shape[1]:
        raise LLPBenchError(f"join must have a name for each of {people.shape[1]} columns of groups, got {len(names)}.")
    listed, named = [*dict.fromkeys(names)], [*map(str, margins[1].columns)]
    if absent := [name for name in among or () if name not in named]:
        raise LLPBenchError(f"among must name outcomes, got {absent[0]!r}. Outcomes are {', '.join(named)}.")
    table = CrossTable(
        listed,
        named,
        precincts,
        people,
        counts,
        often,
        z,
        _raked(people[:, :, None] * fitted.shares, people, counts),
        fitted,
        (np.array(listed)[:, None] == np.array(names)).astype(np.float64),
        np.array([place for place, name in enumerate(named) if name in (among or named)]),
        random_state,
    )
    if (curved := table.curvature).min() * len(curved) < _CURVED:
        warn(
            "confounded precincts",
            f"shares of groups seem to change with the composition of precincts: a test of {curved.idxmin()!r} has "
            f"p = {curved.min():.1g}. Estimates are biased if they do. Give covariates of precincts, if you have any.",
        )
    return table


def _moved(cells: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return draws of cells whose logits deviate; half a person lets empty cells move."""
    return np.asarray((cells + 0.5 * (cells.sum(axis=-1, keepdims=True) > 0)) * np.exp(deviations.clip(-12, 12)))


def _interval(
    values: FloatArray, drawn: FloatArray, least: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of 95 % intervals within bounds; `drawn` are [draws, ...]."""
    lower, upper = (np.quantile(drawn, tail, axis=0).clip(least, most) for tail in _TAILS)
    return np.minimum(lower, values), np.maximum(upper, values)


def shares_among(
    among: Sequence[int] | IntArray,
    counts: FloatArray,
    drawn: FloatArray,
    least: FloatArray,
    most: FloatArray,
    people: FloatArray,
) -> tuple[FloatArray, ...]:
    """Return shares among some outcomes, the ends of 95 % intervals, and bounds, from counts [..., outcomes].

    `drawn` are draws of counts [draws, ..., outcomes], `least` and `most` their bounds, `people` those of the group.
    """
    some = [each[..., among].sum(axis=-1, keepdims=True) for each in (counts, drawn, least, most)]
    least_of_rest, most_of_rest = (
        each.sum(axis=-1, keepdims=True) - part for each, part in zip((least, most), some[2:], strict=True)
    )
    others = (
        np.minimum(some[3] - most, people - least - least_of_rest),
        np.maximum(some[2] - least, people - most - most_of_rest),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        share = counts / some[0]
        ends = [end / (end + other) for end, other in zip((least, most), others, strict=True)]
        ends = [np.where((end > 0) | np.isnan(share), end, 0.0) for end in ends]
        return share, *_interval(share, np.where(some[1] > 0, drawn / some[1], share), *ends), *ends


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


def _numbers(given: Any, what: str, precincts: pd.Index | None = None, least: float = 0.0) -> pd.DataFrame:
    """Return a frame of finite numbers [precincts, columns], `least` or more, in the order of `precincts`."""
    given = as_pandas(given)
    frame = pd.DataFrame(given if isinstance(given, pd.DataFrame | pd.Series) else np.asarray(given))
    if not isinstance(given, pd.DataFrame | pd.Series):
        frame = frame.add_prefix(f"{what[:-1]} ")
        frame.index = precincts if precincts is not None and len(precincts) == len(frame) else frame.index
    for kind, names in (("column", frame.columns), ("precinct", frame.index)):
        if names.has_duplicates:
            raise LLPBenchError(
                f"{what} must not have the {kind} {names[names.duplicated()].tolist()[0]!r} twice. Rename one."
            )
    if precincts is not None and len(other := precincts.symmetric_difference(frame.index, sort=False)):
        raise LLPBenchError(
            f"groups and {what} must be of the same precincts, got {other.tolist()[0]!r} in only one of them "
            f"({plural(len(other), 'such precinct')}). Leave these out."
        )
    numbers = frame.apply(pd.to_numeric, errors="coerce").astype(np.float64)
    wrong = ~(np.isfinite(numbers) & (numbers >= least))
    if wrong.any(axis=None):
        row, column = map(int, np.argwhere(wrong.to_numpy())[0])
        raise LLPBenchError(
            f"{what} must be numbers{' from 0' if least == 0 else ''}, got {str(frame.iloc[row, column])!r} in column "
            f"{frame.columns[column]!r} of precinct {frame.index.tolist()[row]!r} "
            f"({plural(int(wrong.sum(axis=None)), 'such value')}). Correct these, or leave the precinct out."
        )
    return numbers if precincts is None else numbers.loc[precincts]


def _add_up(totals: pd.Series, whole: float) -> bool:
    """Return whether shares of all precincts add up to `whole`."""
    return bool((np.abs(totals / whole - 1) <= _SHARES_OFF).all())


def _require_no_total(groups: pd.DataFrame, outcomes: pd.DataFrame) -> None:
    """Raise `LLPBenchError` for a column that is the sum of the other columns, or of the other margin."""
    if len(groups) < _FEWEST_OF_TOTAL:
        return
    for what, margin, other in (("group", groups, outcomes), ("outcome", outcomes, groups)):
        rest = -margin.sub(margin.sum(axis=1), axis=0)
        is_sum = np.isclose(margin, rest).all(axis=0) & (margin.shape[1] > 2)
        people = other.sum(axis=1).to_numpy()[:, None]
        is_people = np.isclose(margin, people).all(axis=0) & (rest > 0).any(axis=0).to_numpy()
        found = np.flatnonzero((is_sum | is_people) & (margin > 0).any(axis=0).to_numpy())
        if len(found):
            whole = f"sum of the other {what}s" if is_sum[found[0]] else "number of people"
            advice = "Leave it out" if is_sum[found[0]] else f"Name the other {what}s instead"
            if what == "outcome" and not is_sum[found[0]]:
                advice = f"Leave it out, and name an outcome of all other people: {argument('rest=')}"
            raise LLPBenchError(
                f"{what} {str(margin.columns[found[0]])!r} is the {whole} of every precinct, so it is a total, not "
                f"{'a' if what == 'group' else 'an'} {what}. {advice}."
            )


def _require_people(groups: pd.DataFrame, outcomes: pd.DataFrame) -> None:
    """Raise `LLPBenchError` for shares or percentages instead of numbers of people."""
    for what, margin in (("groups", groups), ("outcomes", outcomes)):
        for whole, kind in ((1, "shares"), (100, "percentages")):
            if len(margin) >= _FEWEST_ALIKE and _add_up(margin.sum(axis=1), whole):
                advice = f"Give the number of people in each precinct as {argument('sizes=')}"
                if what == "outcomes":
                    advice = "Give numbers of people, as for groups"
                raise LLPBenchError(f"{what} add up to {whole} in every precinct, so they are {kind}. {advice}.")


def _require_no_line_of_totals(margins: pd.DataFrame) -> None:
    """Raise `LLPBenchError` for a precinct that is the sum of all others, in each column."""
    sums, people = margins.sum(), margins.to_numpy().sum() / 2
    near = (np.abs(2 * margins - sums) <= _OF_TOTAL * people).all(axis=1).to_numpy()
    if near.any() and len(margins) > _FEWEST_OF_TOTAL:
        raise LLPBenchError(
            f"precinct {margins.index[near].tolist()[0]!r} is the sum of all other precincts, so it is a total, not a "
            "precinct. Leave this line out."
        )


def _with_rest(groups: pd.DataFrame, outcomes: pd.DataFrame, rest: str | None) -> pd.DataFrame:
    """Return outcomes with the same totals as groups within rounding; people who are not counted are the `rest`."""
    people, counted = groups.sum(axis=1), outcomes.sum(axis=1)
    columns, unit = np.column_stack([groups, outcomes]), 1
    if len(groups) >= _FEWEST_ALIKE and (columns % 1 == 0).all():
        unit = int(np.gcd.reduce(columns.astype(np.int64), axis=None))  # counts may be rounded at random to 3 or 5
    slack = max(unit - 1, 0.5) * columns.shape[1] + 1e-6 * people
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
            given = either('rest="abstained"', "--rest-as abstained")
            advice = f"Name the other people, such as abstained: {given}"
        raise LLPBenchError(
            f"groups and outcomes of a precinct must have the same total, got {people.iloc[first]:,.10g} and "
            f"{counted.iloc[first]:,.10g} in {groups.index.tolist()[first]!r}. {plural(len(off), 'precinct')} "
            f"{verb(len(off))} this problem. {advice}."
        )
    return outcomes
