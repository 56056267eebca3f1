"""Predictions and estimates of whole bags in files larger than memory, with the code of rows in memory.

A first pass counts the rows of each bag. A second pass brings rows, or their predictions, into the order of bags
(`rows_by_bag.py`). They are then processed in pieces of whole bags, one after the other.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import BaggedRows, IntArray, Rows
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.files import writing
from llpbench.core.text import plural, verb
from llpbench.data.reading_bags import read_bag_table
from llpbench.owndata.bag_codes import BagCodes, CountedLabels, rows_by_label
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.bag_effects import added_up, assigned_labels
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.columns import ColumnsOfManyRows
from llpbench.owndata.group_estimates import NUMBERS, BagPiece, read_groups
from llpbench.owndata.large_predictions import (
    aligned,
    predicted,
    prepare,
    probabilities,
    require_direct,
    split,
    warn_once,
    with_predictions,
    written,
)
from llpbench.owndata.logit_draws import ProcessDraws, process_of
from llpbench.owndata.progress import RowsDone
from llpbench.owndata.rows_by_bag import RowsByBag, piece_of, without_rows
from llpbench.tables.column_names import column_of
from llpbench.tables.row_files import RowBatch, RowBatches

Show = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class WholeBags:
    """Bags whose rows are in files."""

    batches: RowBatches
    codes: BagCodes
    place: Mapping[Hashable, int]
    """position of each bag"""
    labels: CountedLabels
    bags: BaggedRows
    """counts and sizes, without rows"""
    groups: pd.DataFrame
    """[groups, columns] each combination of values of `by`"""
    show: Show

    def of_rows(self, batch: RowBatch) -> IntArray:
        """Return the position of the bag of each row [rows]."""
        codes, labels = self.codes(batch)
        return np.array([self.place.get(label, -1) for label in labels], dtype=np.int64)[codes]

    def done(self, what: str) -> RowsDone:
        """Return the progress of a pass."""
        return RowsDone(self.show, what, int(self.bags.sizes.sum()))


def read_whole_bags(
    model: LLPClassifier,
    batches: RowBatches,
    *,
    keys: Sequence[str],
    by: Sequence[str] = (),
    counts: dict[str, Any],
    show: Show,
) -> WholeBags:
    """Return the bags named by the columns `keys`, with `counts` as in `disaggregate`, and the groups `by` columns.

    Raises `LLPBenchError` as `disaggregate` and `estimate` do, and for networks.
    """
    require_direct(model)
    codes, rows = BagCodes(keys), Counter[Hashable]()
    groups: list[pd.DataFrame] = []
    done = RowsDone(show, "bags", batches.total)
    for batch in batches:
        with batch.blamed():
            rows.update(rows_by_label(*codes(batch)))
            if by:
                groups = [pd.concat([*groups, _columns(batch, by)], ignore_index=True).drop_duplicates()]
        for each in groups:
            read_groups(each, each)  # raises an error for too many groups
        done.add(len(batch.frame))
    alone = rows.pop(None, 0)
    if not alone + rows.total():
        raise DataError(f"file {str(batches.path)!r} has no rows.")
    names = sorted(rows)  # type: ignore[type-var]
    sizes = np.array([rows[name] for name in names], dtype=np.int64)
    labels = CountedLabels(np.arange(len(names)), [*names], [*keys], rows=sizes)
    table = read_bag_table(counts.get("proportions"), counts.get("counts"), labels) if counts else None
    _, found = model._counts_of(BagData(labels=labels, table=table), table)
    if alone:
        raise LLPBenchError(f"{plural(alone, 'row')} {verb(alone)} no bag. Leave them out.")
    bags, place = without_rows(found, sizes), {name: number for number, name in enumerate(names)}
    return WholeBags(batches, codes, place, labels, bags, groups[0] if groups else pd.DataFrame(), show)


def _columns(batch: RowBatch, by: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame({name: column_of(batch.frame, name, batch.part) for name in by})


def predict_whole_bags(model: LLPClassifier, whole: WholeBags, out: Path) -> int:
    """Write the predictions of `disaggregate_and_assign` in the order of the files, and return their number."""
    known, total, classes = whole.bags.known, int(whole.bags.sizes.sum()), len(model.classes_)
    given = without_rows(whole.bags.counts[known], whole.bags.sizes[known])
    place = np.where(known, np.cumsum(known) - 1, -1)
    full, rest = divmod(total, whole.batches.rows)
    blocks = np.array([whole.batches.rows] * full + [rest] * bool(rest))
    row, label, proba = ("row", np.int64, ()), ("label", np.int32, ()), ("proba", np.float64, (classes,))

    def looked(parts: list[RowBatch]) -> tuple[IntArray, Any]:
        of_row = np.concatenate([whole.of_rows(part) for part in parts])
        return of_row, predicted(model, parts, [], whole.codes)[probabilities(model)].to_numpy()

    prepare(model)
    with RowsByBag([row, proba], given.sizes) as by_bag, RowsByBag([row, label, proba], blocks) as by_row, _warned():

        def add(rows: IntArray, labels: IntArray, found: Any) -> None:
            by_row.add(rows // whole.batches.rows, rows, labels, found)

        done, first = whole.done("predictions"), 0
        for of_row, found in side_by_side(aligned(whole.batches), looked):
            rows, bag = first + np.arange(len(of_row)), place[of_row]
            by_bag.add(bag[bag >= 0], rows[bag >= 0], found[bag >= 0])
            add(rows[bag < 0], found[bag < 0].argmax(axis=1), found[bag < 0])
            first += len(rows)
            done.add(len(rows))
        whole.show("adding up to the counts of bags")
        for bags, records in by_bag:
            some, found = piece_of(given, bags), np.ascontiguousarray(records["proba"])
            chosen, spread = np.arange(len(found)), model._known_bags().spread
            add(records["row"], assigned_labels(found, some, chosen), added_up(found, some, chosen, spread))
        done = whole.done("writing")
        with written(out, probabilities(model)) as write:
            for parts, records in zip(aligned(whole.batches), _blocks(by_row), strict=True):
                for part, each in zip(parts, np.split(records, _ends(parts)), strict=True):
                    write(with_predictions(model, part, split(model, part)[1], each["label"], each["proba"]))
                done.add(len(records))
    return total


def _ends(parts: Sequence[RowBatch]) -> IntArray:
    return np.cumsum([len(part.frame) for part in parts])[:-1]


def _blocks(store: RowsByBag) -> Iterator[Any]:
    """Yield the records of each block of rows, in the order of rows."""
    for _, records in store:
        ordered = records[np.argsort(records["row"])]
        yield from np.split(ordered, np.flatnonzero(np.diff(ordered["bag"])) + 1)


def estimate_large(model: LLPClassifier, whole: WholeBags, out: Path) -> tuple[pd.DataFrame, int]:
    """Write the estimates of `estimate` without `table_estimates`. Return those of all bags, and the number of lines.

    Raises `LLPBenchError` for a method without a posterior, whose intervals need refits to all rows.
    """
    if (process := process_of(model._model.predictor)) is None:
        raise LLPBenchError(
            f"intervals of method {model.method!r} need refits to all rows, got --out-of-core. Use --in-memory, or "
            "method='bag-gp'."
        )
    columns, groups = ColumnsOfManyRows(model._model.columns), read_groups(whole.groups, whole.groups)

    def converted(batch: RowBatch) -> tuple[IntArray, Rows, IntArray]:
        with batch.blamed():
            return whole.of_rows(batch), columns(split(model, batch)[0]), _groups_of(batch, whole.groups)

    numbers, codes = len(columns.scaler.mean), len(columns.cardinalities)
    fields = [("numeric", np.float32, (numbers,)), ("categorical", np.int32, (codes,)), ("missing", bool, (numbers,))]
    with RowsByBag([*fields, ("group", np.int32, ())], whole.bags.sizes) as store:
        with _warned():
            done = whole.done("ordering rows by bag")
            for of_row, rows, of_group in side_by_side(whole.batches, converted):
                store.add(of_row, *rows, of_group)
                done.add(len(of_row))

        def pieces() -> Iterator[BagPiece]:
            done = whole.done("estimates")
            for bags, records in store:
                numeric, missing = (np.ascontiguousarray(records[name]) for name in ("numeric", "missing"))
                rows = Rows(numeric, records["categorical"].astype(np.int64), missing)
                yield model._piece(whole.bags, bags, rows, records["group"].astype(np.int64))
                done.add(len(records))

        labels, draws = whole.labels, ProcessDraws(process)
        found = model._estimates(groups.labels, labels, labels.columns or [], whole.bags, pieces, draws)
        lines = number = 0
        with tempfile.TemporaryFile() as file, written(out, NUMBERS[1:]) as write:
            for table in found:  # the last one is the first in the file
                with writing():
                    pickle.dump(table, file)
                lines, number = lines + len(table), number + 1
            write(table)
            file.seek(0)
            for _ in range(number - 1):
                write(pickle.load(file))
    return table, lines


def _groups_of(batch: RowBatch, groups: pd.DataFrame) -> IntArray:
    """Return the group of each row [rows], numbered as all `groups` are."""
    every = pd.concat([groups, _columns(batch, [*groups.columns])], ignore_index=True)
    return read_groups(every, every).of_row[len(groups) :]


@contextmanager
def _warned() -> Iterator[None]:
    """Show warnings about columns once, instead of once for each batch."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    warn_once(caught, 0)
