"""Rows of files, in batches or all together: everything is read as text, then each column becomes numbers or text.

A column has one kind, numbers or texts, in all batches. The format of a text is found in its first megabyte.
"""

from __future__ import annotations

import codecs
import io
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from llpbench.core.errors import DataError, LLPBenchError, warn
from llpbench.core.text import one_line, plural
from llpbench.tables.column_names import column_of, csv_line, place_of, plain
from llpbench.tables.csv_dialect import AS_IT_SHOWS, FileFormat
from llpbench.tables.number_text import MISSING, NumberText
from llpbench.tables.table_sources import HEAD, TableSource, sheet_as_csv
from llpbench.tables.texts import as_text

BATCH_ROWS = 131_072
"""Largest number of rows in a batch."""
_BLOCK = 1 << 20
"""Bytes of text that are parsed together."""
_MOST_BYTES_OF_CELL, _MOST_BYTES_OF_CHUNK = 10**6, 10**9
"""Largest text, and largest column of texts in a row group of parquet: a small file can hold many gigabytes."""
_FEWEST_BYTES = 16
"""Length of the shortest file that is checked for UTF-16."""
_MOST_MARKS = 5
_FIRST = 100
_TRUE, _BOOLEAN = pa.array(["True", "TRUE", "true"]), pa.array(["True", "TRUE", "true", "False", "FALSE", "false"])


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Consecutive rows of a part."""

    frame: pd.DataFrame
    part: Path
    first: int
    """number of the first row in its part, counted from 0"""
    alone: bool = False
    """whether it has all rows"""

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Add the name of the part to errors about these rows."""
        try:
            yield
        except LLPBenchError as error:
            told = error.message
            if not (self.alone or str(self.part) in str(error)):
                told = f"file {str(self.part)!r}, rows from {self.first:,}: {told}"
            raise DataError(told) from error


class _Piece(NamedTuple):
    table: pa.Table
    decimal: str | None = None
    """decimal mark of texts; None if columns have types"""


class RowBatches:
    """The rows of a path in batches. Each iteration reads the files again, in the same order."""

    def __init__(
        self,
        path: Path,
        types: Mapping[str, str] | None = None,
        *,
        keys: Collection[str] = (),
        features: Collection[str] | None = None,
        form: FileFormat = AS_IT_SHOWS,
        decimals: Mapping[str, str] | None = None,
        columns: Sequence[Sequence[str]] = (),
        rows: int | None = None,
    ) -> None:
        """Find the files of a path: a file (CSV, packed or not, Excel, parquet), a folder or a pattern.

        `types` are columns that the user declares as text or number. Texts of `keys` stay unchanged (01001 is not 1001,
        NA is Namibia); with `features`, all other columns are keys. `decimals` says how numbers were read in an earlier
        file. `columns` (each with its possible names) choose the sheet of a workbook.
        """
        self.path, self.rows = path, rows or BATCH_ROWS
        self.decimals: dict[str, str] = dict(decimals or {})
        """how numbers that were written as text are read"""
        self._types, self._form, self._columns = types or {}, form, columns
        self._keys, self._features = [*map(plain, keys)], None if features is None else {*map(plain, features)}
        self._texts = {plain(name) for name, kind in self._types.items() if kind == "text"}
        self._default = None if decimals is None else "."
        self._files = TableSource.files(path)
        """size and time of each part, before anything was read"""
        self._sources = TableSource.all(path)
        self._decimal: str | None = None
        """decimal mark of the first text"""
        self._line = 0
        """line of the next row in a text"""
        self._names: list[str] = []
        self._kinds: dict[str, tuple[str, Path]] = {}
        """whether a column has numbers or texts, and the first part that shows it"""
        self._told: set[str] = set()

    @property
    def total(self) -> int | None:
        """Number of rows; None if the files do not say it."""
        if any(source.kind != "parquet" for source in self._sources):
            return None
        try:
            return sum(int(pq.read_metadata(source.path).num_rows) for source in self._sources)
        except (pa.ArrowException, OSError):  # a pass reports it
            return None

    def rows_or_head(self, *, head: bool) -> pd.DataFrame:
        """Return all rows, or the first batch (`head`). Raises `DataError` if there are none, and as `together`."""
        frame = next((batch.frame for batch in self if len(batch.frame)), pd.DataFrame()) if head else self.together()
        if not len(frame):
            raise DataError(f"file {str(self.path)!r} has no rows. Give a file with rows below its header.")
        frame.attrs["decimals"] = dict(self.decimals)
        return frame

    def __iter__(self) -> Iterator[RowBatch]:
        """Yield all rows. Raises `DataError` with the name of a part that cannot be read or has other columns."""
        with self._unchanged():
            for source in self._sources:
                first = 0
                for piece in self._pieces(source):
                    frame = self._frame(piece, source.path)
                    for name in self._mixed(frame, source.path):
                        raise self._mixed_kinds(frame[name], source.path)
                    for start in range(0, len(frame), self.rows):
                        yield RowBatch(frame.iloc[start : start + self.rows], source.path, first + start)
                    first += len(frame)

    def together(self) -> pd.DataFrame:
        """Return all rows. A column with numbers and texts is text.

        The frame has `attrs["decimals"]`: the decimal mark of each column of texts that was read as numbers, followed
        by "%" for percentages. Raises `DataError` for a missing or invalid file, and for columns that do not have their
        declared type. Warns of assumptions.
        """
        with self._unchanged():
            frames, mixed = self._frames()
            if mixed:  # 7 is "7" beside texts, whatever stands beside it in its part
                self._texts |= mixed
                frames, _ = self._frames()
        frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
        frame.attrs = frames[0].attrs if len(self._sources) == 1 else {}
        frame.attrs["decimals"] = dict(self.decimals)
        return frame

    def _frames(self) -> tuple[list[pd.DataFrame], set[str]]:
        frames, mixed = [], set[str]()
        for source in self._sources:
            for piece in self._pieces(source):
                frame = self._frame(piece, source.path)
                mixed |= {plain(name) for name in self._mixed(frame, source.path)}
                frames.append(frame)
        return [frame for frame in frames if len(frame)] or frames[:1], mixed

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise `DataError` if a part has changed meanwhile, before any other error, which that may cause."""
        try:
            yield
        except LLPBenchError:
            self._require_unchanged()
            raise
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        now = TableSource.files(self.path)
        if changed := [path for path in {**self._files, **now} if self._files.get(path) != now.get(path)]:
            raise DataError(
                f"file {str(changed[0])!r} was changed, added or removed while {str(self.path)!r} was read. Run the "
                "command again when no other program writes there."
            )

    def _pieces(self, source: TableSource) -> Iterator[_Piece]:
        """Yield the rows of a part, with columns in the order of the first part."""
        pieces = {"parquet": self._parquet, "excel": self._workbook, "csv": self._text}[source.kind](source)
        try:
            for piece in pieces:
                table = piece.table
                for name, value in source.keys:
                    table = table.append_column(name, pa.repeat(pa.scalar(value), len(table)))
                self._names = self._names or table.column_names
                if lacking := {*table.column_names} ^ {*self._names}:
                    raise DataError(
                        f"files {str(source.path)!r} and {str(self._sources[0].path)!r} must have the same columns. "
                        f"They differ in {', '.join(map(repr, sorted(lacking)[:5]))}. Correct the files."
                    )
                table = table.select(self._names)
                for name, column in zip(table.column_names, table.columns, strict=True):
                    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                        longest = pc.max(pc.binary_length(column)).as_py() or 0
                        if longest > _MOST_BYTES_OF_CELL:
                            raise _too_long(source.path, name, longest)
                yield _Piece(table, piece.decimal)
        except DataError:
            raise
        except (pa.ArrowException, OSError, ValueError, EOFError) as error:
            raise DataError(f"file {str(source.path)!r} {_what_is_wrong(error, source, self._form)}") from error

    def _parquet(self, source: TableSource) -> Iterator[_Piece]:
        with pq.ParquetFile(source.path) as file:
            schema = file.schema_arrow
            names = _different(schema.names, source.path)
            # pandas writes a named index of whole numbers as its start and step
            index = [each for each in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(each, dict)]
            named = [each for each in index if each["name"] is not None]
            chunks = (file.metadata.row_group(group) for group in range(file.metadata.num_row_groups))
            for chunk in (group.column(number) for group in chunks for number in range(group.num_columns)):
                if chunk.physical_type == "BYTE_ARRAY" and chunk.total_uncompressed_size > _MOST_BYTES_OF_CHUNK:
                    raise _too_long(source.path, chunk.path_in_schema, chunk.total_uncompressed_size)
            first = 0
            for batch in chain([schema.empty_table()], file.iter_batches(self.rows)):
                table = pa.Table.from_arrays(batch.columns, names)
                for each in named:
                    numbers = np.arange(first, first + len(table)) * each["step"] + each["start"]
                    table = table.append_column(each["name"], pa.array(numbers))
                yield _Piece(table)
                first += len(table)

    def _workbook(self, source: TableSource) -> Iterator[_Piece]:
        content, note = sheet_as_csv(source.path, self._columns)
        self._tell(f"file {str(source.path)!r}: {note}." if note else "")
        # numbers of cells have points, whatever the text tables beside them have
        form = replace(self._form, separator=",", decimal=".", encoding="utf-8")
        yield from self._parsed(io.BytesIO(content), content[:HEAD], form, source)

    def _text(self, source: TableSource) -> Iterator[_Piece]:
        head = source.head()
        form = replace(self._form, encoding=self._form.encoding or _encoding_of(head))
        if re.match(rb"\s*<(!doctype|html|\?xml|table)", head, re.IGNORECASE):
            raise DataError(f"file {str(source.path)!r} is a web page or XML. Save its table as .csv.")
        if b"\0" in head and form.encoding == "utf-8":
            raise DataError(f"file {str(source.path)!r} contains binary data (zero bytes). Give a table, such as .csv.")
        with source.open() as file:
            yield from self._parsed(file, head, form, source)

    def _parsed(self, file: IO[bytes], head: bytes, form: FileFormat, source: TableSource) -> Iterator[_Piece]:
        """Yield the rows of a text that begins with `head`, in blocks of about the size of a batch."""
        encoding = str(form.encoding)
        whole = len(head) < HEAD
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=whole).removeprefix("\ufeff")
        text = text if whole else text[: text.rfind("\n") + 1]
        try:
            dialect = form.dialect(text, source.default, self._keys if self._features is None else ())
        except DataError as error:
            raise DataError(f"file {str(source.path)!r} {error}") from error
        names = _different(dialect.names, source.path)
        schema = pa.schema(dict.fromkeys(names, pa.string()))
        self._decimal = self._decimal or dialect.decimal
        decimal = form.decimal or self._decimal
        self._line = dialect.lines + 1
        yield _Piece(schema.empty_table(), decimal)
        if whole and not dialect.has_rows:
            return
        reader = pacsv.open_csv(
            file,
            pacsv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK,
                encoding="utf8" if encoding.startswith("utf-8") else encoding,
                column_names=names,
                skip_rows=dialect.lines,
            ),
            pacsv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
            pacsv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True),
        )
        for note in (dialect.note, dialect.numbers if self._features is None or self._features else ""):
            self._tell(f"file {str(source.path)!r}: {note}." if note else "")
        waiting: list[pa.RecordBatch] = []
        for batch in reader:
            waiting.append(batch)
            if sum(map(len, waiting)) >= self.rows:
                yield _Piece(pa.Table.from_batches(waiting), decimal)
                waiting = []
        if waiting:
            yield _Piece(pa.Table.from_batches(waiting), decimal)

    def _tell(self, note: str) -> None:
        if note and note not in self._told:
            self._told.add(note)
            warn("file", note)

    def _frame(self, piece: _Piece, part: Path) -> pd.DataFrame:
        """Return rows in which each column has its type. Raises `DataError` unless earlier rows have the same kinds."""
        missing = {*MISSING, *self._form.missing}
        folders = {name for source in self._sources for name, _ in source.keys}
        columns = {}
        for name in piece.table.column_names:
            column, known = piece.table.column(name), plain(name)
            is_key = known in self._keys or name in folders
            is_key |= self._features is not None and known not in self._features
            if piece.decimal is None:
                # 64-bit whole numbers in a column with nulls must not become floats, which would merge them
                exact = is_key and pa.types.is_integer(column.type)
                values = column.to_pandas(integer_object_nulls=exact)
                columns[name] = as_text(values) if known in self._texts else values
            elif is_key or known in self._texts:
                columns[name] = (column if is_key else _without(column, missing)).to_pandas()
            else:
                columns[name] = _number_or_category(column, piece.decimal, self._form.missing)
        frame = pd.DataFrame(columns, copy=False)
        if piece.decimal is not None:
            frame.attrs["line"] = self._line
            self._line += len(frame)
        for name, kind in self._types.items():
            column = column_of(frame, name, part)
            if kind != "text" and not (is_numeric_dtype(column) or is_bool_dtype(column)):
                frame[str(column.name)] = self._numbers(frame, name, part, piece.decimal)
        if piece.decimal == ",":
            self.decimals = {name: "," for name in frame if frame[name].dtype.kind == "f"} | self.decimals
        return frame

    def _numbers(self, frame: pd.DataFrame, name: str, part: Path, decimal: str | None) -> pd.Series:
        decimal = self._form.decimal or ("," if decimal == "," else None)
        earlier = self.decimals.get(name, self._default)
        default = (earlier or "").rstrip("%") or "."
        column = column_of(frame, name, part)
        found = NumberText.read(column, decimal=decimal, missing=self._form.missing, default=default)
        if len(broken := found.broken):
            marks = list(dict.fromkeys(broken))
            few = f" To declare marks of missing values: --missing {shlex.quote(csv_line(marks))}."
            few *= len(marks) <= _MOST_MARKS
            raise DataError(
                f"file {str(part)!r}: column {name!r} must be numeric, got {broken.iloc[0]!r} in "
                f"{place_of(frame, int(broken.index[0]))} ({plural(len(broken), 'such value')}).{few}"
            )
        if found.values.notna().any():
            if earlier is not None and found.percent != earlier.endswith("%"):
                expected, got = ("with", "without") if earlier.endswith("%") else ("without", "with")
                raise DataError(
                    f"file {str(part)!r}: column {name!r} must contain numbers {expected} %, as before, got numbers "
                    f"{got} %."
                )
            self.decimals[name] = found.decimal + "%" * found.percent
            if name not in self._told:
                self._told.add(name)
                self._tell(f"file {str(part)!r}: {found.told(name)}.")
        return found.values

    def _mixed(self, frame: pd.DataFrame, part: Path) -> list[str]:
        filled = [str(name) for name in frame if name not in self._types and frame[name].notna().any()]
        return [
            name for name in filled if self._kinds.setdefault(name, (_kind(frame[name]), part))[0] != _kind(frame[name])
        ]

    def _mixed_kinds(self, column: pd.Series, part: Path) -> DataError:
        earlier, where = self._kinds[str(column.name)]
        known, kind = column.dropna(), _kind(column)
        strange = known if kind == "numbers" else known[pd.to_numeric(known, errors="coerce").isna()]
        example = str((strange if len(strange) else known).iloc[0])
        before = "in earlier rows" if part == where else f"in {str(where)!r}"
        missing = "" if kind == "numbers" else f"use --missing {shlex.quote(csv_line([example]))} if it is missing, "
        return DataError(
            f"file {str(part)!r}: column {column.name!r} must contain {earlier}, as {before}, got {kind} such as "
            f"{example!r}. Correct the files, {missing}or use --types {shlex.quote(f'{column.name}=text')}."
        )


def _kind(column: pd.Series) -> str:
    if not column.notna().any():
        return ""
    if is_bool_dtype(column) or (column.dtype == object and all(isinstance(each, bool) for each in column.dropna())):
        return "true and false"
    return "numbers" if is_numeric_dtype(column) else "texts"


def _different(names: Sequence[str], path: Path) -> list[str]:
    """Return the names of all columns, also of those without one. Raises `DataError` if a name is repeated."""
    found = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    if repeats := sorted({name for name in found if found.count(name) > 1}):
        raise DataError(f"file {str(path)!r} has two columns called {repeats[0]!r}. Rename one of them.")
    return ["index" if name == "__index_level_0__" and "index" not in found else name for name in found]


def _encoding_of(head: bytes) -> str:
    """Return the encoding of a text by its first bytes: UTF-8, or UTF-16 with or without its mark."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    odd, even = head[1:2_000:2].count(0), head[:2_000:2].count(0)
    if len(head) >= _FEWEST_BYTES and odd + even > min(len(head), 2_000) / 4 and min(odd, even) == 0:
        return "utf-16-le" if odd else "utf-16-be"
    return "utf-8"


def _what_is_wrong(error: Exception, source: TableSource, form: FileFormat) -> str:
    words = one_line(error)
    if isinstance(error, UnicodeError) or "invalid UTF8" in words:
        return _other_encoding(source, form.encoding or "utf-8")
    if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+): ?(.*)", words):
        line, names, values, row = found.groups()
        if row.count('"') % 2:
            return f"opens a quotation mark in line {line} that is never closed. Close it."
        few = "Add the missing separators, or remove the line if it is a note."
        many = "Correct the line, or name every column. If there are lines before the header, use --skip-rows 1."
        return (
            f"has {plural(int(values), 'value')} in line {line}, but {plural(int(names), 'name')} in its header. "
            f"{few if int(values) < int(names) else many}"
        )
    if "straddling" in words:
        return "has a row that does not end. Close its quotation mark."
    if source.kind == "parquet" and "magic bytes" in words:
        return "is not a parquet file, or is damaged. Replace it."
    return f"cannot be read as {source.kind}: {words.rstrip('.')}. Replace it."


def _other_encoding(source: TableSource, encoding: str) -> str:
    if encoding != "utf-8":
        return f"is not in {encoding}. Use another --encoding."
    with source.open() as file:
        for line in file:
            try:
                line.decode()
            except UnicodeDecodeError as error:
                fit = "latin-1" if {*line} & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "cp1252"  # not in cp1252
                before = re.split(rb"[\s,;\t\"]", line[: error.start])[-1]
                word = (before + re.split(rb"[\s,;\t\"]", line[error.start :])[0]).decode(fit)
                return (
                    f"must be in UTF-8. Save the file as UTF-8, or use its encoding. With --encoding {fit} it has "
                    f"{word!r}; if that looks wrong, try another one."
                )
    return "must be in UTF-8. Save it as UTF-8."


def _too_long(path: Path, column: str, size: int) -> DataError:
    return DataError(
        f"file {str(path)!r} has {size / 1e6:,.0f} MB of text in column {column!r}. Remove the column or shorten "
        f"its texts to {_MOST_BYTES_OF_CELL / 1e6:g} MB each."
    )


def _number_or_category(texts: pa.ChunkedArray, decimal: str, missing: Collection[str] = ()) -> pd.Series:
    """Return a column as numbers, as bool, or as text, whichever fits all values but marks of missing ones."""
    numbers = None if missing else _as_numbers(texts, decimal)
    if numbers is None:
        texts = _without(texts, {*MISSING, *missing})
        numbers = _as_numbers(texts, decimal, pc.utf8_trim_whitespace)
    if numbers is not None:
        return numbers.to_pandas()
    values = texts.drop_null()
    if not all(pc.all(pc.is_in(some, _BOOLEAN)).as_py() for some in (values.slice(0, _FIRST), values)):
        return texts.to_pandas()
    return pc.if_else(pc.is_valid(texts), pc.is_in(texts, _TRUE), None).to_pandas()


def _without(texts: pa.ChunkedArray, marks: Collection[str]) -> pa.ChunkedArray:
    marked = pc.is_in(texts, pa.array(sorted(marks), texts.type))
    return pc.if_else(marked, None, texts) if pc.any(marked).as_py() else texts


def _as_numbers(
    texts: pa.ChunkedArray, decimal: str, change: Callable[[pa.ChunkedArray], pa.ChunkedArray] = lambda texts: texts
) -> pa.ChunkedArray | None:
    """Return changed texts as whole numbers or floats; None if one is none."""
    for kind in (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            for some in (
                texts.drop_null().slice(0, _FIRST),
                texts,
            ):  # each failure takes time, so a few are tried first
                found = _cast(change(some), kind, decimal)
            return found
    return None


def _cast(texts: pa.ChunkedArray, kind: pa.DataType, decimal: str) -> pa.ChunkedArray:
    if decimal == ",":
        if pc.any(pc.match_substring(texts, ".")).as_py():
            raise pa.ArrowInvalid("a point among decimal commas")
        texts = pc.replace_substring(texts, ",", ".")
    if kind == pa.int64() and len(texts) <= _FIRST and pc.any(pc.match_substring(texts, "x")).as_py():
        raise pa.ArrowInvalid("a hexadecimal number")
    return pc.cast(texts, kind)
