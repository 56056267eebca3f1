"""Ecological inference for tables of groups by outcomes, such as votes by ethnic group, from precincts.

Both margins of each precinct are known: people by group and by outcome. The cells of all precincts and of each are
estimated. They add up to both margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from llpbench.blocks.cross_shares import CrossLikelihood, CrossShares
from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import LLPBenchError, argument, either, warn
from llpbench.core.seeding import generator
from llpbench.core.text import plural, verb
from llpbench.data.reading_bags import as_pandas
from llpbench.owndata.bounds import duncan_davis, interval, shares_among
from llpbench.owndata.confounding import Confounding

NUMBERS = ("people", "count", "count_lower", "count_upper", "count_min", "count_max")
SHARES = ("share", "share_lower", "share_upper", "share_min", "share_max")
_DRAWS, _SWEEPS, _CLOSE = 400, 200, 1e-9
_SHARES_OFF = 0.02
"""Largest distance from 1 of the sum of a precinct's shares."""
_RARE, _RARE_PEOPLE = 0.1, 0.5
"""Sums of outcomes below which they are percentages if groups are: always, and if they give whole people."""
_NO_SHARE = 1.5
"""Sum of outcomes that is no share, also not by an error, if a tenth of all precincts have it."""
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
    """Estimated cells of groups by outcomes, made by `cross_table`."""

    groups: list[Any]
    outcomes: list[Any]
    precincts: pd.Index
    people: FloatArray
    """[precincts, columns] people by column of the given groups"""
    counts: FloatArray
    """[precincts, outcomes] people by outcome, with the same totals"""
    weights: FloatArray
    """[precincts] how often each precinct counts"""
    covariates: FloatArray
    """[precincts, covariates]"""
    estimates: FloatArray
    """[precincts, columns, outcomes] estimated number of people"""
    fitted: CrossShares
    joined: FloatArray
    """[groups, columns] 1 where a column belongs to a group"""
    among: IntArray
    """positions of the outcomes that have shares"""
    seed: int

    @classmethod
    def of(cls, groups: pd.DataFrame, outcomes: pd.DataFrame, **facts: Any) -> Self:
        """Return estimates from people by group and by outcome, without checks. Equal names of groups are joined."""
        people, counts, listed = groups.to_numpy(), outcomes.to_numpy(), groups.columns.unique()
        counts = counts * (people.sum(axis=1) / np.maximum(counts.sum(axis=1), 1e-300))[:, None]
        facts |= {"groups": listed.tolist(), "outcomes": outcomes.columns.tolist(), "precincts": groups.index}
        fitted = CrossLikelihood(people, counts, facts["weights"], facts["covariates"]).maximum()
        cells = _raked(people[:, :, None] * fitted.shares, people, counts)
        joined = (listed.to_numpy()[:, None] == groups.columns.to_numpy()).astype(np.float64)
        return cls(people=people, counts=counts, estimates=cells, fitted=fitted, joined=joined, **facts)

    def warn_if_curved(self, precincts: str, advice: str = "") -> None:
        """Warn if shares of groups change with the composition of `precincts`, as messages call them."""
        if (curved := self.curvature).min() * len(curved) < _CURVED:
            told = f"shares of groups seem to change with the composition of {precincts}: a test of "
            told += f"{self.outcomes[int(curved.argmin())]!r} has p = {curved.min():.1g}"
            warn("confounded precincts", f"{told}. Estimates are biased if they do.{advice}")

    def __repr__(self) -> str:
        size = f"{plural(len(self.groups), 'group')} x {plural(len(self.outcomes), 'outcome')}"
        return f"<{size}, {plural(len(self.precincts), 'precinct')}>\n{self.shares.round(3)}"

    @property
    def shares(self) -> pd.DataFrame:
        """Estimated share of each outcome (columns) in each group (rows); NaN for a group without people."""
        return pd.DataFrame(self._shares(self._total), self.groups, self.outcomes).iloc[:, self.among]

    @property
    def goodman(self) -> pd.DataFrame:
        """Shares by Goodman's regression, for comparison. They may be below 0 or above 1."""
        return pd.DataFrame(self._shares(self._confounding.goodman), self.groups, self.outcomes)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Cells of all precincts together, a line for each group and outcome.

        `count` and `share` (of the group) with their 95 % intervals (`_lower`, `_upper`), the bounds of Duncan and
        Davis (`_min`, `_max`), outside which the margins allow no value, and `goodman`.
        """
        bounds = [np.tensordot(self.weights, each, 1)[None] for each in self._bounds(slice(None))]
        found = self._lines(self._total[None], self._drawn[:, None], bounds, pd.Index(["all"]))
        return found.drop(columns="precinct").assign(goodman=self.goodman.to_numpy()[:, self.among].ravel())

    @property
    def differences(self) -> pd.DataFrame:
        """Differences of shares of all people between two groups, for each pair and outcome, with 95 % intervals.

        Columns are those of `Confounding.differences`.
        """
        shares = (self._shares(each, of=slice(None)) for each in (self._total, self._drawn))
        return self._confounding.differences(self.groups, self.outcomes, *shares)

    @property
    def curvature(self) -> pd.Series:
        """Probability of a test for each outcome, small if shares of groups change with a precinct's composition.

        It is that of `Confounding.curvature`.
        """
        return pd.Series(self._confounding.curvature(), self.outcomes, dtype=np.float64)

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
        cells = self.joined @ cells if cells.shape[-2] > len(self.groups) else cells
        with np.errstate(invalid="ignore"):
            return np.asarray(cells / cells[..., self.among if of is None else of].sum(axis=-1, keepdims=True))

    @property
    def _people(self) -> FloatArray:
        """People by group [precincts, groups]."""
        return self.people @ self.joined.T

    def _bounds(self, some: slice) -> tuple[FloatArray, FloatArray]:
        total = self.people[some].sum(axis=1)[:, None, None]
        return duncan_davis(self._people[some, :, None], self.counts[some, None], total)

    @property
    def _confounding(self) -> Confounding:
        return Confounding.of(self._people, self.counts, self.weights, self.covariates, self.fitted.rho)

    def _lines(
        self, estimates: FloatArray, drawn: FloatArray, bounds: Sequence[FloatArray], precincts: pd.Index
    ) -> pd.DataFrame:
        """Return a line for each precinct, group and outcome; `drawn` are [draws, precincts, columns, outcomes]."""
        (least, most), (estimates, drawn) = bounds, (self.joined @ each for each in (estimates, drawn))
        people = np.broadcast_to(estimates.sum(axis=2, keepdims=True), estimates.shape)
        numbers = (estimates, *interval(estimates, drawn, least, most), least, most)
        shares = shares_among(self.among, estimates, drawn, least, most, people)
        names = [precincts, self.groups, [self.outcomes[place] for place in self.among]]
        index = pd.MultiIndex.from_product(names, names=["precinct", "group", "outcome"])
        values = zip((*NUMBERS, *SHARES), (people, *numbers, *shares), strict=True)
        return pd.DataFrame({name: each[..., self.among].ravel() for name, each in values}, index=index).reset_index()


def cross_table(
    groups: Any,
    outcomes: Any,
    *,
    sizes: Any = None,
    rest_as: str | None = None,
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
    rest_as
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
    Shares of a group may differ between precincts, but not systematically with their composition: margins alone cannot
    test this assumption of all ecological inference. On 420 districts of New Zealand with known cells, 5 to 8 % of the
    people are in a wrong cell, and intervals contain the truth for 95 % of the cells (docs/elections.md).

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
    precincts = (by_group := _numbers(groups, "groups")).index
    by_outcome = _numbers(outcomes, "outcomes", precincts)
    if sizes is not None:
        by_group, by_outcome = _counts_of_shares((by_group, by_outcome), _numbers(sizes, "sizes", precincts).iloc[:, 0])
    _require_counts(by_group, by_outcome, rest_as, of_shares=sizes is not None)
    by_outcome = _with_rest(by_group, by_outcome, rest_as)
    often = np.ones(len(by_group)) if weights is None else _numbers(weights, "weights", precincts).to_numpy()[:, 0]
    if (there := int((often @ by_group.to_numpy() > 0).sum())) < 2:
        raise LLPBenchError(f"groups must have people in at least two groups, got {there}. Check the columns.")
    causes = pd.DataFrame(index=precincts) if covariates is None else covariates
    z = _numbers(causes, "covariates", precincts, least=-np.inf).to_numpy()
    names = [*map(str, by_group.columns if join is None else join)]
    if len(names) != (width := by_group.shape[1]):
        raise LLPBenchError(f"join must have a name for each of {width} columns of groups, got {len(names)}.")
    named = [*map(str, by_outcome.columns)]
    wanted = {*(among or named)}
    if wanted - {*named} or len(wanted) < 2:
        raise LLPBenchError(f"{argument('among')} must name two outcomes or more of {named}, got {[*wanted]}.")
    chosen = np.array([place for place, name in enumerate(named) if name in wanted])
    by_group, by_outcome = by_group.set_axis(names, axis=1), by_outcome.set_axis(named, axis=1)
    table = CrossTable.of(by_group, by_outcome, weights=often, covariates=z, among=chosen, seed=random_state)
    table.warn_if_curved("precincts", " Give covariates of precincts, if you have any.")
    return table


def _moved(cells: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return draws of cells whose logits deviate; half a person lets empty cells move."""
    return np.asarray((cells + 0.5 * (cells.sum(axis=-1, keepdims=True) > 0)) * np.exp(deviations.clip(-12, 12)))


def _raked(cells: FloatArray, people: FloatArray, counts: FloatArray) -> FloatArray:
    """Return cells [..., groups, outcomes] scaled to both margins (iterative proportional fitting)."""
    for _ in range(_SWEEPS):
        for margin, axis in ((counts, -2), (people, -1)):
            sums = cells.sum(axis=axis)
            ratio = np.divide(margin, sums, out=np.zeros(sums.shape), where=sums > 0)
            cells = cells * np.expand_dims(ratio, axis)
        if np.abs(ratio - 1)[people + 0 * ratio > 0].max(initial=0.0) < _CLOSE:
            break
    return cells


def _numbers(given: Any, what: str, precincts: pd.Index | None = None, least: float = 0.0) -> pd.DataFrame:
    """Return a frame of finite numbers [precincts, columns], `least` or more, in the order of `precincts`."""
    frame = pd.DataFrame(as_pandas(given))
    if not isinstance(as_pandas(given), pd.DataFrame | pd.Series):
        frame = frame.add_prefix(f"{what[:-1]} ")
        frame.index = precincts if precincts is not None and len(precincts) == len(frame) else frame.index
    for kind, names in (("column", frame.columns.map(str)), ("precinct", frame.index)):
        if again := names[names.duplicated()].tolist():
            raise LLPBenchError(f"{what} must not have the {kind} {again[0]!r} twice. Rename one.")
    if precincts is not None and len(other := precincts.symmetric_difference(frame.index, sort=False)):
        got = f"got precinct {other.tolist()[0]!r} in only one of them ({plural(len(other), 'such precinct')})"
        raise LLPBenchError(f"groups and {what} must be of the same precincts, {got}. Leave these out.")
    numbers = frame.apply(pd.to_numeric, errors="coerce").astype(np.float64)
    wrong = ~(np.isfinite(numbers) & (numbers >= least))
    if wrong.any(axis=None):
        row, column = map(int, np.argwhere(wrong.to_numpy())[0])
        place = f"column {frame.columns[column]!r} of precinct {frame.index.tolist()[row]!r}"
        must = f"must be numbers{' from 0' if least == 0 else ''}, got {str(frame.iloc[row, column])!r} in {place}"
        others = plural(int(wrong.sum(axis=None)), "such value")
        raise LLPBenchError(f"{what} {must} ({others}). Correct these, or leave the precinct out.")
    return numbers if precincts is None else numbers.loc[precincts]


def _counts_of_shares(margins: Sequence[pd.DataFrame], sizes: pd.Series) -> list[pd.DataFrame]:
    """Return numbers of people by group and by outcome, from shares or percentages; outcomes may have a rest."""
    found, whole = list[pd.DataFrame](), 1
    for margin in margins:
        total, few = margin.sum(axis=1), False
        if whole == 100 and (median := total.median()) < 1 - _SHARES_OFF:
            people = margin.mul(sizes / 100, axis=0)
            few = median < (_RARE_PEOPLE if np.abs(people - people.round()).max(axis=None) < 0.1 else _RARE)
            few |= total.quantile(0.9) > _NO_SHARE
            told = f"groups are percentages, and outcomes add up to {total.max():.4g} at most: they are read as "
            warn("percentages", f"{told}{'percentages' if few else 'shares'}. If they are not, give shares of both.")
        whole = 100 if few or total.median() > 1 + _SHARES_OFF else 1
        off = np.abs(total / whole - 1) > _SHARES_OFF
        if off.any() and not found:
            raise LLPBenchError(
                f"with {argument('sizes=')}, groups must be shares that add up to 1, or percentages, got "
                f"{total[off].iloc[0]:.6g} for precinct {total.index[off].tolist()[0]!r} "
                f"({plural(int(off.sum()), 'such precinct')}). Leave {argument('sizes=')} out for counts."
            )
        found.append(margin.mul(sizes / total.mask(off, whole), axis=0))
    return found


def _require_counts(groups: pd.DataFrame, outcomes: pd.DataFrame, rest: str | None, *, of_shares: bool) -> None:
    """Raise `LLPBenchError` for too few columns, names of both margins, shares, and totals among the counts."""
    number = len(groups)
    for what, margin, other in (("groups", groups, outcomes), ("outcomes", outcomes, groups)):
        advice = f" For an outcome of all other people, use {argument('rest_as=')}." if what == "outcomes" else ""
        if margin.shape[1] + bool(advice and rest) < 2 or not number:
            wanted = f"have a row for each precinct and two columns or more, got {number} x {margin.shape[1]}"
            raise LLPBenchError(f"{what} must {wanted}.{advice}")
        if both := {*map(str, margin)} & {*map(str, other)}:
            raise LLPBenchError(f"{min(both)!r} must not be both a group and an outcome. Name each column once.")
        sums, people = margin.sum(axis=1), other.sum(axis=1)
        for name in margin if number >= _FEWEST_OF_TOTAL else ():
            rest_of_margin = sums - margin[name]
            is_sum = margin.shape[1] > 2 and np.allclose(margin[name], rest_of_margin)
            if sums.any() and (is_sum or (rest_of_margin.any() and np.allclose(margin[name], people))):
                kind = f"sum of the other {what}" if is_sum else "number of people"
                more = "" if is_sum else f", and name all other {what}"
                wrong = f"{what} must not contain totals, got {str(name)!r}, which is the {kind} of every precinct"
                raise LLPBenchError(f"{wrong}. Leave it out{more}.{advice}")
        for whole, kind in ((1, "shares"), (100, "percentages")):
            if not of_shares and number >= _FEWEST_ALIKE and (np.abs(sums / whole - 1) <= _SHARES_OFF).all():
                ways = f"numbers of people, or shares of both margins and people by precinct as {argument('sizes=')}"
                raise LLPBenchError(f"{what} add up to {whole} in every precinct, so they are {kind}. Give {ways}.")
    margins = pd.concat([groups, outcomes], axis=1)
    total = (np.abs(2 * margins - margins.sum()) <= _OF_TOTAL * groups.to_numpy().sum()).all(axis=1)
    if number > _FEWEST_OF_TOTAL and (lines := margins.index[total].tolist()):
        raise LLPBenchError(f"precinct {lines[0]!r} is the sum of all others, so it is none. Leave this line out.")


def _with_rest(groups: pd.DataFrame, outcomes: pd.DataFrame, rest: str | None) -> pd.DataFrame:
    """Return outcomes with the same totals as groups within rounding; people who are not counted are the `rest`."""
    people, counted = groups.sum(axis=1), outcomes.sum(axis=1)
    columns, unit = np.column_stack([groups, outcomes]), 1
    if len(groups) >= _FEWEST_ALIKE and (columns % 1 == 0).all():
        unit = int(np.gcd.reduce(columns.astype(np.int64), axis=None))  # counts may be rounded at random to 3 or 5
    slack = max(unit - 1, 0.5) * columns.shape[1] + 1e-6 * people
    if rest is not None:
        if rest in (*groups.columns, *outcomes.columns):
            raise LLPBenchError(f"{argument('rest_as')} must be a new name, got {rest!r}, which is a column.")
        outcomes = outcomes.assign(**{rest: (people - counted).clip(lower=0.0)})
        counted = outcomes.sum(axis=1)
    off = np.flatnonzero(np.abs(people - counted) > slack)
    if len(off):
        first, advice = off[0], "Correct the file, or leave these precincts out"
        if (counted <= people + slack).all():
            advice = "Name the other people, such as abstained: " + either('rest_as="abstained"', "--rest-as abstained")
        elif (people <= counted + slack).all():
            advice = "Add the missing group to the groups"
        got = f"{people.iloc[first]:,.10g} and {counted.iloc[first]:,.10g} in precinct {groups.index.tolist()[first]!r}"
        got += f". {plural(len(off), 'precinct')} {verb(len(off))} this problem. {advice}"
        raise LLPBenchError(f"groups and outcomes of a precinct must have the same total, got {got}.")
    return outcomes
