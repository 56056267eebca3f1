"""The bag of each row, and the proportions or counts of each bag, checked against the rows."""

from __future__ import annotations

import difflib
import re
import shlex
import unicodedata
from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from llpbench.core.bags import BoolArray, FloatArray, IntArray, Ragged
from llpbench.core.errors import LLPBenchError, argument, either
from llpbench.core.text import plural, verb

_ROUNDED = 0.02
"""tolerance for the sum of a bag's proportions; larger if they are printed with few digits"""
_PRINTED_DIGITS, _FLOAT_DIGITS = 4, 6
"""largest number of digits after the point in printed numbers, and the number assumed for numbers with more digits"""
_MOST = 1e15
"""largest count for which common divisors are computed"""
_WHOLE = either(" For cross-validation, split with GroupKFold.", "")
_DROP, _SUPPRESS = argument("unmatched='drop'"), argument("impossible='suppress'")
_ROWS, _COUNTS = argument("X"), argument("counts=")
_SAMPLED, _AS_SHARES = argument("sampled=True"), argument("as_shares=True")
_SHARES = either("shares as proportions=", "shares in --proportions")
_OTHERS = f"If the counts are about other people than the rows of {_ROWS}, use {_AS_SHARES}."
_GIVE_NAN = either("give NaN", "add a line with empty values")
_NOISE_TAIL = 10.0
"""largest deviation of counts that noise may explain, in standard deviations"""
_FEWEST_BAGS = 2
"""smallest number of bags with known counts that methods can learn from"""
_FEWEST_OF_TOTAL, _FEWEST_NEAR_TOTAL, _FEWEST_PEOPLE = 3, 6, 10
"""smallest number of bags in which a column that is the total of the others is no coincidence, the same if it is only
nearly the total, and smallest number of people in such a bag"""
_SHARE_OF_BAGS, _OFF_TOTAL, _MORE_THAN_OTHERS = 0.9, 0.005, 1.1
"""share of bags in which a column must be a total, its largest error (or one person) there, and largest ratio of a
probable total to the sum of its parts"""
_TOTAL_NAME = re.compile(
    r"(?<![^\W\d_])((ins)?gesamt\w*|tot[aá]a?l\w*|sum|summe|suma|somme|all|alle|tests|tested|registered|eligible|"
    r"electorate|electors|enrolled|population)(?![^\W\d_])",
    re.IGNORECASE,
)
"""words in names of columns that are totals"""

_ALIKE, _MOST_COMPARED = 0.8, 200
"""similarity (`difflib`) of two nearly equal names, and largest number of names that are compared in this way"""


@dataclass(frozen=True, eq=False)
class BagLabels:
    """The bag of each row."""

    of_row: IntArray  # [rows] index into `names`; -1: no bag
    names: list[Hashable]  # names of the bags in ascending order, or in order of appearance if they cannot be compared
    columns: list[Hashable] | None = None  # column names of natural keys
    weights: FloatArray | None = None  # [rows] number of people that each row represents; None: one
    copies: int = 1  # number of groupings; `of_row` has all rows for each of them

    @property
    def sizes(self) -> IntArray | FloatArray:
        """Number of rows in each bag, or the sum of their weights [bags]."""
        inside = self.of_row >= 0
        weights = None if self.weights is None else self.weights[inside]
        sums = np.bincount(self.of_row[inside], weights, len(self.names))
        whole = weights is None or not (weights % 1).any()
        return np.asarray(sums.astype(np.int64)) if whole else np.asarray(sums, np.float64)

    def rounding(self, published: FloatArray) -> FloatArray:
        """Return the rounding error [bags] of sums of printed weights compared with `published` [bags, columns].

        It is half a unit of the last digit, for each row and each column; 0 if all weights are whole.
        """
        error: FloatArray = np.zeros(len(self.names))
        if self.weights is not None and (self.weights % 1).any():
            rows = np.bincount(self.of_row[self.of_row >= 0], minlength=len(self.names))
            error += rows * _half_a_unit(self.weights) + published.shape[1] * _half_a_unit(published)
        return error

    @property
    def keys(self) -> int:
        """Number of columns that identify a bag."""
        return len(self.names[0]) if self.names and isinstance(self.names[0], tuple) else 1

    def among(self, known: Sequence[Hashable]) -> IntArray:
        """Return the index of each row's bag in `known` [rows]; -1 if it is not there."""
        place = {name: index for index, name in enumerate(known)}
        return np.array([*(place.get(name, -1) for name in self.names), -1], dtype=np.int64)[self.of_row]

    @property
    def alone(self) -> int:
        """Number of rows that have no bag in one of the groupings."""
        return int((self.of_row.reshape(self.copies, -1) < 0).any(axis=0).sum())

    def index(self, rows: IntArray | slice = slice(None)) -> Ragged:
        """Return the `rows` of each bag. No bag may be empty."""
        some = self.of_row[rows]
        return Ragged(np.argsort(some, kind="stable"), np.bincount(some, minlength=len(self.names)).astype(np.int64))

    def require_people(self) -> None:
        """Raise `LLPBenchError` for a bag whose weights are all 0."""
        empty = [name for name, size in zip(self.names, self.sizes, strict=True) if not size > 0]
        if empty:
            got = f"bag {empty[0]!r} ({plural(len(empty), 'such bag')} in all)"
            raise LLPBenchError(f"the weights of a bag must not all be 0, got {got}. Remove the rows of such bags.")

    def matched(self, table: BagTable, *, drop_unmatched: bool = False) -> BagLabels:
        """Return the labels; `drop_unmatched` removes rows without a bag, and rows of bags missing in the table.

        Raises `LLPBenchError` if there are such rows, or bags of the table without rows, and they are not dropped.
        """
        listed = table.rows_of(self) >= 0
        if not drop_unmatched:
            self._require_matched(table, listed)
            return self
        if not listed.any():
            others = f"bags with {table.what} are {shown(table.names, 3)}. Use the same bag names in both."
            raise LLPBenchError(f"no bag of {_ROWS} ({shown(self.names, 3)}) has {table.what}; {others}")
        return self.only(listed)

    def only(self, listed: BoolArray) -> BagLabels:
        """Return the labels without bags that are not `listed` [bags]. Their rows have no bag."""
        place = np.append(np.where(listed, np.cumsum(listed) - 1, -1), -1)
        names = [name for name, there in zip(self.names, listed, strict=True) if there]
        return replace(self, of_row=place[self.of_row], names=names)

    def _require_matched(self, table: BagTable, listed: BoolArray) -> None:
        what, drop = table.what, f"use {_DROP}."
        if alone := self.alone:
            told = f"{alone:,} of {len(self.of_row) // self.copies:,} rows {verb(alone)} no bag"
            other_way = f" To drop rows without a bag, {drop}" if table.at_fit else ""
            raise LLPBenchError(f"{told}. Name the bag of each row.{other_way}")
        there = set(self.names)
        empty = [name for name in table.names if name not in there]
        part, empties = f"{len(empty):,} of {plural(len(table.names), 'bag')}", f"({shown(empty)}) {verb(len(empty))}"
        if not listed.all():
            lacking = [name for name, there in zip(self.names, listed, strict=True) if not there]
            others = f"bags with {what} are {shown(table.names, 3)}"
            if empty:
                others = f"{part} {empties} {what} but no rows"
            advice = f"If {what} are suppressed, {_GIVE_NAN}."
            if table.at_fit:
                advice += f" To drop the rows of bags without {what}, {drop}"
            if near := near_names(lacking, empty):
                advice = f"{near}. Use the same names." + advice.partition(".")[2]
            elif len(lacking) == len(empty):  # such as bags numbered from 1 and from 0
                advice = "Use the same names in both."
            told = f"{len(lacking):,} of {plural(len(listed), 'bag')} ({shown(lacking)}) {verb(len(lacking))}"
            raise LLPBenchError(f"{told} rows but no {what}; {others}. {advice}")
        if empty:
            other_way = f", or {drop}" if table.at_fit else "."
            raise LLPBenchError(f"{part} with {what} {empties} no rows. Remove the {what} of such bags{other_way}")


@dataclass(frozen=True, eq=False)
class BagTable:
    """Published proportions or counts of some bags."""

    names: list[Hashable]
    values: FloatArray
    """[bags, columns] values, NaN if suppressed; a single column belongs to the positive class"""
    columns: list[Hashable] | None
    """names of the classes, if given"""
    is_counts: bool
    sizes: FloatArray | None = None
    """[bags] published number of rows of each whole bag"""
    ends: FloatArray | None = None
    """[2, bags, columns] all values, with the lower and with the upper ends of ranges (NaN in `values`), or None"""
    by_class: bool = False
    """whether the table had an entry for each bag and class"""
    series: tuple[Hashable, ...] = ()
    """names of the series that had the values, if any"""
    has_rest: bool = False
    """whether the last column is the rest of the rows, NaN for bags whose rows are not known yet"""
    at_fit: bool = True
    """whether the table was given to `fit`; messages then suggest `sampled`, `noise`, `impossible` and `unmatched`"""

    @property
    def what(self) -> str:
        return "counts" if self.is_counts else "proportions"

    def classes(self, named: Sequence[Hashable] | None) -> list[Hashable]:
        """Return all classes, in the order of the columns.

        A single column is of the positive class, the last one: the class with its name, if there is one. If its name is
        a text such as `late`, the classes are `not late` and `late`. Raises `LLPBenchError` if `named` is given and
        differs, and for a number as name, such as pandas' default 0, that is not the last class.
        """
        width = self.values.shape[1]
        if self.columns is not None and width > 1:
            if named is not None and set(named) != set(self.columns):
                drop = f", or drop the others with {_DROP}" if set(named) < set(self.columns) else ""
                told = f"{self.what} have the classes {shown(self.columns)}, but the given classes are {shown(named)}"
                raise LLPBenchError(f"{told}. Name the same classes{drop}.")
            return list(self.columns)
        number = 2 if width == 1 else width
        usual: list[Hashable] = [*range(number)]
        if width == 1 and self.columns and isinstance(self.columns[0], str):
            usual = [f"not {self.columns[0]}", self.columns[0]]
        names = usual if named is None else [*named]
        if len(names) != number:
            told = f"{self.what} with {plural(width, 'column')} need {number} classes"
            raise LLPBenchError(f"{told}, got {len(names)} ({shown(names)}). Give one column per class.")
        own = [name for name in names if width == 1 and name in (self.columns or self.series)]
        if own not in ([], names[-1:]) and (len(own) > 1 or not isinstance(own[0], str)):
            told = f"{self.what} of one class are called {own[0]!r}, which is not the counted class {names[-1]!r}"
            raise LLPBenchError(f"{told}. Rename this column or give one column per class.")
        return sorted(names, key=own.__contains__)

    def only(self, named: Sequence[Hashable] | None) -> BagTable:
        """Return the table with only the columns in `named`, if all of these are columns."""
        if named is None or self.columns is None or not set(named) < set(self.columns):
            return self
        chosen = [place for place, column in enumerate(self.columns) if column in set(named)]
        ends = None if self.ends is None else self.ends[..., chosen]
        columns = [self.columns[place] for place in chosen]
        return replace(self, values=self.values[:, chosen], ends=ends, columns=columns)

    def rows_of(self, labels: BagLabels) -> IntArray:
        """Return the place of each bag of `labels` [bags] in the table; -1 if it is not there."""
        place = {name: index for index, name in enumerate(self.names)}
        return np.array([place.get(name, -1) for name in labels.names], dtype=np.int64)

    def of(self, names: Container[Hashable]) -> BagTable:
        """Return the table of some bags."""
        rows = [place for place, name in enumerate(self.names) if name in names]
        sizes = None if self.sizes is None else self.sizes[rows]
        ends = None if self.ends is None else self.ends[:, rows]
        return replace(self, names=[self.names[row] for row in rows], values=self.values[rows], sizes=sizes, ends=ends)

    def with_rest(self, name: str, labels: BagLabels) -> BagTable:
        """Return the table with one more class, `name`: everyone in a bag of `labels` who is in no other class.

        Raises `LLPBenchError` if classes have no names, if `name` is empty or the name of a class, and for a total
        among the classes.
        """
        if self.columns is None:
            advice = "Give a frame with a column for each class."
            raise LLPBenchError(f"{argument('rest_as=')} needs names of classes. {advice}")
        if name in self.columns or not str(name).strip():
            must = f"must be a name that no class has ({shown(self.columns)}), got {name!r}."
            raise LLPBenchError(f"{argument('rest_as')} {must}")
        known = dict(zip(labels.names, labels.sizes.tolist(), strict=True))
        rows = np.array([known.get(bag, np.nan) for bag in self.names]) if self.sizes is None else self.sizes
        if total := self._total(self.values, rows):
            raise LLPBenchError(total)
        rest = (rows if self.is_counts else 1.0) - self.values.sum(axis=1)
        values, of_rows = np.column_stack([self.values, rest.clip(min=0)]), self.is_counts and self.sizes is None
        return replace(self, values=values, columns=[*self.columns, name], has_rest=of_rows)

    def shares(self) -> BagTable:
        """Return the table as proportions, which are those of a sample of the rows, too; NaN for unknown totals."""
        whole = self.values.sum(axis=1) if self.sizes is None else self.sizes
        whole = whole * np.nan if self.sizes is None and self.values.shape[1] == 1 else whole
        values = self.values / np.where(whole > 0, whole, np.nan)[:, None] if self.is_counts else self.values
        return replace(self, values=values, is_counts=False, sizes=None, has_rest=False)

    def counts(
        self,
        labels: BagLabels,
        noise: float,
        *,
        sampled: bool = False,
        as_shares: bool = False,
        suppress: bool = False,
        hint: str = "",
    ) -> FloatArray:
        """Return the counts of each bag of `labels` [bags, classes], NaN if suppressed or absent.

        `sampled`: the table is about whole bags and the rows are a sample of them; counts are scaled to the rows.
        `as_shares`: the table is about other people or in other units; counts are scaled in the same way.
        `hint`: advice if counts do not match the rows, for callers that know the cause.
        Raises `LLPBenchError` for impossible values, unless noise may explain them; with `suppress` they become NaN.
        """
        at = self.rows_of(labels)
        values = np.where((at >= 0)[:, None], self.values[at], np.nan)
        rows = labels.sizes.astype(np.float64)
        if self.has_rest:
            values[:, -1] = (rows - values[:, :-1].sum(axis=1)).clip(min=0)
        values[np.isnan(values).any(axis=1)] = np.nan
        sampled = sampled or as_shares
        whole = self._whole(values, rows, at, sampled)
        if as_shares:
            values[~(whole > 0)] = np.nan
            whole = np.where(whole > 0, whole, 1.0)
        unit = whole if self.is_counts else np.ones(len(rows))
        given = values
        if total := self._total(values, rows, _AS_SHARES if as_shares else _SAMPLED if sampled else ""):
            raise LLPBenchError(total)
        if values.shape[1] == 1:
            values = np.column_stack([unit - values[:, 0], values[:, 0]])
        faults = [] if as_shares else [self._other_sizes(labels, values, whole, sampled, hint)]
        if not (noise and sampled):
            faults.insert(0, self._impossible_values(labels, given, values, unit, noise, hint))
        possible = np.isfinite(values).all(axis=1) & ~np.any([faulty for faulty, _ in faults], axis=0)
        ignore = self.advice_to_ignore(possible)
        for faulty, message in faults:
            if faulty.any() and not suppress:
                extent = f"{faulty.sum():,} of {plural(len(faulty), 'bag')} {verb(int(faulty.sum()))} this problem."
                raise LLPBenchError(message(int(np.flatnonzero(faulty)[0]), extent, ignore))
            values[faulty] = np.nan
        if self.is_counts and not sampled:
            return values
        share = values / unit[:, None]
        if noise == 0:
            share = share / share.sum(axis=1, keepdims=True)
        return np.asarray(share * labels.sizes[:, None])

    def advice_to_ignore(self, possible: BoolArray) -> str:
        """Return advice to ignore bags with impossible counts; "" if too few bags with `possible` counts would remain.

        It is only for `fit`.
        """
        return f" To ignore these bags, use {_SUPPRESS}." if self.at_fit and possible.sum() >= _FEWEST_BAGS else ""

    def known(self, labels: BagLabels) -> BoolArray:
        """Return whether each bag of `labels` [bags] is in the table with all counts."""
        at = self.rows_of(labels)
        return np.asarray((at >= 0) & ~np.isnan(self.values[at]).any(axis=1))

    def _whole(self, values: FloatArray, rows: FloatArray, at: IntArray, sampled: bool) -> FloatArray:
        """Return the size of each whole bag [bags]: as published, as the sum of its counts, or as its rows."""
        if self.sizes is not None:
            return np.asarray(np.where((at >= 0) & ~np.isnan(self.sizes[at]), self.sizes[at], rows))
        if sampled and self.is_counts:
            if values.shape[1] == 1:
                raise LLPBenchError(
                    "counts of one class do not show how many rows a whole bag has, and the rows are only a sample. "
                    f"Give {argument('sizes=')} of the bags, or the counts of both classes."
                )
            return np.asarray(np.nan_to_num(values.sum(axis=1)))
        return rows

    def _impossible_values(
        self, labels: BagLabels, given: FloatArray, values: FloatArray, unit: FloatArray, noise: float, hint: str
    ) -> _Fault:
        """Return the bags with impossible counts or shares: `given` as in the table, `values` by class."""
        total = values.sum(axis=1)
        most: FloatArray = np.asarray(_NOISE_TAIL * noise / (1 if self.is_counts else np.maximum(labels.sizes, 1.0)))
        most = most + (labels.rounding(given) if self.is_counts else 0.0)
        low, high = -(most + 1e-9 * unit), unit * (1 + 1e-9) + most
        beyond = ((values < low[:, None]) | (values > high[:, None])).any(axis=1)
        whole = np.isin(given[np.isfinite(given)], (0.0, 1.0)).all()
        printed = 0.0 if whole else given.shape[1] * _half_a_unit(given, fewest=1)  # of all shares of a bag
        slack = (1e-6 * unit if self.is_counts else max(_ROUNDED, printed) + 1e-9) + most * given.shape[1] ** 0.5

        other_ways = either("Give NaN for unknown values.", "Leave unknown values empty.")
        if self.at_fit:
            added = f"{'more ' * bool(noise)}noise was added, use {'a larger ' * bool(noise)}{argument('noise=')}"
            other_ways = f"If {'counts are rounded or ' * self.is_counts}{added}."

        def message(first: int, extent: str, ignore: str) -> str:
            listed = ", ".join(f"{value:,.10g}" for value in given[first])
            bag, sums = f"bag {labels.names[first]!r}", given.shape[1] > 1
            has = f"{bag} has the {self.what} {listed}" if sums else f"{bag} has the {self.what[:-1]} {listed}"
            says = f"{has}, which add up to {total[first]:,.10g}" if sums else f"{has} of one class"
            meant = f"must {'add up to 1' if sums else 'lie between 0 and 1'}"
            advice = "Give shares between 0 and 1, and divide percentages by 100."
            if sums and (given[first] % 1 == 0).all():
                advice = f"If these are counts, {either('give them as counts=', 'use --counts')}. {advice}"
            if self.is_counts and not noise and sums and (values[first] < 0).any():
                says, meant, advice = has, "must not be negative", "Correct them."
            elif self.is_counts:
                rows = f"has {plural(round(unit[first]), 'row')}"
                if labels.weights is not None:
                    rows = f"has rows with a total weight of {unit[first]:,.10g}"
                sum_ = f"its counts ({listed}) add up to {total[first]:,.10g}" if sums else f"its count is {listed}"
                advice = f"{hint or f'Give whole bags, or {_SHARES}.{_WHOLE}'} {other_ways}"
                if self.at_fit and not hint:
                    advice = self._advice(values, unit, other_ways)
                return f"{bag} {rows}, but {sum_}. {extent} {advice}{ignore}"
            elif (np.abs(total[np.isfinite(total)] - 100) < 2).all() and sums and self.at_fit:
                advice = f"Divide percentages by 100, or give percentages as {_COUNTS} with {_AS_SHARES}."
                return f"{says}, but proportions {meant}. {extent} {advice}"
            elif sums and total[first] < unit[first] and (values[first] >= 0).all():
                advice = "Add a class for the rest" + f", or use {argument('rest_as=')}" * self.at_fit + "."
            return f"{says}, but {self.what} {meant}. {extent} {advice} {other_ways}{ignore}"

        return beyond | (np.abs(total - unit) > slack), message

    def _advice(self, values: FloatArray, unit: FloatArray, other_ways: str) -> str:
        """Return what to do about counts that do not add up to the rows of their bags, or `other_ways`."""
        known = np.isfinite(values).all(axis=1)
        values, unit = values[known], unit[known]
        total = values.sum(axis=1)
        off = np.abs(total - unit) > 1e-6 * unit
        sample = f"If {_ROWS} is only a sample of the rows, use {_SAMPLED}"
        for whole in (1, 100) if len(total) > 1 else ():
            if (np.abs(unit - whole) > 1).any() and (np.abs(total - whole) < 0.02 * whole).all():
                return f"Give {_SHARES}, or percentages as {_COUNTS} with {_AS_SHARES}."
        for place, column in enumerate(self.columns or ()):
            if values.shape[1] > 2 and (total - values[:, place] == unit).all():
                return f"Without {column!r} the counts add up to the rows. Leave this class out."
        whole = int(np.gcd.reduce(values.clip(0, _MOST).astype(np.int64), axis=None)) if (values % 1 == 0).all() else 1
        gap = np.abs(total - unit).max(initial=0.0) / values.shape[1]
        if whole > 1 and gap <= whole - 1:
            # at random, a remainder r is rounded up with probability r / whole: variance r (whole - r)
            deviation = (whole**2 / 12 if gap <= whole // 2 else (whole**2 - 1) / 6) ** 0.5
            return f"Counts are rounded to {whole}. Use {argument('noise=')} {deviation:.3g}."
        if not off.any():  # a count of one class is larger than its bag
            percents = f"If counts are percentages, divide them by 100 and give the {_SHARES}. "
            return f"{percents * bool((total <= 100).all())}{sample} and {argument('sizes=')}.{_WHOLE} {other_ways}"
        if (total[off] < unit[off]).all():
            return (
                f"There are more rows than counted people. To make a class of the others, use {argument('rest_as=')}. "
                "If the others are like the counted people, or counts are in other units, such as thousands, use "
                f"{_AS_SHARES}. {other_ways}"
            )
        if (total[off] > unit[off]).all():
            return f"{'Correct them.' if off.sum() < len(off) / 2 else f'{sample}.{_WHOLE}'} {other_ways}"
        return f"{other_ways} {_OTHERS}"

    def _total(self, values: FloatArray, rows: FloatArray, mode: str = "") -> str:
        """Return a message if a column is no class but the number of rows, or the sum of the other columns; else "".

        Counts that add up to the rows have no total among them. `mode` is the argument that scales counts, if any.
        """
        known = np.isfinite(values).all(axis=1)
        some, whole = values[known], (rows if self.is_counts else np.ones(len(rows)))[known, None]
        if self.columns is None or some.shape[1] < 2 or len(some) < _FEWEST_OF_TOTAL:
            return ""
        total = some.sum(axis=1, keepdims=True)
        others = total - some
        several = (others > 0).sum(axis=0)
        for what, truth in (("number of rows", whole), ("sum of the other classes", others)):
            off, loose = np.abs(some - truth), (truth >= _FEWEST_PEOPLE) & (len(some) >= _FEWEST_NEAR_TOTAL)
            slack = np.where(loose, np.maximum(1.0, _OFF_TOTAL * truth), 0.0) if self.is_counts else _ROUNDED
            same = (off <= slack) & (off < np.abs(total - whole)) & (others > 0)
            is_total = (several >= _FEWEST_OF_TOTAL) & (same.sum(axis=0) >= _SHARE_OF_BAGS * several)
            if not is_total.any() or (truth is others and (some.shape[1] == 2 or not self.is_counts)):
                continue
            place, alone = int(is_total.argmax()), some.shape[1] == 2
            where = "every bag"
            if near := bool(off[:, place].any()) and self.is_counts:
                where = f"nearly every bag ({(off <= slack)[:, place].sum():,} of {len(some):,} within rounding)"
            advice = self._classes_besides(place, sizes=self.is_counts and (not near or (alone and truth is others)))
            leave = f" Leave {mode} out." if mode and near and alone else ""
            what = what if self.is_counts else "whole"
            told = f"class {self.columns[place]!r} is the {what} of {where}, so it is a total, not a class."
            return f"{told} {advice}{leave}"
        return ""

    def _classes_besides(self, place: int, *, sizes: bool) -> str:
        """Return the advice to name only classes, not the total at a place among the columns, or to use it as sizes."""
        assert self.columns is not None
        classes = [column for column in self.columns if column != self.columns[place]]
        rest, total = (shlex.quote(str(each)) for each in (",".join(map(str, classes)), self.columns[place]))
        flags = f"--{self.what} {rest}" + f" --size-column {total}" * sizes
        if self.by_class:
            flags = f"--classes {rest} --drop-unmatched" + f" --rest-as 'not {classes[0]}'" * (len(classes) == 1)
        python = f"Give the {self.what} of {classes} alone{', and the total as sizes=' * sizes}."
        return either(python, f"Name only classes: {flags}.")

    def likely_total(self) -> str:
        """Return a warning of a column that is probably a total, by its values and its name; "" if there is none."""
        some = self.values[np.isfinite(self.values).all(axis=1)]
        if self.columns is None or some.shape[1] < 2 or len(some) < _FEWEST_NEAR_TOTAL:
            return ""
        others = some.sum(axis=1, keepdims=True) - some
        for place, (column, ratio) in enumerate(zip(self.columns, (some / others.clip(1e-9)).T, strict=True)):
            little = some.shape[1] > 2 and ratio.max() <= _MORE_THAN_OTHERS
            if ratio.min() >= 1 - _OFF_TOTAL and (little or _TOTAL_NAME.search(str(column))):
                return (
                    f"class {column!r} is as large as all other classes together in every bag, so it is probably a "
                    f"total, not a class. {self._classes_besides(place, sizes=some.shape[1] == 2)}"
                )
        return ""

    def _other_sizes(
        self, labels: BagLabels, values: FloatArray, whole: FloatArray, sampled: bool, hint: str
    ) -> _Fault:
        """Return the bags whose published size differs from their number of rows in X."""
        rows = labels.sizes
        known = ~np.isnan(values).any(axis=1)

        def message(first: int, extent: str, ignore: str) -> str:
            said = "its size is" if self.sizes is not None else "its counts add up to"
            has = f"{_ROWS} has {plural(int(rows[first]), 'row')} of it"
            if labels.weights is not None:
                has = f"its rows in {_ROWS} have a total weight of {rows[first]:,.10g}"
            advice = f"If {_ROWS} is only a sample of the rows, use {_SAMPLED}."
            if sampled or rows[first] > whole[first]:
                advice = _OTHERS
            size = f"bag {labels.names[first]!r}: {said} {whole[first]:,.10g}, but {has}."
            return f"{size} {extent} {hint or advice}{ignore}"

        slack = 1e-6 * whole + labels.rounding(whole[:, None])
        return known & ((rows > whole + slack) if sampled else (np.abs(rows - whole) > slack)), message


def _half_a_unit(numbers: FloatArray, fewest: int = 0) -> float:
    """Return half a unit of the last printed digit of some numbers with at least `fewest` digits after the point."""
    known = numbers[np.isfinite(numbers)]
    scales = (10.0**digits for digits in range(fewest, _PRINTED_DIGITS + 1))
    same = (scale for scale in scales if np.allclose(known * scale, np.round(known * scale), rtol=0, atol=1e-6))
    return 0.5 / next(same, 10.0**_FLOAT_DIGITS)


_Fault = tuple[BoolArray, Callable[[int, str, str], str]]
"""for each bag whether it is faulty, and a function that returns the message for the first one"""


def shown(names: Sequence[Hashable], most: int = 5) -> str:
    """Return the first names as text."""
    return ", ".join(map(repr, names[:most])) + (" and others" if len(names) > most else "")


def near_names(names: Sequence[Hashable], others: Sequence[Hashable], most: int = 3) -> str:
    """Return the first pairs of nearly equal names as text, such as "'01' is nearly '1'"; "" if there are none.

    Names are nearly equal if they differ by leading zeros, capitals, accents, spaces or marks, or by a few letters.
    """
    keys = {_words(other): other for other in others}
    pairs = [(name, keys[_words(name)]) for name in names if _words(name) in keys]
    for name in [] if pairs else names[:_MOST_COMPARED]:
        digits = re.findall(r"\d+", _words(name))
        alike = [key for key in [*keys][:_MOST_COMPARED] if re.findall(r"\d+", key) == digits]
        pairs += [(name, keys[key]) for key in difflib.get_close_matches(_words(name), alike, n=1, cutoff=_ALIKE)]
    return ", ".join(f"{name!r} is nearly {other!r}" for name, other in pairs[:most])


def _words(name: Hashable) -> str:
    """Return the words and numbers of a name, without capitals, accents and leading zeros."""
    text = " ".join(map(str, name)) if isinstance(name, tuple) else str(name).removesuffix(" 00:00:00")
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char)).casefold()
    return re.sub(r"(?<!\d)0+(?=\d)", "", " ".join(re.findall(r"[^\W_]+", plain)))
