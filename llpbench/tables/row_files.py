"""Rows and bags as files: CSV, whose types are inferred, Excel or parquet. An index that pandas wrote is a column."""

from __future__ import annotations

import io
import re
import shlex
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pandas._libs.parsers import STR_NA_VALUES
from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype
from pandas.errors import EmptyDataError, ParserWarning

from llpbench.core.errors import DataError, LLPBenchWarning
from llpbench.core.text import one_line, plural
from llpbench.tables.column_names import matching_column, nearest_columns, plain, separator_hint
from llpbench.tables.csv_dialect import AS_IT_SHOWS, AmbiguousError, Dialect, FileFormat, read_dialect
from llpbench.tables.marks import csv_line
from llpbench.tables.number_text import read_number_text, reading_of
from llpbench.tables.table_sources import HEAD, TableSource, sources
from llpbench.tables.texts import as_text
from llpbench.tables.workbooks import as_csv

_FEWEST_BYTES = 16
"""Length of the shortest file that is checked for UTF-16."""
_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
"""Encodings by the first bytes of a file."""


class FileNote(LLPBenchWarning):
    """Assumptions about a file."""


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Types of the columns of a file."""

    texts: frozenset[str]
    """columns of unchanged texts; common marks of gaps are missing values"""
    keys: frozenset[str]
    """columns of unchanged texts; only empty cells are missing values"""
    features: frozenset[str] | None
    """if given, all other columns are read as keys"""
    columns: Sequence[Sequence[str]] = ()
    """columns that the table must have, each with its possible names"""

    def is_key(self, name: str) -> bool:
        own = {name, plain(name)}
        return bool(own & self.keys) or (self.features is not None and not own & self.features)

    def is_text(self, name: str) -> bool:
        return bool({name, plain(name)} & self.texts)


def read_rows(
    path: Path,
    types: Mapping[str, str] | None = None,
    keys: Collection[str] = (),
    features: Collection[str] | None = None,
    form: FileFormat = AS_IT_SHOWS,
    decimals: Mapping[str, str] | None = None,
    columns: Sequence[Sequence[str]] = (),
) -> pd.DataFrame:
    """Return the table of a path: a file (CSV, Excel, parquet; packed or not), a folder, a pattern, or `-`.

    `types` are columns that the user declares as text or numbers. `keys` are columns of names. In a CSV their texts
    stay unchanged (01001 is not 1001, NA is Namibia), and only empty cells are missing. With `features`, all other
    columns are keys. `form` is the format of a CSV as far as the user has set it. `columns` are those that the table
    must have, each with its possible names, by which the sheet of a workbook is chosen.

    `decimals` says how numbers were read in an earlier file. The frame has `attrs["decimals"]`: the decimal mark of
    each column of texts that was read as numbers, followed by "%" for percentages.

    Raises `DataError` for a missing or invalid file, and for columns that do not have their declared type. Warns of
    assumptions (`FileNote`).
    """
    types = types or {}
    wanted = replace(_wanted(types, keys, features), columns=columns)
    tables = sources(path)
    frame, form = _read(tables[0], wanted, form)
    if len(tables) > 1:
        frame = _joined(tables, frame, wanted, form)
        frame.attrs.clear()
    frame.attrs["decimals"] = convert(frame, types, form, path, decimals)
    return frame


def read_piece(
    source: TableSource | tuple[TableSource, Any],
    types: Mapping[str, str],
    keys: Collection[str],
    features: Collection[str] | None,
    form: FileFormat,
) -> pd.DataFrame:
    """Return a table, or a piece of one, before columns get their types.

    A piece of a text table is a source whose content begins with the header. A piece of a parquet file is the source
    and an arrow table.
    """
    wanted = _wanted(types, keys, features)
    frame = _read(source, wanted, form)[0] if isinstance(source, TableSource) else _named(*source, wanted)
    frame.attrs.clear()
    return frame


def convert(
    frame: pd.DataFrame, types: Mapping[str, str], form: FileFormat, path: Path, decimals: Mapping[str, str] | None
) -> dict[str, str]:
    """Give columns their types, in place. Return how numbers were read, as in `attrs` of `read_rows`."""
    assumed: dict[str, str] = {}
    for name, kind in types.items():
        column = str(column_of(frame, name, path).name)
        if kind == "text":
            frame[column] = as_text(frame[column])
        elif not (is_numeric_dtype(frame[column]) or is_bool_dtype(frame[column])):
            earlier = None if decimals is None else decimals.get(name, ".")
            frame[column], assumed[column] = _as_numbers(frame, column, form, path, earlier)
    if form.decimal == ",":  # pandas has read numbers
        assumed = {name: "," for name in frame.columns if is_float_dtype(frame[name])} | assumed
    return assumed


def _wanted(types: Mapping[str, str], keys: Collection[str], features: Collection[str] | None) -> _Wanted:
    return _Wanted(
        _both({name for name, kind in types.items() if kind == "text"}),
        _both(keys),
        None if features is None else _both(features),
    )


def _both(names: Collection[str]) -> frozenset[str]:
    return frozenset([*names, *map(plain, names)])


def _joined(found: Sequence[TableSource], first: pd.DataFrame, wanted: _Wanted, form: FileFormat) -> pd.DataFrame:
    """Return the concatenated parts of a table. Raises `DataError` unless they have the same columns."""
    parts = [first, *(_read(source, wanted, form)[0] for source in found[1:])]
    for source, part in zip(found, parts, strict=True):
        if lacking := {*first.columns} ^ {*part.columns}:
            raise DataError(
                f"files {str(source.path)!r} and {str(found[0].path)!r} must have the same columns. They differ in "
                f"{', '.join(map(repr, sorted(lacking)[:5]))}. Correct the files."
            )
    kinds = {name: {is_numeric_dtype(part[name]) for part in parts if part[name].notna().any()} for name in first}
    if mixed := [name for name, kind in kinds.items() if len(kind) > 1 and not wanted.is_text(name)]:
        # 7 is "7" beside texts, even if a gap in its part made it 7.0
        again = replace(wanted, texts=wanted.texts | _both(mixed))
        return _joined(found, _read(found[0], again, form)[0], again, form)
    return pd.concat([part[list(first.columns)] for part in parts], ignore_index=True)


def _read(source: TableSource, wanted: _Wanted, form: FileFormat) -> tuple[pd.DataFrame, FileFormat]:
    """Return one table and its format."""
    try:
        if source.kind == "parquet":
            frame = _read_parquet(source, wanted)
        elif source.kind == "excel":
            # numbers of cells have points, whatever the text tables beside them have
            plain = replace(form, separator=",", decimal=None, encoding="utf-8")
            sheet, note = as_csv(source, wanted.columns)
            if note:
                warnings.warn(f"file {str(source.path)!r}: {note}.", FileNote, stacklevel=3)
            frame = _read_csv(sheet, wanted, plain)[0]
        else:
            frame, form = _read_csv(source, wanted, form)
    except (OSError, ValueError, EOFError, LookupError) as error:  # from pandas, arrow or decompression
        raise DataError(f"file {str(source.path)!r} {_broken(error, source, form)}") from error
    return _renamed(frame, source), form


def _broken(error: Exception, source: TableSource, form: FileFormat) -> str:
    """Return what is wrong with a file that could not be read, and advice."""
    words = one_line(error)
    if isinstance(error, EmptyDataError):
        return "is empty. Give a file with a header and rows."
    if quoted := re.search(r"EOF inside string starting at row (\d+)", words):
        return f"opens a quotation mark in line {int(quoted[1]) + 1} that is never closed. Close it."
    if longer := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", words):
        if _is_binary(source, form):
            return "contains binary data (zero bytes). Give a table, such as a .csv file."
        columns = plural(int(longer[1]), "column")
        return f"has {longer[3]} values in line {longer[2]}, but {columns}. Correct this line."
    if source.kind == "parquet" and "magic bytes" in words:
        return "is not a parquet file, or is damaged. Replace it."
    return f"cannot be read as {source.kind}: {words.rstrip('.')}. Replace it."


def _is_binary(source: TableSource, form: FileFormat) -> bool:
    """Return whether a text table has zero bytes, though its encoding has none."""
    head = source.head()
    return b"\0" in head and form.encoding is None and encoding_of(head, source).startswith("utf-8")


def _renamed(frame: pd.DataFrame, source: TableSource) -> pd.DataFrame:
    frame.columns = [str(name) for name in frame.columns]  # names as on the command line
    _once(list(frame.columns), source.path)
    for name, value in source.keys:
        frame[name] = value
    return frame


def _named(source: TableSource, table: Any, wanted: _Wanted) -> pd.DataFrame:
    return _renamed(_arrow_frame(table, wanted), source)


def _read_parquet(source: TableSource, wanted: _Wanted) -> pd.DataFrame:
    import pyarrow.parquet as pq

    table = pq.read_table(source.path if source.content is None else io.BytesIO(source.content), partitioning=None)
    return _arrow_frame(table, wanted)


def _arrow_frame(table: Any, wanted: _Wanted) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    if frame.index.names != [None] or not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    exact = [name for name in table.column_names if wanted.is_key(name) and frame[name].dtype.kind == "f"]
    for name in exact:  # 64-bit whole numbers in a column with nulls must not become floats, which would merge them
        frame[name] = table.column(name).to_pandas(integer_object_nulls=True).to_numpy()
    return frame


def _read_csv(source: TableSource, wanted: _Wanted, form: FileFormat) -> tuple[pd.DataFrame, FileFormat]:
    head = source.head()
    encoding = form.encoding or encoding_of(head, source)
    text = head.decode(encoding, errors="replace")
    if len(head) >= HEAD:
        text = text[: text.rfind("\n") + 1]
    if re.match(r"\s*<(!doctype|html|\?xml|table)", text, re.IGNORECASE):
        raise DataError(f"file {str(source.path)!r} is a web page or XML. Save its table as .csv.")
    try:
        dialect = read_dialect(text, form, source.usual, wanted.keys if wanted.features is None else ())
    except AmbiguousError as error:
        raise DataError(f"file {str(source.path)!r} {error}") from error
    skip = list(dialect.skipped)
    read: dict[str, Any] = {"sep": dialect.separator, "encoding": encoding, "skiprows": skip or None}
    header: list[str] = []

    def parsed(**given: Any) -> pd.DataFrame:
        if source.content is None and source.packed is None:
            return pd.read_csv(source.path, compression=None, **read, **given)
        with source.open() as file:
            return pd.read_csv(file, **read, **given)

    try:
        first = parsed(nrows=1, header=None, dtype=str, keep_default_na=False)
        _once([name for name in first.iloc[0] if name], source.path)
        header = [str(name) for name in parsed(nrows=0).columns]
        keys = [name for name in header if wanted.is_key(name)]
        texts = dict.fromkeys([name for name in header if wanted.is_text(name)] + keys, str)
        marks = sorted({*STR_NA_VALUES, *form.missing})
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)  # for rows with more values than names
            frame = parsed(
                decimal=dialect.decimal,
                dtype=texts,
                low_memory=False,
                keep_default_na=False,
                na_values={name: [""] if name in keys else marks for name in header},
                index_col=False,  # otherwise pandas shifts columns if rows end with a comma
            )
    except UnicodeDecodeError as error:
        raise DataError(_other_encoding(source, encoding)) from error
    except ParserWarning as error:
        raise DataError(
            f"file {str(source.path)!r} has {plural(len(header), 'name')} in its header, but a row has more values. "
            "Name every column, or remove commas at the ends of rows. If there are lines before the header, use "
            "--skip-rows 1."
        ) from error
    for note in (dialect.note, dialect.numbers if len(texts) < len(header) else ""):
        if note:
            warnings.warn(f"file {str(source.path)!r}: {note}.", FileNote, stacklevel=4)
    frame.attrs["skipped"] = dialect.skipped
    return frame, replace(form, separator=dialect.separator, decimal=form.decimal or _certain(dialect))


def _certain(dialect: Dialect) -> str | None:
    return "," if dialect.decimal == "," else None


def encoding_of(head: bytes, source: TableSource) -> str:
    """Return the encoding of a text table. Raises `DataError` for UTF-16 without its mark."""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    if len(head) >= _FEWEST_BYTES and head[:2_000].count(0) > len(head[:2_000]) / 4:
        variant = "utf-16-le" if head[1:2_000:2].count(0) > head[:2_000:2].count(0) else "utf-16-be"
        raise DataError(f"file {str(source.path)!r} must be UTF-8, but looks like UTF-16. Use --encoding {variant}.")
    return "utf-8"


def _other_encoding(source: TableSource, encoding: str) -> str:
    """Return advice for a text that is not in the encoding with which it was read."""
    with source.open() as file:
        content = file.read()
    try:
        content.decode(encoding)
        return f"file {str(source.path)!r} is not in {encoding}. Use another --encoding."
    except UnicodeDecodeError as error:
        start, end = error.start, error.end
    fit = "cp1252"
    try:
        content.decode(fit)
    except UnicodeDecodeError:
        fit = "latin-1"
    before = re.search(rb"[^\s,;\t\"]*$", content[max(start - 40, 0) : start])
    after = re.match(rb"[^\s,;\t\"]*", content[start : end + 40])
    word = ((before[0] if before else b"") + (after[0] if after else b"")).decode(fit, errors="replace")
    return (
        f"file {str(source.path)!r} must be in {encoding.upper()}, but byte {start:,} is not. Save the file as UTF-8, "
        f"or use its encoding. With --encoding {fit} the text there is {word!r}; if that looks wrong, try another one."
    )


def _as_numbers(
    frame: pd.DataFrame, name: str, form: FileFormat, path: Path, earlier: str | None
) -> tuple[pd.Series, str]:
    """Return a column of texts as numbers, and the decimal mark (with % for percentages). Warns how it was read."""
    usual = (earlier or "").rstrip("%") or "."
    found = read_number_text(frame[name], decimal=form.decimal, missing=form.missing, usual=usual)
    broken = found.broken
    if len(broken):
        marks = list(dict.fromkeys(broken))
        advice = (
            "" if len(marks) > 5 else f" To declare marks of missing values: --missing {shlex.quote(csv_line(marks))}."
        )
        raise DataError(
            f"file {str(path)!r}: column {name!r} must be numeric, got {broken.iloc[0]!r} in "
            f"{place_of(frame, broken.index[0])} ({plural(len(broken), 'such value')}).{advice}"
        )
    if earlier is not None and found.values.notna().any() and found.percent != earlier.endswith("%"):
        expected, got = ("with", "without") if earlier.endswith("%") else ("without", "with")
        raise DataError(
            f"file {str(path)!r}: column {name!r} must contain numbers {expected} %, as in fit, got numbers {got} %."
        )
    if len(frame):
        warnings.warn(f"file {str(path)!r}: {reading_of(name, found)}.", FileNote, stacklevel=3)
    return found.values, found.decimal + "%" * found.percent


def place_of(frame: pd.DataFrame, row: int) -> str:
    """Return the line of a row in its CSV file, in which the header is line 1; in other files its number.

    Blank lines and line ends inside quotes are not counted.
    """
    if "skipped" not in frame.attrs:
        return f"data row {row + 1}"
    line = row + 2
    for skipped in frame.attrs["skipped"]:
        line += skipped < line
    return f"line {line}"


def _once(names: Sequence[str], path: Path) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"file {str(path)!r} has two columns called {repeated[0]!r}. Rename one of them.")


def column_of(frame: pd.DataFrame, name: str, path: Path, role: str = "") -> pd.Series:
    """Return a column of a file. Raises `DataError` with its `role` and the nearest names if there is none."""
    known = [str(column) for column in frame.columns]
    column = matching_column(name, known)
    if column is None:
        listed = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
        advice = separator_hint(name, known) or nearest_columns(name, known)
        raise DataError(f"file {str(path)!r} has no column {name!r}{role}. {advice}Its columns are: {listed}.")
    return frame.iloc[:, known.index(column)]


def has_column(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a table has a column of a name, as `column_of` finds it."""
    return matching_column(name, [str(column) for column in frame.columns]) is not None


_MOST_REPEATED = 20_000_000
