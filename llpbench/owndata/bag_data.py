"""Data of bags, as one value: the bag of each row, and counts or proportions of each bag.

Rows may have several groupings, such as by district and by age group, each with its own counts. Each grouping gets a
copy of all rows: in a copy, a row is in its bag of that grouping. Methods then see bags as usual. The likelihood is the
product of the likelihoods of all groupings (a composite likelihood). It treats counts of two groupings as independent
given the features, although both have the same rows. This does not bias estimates, but standard errors are a little too
small.
"""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from itertools import permutations
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from llpbench.core.bags import BoolArray, FloatArray
from llpbench.core.errors import LLPBenchError, argument, warn
from llpbench.core.text import hint, plural
from llpbench.data.bag_tables import BagLabels, BagTable
from llpbench.data.reading_bags import as_pandas, read_bag_labels, read_bag_table
from llpbench.owndata.weights import read_weights

_Counted = Literal["rows", "whole bags", "others"]
"""What was counted: the rows in X, whole bags (X has some of their rows), or other people."""
_MOST = 1e12
"""Largest standard deviation of noise, in rows."""
_SAME_TOTAL = 0.5
"""Largest difference of equal totals."""
_APART = (
    ("sampled=True", "as_shares=True"),
    ("noise=", "sampled=True", "as_shares=True"),
    ("counts as ranges", "sampled=True", "as_shares=True", "noise=", "rest_as=", "several groupings"),
    ("several groupings", "sizes=", "noise=", "sampled=True", "as_shares=True"),
)
"""Facts about bags, each with those that it cannot be combined with."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BagData:
    """Data of the bags of some rows. `read` makes it from the forms in which users have it.

    Examples
    --------
    >>> import pandas as pd
    >>> from llpbench import BagData, LLPClassifier
    >>> people = pd.DataFrame({"age": [25, 35, 45, 55, 30, 40, 60, 70] * 5})
    >>> bags = BagData.read(people, [row // 4 for row in range(40)], counts={bag: 1 + bag % 2 for bag in range(10)})
    >>> LLPClassifier("bag-mean-linear").fit(people, bags).bag_counts_.sum(axis=0).tolist()
    [25.0, 15.0]
    """

    labels: BagLabels
    """bag and weight of each row"""
    table: BagTable | None
    """counts or proportions of bags, and sizes of whole bags; None: those of `fit`"""
    classes: Sequence[Hashable] | None = None
    """names of the classes in the order of the columns of `table`, if these have no names"""
    counted: _Counted = "rows"
    noise: float = 0.0
    """standard deviation of the noise of each count"""
    drop_unmatched: bool = False
    suppress_impossible: bool = False
    bag_columns: tuple[str, ...] = ()
    """columns of X that name bags"""
    left_out: tuple[str, ...] = ()
    """columns of X that are not features: weights, and `bag_columns` unless they are kept"""

    @classmethod
    def read(
        cls,
        X: Any,
        bags: Any,
        *,
        proportions: Any = None,
        counts: Any = None,
        classes: Sequence[Hashable] | None = None,
        rest_as: str | None = None,
        sizes: Any = None,
        sampled: bool = False,
        as_shares: bool = False,
        noise: float = 0.0,
        unmatched: str = "raise",
        impossible: str = "raise",
        keep_key: bool = False,
        sample_weight: Any = None,
    ) -> Self:
        """Read what users know about bags. `LLPClassifier.fit`, `choose` and others take the same arguments.

        Parameters
        ----------
        X
            Frame or array of rows.
        bags
            [rows] label of each row's bag, by position. A frame of several natural keys has tuples as labels. A list of
            such series or arrays is several groupings of the same rows, by district and by age group; `counts` is then
            a list of their tables.
        proportions
            Proportions of each bag, instead of counts.
        counts
            Counts of each bag. NaN marks suppressed counts; nothing is learned from the rows of such a bag. One of

            - a mapping or series by bag, with the counts of the positive of two classes
            - a frame by bag with a column for each class
            - a series by bag and class, in which a missing class has 0
            - an array in ascending order of the bags, if these are numbers or appear in this order

            With two classes, counts may be ranges: "1-9", "<10" (from 0), "5+". The method is then fitted two or three
            more times to find their expected counts.
        classes
            Names of the classes in the order of the columns, if these have no names. The last of two classes is the
            positive one. Default: names of the columns (for a single column `late`: "not late" and "late"), else 0, 1,
            ...
        rest_as
            Name of one more class: all rows of a bag that no other class counts, such as people who abstained.
        sizes
            Published number of rows of each whole bag: a mapping, series or array as above.
        sampled
            X has only some rows of each bag, but `counts` or `sizes` are of whole bags. These rows are assumed to have
            the proportions of their bag.
        as_shares
            Use only the shares of `counts`, because the counts are of other people than the rows (such as voters among
            adults) or in other units (such as thousands).
        noise
            Standard deviation of the privacy noise added to each count; for Laplace noise of scale b it is 1.414 b.
            Counts may then be fractional or negative.
        unmatched
            "raise", or "drop" rows without a bag, rows of bags without an entry, bags without rows, and classes that
            are not in `classes`.
        impossible
            "raise" for bags whose counts do not fit their rows, or "suppress" these counts.
        keep_key
            Use columns of X that name the bags as features, too. They are recognised by name and values if `bags` is a
            series or frame. By default they are left out, because a category for each bag explains its counts without
            any other feature. Keep keys that several bags share, such as the county of a precinct.
        sample_weight
            [rows] number of people that each row stands for, as in a census table or a survey. Sizes of bags are sums
            of weights, and counts are of people. Whole weights are like repeated rows, up to two million people. Other
            weights are rounded up or down. A column of X with the name and values of this series is not a feature.

        Raises
        ------
        LLPBenchError
            If the arguments do not fit together.
        """
        X, bags = as_pandas(X), as_pandas(bags)  # noqa: N806
        for name, value, other in (("impossible", impossible, "suppress"), ("unmatched", unmatched, "drop")):
            if value not in ("raise", other):
                raise LLPBenchError(f"{argument(name)} must be 'raise' or {other!r}, got {value!r}.")
        if isinstance(noise, bool) or not (isinstance(noise, Real) and 0 <= noise <= _MOST):
            raise LLPBenchError(f"{argument('noise')} must be a standard deviation from 0 to {_MOST:g}, got {noise!r}.")
        grouping = pd.Series | pd.DataFrame | np.ndarray | list
        several = isinstance(bags, list | tuple) and len(bags) > 0 and all(isinstance(each, grouping) for each in bags)
        if as_shares and counts is None:
            raise LLPBenchError(f"{argument('as_shares=True')} needs counts: proportions are shares. Leave it out.")
        if several and len(bags) == len(X) != len(bags[0]):
            raise LLPBenchError(f"bags must be labels, got {type(bags[0]).__name__}s of keys. Give a frame of keys.")
        weights, table = read_weights(sample_weight, X), None
        if several:
            of_rows, table = _read_groupings(X, bags, proportions=proportions, counts=counts, weights=weights)
        else:
            of_rows = read_bag_labels(bags, X, weights)
            if counts is not None or proportions is not None or sizes is not None:
                table = read_bag_table(proportions, counts, of_rows, sizes)
        facts = {"sampled=True": sampled, "as_shares=True": as_shares, "noise=": noise > 0, "sizes=": sizes is not None}
        facts |= {"rest_as=": rest_as is not None, "several groupings": several}
        facts["counts as ranges"] = table is not None and table.ends is not None
        for one, *others in _APART:
            if facts[one] and (other := next((name for name in others if facts[name]), None)):
                both = " and ".join(name if " " in name else argument(name) for name in (one, other))
                raise LLPBenchError(f"{both} cannot be combined. Leave one of them out.")
        if table is not None and unmatched == "drop":
            table = table.only(classes)
        if rest_as is not None and table is not None:
            if (sampled or as_shares) and sizes is None and table.is_counts:
                raise LLPBenchError(f"{argument('rest_as=')} needs the rows of whole bags. Give {argument('sizes=')}.")
            table = table.with_rest(rest_as, of_rows)
            classes = [*classes, rest_as] if classes is not None else None
        names = [name for each in (bags if several else [bags]) for name in _key_columns(X, each)]
        out = [name for name in (*_key_columns(X, sample_weight), *names) if not keep_key or name not in names]
        return cls(
            labels=of_rows,
            table=table,
            classes=classes,
            counted="whole bags" if sampled else "others" if as_shares else "rows",
            noise=float(noise),
            drop_unmatched=unmatched == "drop",
            suppress_impossible=impossible == "suppress",
            bag_columns=tuple(dict.fromkeys(names)),
            left_out=tuple(dict.fromkeys(out)),
        )

    @classmethod
    def of(cls, X: Any, bags: Any, *, several: bool = False, **facts: Any) -> BagData:
        """Return `bags` if they are `BagData` of X; else read them with `facts`. `several` allows several groupings."""
        X = as_pandas(X)  # noqa: N806
        known = signature(cls.read).parameters.values()
        usual = {each.name: each.default for each in known if each.kind is each.KEYWORD_ONLY}
        if unknown := next((name for name in facts if name not in usual), None):
            raise LLPBenchError(f"unknown argument {unknown}. {hint(unknown, usual)}Available: {', '.join(usual)}.")
        data = bags if isinstance(bags, BagData) else cls.read(X, bags, **facts)
        plain = {name: each for name, each in facts.items() if each is None or np.isscalar(each)}
        if data is bags and (given := [name for name in facts if name not in plain or plain[name] != usual.get(name)]):
            raise LLPBenchError(f"{argument(f'{given[0]}=')} cannot be given with BagData. Give it to BagData.read.")
        copies, rows = data.labels.copies, len(data.labels.of_row) // data.labels.copies
        if rows != len(X):
            raise LLPBenchError(f"bags are of {rows:,} rows, {argument('X')} has {len(X):,}. Give the same rows.")
        if copies > 1 and not several:
            raise LLPBenchError(f"bags must be one grouping of rows, got {copies}. Give one grouping.")
        return data

    def some(self, names: Container[Hashable]) -> tuple[Self, BoolArray]:
        """Return the data of some bags, and which rows are in them [rows]. There must be a single grouping."""
        labels = self.labels.only(np.array([name in names for name in self.labels.names], dtype=bool))
        rows: BoolArray = labels.of_row >= 0
        table = None if self.table is None else self.table.of(names)
        weights = None if labels.weights is None else labels.weights[rows]
        return replace(self, labels=replace(labels, of_row=labels.of_row[rows], weights=weights), table=table), rows

    def rows(self, X: Any) -> Any:
        """Return the rows of X that `labels` are of: X, or copies of it for several groupings."""
        copies = [as_pandas(X)] * self.labels.copies
        if len(copies) == 1:
            return copies[0]
        return pd.concat(copies, ignore_index=True) if isinstance(copies[0], pd.DataFrame) else np.concatenate(copies)


def _key_columns(X: Any, bags: Any) -> list[str]:
    """Return columns of X with the name and values of `bags` or weights, if these are a series or frame."""
    bags = bags.to_frame() if isinstance(bags, pd.Series) else bags
    if not (isinstance(bags, pd.DataFrame) and isinstance(X, pd.DataFrame) and len(bags) == len(X)):
        return []
    known, found = [*X.columns], []
    for name, column in bags.items():
        if isinstance(name, str) and known.count(name) == 1:
            ours, theirs = (each.reset_index(drop=True).astype(object) for each in (X[name], column))
            found += [name] * ours.equals(theirs)
    return found


def _read_groupings(
    X: Any, bags: Any, *, proportions: Any, counts: Any, weights: FloatArray | None
) -> tuple[BagLabels, BagTable]:
    """Return the bags of the copies of all rows, one grouping after the other, and one table of all bags."""
    given, what = (counts, "counts") if proportions is None else (proportions, "proportions")
    if not isinstance(given, list | tuple) or len(given) != len(bags) or len(bags) < 2:
        raise LLPBenchError(f"{what} must be a list with one table for each of {len(bags)} groupings (at least 2).")
    labels, tables, names = [], list[BagTable](), list[Hashable]()
    for grouping, table in zip(bags, given, strict=True):
        known = read_bag_labels(grouping, X)
        labels.append(pd.Series([*known.names, None], dtype=object).to_numpy()[known.of_row])  # None: no bag
        tables.append(read_bag_table(None if proportions is None else table, None if counts is None else table, known))
        names += dict.fromkeys([*known.names, *tables[-1].names])
    frames = [pd.DataFrame(each.values, pd.Index(each.names, tupleize_cols=False), each.columns) for each in tables]
    joined = pd.concat(frames)
    if any({*frame.columns} != {*joined.columns} for frame in frames):
        listed = " and ".join(str([*frame.columns]) for frame in frames)
        raise LLPBenchError(f"{what} of all groupings must have the same classes, got {listed}.")
    if again := (every := pd.Index(names, object, tupleize_cols=False))[every.duplicated()].tolist():
        raise LLPBenchError(f"bags of two groupings must not have the same name, got {again[0]!r} twice. Rename one.")
    if counts is not None and (told := _disagreement(frames, labels)):
        both = "both tables" + " and the order of bags" * isinstance(frames[0].columns, pd.RangeIndex)
        warn("disagreeing groupings", f"the groupings disagree: {told}. The model is a compromise. Check {both}.")
    of_rows = pd.Series(np.concatenate(labels), dtype=object)
    weights = None if weights is None else np.tile(weights, len(bags))
    ends = next((each.ends for each in tables if each.ends is not None), None)  # refused by the caller
    series = tuple(name for each in tables for name in each.series)
    table = replace(tables[0], names=[*joined.index], values=joined.to_numpy(), ends=ends, series=series)
    return replace(read_bag_labels(of_rows, of_rows.to_numpy(), weights), copies=len(bags)), table


def _disagreement(frames: list[pd.DataFrame], labels: list[Any]) -> str:
    """Return how counts of the same rows (in all, or in a bag of bags) differ in two groupings; "" if they do not."""
    for frame, bags in zip(frames, labels, strict=True):
        if frame.isna().any(axis=None) or {*bags} != {*frame.index}:
            return ""  # not all rows are counted
    totals = pd.concat([frame.sum() for frame in frames], axis="columns")
    away = totals.sub(totals[0], axis="index").abs()
    if away.max(axis=None) <= _SAME_TOTAL:
        pairs = permutations(zip(frames, labels, strict=True), 2)
        return next(filter(None, (_disagreement_inside(*inner, *outer) for inner, outer in pairs)), "")
    row = int((away > _SAME_TOTAL).any(axis="columns").argmax())
    label, number, other = totals.index.tolist()[row], totals.iloc[row, 0], totals.iloc[row, away.iloc[row].argmax()]
    same = f"of the same {plural(len(labels[0]), 'row')}"
    return f"their counts of {label!r} add up to {number:,.10g} and {other:,.10g}, {same}"


def _disagreement_inside(inner: pd.DataFrame, lower: Any, outer: pd.DataFrame, upper: Any) -> str:
    """Return how counts of outer bags, which consist of inner ones, differ from theirs; "" if they do not."""
    outside = dict(zip(lower, upper, strict=True))
    if len({*zip(lower, upper, strict=True)}) > len(outside):
        return ""
    codes, bags = pd.factorize(pd.Series([outside[bag] for bag in inner.index], dtype=object).to_numpy())
    sums = np.column_stack([np.bincount(codes, inner[column]) for column in outer.columns])
    given = outer.to_numpy()[outer.index.get_indexer(bags)]
    bag, column = np.unravel_index(np.abs(sums - given).argmax(), sums.shape)
    if abs(sums[bag, column] - given[bag, column]) <= _SAME_TOTAL:
        return ""
    of_outer = f"the count of {outer.columns.tolist()[column]!r} in bag {bags[bag]!r} is {given[bag, column]:,.10g}"
    return f"{of_outer}, but the counts of the bags inside it add up to {sums[bag, column]:,.10g}"
