"""Rows of files larger than memory, in batches: parts of parquet or text, read as `row_files` reads whole tables.

A column has one kind, numbers or texts, in all batches. The separator and the decimal mark of a text are found in its
first megabyte.
"""

from __future__ import annotations

import io
import shlex
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.text import one_line
from llpbench.tables.csv_dialect import AS_IT_SHOWS, AmbiguousError, FileFormat, read_dialect
from llpbench.tables.marks import csv_line
from llpbench.tables.row_files import FileNote, convert, encoding_of, read_piece
from llpbench.tables.table_sources import HEAD, TableSource, parts_of, sources

BATCH_ROWS = 131_072
"""Largest number of rows in a batch."""
_LONGEST = 1 << 26
"""Number of characters without an end of line outside quotes from which a quote counts as a stray one."""
_BYTES_OF_A_VALUE = 8
_UNPACKED = 4.0
"""Assumed size of an unpacked text table, relative to the packed one."""


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Consecutive rows of a part."""

    frame: pd.DataFrame
    part: Path
    first: int
    """number of the first row in its part, counted from 0"""
    number: int = 0
    """position of its part"""

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Add the name of the part to errors about these rows."""
        try:
            yield
        except LLPBenchError as error:
            named = str(self.part) in str(error)
            told = str(error) if named else f"file {str(self.part)!r}, rows from {self.first:,}: {error}"
            raise DataError(told) from error


class RowBatches:
    """The rows of a path in batches. Each iteration reads the files again, in the same order."""

    def __init__(
        self,
        path: Path,
        types: Mapping[str, str],
        *,
        keys: Collection[str] = (),
        features: Collection[str] | None = None,
        form: FileFormat = AS_IT_SHOWS,
        decimals: Mapping[str, str] | None = None,
        rows: int | None = None,
    ) -> None:
        """Take the arguments of `read_rows`, and the largest number of `rows` in a batch (None: `BATCH_ROWS`).

        Raises `DataError` for standard input and spreadsheets, which cannot be read in batches.
        """
        if str(path) == "-":
            raise DataError("standard input can be read only once, got - with --out-of-core. Give a file.")
        self.path, self.rows = path, rows or BATCH_ROWS
        self.decimals: dict[str, str] = dict(decimals or {})
        self._types, self._keys, self._features, self._form = types, keys, features, form
        self._earlier = decimals
        self._files = self._listed()
        """Size and time of each part, before anything was read."""
        self._sources = sources(path)
        for source in self._sources:
            if source.kind == "excel" or source.content is not None:
                raise DataError(
                    f"file {str(source.path)!r} must be .csv or .parquet to be read in batches. Save it in one of "
                    "these formats."
                )
        self._columns: list[str] = []
        self.kinds: dict[str, tuple[str, Path]] = {}
        """whether a column has numbers or texts, and the first part that shows it"""
        self._noted = False

    @property
    def total(self) -> int | None:
        """Number of rows; None if the files do not say it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if any(source.kind != "parquet" for source in self._sources):
            return None
        try:
            return sum(int(pq.read_metadata(source.path).num_rows) for source in self._sources)
        except (pa.ArrowException, OSError):  # a pass reports it
            return None

    def head(self) -> pd.DataFrame:
        """Return the first batch, with the `attrs` of `read_rows`. Raises `DataError` if there are no rows."""
        for batch in self:
            if len(batch.frame):
                batch.frame.attrs["decimals"] = dict(self.decimals)
                return batch.frame
        raise DataError(f"file {str(self.path)!r} has no rows.")

    @property
    def parts(self) -> list[Path]:
        """Files, in the order in which they are read."""
        return [source.path for source in self._sources]

    @property
    def reading(self) -> dict[str, str] | None:
        """How columns that are declared as numbers are read; None if no batch has shown it yet."""
        return None if self._earlier is None else {name: self._earlier.get(name, ".") for name in self._types}

    def agrees(self, kinds: Mapping[str, tuple[str, Path]]) -> bool:
        """Return whether the `kinds` of a copy of this object, which has read another part, are those of this one."""
        return all(self.kinds.get(name, (kind,))[0] == kind for name, (kind, _) in kinds.items())

    def learn(self, kinds: Mapping[str, tuple[str, Path]], decimals: Mapping[str, str]) -> None:
        """Take over what a copy of this object has learned from a part."""
        self.kinds = {**kinds, **self.kinds}
        self.decimals |= decimals
        if self._earlier is None and decimals:
            self._earlier = self.decimals

    def __iter__(self) -> Iterator[RowBatch]:
        """Yield all rows. Raises `DataError` with the name of a part that cannot be read or has other columns."""
        with self.unchanged():
            for number in range(len(self._sources)):
                yield from self.of_part(number)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise `DataError` if a part has changed meanwhile, before any other error, which that may cause."""
        try:
            yield
        except LLPBenchError:
            self._require_unchanged()
            raise
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        now = self._listed()
        if changed := [path for path in {**self._files, **now} if self._files.get(path) != now.get(path)]:
            raise DataError(
                f"file {str(changed[0])!r} was changed, added or removed while {str(self.path)!r} was read. Run the "
                "command again when no other program writes there."
            )

    def _listed(self) -> dict[Path, tuple[int, int]]:
        found = {}
        for path in parts_of(self.path):
            with suppress(FileNotFoundError):  # removed just now
                status = path.stat()
                found[path] = status.st_size, status.st_mtime_ns
        return found

    def of_part(self, number: int) -> Iterator[RowBatch]:
        """Yield the rows of one part. Raises as an iteration."""
        source, first = self._sources[number], 0
        for frame in self._pieces(source):
            self._require_alike(frame, source.path)
            self._noted = True
            for start in range(0, len(frame), self.rows):
                yield RowBatch(frame.iloc[start : start + self.rows], source.path, first + start, number)
            first += len(frame)

    def _pieces(self, source: TableSource) -> Iterator[pd.DataFrame]:
        """Yield the rows of a part, with their types, in frames of about the size of a batch."""
        pieces = (
            _parquet_pieces(source, self._form, self.rows) if source.kind == "parquet" else self._text_pieces(source)
        )
        while True:
            with warnings.catch_warnings():
                if self._noted:
                    warnings.simplefilter("ignore", FileNote)
                try:
                    piece, form = next(pieces, (None, self._form))
                    if piece is None:
                        return
                    frame = read_piece(piece, self._types, self._keys, self._features, form)
                except (OSError, ValueError, EOFError) as error:  # from arrow, codecs or decompression
                    told = f"file {str(source.path)!r} cannot be read as {source.kind}: {one_line(error)}"
                    raise DataError(told) from error
                said = replace(form, decimal=self._form.decimal or ("," if form.decimal == "," else None))
                read = convert(frame, self._types, said, source.path, self._earlier)
            self.decimals |= read
            if self._earlier is None and read:
                self._earlier = self.decimals
            yield frame

    def _text_pieces(self, source: TableSource) -> Iterator[tuple[TableSource, FileFormat]]:
        """Yield pieces of whole lines of a text table, in UTF-8, each below the header."""
        head = source.head()
        encoding = self._form.encoding or encoding_of(head, source)
        shown = head.decode(encoding, errors="replace")
        shown = shown[: shown.rfind("\n") + 1] if len(head) >= HEAD else shown
        try:
            dialect = read_dialect(shown, self._form, source.usual, self._keys if self._features is None else ())
        except AmbiguousError as error:
            raise DataError(f"file {str(source.path)!r} {error}") from error
        if dialect.numbers:
            warnings.warn(f"file {str(source.path)!r}: {dialect.numbers}.", FileNote, stacklevel=4)
        lines = shown.splitlines(keepends=True)
        place = next((n for n, line in enumerate(lines) if n not in dialect.skipped and line.strip()), 0)
        below = lines[place + 1 :]
        size = max(self.rows * sum(map(len, below)) // max(len(below), 1), 1024)
        # the first piece also has the lines before the header; all others begin with the header
        form, header = replace(self._form, encoding="utf-8", separator=dialect.separator), ""
        with source.open() as raw, io.TextIOWrapper(raw, encoding=encoding, newline="") as file:
            text, more = file.read(size + sum(map(len, lines[: place + 1]))), file.read(size)
            while text:
                end = _end_of_rows(text) if more else len(text)
                if not end and len(text) < _LONGEST:
                    text, more = text + more, file.read(size)
                    continue
                end = end or text.rfind("\n") + 1 or len(text)
                form = replace(form, decimal=self._form.decimal or dialect.decimal)
                yield replace(source, packed=None, content=(header + text[:end]).encode()), form
                form, header = replace(form, skip_rows=0), lines[place] if lines else ""
                text, more = text[end:] + more, file.read(size) if more else ""

    def _require_alike(self, frame: pd.DataFrame, part: Path) -> None:
        """Raise `DataError` unless a piece has the columns and kinds of the first one."""
        names = list(frame.columns)
        self._columns = self._columns or names
        if lacking := {*names} ^ {*self._columns}:
            raise DataError(
                f"files {str(part)!r} and {str(self._sources[0].path)!r} must have the same columns. They differ in "
                f"{', '.join(map(repr, sorted(lacking)[:5]))}. Correct the files."
            )
        for name in names:
            column = frame[name]
            if name in self._types or not column.notna().any():
                continue
            numeric = is_numeric_dtype(column) and not is_bool_dtype(column)
            kind = "numbers" if numeric else "texts"
            earlier, where = self.kinds.setdefault(name, (kind, part))
            if kind != earlier:
                known = column.dropna()
                strange = known if numeric else known[pd.to_numeric(known, errors="coerce").isna()]
                example = str((strange if len(strange) else known).iloc[0])
                before = "in earlier rows" if part == where else f"in {str(where)!r}"
                missing = "" if numeric else f"use --missing {shlex.quote(csv_line([example]))} if it is missing, or "
                raise DataError(
                    f"file {str(part)!r}: column {name!r} must contain {earlier}, as {before}, got {kind} such as "
                    f"{example!r}. Correct the files, {missing or 'or '}use --types {shlex.quote(f'{name}=text')}."
                )


def _parquet_pieces(
    source: TableSource, form: FileFormat, rows: int
) -> Iterator[tuple[tuple[TableSource, Any], FileFormat]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source.path) as file:
        if not file.metadata.num_rows:
            yield (source, file.schema_arrow.empty_table()), form
        for batch in file.iter_batches(rows):
            yield (source, pa.Table.from_batches([batch])), form


def _end_of_rows(text: str) -> int:
    """Return the end of the last whole row: a line with an even number of quotes before its end; 0 if there is none."""
    end = text.rfind("\n") + 1
    quotes = text.count('"', 0, end)
    while end and quotes % 2:
        before = text.rfind("\n", 0, end - 1) + 1
        quotes -= text.count('"', before, end)
        end = before
    return end


def unpacked_bytes(path: Path) -> float:
    """Return the approximate size of a table in memory in bytes, without reading it; 0 if it is not a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    total = 0.0
    for source in sources(path) if str(path) != "-" else []:
        if source.content is not None:
            continue
        if source.kind == "parquet":
            try:
                found = pq.read_metadata(source.path)
            except (pa.ArrowException, OSError):  # the fit reports it
                continue
            total += found.num_rows * found.num_columns * _BYTES_OF_A_VALUE
        else:
            total += source.path.stat().st_size * (_UNPACKED if source.packed else 1.0)
    return total
