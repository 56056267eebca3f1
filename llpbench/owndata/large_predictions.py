"""Predictions of rows in files larger than memory, batch by batch."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from llpbench.blocks.side_by_side import side_by_side
from llpbench.core.bags import FloatArray, IntArray
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.method import DirectMethod
from llpbench.core.text import frame_as_csv, one_line
from llpbench.owndata.bag_codes import BagCodes
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.columns import ColumnsOfManyRows
from llpbench.owndata.fitting import AUTO, method_on_bags
from llpbench.owndata.progress import RowsDone
from llpbench.owndata.unknown_bags import UnknownBags
from llpbench.tables.column_names import column_of
from llpbench.tables.row_files import RowBatch, RowBatches
from llpbench.tables.writing import in_six_digits, require_room

_MOST_WAITING = 8
"""Number of batches to wait for the first value of a column, which determines its type."""


def predict_large(
    model: LLPClassifier, batches: RowBatches, out: Path, *, keys: Sequence[str], show: Callable[[str], None]
) -> int:
    """Write predictions as `llpbench predict` does, and return their number.

    `keys` are columns that name known bags. The stage goes to `show`.

    Raises `LLPBenchError` for networks, whose predictions may depend on other rows, and for files that cannot be read
    or written. Warns of unknown bags and categories like `predict_proba`.
    """
    require_direct(model)
    prepare(model)
    codes = BagCodes(keys)
    done = RowsDone(show, "predictions", batches.total)
    total = number = 0
    with written(out, probabilities(model)) as write, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for frame in side_by_side(aligned(batches), lambda pieces: predicted(model, pieces, keys, codes)):
            write(frame)
            total, number = total + len(frame), number + 1
            done.add(len(frame))
        if not total:
            raise DataError(f"file {str(batches.path)!r} has no rows.")
    warn_once(caught, number)
    return total


def require_direct(model: LLPClassifier) -> None:
    """Raise `LLPBenchError` for a model that needs all rows in memory: a network."""
    if not issubclass(method_on_bags(AUTO if model.method == "auto" else model.method), DirectMethod):
        raise LLPBenchError(f"--out-of-core needs a direct method, got a model of {model.method!r}. Use --in-memory.")


def prepare(model: LLPClassifier) -> None:
    """Change a model so that it predicts batches in parallel."""
    model.set_params(n_jobs=-1)
    model._model = replace(model._model, columns=ColumnsOfManyRows(model._model.columns))


def aligned(batches: RowBatches) -> Iterator[list[RowBatch]]:
    """Yield full batches, except the last one, so that methods that compute in blocks round as in memory."""
    waiting: list[RowBatch] = []
    room = batches.rows
    for batch in batches:
        frame = batch.frame
        for start, end in ((0, room), (room, len(frame))):
            if len(part := frame.iloc[start:end]):
                waiting.append(RowBatch(part, batch.part, batch.first + start))
                room -= len(part)
            if not room:
                yield waiting
                waiting, room = [], batches.rows
    if waiting:
        yield waiting


def predicted(model: LLPClassifier, pieces: list[RowBatch], keys: Sequence[str], codes: BagCodes) -> pd.DataFrame:
    """Return predictions of rows in pieces (of several parts), with the columns that are not features."""
    frame = pieces[0].frame if len(pieces) == 1 else pd.concat([each.frame for each in pieces], ignore_index=True)
    try:
        return _predicted_together(model, RowBatch(frame, pieces[0].part, pieces[0].first), keys, codes)
    except LLPBenchError:
        for piece in pieces:  # find the part with this column
            with piece.blamed():
                _predicted_together(model, piece, keys, codes)
        raise


def _predicted_together(model: LLPClassifier, batch: RowBatch, keys: Sequence[str], codes: BagCodes) -> pd.DataFrame:
    features, others = split(model, batch)
    proba = model.predict_proba(features, pd.DataFrame(codes.texts(batch)) if keys else None)
    return with_predictions(model, batch, others, proba.argmax(axis=1), proba)


def split(model: LLPClassifier, batch: RowBatch) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return features and all other columns."""
    frame, part = batch.frame, batch.part
    wanted = [str(name) for name in model.feature_names_in_]
    as_texts = BagCodes(model.reading_.get("keys", [])).texts(batch)
    columns = {name: column_of(frame, name, part) for name in wanted}
    features = pd.DataFrame({name: as_texts.get(name, column) for name, column in columns.items()})
    return features, frame.drop(columns=[str(column.name) for column in columns.values()])


def probabilities(model: LLPClassifier) -> list[str]:
    """Return the names of the columns of probabilities."""
    return [f"probability_{label}" for label in model.classes_]


def with_predictions(
    model: LLPClassifier, batch: RowBatch, others: pd.DataFrame, labels: IntArray, proba: FloatArray
) -> pd.DataFrame:
    """Return other columns with predictions: positions of classes [rows], and probabilities [rows, classes].

    Raises `DataError` if predictions would replace a column.
    """
    added = ["prediction", *probabilities(model)]
    if taken := [name for name in added if name in others.columns]:
        raise DataError(
            f"file {str(batch.part)!r} already has a column {taken[0]!r}, which predictions replace. Rename it."
        )
    return others.assign(**dict(zip(added, [model.classes_[labels], *proba.T], strict=True)))


def warn_once(caught: Sequence[warnings.WarningMessage], batches: int) -> None:
    """Warn once for each column, and of unknown bags only if no batch has a known bag."""
    unknown = [each for each in caught if each.category is UnknownBags]
    first: dict[tuple[Any, str], warnings.WarningMessage] = {}
    for each in caught:
        if each.category is not UnknownBags or len(unknown) == batches:
            column = str(each.message).partition(" column ")[2].partition(",")[0]
            first.setdefault((each.category, column), each)
    for each in first.values():
        warnings.warn(each.message, each.category, stacklevel=3)


@contextmanager
def written(path: Path, computed: Sequence[str]) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Write frames one after the other to a .csv or .parquet file. It replaces an older file when it is complete."""
    require_room(path)
    place = Path(os.path.realpath(path))
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(6)}.tmp")
    writer = _ParquetParts(temporary) if path.suffix == ".parquet" else _CSVParts(temporary, computed)
    try:
        try:
            yield writer.write
            writer.close()
            os.replace(temporary, place)
        except OSError as error:
            raise DataError(f"file {str(path)!r} cannot be written: {one_line(error)}") from error
    finally:
        writer.close()
        temporary.unlink(missing_ok=True)


class _CSVParts:
    """A CSV file that is written in parts. `computed` numbers are rounded to 6 significant digits."""

    def __init__(self, path: Path, computed: Sequence[str]) -> None:
        self._computed = computed
        self._file = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115
        self._begun = False

    def write(self, frame: pd.DataFrame) -> None:
        """Write rows. The first call also writes the header."""
        if not self._begun:
            self._file.write(frame_as_csv(frame.iloc[:0]))
            self._begun = True
        frame = frame.assign(**{name: in_six_digits(frame[name]) for name in self._computed})
        numbered = frame.set_axis([str(number) for number in range(frame.shape[1])], axis=1)
        self._file.write(frame_as_csv(numbered).partition("\n")[2])

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _ParquetParts:
    """A parquet file that is written in parts. A column has the type of its first part with values."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None
        self._early: list[pd.DataFrame] = []

    def write(self, frame: pd.DataFrame) -> None:
        """Write rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            self._early.append(frame)
            schema = pa.Schema.from_pandas(pd.concat(self._early), preserve_index=False)
            if any(pa.types.is_null(kind) for kind in schema.types) and len(self._early) < _MOST_WAITING:
                return
            self._writer = pq.ParquetWriter(self._path, schema)
            waiting, self._early = self._early, []
        else:
            waiting = [frame]
        for each in waiting:
            try:
                self._writer.write_table(pa.Table.from_pandas(each, schema=self._writer.schema, preserve_index=False))
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise DataError(f"the result cannot be written as parquet: {one_line(error)}. Write .csv.") from error

    def close(self) -> None:
        """Close the file. Columns without values have no type."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None and self._early:
            frame = pd.concat(self._early)
            self._writer = pq.ParquetWriter(self._path, pa.Schema.from_pandas(frame, preserve_index=False))
            self._early = []
            self._writer.write_table(pa.Table.from_pandas(frame, schema=self._writer.schema, preserve_index=False))
        if self._writer is not None:
            self._writer.close()
