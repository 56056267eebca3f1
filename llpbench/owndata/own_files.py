"""Tables of bags in files, and rows of files in batches: samples of whole bags for fits, predictions, and estimates.

Tables of bags have a line for each bag with a column for each class, or a line for each bag and class. Rows in memory
are a single batch.
"""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from rich.progress import Progress

from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import FloatArray, Rows
from llpbench.core.errors import DataError, LLPBenchError, argument, warn
from llpbench.core.files import temporary_folder
from llpbench.core.seeding import generator
from llpbench.core.text import one_line, plural, verb
from llpbench.data.bag_tables import BagLabels
from llpbench.data.reading_bags import read_bag_labels
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.group_estimates import Groups
from llpbench.owndata.weights import read_weights
from llpbench.tables.bag_keys import bag_index, bag_keys
from llpbench.tables.column_names import column_of, csv_line, csv_parts, matching_column, place_of, plain, split_names
from llpbench.tables.csv_dialect import AS_IT_SHOWS, FileFormat
from llpbench.tables.number_text import MISSING, MOST, MOST_MARKS, NumberText, Range
from llpbench.tables.row_files import RowBatch, RowBatches
from llpbench.tables.texts import as_text
from llpbench.tables.writing import written

_Found = TypeVar("_Found")
_Facts = tuple[pd.DataFrame, FloatArray | None, pd.DataFrame]
"""columns that name the bag of each row, weights of rows, and columns of their groups"""


@dataclass(frozen=True)
class BagFile:
    """A file of bags and the roles of its columns."""

    path: Path
    keys: Sequence[str]  # columns that name a bag
    counts: Sequence[str]  # columns with counts; each text names one or several (`split_names`)
    proportions: Sequence[str]
    class_column: str | None = None  # column with the class, in a table with a line for each bag and class
    size_column: str | None = None  # column with the number of rows of the whole bag
    time_column: str | None = None  # column with the time of the bag, unless it is in the file of rows
    suppressed: Sequence[str] = ()  # marks of suppressed numbers, in addition to empty cells
    form: FileFormat = AS_IT_SHOWS

    def read(self, of_rows: Sequence[str] = ()) -> dict[str, Any]:
        """Return the table as arguments of `LLPClassifier.fit`. `of_rows` are the columns of the file of rows.

        Raises `LLPBenchError` unless there are either counts or proportions, and `DataError` for texts among numbers.
        """
        if bool(self.counts) == bool(self.proportions):
            wrong = "cannot be combined" if self.counts else "are missing"
            raise LLPBenchError(f"--counts and --proportions {wrong}. Name the columns of bags with one of them.")
        long = self.class_column is not None
        wanted = [(name,) for name in (*self.keys, self.class_column, self.size_column) if name is not None]
        several = [(part, text) for text in (*self.counts, *self.proportions) for part in csv_parts(text)]
        frame = RowBatches(self.path, features=(), form=self.form, columns=[*wanted, *several]).together()
        frame = frame.dropna(how="all", ignore_index=True)  # spreadsheets write lines of empty cells
        if not len(frame):
            raise DataError.of(self.path, "has no rows. Give a file with rows below its header.")
        known = [*frame.columns]
        values = split_names(self.counts or self.proportions, known)
        listed = ", ".join(values)
        if long and len(values) != 1:
            raise LLPBenchError(f"--class-column needs one column of counts, got {listed}. For several, leave it out.")
        if len(set(values)) < len(values):
            raise LLPBenchError(f"each class must have its own column, got {listed}. Name each column once.")
        if not any(matching_column(name, known) for name in values) and {*values} <= {*of_rows}:
            advice = "Give the rows first, then --bags with their counts."
            raise DataError.of(self.path, f"has no column of counts, but the file of rows has: {listed}. {advice}")
        for name in (name for name in self.keys if name in of_rows and not matching_column(name, known)):
            column_of(frame, name, self.path, f". If it has another name there, use --bag-column {name}=NAME")
        names = [*self.keys, *([self.class_column] if self.class_column is not None else [])]
        keys = bag_keys(frame, names, self.path)
        bags = bag_index(keys[list(self.keys)])
        again = keys.duplicated() & keys.notna().all(axis="columns") if long else bags.duplicated()
        if again.any():
            row = int(again.argmax())
            others = [name for name in map(str, frame.columns) if name not in {*names, *values}]
            parts = [name for name in others if not keys.assign(other=frame[name].to_numpy()).duplicated().any()]
            part = min(parts, key=lambda name: frame[name].nunique(), default="")
            advice = "Remove one of the lines." + " If each line is for one class, use --class-column." * (not long)
            if part:
                together = f"Use --bag-column {shlex.quote('+'.join([*self.keys, part]))}."
                apart = "Add up the lines of each bag, or add this column to ROWS."
                advice = f"Lines differ in {part!r}. {together if part in of_rows else apart}"
            one = "one line for each bag" + " and class" * long
            wrong = f"must have {one}, got bag {bags[row]!r} again in {place_of(frame, row)}"
            raise DataError.of(self.path, f"{wrong}. {advice}")
        table = self._numbers(frame, values, bags)
        classes = [plain(name) for name in values]
        table.columns = pd.Index(classes if len(set(classes)) == len(classes) else values)
        table.index = pd.MultiIndex.from_frame(keys) if len(names) > 1 else pd.Index(keys.iloc[:, 0])
        given = table.iloc[:, 0] if long else table
        found: dict[str, Any] = {"counts" if self.counts else "proportions": given}
        if self.size_column is not None:
            sizes = self._numbers(frame, [self.size_column], bags, whole=True)[self.size_column]
            found["sizes"] = one_per_bag(sizes, bags, self.path)
        if self.time_column is not None and matching_column(self.time_column, known):
            times = column_of(frame, self.time_column, self.path)
            found["time"] = one_per_bag(times, bags, self.path)
        return found

    def _numbers(
        self, frame: pd.DataFrame, names: Sequence[str], bags: pd.Index, *, whole: bool = False
    ) -> pd.DataFrame:
        """Return columns as numbers: NaN if empty or suppressed, percentages as shares. All have one decimal mark."""
        cells = pd.concat({name: as_text(column_of(frame, name, self.path)).str.strip() for name in names})
        missing = {*self.suppressed, *MISSING}
        found = NumberText.read(cells, decimal=self.form.decimal, missing=missing, known_gaps=False)
        ranged = bool(self.counts) and not (whole or found.percent)
        wrong = found.broken[[not ranged or Range.read(text) is None for text in found.broken]]
        if whole or self.counts:
            examples = [text for text in (*(found.example or ())[:1], *wrong) if text.endswith("%")]
            if examples:
                name = cells.index[cells == examples[0]][0][0]
                kind = f"must contain counts in column {name!r}, got {examples[0]!r}, a percentage"
                raise DataError.of(self.path, f"{kind}. Use --proportions for such columns.")
        if len(wrong):
            (name, row), marks = wrong.index[0], [*wrong.unique()]
            remedy = f" If they mark suppressed counts, use --suppressed {shlex.quote(csv_line(marks))}."
            got = f"got {marks[0]!r} for bag {bags[row]!r} in {place_of(frame, row)}"
            told = f"column {name!r} must be numeric, {got} ({plural(len(wrong), 'such value')}). Correct the file."
            raise DataError(f"file {str(self.path)!r}: {told}{remedy * (len(marks) <= MOST_MARKS)}")
        unit = 100 if found.percent else 1
        if found.example is not None:
            name, (text, number) = cells.index[cells == found.example[0]][0][0], found.example
            warn("file", f"file {str(self.path)!r}: {replace(found, example=(text, number / unit)).told(name)}.")
        values = found.values / unit
        if number := len(found.broken):
            name, text = found.broken.index[0][0], str(found.broken.iloc[0])
            low, high = Range.read(text) or (0, 0)
            ends = f"{low:,.10g} {f'to {high:,.10g}' if high < MOST else 'or more'}"
            told = f"{plural(number, 'count')} {verb(number, 'is a range', 'are ranges')}, such as {text!r} in {name!r}"
            advice = f"To ignore such counts: --suppressed {shlex.quote(csv_line([text]))}."
            warn("file", f"file {str(self.path)!r}: {told}, read as {ends}. {advice}")
            values = values.astype(object)
            values[found.broken.index] = found.broken
        return values.unstack(0)[[*names]].infer_objects()


def one_per_bag(values: pd.Series, bags: pd.Index, path: Path) -> pd.Series:
    """Return the value of each bag from lines with `bags`. Raises `DataError` if a bag has several values."""
    flat, inside = bags.to_flat_index(), bags.to_frame().notna().all(axis=1).to_numpy()
    lines = pd.DataFrame({"bag": flat, "value": values.to_numpy()})[inside].drop_duplicates()
    if (twice := lines["bag"].duplicated()).any():
        bag = lines["bag"][twice].iloc[0]
        one, other = lines["value"][lines["bag"] == bag].tolist()[:2]
        wrong = f"must have one {values.name} for each bag, got {one!r} and {other!r} for bag {bag!r}"
        raise DataError.of(path, f"{wrong}. Correct the file, use smaller bags, or name another column.")
    return pd.Series(values.to_numpy(), index=bags)[inside & ~flat.duplicated()]


def draw_bags(
    batches: RowBatches, keys: Sequence[str], table: dict[str, Any], most: int, seed: int, drop: bool, bar: Progress
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return all rows, or of more than `most` those of random whole bags, and the `table` of counts without other bags.

    `attrs["drawn"]` of the rows says what was drawn. Whole bags are drawn, because the counts of a bag say little about
    a sample of its rows. `keys` are the columns that name the bag of a row. `drop`: skip rows of bags without counts.
    Raises `LLPBenchError` if other such rows must be left out, and if the limit has no room for two bags.
    """
    bags = {name: bag_index(each.index.to_frame(index=False).iloc[:, : len(keys)]) for name, each in table.items()}
    sizes = _rows_of_bags(batches, keys, bar)
    total, known = sizes.total(), {*bags["counts" if "counts" in bags else "proportions"]} - {None}
    if drop and total > most:
        sizes = Counter({label: rows for label, rows in sizes.items() if label in known})
    drawn: set[Hashable] = {*sizes}
    if sizes.total() > most:
        if unknown := [label for label in sizes if label not in known]:
            rows = sum(sizes[label] for label in unknown)
            such = "" if unknown[0] is None else f", such as rows of bag {unknown[0]!r}"
            advice = f"Add these bags. To drop such rows, use {argument('unmatched=' + repr('drop'))}."
            raise LLPBenchError(f"{rows:,} of {plural(total, 'row')} {verb(rows)} no bag with counts{such}. {advice}")
        names = sorted(sizes)  # type: ignore[type-var]
        order = generator(seed, "sample of bags").permutation(len(names))
        rows_of_bag = np.array([sizes[name] for name in names])[order]
        fitting = int(np.searchsorted(np.cumsum(rows_of_bag), most, side="right"))
        if fitting < 2:
            wrong = f"at least 2 bags must fit into {most:,} rows, but bags have up to {rows_of_bag.max():,}"
            raise LLPBenchError(f"{wrong}. Use a larger --most-rows, or --sampled and a sample of each bag.")
        drawn = {names[place] for place in order[:fitting]}
    frames, done = [], _advancing(bar, "rows of bags", batches.total)
    for batch in batches:
        labels = _labels(batch, keys)
        frames.append(batch.frame[np.array([*(name in drawn for name in labels.names), None in drawn])[labels.of_row]])
        done(len(batch.frame))
    found = pd.concat(frames, ignore_index=True)
    if left_out := {*sizes} - drawn:
        share = f"{len(found):,} of {plural(total, 'row')}, in {len(drawn):,} of {len(sizes):,} bags"
        found.attrs["drawn"] = f"fitted to {share}, at random"
    return found, {name: each[~bags[name].isin(left_out)] for name, each in table.items()}


def _labels(batch: RowBatch, keys: Sequence[str]) -> BagLabels:
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


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows of files, a model that is applied to them, and data of their bags.

    Methods raise `LLPBenchError` for files that cannot be read or written, and warn as those of `LLPClassifier` do.
    """

    model: LLPClassifier
    batches: Iterable[RowBatch]
    total: int | None
    keys: Sequence[str]  # columns that name bags
    counts: dict[str, Any]  # counts of bags as arguments of `BagData.read`, if they are not those of `fit`
    weight_column: str | None

    def predict(self, out: Path, *, whole_bags: bool, progress: Progress) -> int:
        """Write predictions in the order of the files, and return their number.

        With `whole_bags`, batches are read twice, and predictions are those of `disaggregate`, with labels of `assign`.
        """
        model, weight = self.model, self.weight_column
        kinds = ["probability"] + ["count"] * (weight is not None)
        names = [f"{kind}_{label}" for kind in kinds for label in model.classes_]
        with _warned_once() as rows_of_batches:
            whole, facts = None, list[_Facts]()
            if whole_bags:
                proba = np.concatenate([*self._passed(progress, model.predict_proba, facts)])
                whole = model._adding_up(proba, self._data(facts))
            done = _advancing(progress, "predictions", self.total)

            def predicted(batch: RowBatch) -> pd.DataFrame:
                with batch.blamed():
                    features, others = self._split(batch)
                    if whole is None:
                        proba = model.predict_proba(features, self._bags(batch) if self.keys else None)
                        labels = model.classes_[proba.argmax(axis=1)]
                    else:
                        proba, labels = (each[batch.start : batch.start + len(features)] for each in whole)
                    weights = self._weights(batch)
                    values = proba if weights is None else np.hstack([proba, proba * weights[:, None]])
                    added = {"prediction": labels, **dict(zip(names, values.T, strict=True))}
                    if taken := [name for name in added if name in others.columns]:
                        wrong = f"already has a column {taken[0]!r}, which predictions would replace"
                        raise DataError.of(batch.part, f"{wrong}. Rename it.")
                    return others.assign(**added)

            with written(out, names) as write:
                for frame in _computed(self.batches, predicted):
                    write(frame)
                    rows_of_batches.append(len(frame))
                    done(len(frame))
        return sum(rows_of_batches)

    def estimate(self, by: Sequence[str], among: Sequence[Hashable] | None, *, progress: Progress) -> pd.DataFrame:
        """Return `LLPClassifier.estimate` for groups `by` columns; features of several batches are in files."""
        facts = list[_Facts]()
        with temporary_folder() as folder:
            with _warned_once():
                rows = _together(self._passed(progress, self.model._rows, facts, by), folder)
            _advancing(progress, "estimates", None)
            groups = pd.concat([of_rows for *_, of_rows in facts])
            return self.model._estimate(rows, self._data(facts), Groups.read(groups, groups), among=among)

    def _passed(
        self, bar: Progress, compute: Callable[[pd.DataFrame], _Found], facts: list[_Facts], by: Sequence[str] = ()
    ) -> Iterator[_Found]:
        """Yield the result for the features of each batch. Append what else is known about its rows to `facts`."""
        done = _advancing(bar, "whole bags", self.total)

        def read(batch: RowBatch) -> tuple[_Facts, _Found]:
            with batch.blamed():
                groups = pd.DataFrame({name: column_of(batch.frame, name, batch.part) for name in by})
                return (self._bags(batch), self._weights(batch), groups), compute(self._split(batch)[0])

        for of_rows, found in _computed(self.batches, read):
            facts.append(of_rows)
            done(len(of_rows[0]))
            yield found

    def _bags(self, batch: RowBatch) -> pd.DataFrame:
        return bag_keys(batch.frame, self.keys, batch.part)

    def _weights(self, batch: RowBatch) -> FloatArray | None:
        name = self.weight_column
        return None if name is None else read_weights(column_of(batch.frame, name, batch.part), batch.frame)

    def _split(self, batch: RowBatch) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the features of rows, and the other columns."""
        frame, part, keys = batch.frame, batch.part, self.model.reading_.get("keys", [])
        names = [str(name) for name in self.model.feature_names_in_]
        columns = {name: column_of(frame, name, part, ", which the model uses as a feature") for name in names}
        texts = bag_keys(frame, [name for name in names if name in keys], part)
        features = pd.DataFrame({name: texts.get(name, column) for name, column in columns.items()})
        return features, frame.drop(columns=[str(column.name) for column in columns.values()])

    def _data(self, facts: Sequence[_Facts]) -> BagData:
        keys, weights, _ = zip(*facts, strict=True)
        every, weight = pd.concat(keys), None if weights[0] is None else np.concatenate(weights)
        return BagData.read(every, every, **self.counts, sample_weight=weight)


def _computed(batches: Iterable[RowBatch], compute: Callable[[RowBatch], _Found]) -> Iterator[_Found]:
    """Yield the result for each batch. Several are computed side by side."""
    several = iter(batches)
    first, second = next(several), next(several, None)
    return map(compute, [first]) if second is None else side_by_side(chain([first, second], several), compute)


@contextmanager
def _warned_once() -> Iterator[list[int]]:
    """Warn once for each column, and of unknown bags only if all batches do. Yields a list of batch sizes."""
    seen, caught = list[int](), list[warnings.WarningMessage]()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield seen
    finally:  # a warning may explain an error
        kinds = [str(getattr(each.message, "about", each.category.__name__)) for each in caught]
        first = dict[tuple[str, str], warnings.WarningMessage]()
        for kind, each in zip(kinds, caught, strict=True):
            if kind != "unknown bags" or kinds.count(kind) == len(seen):
                column = str(each.message).partition(" column ")[2].partition(",")[0]
                first.setdefault((kind, column), each)
        for each in first.values():
            warnings.warn(each.message, each.category, stacklevel=3)


def _together(parts: Iterator[Rows], folder: Path) -> Rows:
    """Return rows as one: a single part as it is, several as arrays in files in a folder."""
    first, second = next(parts), next(parts, None)
    if second is None:
        return first
    number, arrays = 0, []
    for part in chain([first, second], parts):
        number += len(part.numeric)
        try:
            for name, values in part._asdict().items():
                with open(folder / name, "ab") as file:
                    file.write(values.tobytes())
        except OSError as error:
            told = f"temporary files cannot be written: {one_line(error)}. Set TMPDIR to another folder."
            raise DataError(told) from error
    for name, each in first._asdict().items():
        shape = number, each.shape[1]
        empty = not each.shape[1]  # which cannot be mapped
        arrays.append(np.empty(shape, each.dtype) if empty else np.memmap(folder / name, each.dtype, "r", shape=shape))
    return Rows(*arrays)
