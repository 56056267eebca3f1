"""Checked input of `fit`: rows, their bags, and counts of bags.

Warnings name counts that hardly fit the rows, and columns that explain counts without any other feature: they name
bags, repeat counts, or are the label itself.
"""

# ruff: noqa: N803 (X is scikit-learn's name)

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Container, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from llpbench.core.bags import BaggedRows, FloatArray, IntArray
from llpbench.core.errors import LLPBenchError, argument, either, warn
from llpbench.core.tables import TEXT_TYPES
from llpbench.core.text import plural, verb
from llpbench.data.bag_tables import BagLabels, BagTable, shown
from llpbench.data.frames import is_numeric
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.columns import FeatureColumns, as_frame
from llpbench.owndata.count_ranges import CountRanges
from llpbench.owndata.storing import BagFacts
from llpbench.owndata.weights import Repeats
from llpbench.tables.column_names import csv_line
from llpbench.tables.number_text import NumberText, likely_numbers, numbers_as_text_warning
from llpbench.tables.texts import without_decimals

_FEW_CLASSES, _ROWS_OF_A_CLASS = 20, 5
"""Nearly as many classes as rows are a column that identifies rows."""
_NEARLY_ALL = 0.95
"""Share of bags whose counts a column must repeat or add up to."""
_FEWEST_BAGS, _FEWEST_PEOPLE = 5, 5
"""Number of bags from which agreement of a column with all bags is not a coincidence, and of people in the median bag
from which a matching sum is not."""
_FEW_LINES = 3
"""Largest number of rows of nearly every bag if rows are lines of bags, such as votes by mail and on the day."""
_FEWEST_ROWS, _MANY_ROWS = 20, 200
"""Number of rows from which different values are not a coincidence, and from which texts that are rarely repeated are
identifiers."""
_MOST_NAMED = 3
"""Largest number of bags that a message names."""
_ROUNDED = 0.0051
"""Rounding error of shares with two digits."""
_SAME = 0.5
"""Largest difference of equal counts; proportions give counts that are not whole."""
_BELOW_CHANCE, _FEWEST_COMPARED, _FEWEST_KNOWN, _FILLED = 0.5, 6, 3, 0.8
"""Largest deviation of a column from the counts of a class, in binomial standard deviations, fewest bags, fewest rows
in each bag, and smallest share of rows with a value."""
_TOGETHER = 0.8
"""Smallest correlation over bags of the shares of a class and of a value with its name."""
_MOST_VALUES = 20
"""Largest number of different values of a column that may be the label."""
_DATE = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")


def read_training_set(
    X: Any, data: BagData, numbers: str
) -> tuple[FeatureColumns, BaggedRows, BagFacts, CountRanges | None]:
    """Match rows with the data of their bags, with the errors and warnings of `LLPClassifier.fit`.

    `numbers` is the scaling of numbers. Returns the features, the rows (repeated by weight) in bags, facts about the
    bags, and the ranges of counts, in repeated rows. The counts of these bags are a first guess.
    """
    frame, of_bags, table, deviation = as_frame(X), data.labels, data.table, data.noise
    sampled, as_shares = data.counted == "whole bags", data.counted == "others"
    if table is None:
        raise LLPBenchError(f"proportions or counts of bags are missing. Give {argument('counts=')}.")
    broken = table.values[np.abs(table.values - np.rint(table.values)) > 1e-6]
    if len(broken) and table.is_counts and table.values.shape[1] == 1 and not (deviation or as_shares):
        ways = f"{argument('proportions=')} for shares, counts of both classes, or {argument('noise=')} if it was added"
        raise LLPBenchError(f"counts must be whole numbers, got {broken[0]:,.10g}. Give {ways}.")
    named = table.classes(data.classes)
    order = _ascending(named, max(len(frame), int(of_bags.sizes.sum())))
    classes = [named[place] for place in order]
    of_bags = of_bags.matched(table, drop_unmatched=data.drop_unmatched)
    of_bags.require_people()
    if deviation >= (largest := of_bags.sizes.max()):
        little = f"say very little about bags of at most {largest:,.6g} rows"
        check = f"Check that {argument('noise=')} is a scale of counts, not of shares or of a budget."
        warn("large noise", f"counts with a standard deviation of {deviation:,.6g} {little}. {check}")
    _require_people_in_rows(frame, of_bags, table, data)
    hint, ignored = _weights_hint(frame, of_bags, table, data.counted), data.suppress_impossible
    found = table.counts(of_bags, deviation, sampled=sampled, as_shares=as_shares, suppress=ignored, hint=hint)
    found = found[:, order]
    if sampled or as_shares:
        warn("total", table.likely_total())
    suppressed, ranges, of_ranges = int((~table.known(of_bags)).sum()), None, set[Hashable]()
    if table.ends is not None:
        ranges, of_ranges = CountRanges.read(table.ends, of_bags, table, order, ignored)
        found = ranges.filled(found, of_bags.sizes)
        suppressed -= len(of_ranges)
    exact = table.is_counts and data.counted == "rows" and not deviation and of_bags.weights is None
    warn("missing counts", _missing_counts(table, of_bags, named, of_ranges, of_rows=exact))
    left_out = {"rows": of_bags.alone, "bags": len(table.names) - len(of_bags.names), "suppressed": suppressed}
    left_out["impossible"] = int(np.isnan(found).any(axis=1).sum()) - suppressed
    keys = [*data.left_out]
    rows, frame = int((of_bags.of_row >= 0).sum()), frame.drop(columns=keys)
    copies = Repeats.of(of_bags, lambda: frame)
    frame = frame.iloc[copies.places]
    if not frame.shape[1]:
        told = f"{argument('X')} must have features, got only {keys}, which name the bags"
        raise LLPBenchError(f"{told}. Add features, or use {argument('keep_key=True')}.")
    columns = FeatureColumns(frame, numbers)  # refuses lists and other cells that are no values
    as_text = numbers_as_text_warning(frame)  # may raise an error
    odd = [str(name) for name, column in frame.items() if _is_identifier(column)]
    alike = f"some features look like identifiers (almost all values differ): {shown(odd)}"
    warn("identifier", _with_advice(alike, odd))
    warn("numbers as text", as_text)
    warn("extreme values", columns.warning(len(frame)))
    warn("rounded weights", copies.warning(rows))
    train = BaggedRows(columns(frame, new=False), of_bags.index(copies.places), found, deviation)
    warn("bag column", _bag_columns(frame, train, data.bag_columns))
    warn("label", _label_columns(frame, train, classes))
    train = replace(train, counts=copies.counts(found, noisy=deviation > 0), noise=deviation * copies.ratio)
    if ranges is not None:  # in repeated rows
        factor = (train.sizes / copies.people)[ranges.bags]
        ranges = replace(ranges, low=ranges.low * factor, high=ranges.high * factor)
    known = train.where_known()
    if (bags := len(known.sizes)) < 2:
        few = f"at least 2 bags must have known counts, got {bags} of {len(train.sizes):,}"
        raise LLPBenchError(f"{few}. Give more or smaller bags.")
    if known.prior.max() == 1.0:
        one = f"known bags must have two classes, got only {classes[int(known.prior.argmax())]!r} in all {bags:,}"
        raise LLPBenchError(f"{one}. Add bags with another class.")
    places = np.argsort(order).tolist()
    facts = BagFacts(
        classes=classes,
        order=places,
        positive=places[-1] if table.columns is None or table.values.shape[1] == 1 else len(order) - 1,
        names=of_bags.names,
        counts=found,
        sizes=of_bags.sizes,
        deviation=deviation,
        of_rows=data.counted == "rows" and table.ends is None,
        left_out=left_out,
        keys=keys,
        groupings=data.labels.copies,
    )
    return columns, train, facts, ranges


def _ascending(classes: Sequence[Hashable], rows: int) -> list[int]:
    """Return the positions of the classes in ascending order. Raises `LLPBenchError` for unusable classes."""
    if len(classes) > _FEW_CLASSES and len(classes) * _ROWS_OF_A_CLASS > rows:
        wrong = f"classes must have {_ROWS_OF_A_CLASS} rows on average, got {len(classes):,} classes for {rows:,} rows"
        raise LLPBenchError(f"{wrong}. Name a column of classes, not of identifiers, or merge rare classes.")
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise LLPBenchError(f"classes must be at least two, without repeats, got {list(classes)}")
    with suppress(TypeError):  # numbers and texts cannot be compared
        if all(isinstance(label, TEXT_TYPES) for label in classes):
            return sorted(range(len(classes)), key=classes.__getitem__)  # type: ignore[arg-type]
    raise LLPBenchError(f"classes must be all texts or all numbers, got {list(classes)}")


def _missing_counts(
    table: BagTable, labels: BagLabels, named: Sequence[Hashable], besides: Container[Hashable], *, of_rows: bool
) -> str:
    """Return a message that names bags without all counts (`besides` those with ranges); else ""."""
    sizes, told = dict(zip(labels.names, labels.sizes, strict=True)), []
    for name, values in zip(table.names, table.values, strict=True):
        if name not in sizes or name in besides or not (missing := np.isnan(values)).any():
            continue
        of = "all classes" if missing.all() else ", ".join(repr(named[int(place)]) for place in np.flatnonzero(missing))
        rest = sizes[name] - np.nansum(values)
        if of_rows and missing.sum() == 1 < len(values) and rest >= 0:
            of += f"; with {sizes[name]:,.10g} rows and the other counts, it would be {rest:,.10g}"
        told.append(f"{name!r} ({table.what[:-1]} of {of})")
    if not told:
        return ""
    more = f", and {len(told) - _MOST_NAMED:,} more" * (len(told) > _MOST_NAMED)
    lacking = f"{plural(len(told), 'bag')} {verb(len(told))} missing {table.what} and {verb(len(told), 'is', 'are')}"
    named = f"not used for training: {', '.join(told[:_MOST_NAMED])}{more}"
    return f"{lacking} {named}. Fill in missing {table.what} to use these rows."


def _weights_hint(frame: pd.DataFrame, labels: BagLabels, table: BagTable, counted: str) -> str:
    """Return advice if a column adds up to the counts of bags, as weights of rows do; else ""."""
    totals = table.values.sum(axis=1) if table.values.shape[1] > 1 else table.sizes
    if not table.is_counts or totals is None:
        return ""
    at = table.rows_of(labels)
    total = np.where(at >= 0, totals[at], np.nan)
    known = np.isfinite(total)
    if not known.any() or (total == labels.sizes)[known].all() or np.median(total[known]) < _FEWEST_PEOPLE:
        return ""
    inside = labels.of_row >= 0
    for name, column in frame.select_dtypes("number").items():
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)[inside]
        sums = np.bincount(labels.of_row[inside], values, len(labels.names))
        finite = np.isfinite(values).all() and (values >= 0).all()
        if finite and (np.abs(sums - total) < 0.5)[known].mean() >= _NEARLY_ALL:
            use = either(f"sample_weight=X[{name!r}]", f"--weight-column {shlex.quote(str(name))}")
            told = f"Column {name!r} adds up to the counts: rows stand for several people. Use it as weights ({use})."
            if counted == "rows":
                return told
            mode = argument("sampled=True" if counted == "whole bags" else "as_shares=True")
            raise LLPBenchError(f"{told} Leave {mode} out.")
    return ""


def _require_people_in_rows(frame: pd.DataFrame, labels: BagLabels, table: BagTable, data: BagData) -> None:
    """Raise `LLPBenchError` if rows are bags or parts of them, not people; only warn if they are declared a sample."""
    if labels.weights is not None or len(labels.names) < _FEWEST_BAGS:
        return
    numbers, sizes = frame.select_dtypes("number"), np.asarray(labels.sizes)
    repeated = [name for name in table.columns or () if name in numbers.columns]
    if table.is_counts:
        repeated = [name for name in repeated if numbers[[name]].gt(1).any(axis=None)]  # 0 and 1 are labels of people
        many = np.nanmedian(np.nansum(table.values, axis=1)) >= _FEWEST_PEOPLE
    else:
        many = ((table.values > 0) & (table.values < 1)).mean() > 0.5
    if not many or (sizes <= (_FEW_LINES if repeated else 1)).mean() < _NEARLY_ALL:
        return
    lines = "every bag has one row" if (sizes == 1).all() else "bags have only one row or few rows"
    columns = f" {argument('X')} has these as features ({shown(repeated)})." if repeated else ""
    wrong = f"{lines}, but {table.what} of many people, such as bag {table.names[0]!r}.{columns}"
    other = f"For a table of groups by outcomes, use {either('cross_table', 'llpbench estimate-table')}."
    message = f"{wrong} Rows must be people, or groups of people with weights. {other}"
    if data.counted == "rows" or repeated:
        raise LLPBenchError(message)
    warn("one row per bag", message)


def _with_advice(message: str, names: list[str]) -> str:
    """Return a message with the advice to leave columns out; "" without columns."""
    way = either(f"X.drop(columns={names})", f"--leave-out {shlex.quote(csv_line(names))}")
    return f"{message}. To leave {verb(len(names), 'it', 'them')} out: {way}." if names else ""


def _is_identifier(series: pd.Series) -> bool:
    """Texts in at most two rows on average, or different whole numbers that are sorted or without gaps."""
    known = series.dropna()
    if len(known) < _FEWEST_ROWS:
        return False
    if not is_numeric(known, "X"):
        rare = known.is_unique or (len(known) >= _MANY_ROWS and known.nunique() >= len(known) / 2)
        return rare and not isinstance(likely_numbers(series), NumberText)
    numbers = known.to_numpy(dtype=np.float64)
    steps = np.diff(numbers)
    running = (steps >= 0).all() or (steps <= 0).all() or np.ptp(numbers) == len(numbers) - 1
    return known.is_unique and bool(running and (numbers == np.floor(numbers)).all())


def _bag_columns(frame: pd.DataFrame, train: BaggedRows, keys: Collection[str]) -> str:
    bags = len(train.sizes)
    if bags < _FEWEST_BAGS or len(frame) < 2 * bags:
        return ""
    first = train.bag_by_bag[np.cumsum(train.sizes) - train.sizes]
    names, repeats_counts = [], []
    for name, rows in frame.items():
        codes, values = pd.factorize(rows, use_na_sentinel=False)
        if name in keys or len(values) < 2 or not (codes == codes[first][train.bag_of_row]).all():
            continue
        column = rows.iloc[first]
        number = is_numeric(column, "X")
        if len(values) >= _NEARLY_ALL * bags and (not number or _counts_bags(column)):
            names.append(str(name))
        elif number and _repeats_counts(column.to_numpy(dtype=np.float64, na_value=np.nan), train):
            repeats_counts.append(str(name))
    kinds = (("different values in all bags", names), ("counts or shares of the bags", repeats_counts))
    told = "; ".join(f"{kind}: {shown(some)}" for kind, some in kinds if some)
    message = f"some features identify bags ({told}). They explain the counts without any other feature"
    return _with_advice(message, [*names, *repeats_counts])


def _counts_bags(column: pd.Series) -> bool:
    values = column.dropna().to_numpy(dtype=np.float64)
    if not len(values) or (values % 1).any():
        return False
    return np.ptp(values) + 1 == len(np.unique(values)) or all(_DATE.fullmatch(f"{value:.0f}") for value in values)


def _repeats_counts(values: FloatArray, train: BaggedRows) -> bool:
    known = train.known
    if known.sum() < _FEWEST_BAGS:
        return False
    values, counts = values[known], train.counts[known]
    shares = counts / train.sizes[known, None]
    kinds = ((counts, 1e-6), (shares, _ROUNDED), (100 * shares, 100 * _ROUNDED))
    same = [each for truth, off in kinds for each in np.abs(values - truth.T) <= off]
    return any(each.mean() >= _NEARLY_ALL and len(np.unique(values[each])) >= _FEWEST_BAGS for each in same)


def _label_columns(frame: pd.DataFrame, train: BaggedRows, classes: Sequence[Hashable]) -> str:
    told = dict[str, str]()
    for name, column in frame.items():
        codes, values = pd.factorize(column)
        if not 2 <= len(values) <= _MOST_VALUES:
            continue
        written = [{without_decimals(str(each)).strip().lower() for each in some} for some in (values, classes)]
        if (found := _class_of_column(codes, len(values), train, alike=written[0] == written[1])) is not None:
            follows = f"column {str(name)!r} follows the counts of {classes[found[0]]!r} in the bags"
            told[str(name)] = f"{follows} (root mean square difference {found[1]:.2g} rows)"
    return _with_advice(f"{'; '.join(told.values())}. It may be the label of rows, which new rows do not have", [*told])


def _class_of_column(codes: IntArray, values: int, train: BaggedRows, *, alike: bool) -> tuple[int, float] | None:
    """Return the class whose counts are nearly those of one of the values, and the root mean square of the difference.

    Missing and rare values count as gaps. If names are `alike`, correlated shares are enough: rows may be a sample.
    """
    known = train.known & (train.sizes > 1)
    if known.sum() < _FEWEST_BAGS:
        return None
    sizes = train.sizes[known]
    usual = np.bincount(codes[codes >= 0]).argsort(kind="stable")[::-1][: train.counts.shape[1]]
    filled = np.isin(codes, usual)
    rows = np.bincount(train.bag_of_row, filled, len(train.sizes))[known]
    compared = rows >= _FEWEST_KNOWN
    comparable = compared.sum() >= _FEWEST_COMPARED and filled.mean() >= _FILLED
    for value in range(values):
        number = np.bincount(train.bag_of_row, codes == value, len(train.sizes))[known]
        for label, counts in enumerate(train.counts[known].T):
            same, shares = np.abs(number - counts) <= _SAME, (number / sizes, counts / sizes)
            away, chance = (number - shares[1] * rows) ** 2, rows * shares[1] * (1 - shares[1])
            near = comparable and value in usual and away[compared].sum() < _BELOW_CHANCE**2 * chance[compared].sum()
            exact = same.mean() >= _NEARLY_ALL and len(np.unique(number[same])) > 2
            together = alike and min(map(np.ptp, shares)) > 0 and np.corrcoef(*shares)[0, 1] >= _TOGETHER
            if near or exact or together:
                return label, float(away.mean() ** 0.5)
    return None
