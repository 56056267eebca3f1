"""Rows of files in batches: samples of whole bags for fits, predictions, and estimates of groups.

Rows in memory are a single batch.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from rich.progress import Progress

from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import FloatArray, Rows
from llpbench.core.errors import DataError, LLPBenchError, argument
from llpbench.core.files import temporary_folder
from llpbench.core.seeding import generator
from llpbench.core.text import one_line, plural, verb
from llpbench.data.bag_tables import BagLabels
from llpbench.data.reading_bags import read_bag_labels
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.group_estimates import Groups
from llpbench.owndata.weights import weights_of_column
from llpbench.tables.bag_keys import bag_index, bag_keys
from llpbench.tables.column_names import column_of
from llpbench.tables.row_files import RowBatch, RowBatches
from llpbench.tables.writing import written

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def draw_bags(
    batches: RowBatches,
    keys: Sequence[str],
    table: dict[str, Any],
    most_rows: int,
    *,
    seed: int,
    drop_unmatched: bool,
    progress: Progress,
) -> tuple[pd.DataFrame, dict[str, Any], str]:
    """Read all rows, or the rows of random whole bags if there are more than `most_rows`.

    Returns the rows, the `table` of counts (`BagFile.read`) without bags that were not drawn, and what was drawn ("" if
    all rows were read).

    Whole bags are drawn, not rows: the counts of a bag say little about a sample of its rows. `keys` are the columns
    that name the bag of a row. `drop_unmatched`: skip the rows of bags without counts. Raises `LLPBenchError` if some
    rows must be left out that have no bag with counts, and if the limit has no room for two bags.
    """
    bags = {name: bag_index(each.index.to_frame(index=False).iloc[:, : len(keys)]) for name, each in table.items()}
    sizes = _rows_of_bags(batches, keys, progress)
    total, known = sizes.total(), {*bags["counts" if "counts" in bags else "proportions"]}
    unknown = {label: rows for label, rows in sizes.items() if label not in known}
    drawn: set[Hashable] = {*sizes, None}
    if drop_unmatched and total > most_rows:
        sizes = Counter({label: rows for label, rows in sizes.items() if label not in unknown})
        drawn = {*sizes}
    if sampled := sizes.total() > most_rows:
        if unknown and not drop_unmatched:
            rows, some = sum(unknown.values()), next(iter(unknown))
            raise LLPBenchError(
                f"{rows:,} of {plural(total, 'row')} {verb(rows)} no bag with counts"
                f"{'' if some is None else f', such as rows of bag {some!r}'}. Add these bags. To drop such rows, use "
                f"{argument('unmatched=' + repr('drop'))}."
            )
        drawn = _drawn(sizes, most_rows, seed)
    frames, done = [], _advancing(progress, "rows of bags", batches.total)
    for batch in batches:
        labels = _labels(batch, keys)
        frames.append(batch.frame[np.array([*(name in drawn for name in labels.names), None in drawn])[labels.of_row]])
        done(len(batch.frame))
    found = pd.concat(frames, ignore_index=True)
    found.attrs["decimals"] = dict(batches.decimals)
    if not sampled:
        return found, table, ""
    left_out = {*sizes} - drawn
    message = f"fitted to {len(found):,} of {plural(total, 'row')}, in {len(drawn):,} of {len(sizes):,} bags, at random"
    return found, {name: each[~bags[name].isin(left_out)] for name, each in table.items()}, message


def _drawn(sizes: Counter[Hashable], most_rows: int, seed: int) -> set[Hashable]:
    """Return bags in random order, as many as fit."""
    names = sorted(sizes)  # type: ignore[type-var]
    order = generator(seed, "sample of bags").permutation(len(names))
    rows = np.array([sizes[name] for name in names])[order]
    fitting = int(np.searchsorted(np.cumsum(rows), most_rows, side="right"))
    if fitting < 2:
        raise LLPBenchError(
            f"at least 2 bags must fit into {most_rows:,} rows, but bags have up to {rows.max():,}. Use a larger "
            "--most-rows, or a sample of the rows of each bag and --sampled."
        )
    return {names[place] for place in order[:fitting]}


def _labels(batch: RowBatch, keys: Sequence[str]) -> BagLabels:
    """Return the bags of rows, named by columns."""
    return read_bag_labels(bag_keys(batch.frame, keys, batch.part), batch.frame)


def _rows_of_bags(batches: RowBatches, keys: Sequence[str], progress: Progress) -> Counter[Hashable]:
    """Return the number of rows of each bag, and of no bag (None)."""
    sizes, done = Counter[Hashable](), _advancing(progress, "bags", batches.total)
    for batch in batches:
        with batch.blamed():
            labels = _labels(batch, keys)
        rows = np.bincount(labels.of_row + 1, minlength=len(labels.names) + 1).tolist()
        sizes.update({name: number for name, number in zip([None, *labels.names], rows, strict=True) if number})
        done(len(batch.frame))
    return sizes


def _advancing(progress: Progress, name: str, total: int | None) -> Callable[[int], None]:
    """Begin a pass over `total` rows (None: not known), and return a function that counts rows."""
    for task in progress.task_ids:
        progress.remove_task(task)
    task = progress.add_task(name, total=total)
    return lambda rows: progress.advance(task, rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class FileRows:
    """Rows of files, a model that is applied to them, and data of their bags.

    Methods raise `LLPBenchError` for files that cannot be read or written. They warn of unknown bags and categories as
    `LLPClassifier.predict_proba` does.
    """

    model: LLPClassifier
    batches: Iterable[RowBatch]
    total: int | None
    """number of rows, if known"""
    keys: Sequence[str]
    """columns that name bags"""
    counts: dict[str, Any]
    """counts of bags as arguments of `BagData.read`, if they are not those of `fit`"""
    weight_column: str | None

    def predict(self, out: Path, *, whole_bags: bool, progress: Progress) -> int:
        """Write predictions in the order of the files, and return their number.

        With `whole_bags`, batches are read twice, and predictions are those of `disaggregate`, with labels of `assign`.
        """
        model, weight = self.model, self.weight_column
        kinds = ["probability"] + ["count"] * (weight is not None)
        with _warned_once() as rows_of_batches:
            whole = self._in_whole_bags(_advancing(progress, "whole bags", self.total)) if whole_bags else None
            done = _advancing(progress, "predictions", self.total)

            def predicted(item: tuple[int, RowBatch]) -> pd.DataFrame:
                first, batch = item
                with batch.blamed():
                    features, others = self._split(batch)
                    if whole is None:
                        proba = model.predict_proba(features, self._bags_of(batch) if self.keys else None)
                        labels = model.classes_[proba.argmax(axis=1)]
                    else:
                        proba, labels = (each[first : first + len(features)] for each in whole)
                    values = {"probability": proba}
                    if weight is not None:
                        values["count"] = proba * weights_of_column(batch.frame, weight, batch.part)[:, None]
                    added = {"prediction": labels}
                    for kind in kinds:
                        added |= {
                            f"{kind}_{label}": of for label, of in zip(model.classes_, values[kind].T, strict=True)
                        }
                    if taken := [name for name in added if name in others.columns]:
                        raise DataError(
                            f"file {str(batch.part)!r} already has a column {taken[0]!r}, which predictions would "
                            "replace. Rename it."
                        )
                    return others.assign(**added)

            number = 0
            with written(out, [f"{kind}_{label}" for kind in kinds for label in model.classes_]) as write:
                for frame in _computed(_numbered(self.batches), predicted):
                    write(frame)
                    number += len(frame)
                    rows_of_batches.append(len(frame))
                    done(len(frame))
        return number

    def estimate(self, by: Sequence[str], among: Sequence[Hashable] | None, *, progress: Progress) -> pd.DataFrame:
        """Return the estimates of `LLPClassifier.estimate` for groups `by` columns.

        The features of several batches are in temporary files.
        """
        bags, weights, groups = [], [], []
        done = _advancing(progress, "rows", self.total)

        def converted(batch: RowBatch) -> tuple[pd.DataFrame, FloatArray | None, pd.DataFrame, Rows]:
            with batch.blamed():
                of_row = pd.DataFrame({name: column_of(batch.frame, name, batch.part) for name in by})
                return self._bags_of(batch), self._weights(batch), of_row, self.model._rows(self._split(batch)[0])

        def parts() -> Iterator[Rows]:
            for of_bag, weights_of_batch, of_group, rows in _computed(self.batches, converted):
                bags.append(of_bag)
                weights.append(weights_of_batch)
                groups.append(of_group)
                done(len(of_bag))
                yield rows

        with ExitStack() as files:
            with _warned_once():
                rows = files.enter_context(_together(parts()))
            _advancing(progress, "estimates", None)
            of_groups, data = pd.concat(groups), self._data(bags, weights)
            return self.model._estimate(rows, data, Groups.read(of_groups, of_groups), among=among)

    def _split(self, batch: RowBatch) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the features of the model, and all other columns."""
        frame, part, keys = batch.frame, batch.part, self.model.reading_.get("keys", [])
        names = [str(name) for name in self.model.feature_names_in_]
        columns = {name: column_of(frame, name, part, ", which the model uses as a feature") for name in names}
        texts = bag_keys(frame, [name for name in names if name in keys], part)
        features = pd.DataFrame({name: texts.get(name, column) for name, column in columns.items()})
        return features, frame.drop(columns=[str(column.name) for column in columns.values()])

    def _in_whole_bags(self, done: Callable[[int], None]) -> tuple[FloatArray, Any]:
        """Return probabilities [rows, classes] that add up to the counts of bags, and labels [rows]."""

        def read(batch: RowBatch) -> tuple[pd.DataFrame, FloatArray | None, FloatArray]:
            with batch.blamed():
                proba = self.model.predict_proba(self._split(batch)[0])
                return self._bags_of(batch), self._weights(batch), proba

        parts = []
        for part in _computed(self.batches, read):
            parts.append(part)
            done(len(part[0]))
        bags, weights, found = zip(*parts, strict=True)
        return self.model._adding_up(np.concatenate(found), self._data(bags, weights))

    def _bags_of(self, batch: RowBatch) -> pd.DataFrame:
        return bag_keys(batch.frame, self.keys, batch.part)

    def _weights(self, batch: RowBatch) -> FloatArray | None:
        name = self.weight_column
        return None if name is None else weights_of_column(batch.frame, name, batch.part)

    def _data(self, bags: Sequence[pd.DataFrame], weights: Sequence[Any]) -> BagData:
        """Return the data of the bags of all batches."""
        every, weight = pd.concat(bags), None if weights[0] is None else np.concatenate(weights)
        return BagData.read(every, every, **self.counts, sample_weight=weight)


def _computed(items: Iterable[_Item], compute: Callable[[_Item], _Found]) -> Iterator[_Found]:
    """Yield the result for each item. Several items are computed side by side."""
    several = iter(items)
    first, second = next(several), next(several, None)
    return map(compute, [first]) if second is None else side_by_side(chain([first, second], several), compute)


def _numbered(batches: Iterable[RowBatch]) -> Iterator[tuple[int, RowBatch]]:
    """Yield batches with the number of rows before them."""
    first = 0
    for batch in batches:
        yield first, batch
        first += len(batch.frame)


@contextmanager
def _warned_once() -> Iterator[list[int]]:
    """Warn once for each column, not in each batch, and of unknown bags only if no batch has a known bag.

    Yields a list, to which the caller adds the number of rows of each batch.
    """
    seen: list[int] = []
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield seen
    finally:  # a warning may explain an error
        unknown = [each for each in caught if _about(each) == "unknown bags"]
        first: dict[tuple[str, str], warnings.WarningMessage] = {}
        for each in caught:
            if _about(each) != "unknown bags" or len(unknown) == len(seen):
                column = str(each.message).partition(" column ")[2].partition(",")[0]
                first.setdefault((_about(each), column), each)
        for each in first.values():
            warnings.warn(each.message, each.category, stacklevel=3)


def _about(told: warnings.WarningMessage) -> str:
    """Return the kind of a warning."""
    return str(getattr(told.message, "about", told.category.__name__))


@contextmanager
def _writing() -> Iterator[None]:
    """Turn errors of writing temporary files into `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"temporary files cannot be written: {one_line(error)}. Set TMPDIR to another folder."
        ) from error


@contextmanager
def _together(parts: Iterator[Rows]) -> Iterator[Rows]:
    """Yield rows as one: a single part as it is, several as arrays in temporary files."""
    first, second = next(parts), next(parts, None)
    if second is None:
        yield first
        return
    with temporary_folder() as folder:
        number = 0
        with ExitStack() as opened:
            files = [opened.enter_context(open(folder / name, "wb")) for name in Rows._fields]
            for part in chain([first, second], parts):
                number += len(part.numeric)
                with _writing():
                    for file, values in zip(files, part, strict=True):
                        file.write(values.tobytes())
        yield Rows(
            *(
                np.memmap(folder / name, each.dtype, "r", shape=(number, each.shape[1]))
                if each.shape[1]
                else np.empty((number, 0), each.dtype)
                for name, each in zip(Rows._fields, first, strict=True)
            )
        )
