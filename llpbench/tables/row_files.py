"""Rows of files, in batches or all together: everything is read as text, then each column becomes numbers or text.

A column has one kind, numbers or texts, in all batches. The format of a text is found in its first megabyte.
"""

from __future__ import annotations

import codecs
import io
import re
import shlex
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pandas.api.types import infer_dtype, is_bool_dtype, is_numeric_dtype

from llpbench.core.errors import DataError, LLPBenchError, warn
from llpbench.core.text import one_line, plural
from llpbench.tables.column_names import column_of, csv_line, place_of, plain, require_distinct
from llpbench.tables.csv_dialect import AS_IT_SHOWS, FileFormat
from llpbench.tables.number_text import MISSING, MOST_MARKS, NumberText
from llpbench.tables.table_sources import HEAD, TableSource, sheet_as_csv
from llpbench.tables.texts import as_text

BATCH_ROWS = 131_072
"""Largest number of rows in a batch."""
_BLOCK = 8 << 20
"""Bytes of text that are parsed together, more than a row may have."""
_MOST_BYTES_OF_CELL, _MOST_BYTES_OF_CHUNK = 10**6, 10**9
"""Largest text, and largest column of texts in a row group of parquet: a small file can hold many gigabytes."""
_FEWEST_BYTES = 16
"""Length of the shortest file that is checked for UTF-16."""
_FIRST = 100
_TRUE, _BOOLEAN = pa.array(["True", "TRUE", "true"]), pa.array(["True", "TRUE", "true", "False", "FALSE", "false"])

_Pieces = Iterator[tuple[pa.Table, str | None]]
"""rows, and the decimal mark of their texts: "" if unknown; None if columns have types"""


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Consecutive rows of a part."""

    frame: pd.DataFrame
    part: Path
    first: int  # number of the first row in its part, counted from 0
    start: int  # number of the first row in all parts
    alone: bool = False  # whether it has all rows

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
        self.decimals: dict[str, str] = dict(decimals or {})  # how numbers that were written as text are read
        self._types, self._form, self._columns = types or {}, form, columns
        self._keys, self._features = [*map(plain, keys)], None if features is None else {*map(plain, features)}
        self._texts = {plain(name) for name, kind in self._types.items() if kind == "text"}
        self._default = None if decimals is None else "."
        self._files = TableSource.files(path)  # size and time of each part, before anything was read
        self._sources = TableSource.all(path)
        self._decimal = ""  # of the first text that shows it
        self._line = 0  # of the next row in a text
        self._names: list[str] = []
        self._kinds: dict[str, tuple[str, Path]] = {}  # whether a column has numbers or texts, and its first part
        self._told: set[str] = set()

    @property
    def total(self) -> int | None:
        """Number of rows; None if the files do not say it."""
        known = [found.num_rows for source in self._sources if (found := source.metadata()) is not None]
        return sum(known) if len(known) == len(self._sources) else None

    def rows_or_head(self, *, head: bool) -> pd.DataFrame:
        """Return all rows, or the first batch (`head`). Raises `DataError` if there are none, and as `together`."""
        frame = next((batch.frame for batch in self if len(batch.frame)), pd.DataFrame()) if head else self.together()
        if not len(frame):
            raise DataError.of(self.path, "has no rows. Give a file with rows below its header.")
        return frame

    def __iter__(self) -> Iterator[RowBatch]:
        """Yield all rows. Raises `DataError` with the name of a part that cannot be read or has other columns."""
        start = 0
        for frame, part, first in self._frames(strict=True):
            for place in range(0, len(frame), self.rows):
                yield RowBatch(frame.iloc[place : place + self.rows], part, first + place, start + place)
            start += len(frame)

    def together(self) -> pd.DataFrame:
        """Return all rows. A column with numbers and texts is text.

        The frame has `attrs["decimals"]`: the decimal mark of each column of texts that was read as numbers, followed
        by "%" for percentages. Raises `DataError` for a missing or invalid file, and for columns that do not have their
        declared type. Warns of assumptions.
        """
        declared = len(self._texts)
        frames = [frame for frame, *_ in self._frames(strict=False)]
        if len(self._texts) > declared:  # 7 is "7" beside texts, whatever stands beside it in its part
            frames = [frame for frame, *_ in self._frames(strict=False)]
        frames = [frame for frame in frames if len(frame)] or frames[:1]
        frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
        frame.attrs = frames[0].attrs if len(self._sources) == 1 else {}
        frame.attrs["decimals"] = dict(self.decimals)
        return frame

    def _frames(self, *, strict: bool) -> Iterator[tuple[pd.DataFrame, Path, int]]:
        """Yield frames with their part and the number of their first row in it.

        A column with both numbers and texts is an error if `strict`; else it has texts from the next time on.
        """
        self._decimal = ""
        with self._unchanged():
            for source in self._sources:
                first = 0
                for table, decimal in self._pieces(source):
                    frame = self._frame(table, decimal, source.path)
                    kinds = {name: _kind(frame[name]) for name in map(str, frame) if name not in self._types}
                    for name, kind in kinds.items():
                        if not kind or plain(name) in self._texts:
                            continue
                        if (earlier := self._kinds.setdefault(name, (kind, source.path)))[0] != kind:
                            told = _mixed_kinds(frame[name], *earlier)
                            if strict:
                                raise DataError(f"file {str(source.path)!r}: {told}.")
                            if earlier[1] != source.path and not self._is_key(name):
                                self._tell(source.path, f"{told}. Now its numbers are texts")
                            self._texts.add(plain(name))
                    yield frame, source.path, first
                    first += len(frame)

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise `DataError` if a part has changed meanwhile, instead of any other error, which that may cause."""
        try:
            yield
        finally:
            now = TableSource.files(self.path)
            if changed := [path for path in {**self._files, **now} if self._files.get(path) != now.get(path)]:
                wrong = f"was changed, added or removed while {str(self.path)!r} was read"
                raise DataError.of(changed[0], f"{wrong}. Run the command again when no other program writes there.")

    def _pieces(self, source: TableSource) -> _Pieces:
        """Yield the rows of a part, with columns in the order of the first part, and their decimal mark."""
        pieces = {"parquet": self._parquet, "excel": self._workbook, "csv": self._text}[source.kind](source)
        try:
            for table, decimal in pieces:
                for name, value in source.keys:
                    table = table.append_column(name, pa.repeat(pa.scalar(value), len(table)))
                self._names = self._names or table.column_names
                if lacking := {*table.column_names} ^ {*self._names}:
                    wrong = f"must have the columns of {str(self._sources[0].path)!r}. They differ in"
                    raise DataError.of(source.path, f"{wrong} {', '.join(map(repr, sorted(lacking)[:5]))}. Correct it.")
                table = table.select(self._names)
                for name, column in zip(table.column_names, table.columns, strict=True):
                    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                        _require_short(source.path, name, pc.max(pc.binary_length(column)).as_py() or 0)
                yield table, decimal
        except DataError:
            raise
        except (pa.ArrowException, OSError, ValueError, EOFError) as error:
            raise DataError.of(source.path, _what_is_wrong(error, source, self._form)) from error

    def _parquet(self, source: TableSource) -> _Pieces:
        with pq.ParquetFile(source.path) as file:
            schema = file.schema_arrow
            names = _different(schema.names, source.path)
            # pandas writes a named index of whole numbers as its start and step
            index = [each for each in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(each, dict)]
            named = [each for each in index if each["name"] is not None]
            chunks = (file.metadata.row_group(group) for group in range(file.metadata.num_row_groups))
            for chunk in (group.column(number) for group in chunks for number in range(group.num_columns)):
                if chunk.physical_type == "BYTE_ARRAY":
                    size = chunk.total_uncompressed_size
                    _require_short(source.path, chunk.path_in_schema, size, _MOST_BYTES_OF_CHUNK)
            first = 0
            for batch in chain([schema.empty_table()], file.iter_batches(self.rows)):
                table = pa.Table.from_arrays(batch.columns, names)
                for each in named:
                    numbers = np.arange(first, first + len(table)) * each["step"] + each["start"]
                    table = table.append_column(each["name"], pa.array(numbers))
                yield table, None
                first += len(table)

    def _workbook(self, source: TableSource) -> _Pieces:
        content, note = sheet_as_csv(source.path, self._columns)
        self._tell(source.path, note)
        # numbers of cells have points, whatever the text tables beside them have
        form = replace(self._form, separator=",", decimal=".", encoding="utf-8")
        yield from self._parsed(io.BytesIO(content), content[:HEAD], form, source)

    def _text(self, source: TableSource) -> _Pieces:
        with source.open() as file:
            head = file.read(HEAD)
        form = replace(self._form, encoding=self._form.encoding or _encoding_of(head))
        if re.match(rb"\s*<(!doctype|html|\?xml|table)", head, re.IGNORECASE):
            raise DataError.of(source.path, "is a web page or XML. Save its table as .csv.")
        if b"\0" in head and form.encoding == "utf-8":
            raise DataError.of(source.path, "contains binary data (zero bytes). Give a table, such as .csv.")
        with source.open() as file:
            for table, decimal in self._parsed(file, head, form, source):
                yield table, decimal
        if len(table) and "\n" in (table.columns[-1][-1].as_py() or ""):  # arrow closes a quotation mark at the end
            with source.open() as file:
                end = deque(filter(None, (line.rstrip(b"\r\n\0 ") for line in file)), maxlen=1)[0]
            if not end.endswith(b'"'):
                raise DataError.of(source.path, "opens a quotation mark in its last column. Close it.")

    def _parsed(self, file: IO[bytes], head: bytes, form: FileFormat, source: TableSource) -> _Pieces:
        """Yield the rows of a text that begins with `head`, and their decimal mark."""
        encoding = str(form.encoding)
        reading = {"use_threads": False, "encoding": "utf8" if encoding.startswith("utf-8") else encoding}
        whole = len(head) < HEAD
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=whole).removeprefix("\ufeff")
        text = text if whole else text[: text.rfind("\n") + 1 or text.rfind("\r") + 1]
        if not (text or whole):
            raise DataError.of(source.path, "has a header of over 1 MB. Use fewer columns, or correct line ends.")
        try:
            dialect = form.dialect(text, source.default, self._keys if self._features is None else ())
        except DataError as error:
            raise DataError.of(source.path, str(error)) from error
        names = _different(dialect.names, source.path)
        schema = pa.schema(dict.fromkeys(names, pa.string()))
        self._decimal = self._decimal or dialect.decimal
        decimal = dialect.decimal or self._decimal
        self._line = dialect.lines + 1
        yield schema.empty_table(), decimal
        if whole and not dialect.has_rows:
            return
        reader = pacsv.open_csv(
            file,
            pacsv.ReadOptions(column_names=names, skip_rows=dialect.lines, block_size=_BLOCK, **reading),
            pacsv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
            pacsv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True),
        )
        self._tell(source.path, dialect.note)
        self._tell(source.path, "" if self._features == set() or decimal != dialect.decimal else dialect.numbers)
        for batch in reader:
            yield pa.Table.from_batches([batch]), decimal

    def _tell(self, part: Path, note: str, about: str = "") -> None:
        """Warn of an assumption about a part, once for each part, or once for each `about`."""
        key = about or f"{part}: {note}"
        if note and key not in self._told:
            self._told.add(key)
            warn("file", f"file {str(part)!r}: {note}.")

    def _frame(self, table: pa.Table, decimal: str | None, part: Path) -> pd.DataFrame:
        """Return rows in which each column has its type."""
        missing = pa.array(["", *MISSING, *self._form.missing])
        folders = {name for source in self._sources for name, _ in source.keys}
        columns = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            known, is_key = plain(name), name in folders or self._is_key(name)
            if decimal is None:
                # 64-bit whole numbers in a column with nulls must not become floats, which would merge them
                values = column.to_pandas(integer_object_nulls=is_key)
                columns[name] = as_text(values) if known in self._texts else values
            elif is_key:
                columns[name] = column.to_pandas()
            else:
                gap = pc.is_in(pc.utf8_trim_whitespace(column), missing)
                texts = pc.if_else(gap, None, column) if pc.any(gap).as_py() else column
                columns[name] = texts.to_pandas() if known in self._texts else _number_or_category(texts, decimal)
        frame = pd.DataFrame(columns, copy=False)
        if decimal is not None:
            frame.attrs["line"] = self._line
            self._line += len(frame)
        for name, kind in self._types.items():
            values = column_of(frame, name, part)
            if kind != "text" and not (is_numeric_dtype(values) or is_bool_dtype(values)):
                frame[str(values.name)] = self._numbers(values, name, part, decimal)
        if decimal == ",":
            self.decimals = {name: "," for name in frame if frame[name].dtype.kind == "f"} | self.decimals
        return frame

    def _is_key(self, name: str) -> bool:
        known = plain(name)
        return known in self._keys or (self._features is not None and known not in self._features)

    def _numbers(self, column: pd.Series, name: str, part: Path, decimal: str | None) -> pd.Series:
        """Return a column of texts that the user has declared as numbers."""
        earlier = self.decimals.get(name, self._default)
        usual = decimal or (earlier or "").rstrip("%") or "."  # of a file with points, a column may have commas
        decimal = self._form.decimal or ("," if decimal == "," else None)
        found = NumberText.read(column, decimal=decimal, missing=self._form.missing, default=usual)
        if number := len(found.broken):
            few = f" To declare marks of missing values: --missing {shlex.quote(csv_line(found.marks))}."
            got = f"got {found.marks[0]!r} in {place_of(column, int(found.broken.index[0]))}"
            told = f"column {name!r} must be numeric, {got} ({plural(number, 'such value')})."
            raise DataError(f"file {str(part)!r}: {told}{few * (len(found.marks) <= MOST_MARKS)}")
        if found.values.notna().any():
            if earlier is not None and found.percent != earlier.endswith("%"):
                raise DataError.of(part, f"must have % in all rows of column {name!r} or none, got both.")
            self.decimals[name] = found.decimal + "%" * found.percent
            self._tell(part, found.told(name), about=name)
        return found.values


def _mixed_kinds(column: pd.Series, earlier: str, part: Path) -> str:
    """Return a message about a column of another kind than `earlier` rows in `part`."""
    known, kind = column.dropna(), _kind(column)
    strange = known if kind == "numbers" else known[pd.to_numeric(known, errors="coerce").isna()]
    example = str([*strange[:1], *known[:1]][0])
    missing = "" if kind == "numbers" else f"use --missing {shlex.quote(csv_line([example]))} if it is missing, "
    advice = f"Correct the files, {missing}or use --types {shlex.quote(f'{column.name}=text')}"
    wrong = f"column {column.name!r} must contain {earlier}, as in {str(part)!r}, got {kind} such as {example!r}"
    return f"{wrong}. {advice}"


def _kind(column: pd.Series) -> str:
    if not column.notna().any():
        return ""
    if infer_dtype(column) == "boolean":
        return "true and false"
    return "numbers" if is_numeric_dtype(column) else "texts"


def _different(names: Sequence[str], path: Path) -> list[str]:
    """Return the names of all columns, also of those without one. Raises `DataError` if a name is repeated."""
    found = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    require_distinct(found, f"file {str(path)!r}")
    return ["index" if name == "__index_level_0__" and "index" not in found else name for name in found]


def _encoding_of(head: bytes) -> str:
    """Return the encoding of a text by its first bytes: UTF-8, or UTF-16 with or without its mark."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    zeros = [head[start:2_000:2].count(0) for start in (0, 1)]
    if len(head) >= _FEWEST_BYTES and min(zeros) == 0 and max(zeros) > min(len(head), 2_000) / 4:
        return "utf-16-be" if zeros[0] else "utf-16-le"
    return "utf-8"


def _what_is_wrong(error: Exception, source: TableSource, form: FileFormat) -> str:
    words = one_line(error)
    if isinstance(error, UnicodeError) or "invalid UTF8" in words:
        return _other_encoding(source, form.encoding or "utf-8")
    if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+): ?(.*)", words):
        line, names, values, row = found.groups()
        if row.count('"') % 2:
            return f"opens a quotation mark in line {line} that is never closed. Close it."
        wrong = f"has {plural(int(values), 'value')} in line {line}, but {plural(int(names), 'name')} in its header"
        before = "If there are lines before the header, use --skip-rows 1."
        return f"{wrong}. Correct the line, or remove it if it is a note. {before}"
    if "straddling" in words:
        return "has a row that does not end. Close its quotation mark."
    return f"cannot be read as {source.kind}: {words.rstrip('.')}. Replace it."


def _other_encoding(source: TableSource, encoding: str) -> str:
    if encoding != "utf-8":
        return f"is not in {encoding}. Use another --encoding."
    with source.open() as file:
        lines = (line.decode(errors="surrogateescape") for line in file)
        words = (re.search(r'[^\s,;"]*[\udc80-\udcff][^\s,;"]*', line) for line in lines)
        word = next(found[0] for found in words if found).encode(errors="surrogateescape")
    fit = "latin-1" if {*word} & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "cp1252"  # not in cp1252
    read = f"With --encoding {fit} it has {word.decode(fit)!r}; if that looks wrong, try another one."
    return f"must be in UTF-8. Save the file as UTF-8, or use its encoding. {read}"


def _require_short(path: Path, column: str, size: int, most: int = _MOST_BYTES_OF_CELL) -> None:
    if size > most:
        advice = f"Remove the column or shorten its texts to {_MOST_BYTES_OF_CELL / 1e6:g} MB each."
        raise DataError.of(path, f"has {size / 1e6:,.0f} MB of text in column {column!r}. {advice}")


def _number_or_category(texts: pa.ChunkedArray, decimal: str) -> pd.Series:
    """Return a column as numbers, as bool, or as text, whichever fits all values."""
    foreign = "[xX.]" if decimal == "," else "[xX]"  # hexadecimal numbers, and points among decimal commas
    for kind in (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            for some in (texts.drop_null()[:_FIRST], texts):  # each failure takes time, so a few are tried first
                if pc.any(pc.match_substring_regex(some, foreign)).as_py():
                    raise pa.ArrowInvalid
                numbers = pc.cast(pc.replace_substring(pc.utf8_trim_whitespace(some), decimal or ".", "."), kind)
            return numbers.to_pandas()
    values = texts.drop_null()
    if not all(pc.all(pc.is_in(some, _BOOLEAN)).as_py() for some in (values[:_FIRST], values)):
        return texts.to_pandas()
    return pc.if_else(pc.is_valid(texts), pc.is_in(texts, _TRUE), None).to_pandas()
