"""Rows of files in batches: samples of whole bags for fits, predictions, whole bags, and estimates of groups.

A pass counts the rows of each bag. For whole bags, a second pass brings rows, or their predictions, into the order of
bags (`RowsByBag`). They are then processed in the same pieces as rows in memory, so that both give the same results.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from rich.progress import Progress

from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.files import temporary_folder, writing
from llpbench.core.method import DirectMethod
from llpbench.core.seeding import generator
from llpbench.core.text import plural, verb
from llpbench.data.bag_tables import BagLabels
from llpbench.data.reading_bags import read_bag_labels, read_bag_table
from llpbench.owndata.bag_data import BagData
from llpbench.owndata.bag_effects import UnknownBags, added_up, assigned_labels, piece_of, pieces, without_rows
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.fitting import AUTO, method_on_bags
from llpbench.owndata.group_estimates import NUMBERS, BagPiece, read_groups
from llpbench.owndata.logit_draws import ProcessDraws, process_of
from llpbench.tables.bag_keys import bag_keys
from llpbench.tables.column_names import column_of
from llpbench.tables.row_files import RowBatch, RowBatches
from llpbench.tables.writing import written

_FILE_BYTES = 1 << 26
_MOST_FILES = 200


def draw_bags(
    batches: RowBatches,
    keys: Sequence[str],
    counted: Collection[Hashable],
    most_rows: int,
    *,
    seed: int,
    drop_unmatched: bool,
    progress: Progress,
) -> tuple[pd.DataFrame, set[Hashable], str]:
    """Read all rows, or the rows of random whole bags if there are more than `most_rows`.

    Returns the rows, the bags with counts that were not drawn, and what was drawn ("" if all rows were read).

    Whole bags are drawn, not rows: the counts of a bag say little about a sample of its rows. `keys` are the columns
    that name the bag of a row, `counted` the bags with counts. `drop_unmatched`: skip the rows of all other bags.
    Raises `LLPBenchError` if some rows must be left out that have no bag with counts, and if the limit has no room for
    two bags.
    """
    sizes = _rows_of_bags(batches, keys, progress)
    total, known = sizes.total(), {*counted}
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
                "unmatched='drop'."
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
        return found, set(), ""
    message = f"fitted to {len(found):,} of {plural(total, 'row')}, in {len(drawn):,} of {len(sizes):,} bags, at random"
    return found, {*sizes} - drawn, message


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


def _rows_of_bags(
    batches: RowBatches, keys: Sequence[str], progress: Progress, look: Callable[[RowBatch], None] = lambda _: None
) -> Counter[Hashable]:
    """Return the number of rows of each bag, and of no bag (None). Each batch is also shown to `look`."""
    sizes, done = Counter[Hashable](), _advancing(progress, "bags", batches.total)
    for batch in batches:
        with batch.blamed():
            labels = _labels(batch, keys)
            look(batch)
        rows = np.bincount(labels.of_row + 1, minlength=len(labels.names) + 1).tolist()
        sizes.update({name: number for name, number in zip([None, *labels.names], rows, strict=True) if number})
        done(len(batch.frame))
    if not sizes:
        raise DataError(f"file {str(batches.path)!r} has no rows.")
    return sizes


def _advancing(progress: Progress, name: str, total: int | None) -> Callable[[int], None]:
    """Begin a pass over `total` rows (None: not known), and return a function that counts rows."""
    for task in progress.task_ids:
        progress.remove_task(task)
    task = progress.add_task(name, total=total)
    return lambda rows: progress.advance(task, rows)


def require_direct(model: LLPClassifier) -> None:
    """Raise `LLPBenchError` for a model that needs all rows in memory: a network."""
    if not issubclass(method_on_bags(AUTO if model.method == "auto" else model.method), DirectMethod):
        raise LLPBenchError(f"--out-of-core needs a direct method, got a model of {model.method!r}. Use --in-memory.")


def split(model: LLPClassifier, batch: RowBatch) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the features of a model, and all other columns."""
    frame, part, keys = batch.frame, batch.part, model.reading_.get("keys", [])
    names = [str(name) for name in model.feature_names_in_]
    columns = {name: column_of(frame, name, part, ", which the model uses as a feature") for name in names}
    texts = bag_keys(frame, [name for name in names if name in keys], part)
    features = pd.DataFrame({name: texts.get(name, column) for name, column in columns.items()})
    return features, frame.drop(columns=[str(column.name) for column in columns.values()])


def _by_class(what: str, model: LLPClassifier, values: FloatArray) -> dict[str, FloatArray]:
    return {f"{what}_{label}": column for label, column in zip(model.classes_, values.T, strict=True)}


def predicted_columns(
    model: LLPClassifier,
    features: pd.DataFrame,
    bags: pd.DataFrame | None,
    counts: Mapping[str, Any],
    *,
    whole_bags: bool = False,
    interval: bool = False,
) -> dict[str, Any]:
    """Return predictions and probabilities of rows by column, with numbers of people if `counts` has weights."""
    weights, labels = counts.get("sample_weight"), None
    if weights is not None:
        proba = model.disaggregate(features, bags, **counts)
    elif whole_bags:
        proba, labels = model.disaggregate_and_assign(features, bags, **counts)
    else:
        proba = model.predict_proba(features, bags)
    labels = model.classes_[proba.argmax(axis=1)] if labels is None else labels
    found = {"prediction": labels, **_by_class("probability", model, proba)}
    if weights is not None:
        found |= _by_class("count", model, proba * weights[:, None])
    if interval:
        ends = model.predict_interval(features)
        for what, values in (("lower", ends.lower), ("upper", ends.upper), ("logit_error", ends.standard_error)):
            found |= _by_class(what, model, values)
    return found


def with_columns(others: pd.DataFrame, added: Mapping[str, Any], part: Path) -> pd.DataFrame:
    """Return columns of a part with `added` ones. Raises `DataError` if these would replace a column."""
    if taken := [name for name in added if name in others.columns]:
        raise DataError(
            f"file {str(part)!r} already has a column {taken[0]!r}, which predictions would replace. Rename it."
        )
    return others.assign(**added)


def _computed(model: LLPClassifier, interval: bool = False) -> list[str]:
    """Return the numbers among the predicted columns."""
    kinds = ("probability", *(("lower", "upper", "logit_error") if interval else ()))
    return [f"{what}_{label}" for what in kinds for label in model.classes_]


def predict(
    model: LLPClassifier,
    batches: RowBatches,
    out: Path,
    *,
    keys: Sequence[str],
    counts: dict[str, Any],
    whole_bags: bool,
    interval: bool,
    progress: Progress,
) -> int:
    """Write predictions in the order of the files, and return their number.

    `keys` are columns that name known bags. With `whole_bags`, predictions are those of `disaggregate_and_assign` with
    `counts` of bags that were not in `fit`. `interval` adds intervals.

    Raises `LLPBenchError` for networks, whose predictions may depend on other rows, and for files that cannot be read
    or written. Warns of unknown bags and categories like `predict_proba`.
    """
    require_direct(model)
    if whole_bags:
        return _predict_whole_bags(model, _whole_bags(model, batches, keys, counts, progress), out)
    done = _advancing(progress, "predictions", batches.total)

    def predicted(batch: RowBatch) -> pd.DataFrame:
        with batch.blamed():
            features, others = split(model, batch)
            bags = bag_keys(batch.frame, keys, batch.part) if keys else None
            return with_columns(others, predicted_columns(model, features, bags, {}, interval=interval), batch.part)

    with written(out, _computed(model, interval)) as write, _warned_once() as rows_of_batches:
        for frame in side_by_side(batches, predicted):
            write(frame)
            rows_of_batches.append(len(frame))
            done(len(frame))
        if not sum(rows_of_batches):
            raise DataError(f"file {str(batches.path)!r} has no rows.")
    return sum(rows_of_batches)


@contextmanager
def _warned_once() -> Iterator[list[int]]:
    """Warn once for each column, not in each batch, and of unknown bags only if no batch has a known bag.

    Yields a list, to which the caller adds the number of rows of each batch.
    """
    seen: list[int] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield seen
    unknown = [each for each in caught if each.category is UnknownBags]
    first: dict[tuple[Any, str], warnings.WarningMessage] = {}
    for each in caught:
        if each.category is not UnknownBags or len(unknown) == len(seen):
            column = str(each.message).partition(" column ")[2].partition(",")[0]
            first.setdefault((each.category, column), each)
    for each in first.values():
        warnings.warn(each.message, each.category, stacklevel=3)


@dataclass(frozen=True, eq=False)
class _WholeBags:
    """Bags whose rows are in files."""

    batches: RowBatches
    keys: Sequence[str]
    place: Mapping[Hashable, int]
    """position of each bag"""
    labels: BagLabels
    bags: BaggedRows
    """counts and sizes, without rows"""
    groups: pd.DataFrame
    """[groups, columns] each combination of values of `by`"""
    progress: Progress

    def of_rows(self, batch: RowBatch) -> IntArray:
        """Return the position of the bag of each row [rows]."""
        labels = _labels(batch, self.keys)
        return np.array([*(self.place[name] for name in labels.names), -1], dtype=np.int64)[labels.of_row]

    def counting(self, what: str) -> Callable[[int], None]:
        """Begin a pass over all rows."""
        return _advancing(self.progress, what, int(self.bags.sizes.sum()))


@dataclass(frozen=True, eq=False)
class _CountedLabels(BagLabels):
    """Labels of bags whose rows were counted and are not in memory. `of_row` has one row for each bag."""

    rows: IntArray = field(kw_only=True)
    """[bags]"""

    @property
    def sizes(self) -> IntArray:
        """[bags] number of rows in each bag"""
        return self.rows


def _whole_bags(
    model: LLPClassifier,
    batches: RowBatches,
    keys: Sequence[str],
    counts: dict[str, Any],
    progress: Progress,
    by: Sequence[str] = (),
) -> _WholeBags:
    """Return the bags named by the columns `keys`, with `counts` as in `disaggregate`, and the groups `by` columns.

    Raises `LLPBenchError` as `disaggregate` and `estimate` do.
    """
    groups = pd.DataFrame()

    def look(batch: RowBatch) -> None:
        nonlocal groups
        if by:
            groups = pd.concat([groups, _of_columns(batch, by)], ignore_index=True).drop_duplicates()
            read_groups(groups, groups)  # raises an error for too many groups

    rows = _rows_of_bags(batches, keys, progress, look)
    alone = rows.pop(None, 0)
    names = sorted(rows)  # type: ignore[type-var]
    sizes = np.array([rows[name] for name in names], dtype=np.int64)
    labels = _CountedLabels(np.arange(len(names)), [*names], [*keys], rows=sizes)
    table = read_bag_table(counts.get("proportions"), counts.get("counts"), labels) if counts else None
    _, found = model._counts_of(BagData(labels=labels, table=table), table)
    if alone:
        raise LLPBenchError(f"{plural(alone, 'row')} {verb(alone)} no bag. Leave them out.")
    bags, place = without_rows(found, sizes), {name: number for number, name in enumerate(names)}
    return _WholeBags(batches, keys, place, labels, bags, groups, progress)


def _of_columns(batch: RowBatch, by: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame({name: column_of(batch.frame, name, batch.part) for name in by})


def _predict_whole_bags(model: LLPClassifier, whole: _WholeBags, out: Path) -> int:
    """Write the predictions of `disaggregate_and_assign` in the order of the files, and return their number."""
    known, sizes = whole.bags.known, whole.bags.sizes
    total, classes = int(sizes.sum()), len(model.classes_)
    given = without_rows(whole.bags.counts[known], sizes[known])
    place = np.where(known, np.cumsum(known) - 1, -1)
    full, rest = divmod(total, whole.batches.rows)
    blocks = np.array([whole.batches.rows] * full + [rest] * bool(rest))
    row, label, proba = ("row", np.int64, ()), ("label", np.int32, ()), ("proba", np.float64, (classes,))
    with RowsByBag([row, proba], given.sizes) as by_bag, RowsByBag([row, label, proba], blocks) as by_row:

        def add(rows: IntArray, labels: IntArray, found: FloatArray) -> None:
            by_row.add(rows // whole.batches.rows, rows, labels, found)

        def predicted(batch: RowBatch) -> tuple[IntArray, FloatArray]:
            with batch.blamed():
                return whole.of_rows(batch), model.predict_proba(split(model, batch)[0])

        done, first = whole.counting("predictions"), 0
        with _warned_once():
            for of_row, found in side_by_side(whole.batches, predicted):
                rows, bag = first + np.arange(len(of_row)), place[of_row]
                by_bag.add(bag[bag >= 0], rows[bag >= 0], found[bag >= 0])
                add(rows[bag < 0], found[bag < 0].argmax(axis=1), found[bag < 0])
                first += len(rows)
                done(len(rows))
        for bags, records in by_bag:
            some, found = piece_of(given, bags), np.ascontiguousarray(records["proba"])
            chosen, spread = np.arange(len(found)), model._known_bags().spread
            add(records["row"], assigned_labels(found, some, chosen), added_up(found, some, chosen, spread))
        done, waiting, ordered = whole.counting("writing"), np.empty(0, by_row.record), _blocks(by_row)
        with written(out, _computed(model)) as write:
            for batch in whole.batches:
                while len(waiting) < len(batch.frame):
                    waiting = np.concatenate([waiting, next(ordered)])
                records, waiting = np.split(waiting, [len(batch.frame)])
                added = _by_class("probability", model, records["proba"])
                added = {"prediction": model.classes_[records["label"]], **added}
                write(with_columns(split(model, batch)[1], added, batch.part))
                done(len(records))
    return total


def _blocks(store: RowsByBag) -> Iterator[Any]:
    """Yield records in the order of rows."""
    for _, records in store:
        yield records[np.argsort(records["row"])]


def estimate(
    model: LLPClassifier,
    batches: RowBatches,
    out: Path,
    *,
    keys: Sequence[str],
    by: Sequence[str],
    counts: dict[str, Any],
    progress: Progress,
) -> tuple[tuple[int, int], pd.DataFrame, int]:
    """Write the estimates of `estimate` for groups `by` columns, without `table_estimates`.

    Returns the numbers of groups and bags, the estimates of all bags, and the number of lines. Raises `LLPBenchError`
    as `predict` does, and for a method without a posterior, whose intervals need refits to all rows.
    """
    require_direct(model)
    whole = _whole_bags(model, batches, keys, counts, progress, by)
    if (process := process_of(model._model.predictor)) is None:
        raise LLPBenchError(
            f"intervals of method {model.method!r} need refits to all rows, got --out-of-core. Use --in-memory, or "
            "method='bag-gp'."
        )
    columns, groups = model._model.columns, read_groups(whole.groups, whole.groups)

    def converted(batch: RowBatch) -> tuple[IntArray, Rows, IntArray]:
        every = pd.concat([whole.groups, _of_columns(batch, [*whole.groups.columns])], ignore_index=True)
        with batch.blamed():
            rows = columns(split(model, batch)[0])
        return whole.of_rows(batch), rows, read_groups(every, every).of_row[len(whole.groups) :]

    numbers, codes = len(columns.scaler.mean), len(columns.cardinalities)
    fields = [("numeric", np.float32, (numbers,)), ("categorical", np.int32, (codes,)), ("missing", bool, (numbers,))]
    with RowsByBag([*fields, ("group", np.int32, ())], whole.bags.sizes) as store:
        with _warned_once():
            done = whole.counting("ordering rows by bag")
            for of_row, rows, of_group in side_by_side(whole.batches, converted):
                store.add(of_row, *rows, of_group)
                done(len(of_row))

        def bag_pieces() -> Iterator[BagPiece]:
            done = whole.counting("estimates")
            for bags, records in store:
                numeric, missing = (np.ascontiguousarray(records[name]) for name in ("numeric", "missing"))
                rows = Rows(numeric, records["categorical"].astype(np.int64), missing)
                yield model._piece(whole.bags, bags, rows, records["group"].astype(np.int64))
                done(len(records))

        labels, draws = whole.labels, ProcessDraws(process)
        found = model._estimates(groups.labels, labels, labels.columns or [], whole.bags, bag_pieces, draws)
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
    return (len(whole.groups), len(labels.names)), table, lines


class RowsByBag:
    """Records of rows, ordered by bag. A context manager, which deletes the files."""

    def __init__(self, fields: Sequence[tuple[str, Any, tuple[int, ...]]], sizes: IntArray) -> None:
        """Create files for rows with `fields` (name, type, shape), in bags of `sizes` rows [bags].

        Raises `DataError` if the disk has no room for them.
        """
        self.record = np.dtype([("bag", np.int32), *fields])
        self._pieces, self._starts = pieces(sizes), np.append(0, np.cumsum(sizes))
        size = self.record.itemsize * int(sizes.sum())
        self._folder = ExitStack()
        place = self._folder.enter_context(temporary_folder(size=size))
        ends = np.array([(bags.start, bags.stop) for bags in self._pieces], dtype=np.int64).reshape(-1, 2)
        before = self.record.itemsize * self._starts[ends[:, 0]]
        self._file_of_piece = before // max(_FILE_BYTES, size // _MOST_FILES)
        self._file_of_bag = np.repeat(self._file_of_piece, ends[:, 1] - ends[:, 0])
        self._files: dict[int, Any] = {
            number: open(place / f"{number}.rows", "w+b", 1 << 18)  # noqa: SIM115
            for number in np.unique(self._file_of_piece).tolist()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()
        self._folder.close()

    def add(self, bags: IntArray, *fields: Any) -> None:
        """Add rows in their `bags` [rows]. Rows of a bag keep the order in which they are added."""
        records = np.empty(len(bags), self.record)
        for name, values in zip(self.record.names or (), (bags, *fields), strict=True):
            records[name] = values
        file_of_row = self._file_of_bag[bags]
        with writing():
            for number in np.unique(file_of_row).tolist():
                self._files[number].write(records[file_of_row == number].tobytes())

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        """Yield the bags of each piece, and their records, ordered by bag."""
        last, records, first = -1, np.empty(0, self.record), 0
        for bags, number in zip(self._pieces, self._file_of_piece.tolist(), strict=True):
            if number != last:
                self._files[number].seek(0)
                records = np.frombuffer(self._files[number].read(), self.record)
                records = records[np.argsort(records["bag"], kind="stable")]
                last, first = number, int(self._starts[bags.start])
            yield bags, records[self._starts[bags.start] - first : self._starts[bags.stop] - first]
