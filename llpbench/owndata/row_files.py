"""Rows and bags as files: CSV, whose types are inferred, or parquet. An index that pandas wrote is a column."""

from __future__ import annotations

import io
import re
import shlex
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas._libs.parsers import STR_NA_VALUES
from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype
from pandas.errors import ParserWarning

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.files import obstacle, replace_file
from llpbench.core.spreadsheets import frame_as_csv
from llpbench.core.text import one_line
from llpbench.data.frames import as_text, without_decimals
from llpbench.owndata.column_names import matching_column, nearest_columns, plain
from llpbench.owndata.csv_dialect import AS_IT_SHOWS, AmbiguousError, Dialect, FileFormat, read_dialect
from llpbench.owndata.marks import csv_line
from llpbench.owndata.number_text import read_number_text, reading_of
from llpbench.owndata.table_sources import HEAD, TableSource, sources

_FEWEST_BYTES = 16
"""in which zeros show UTF-16"""
_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
"""encodings by how files begin"""


class FileNote(UserWarning):
    """Assumptions about a file."""


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Types of the columns of a file."""

    texts: frozenset[str]
    """as they stand there; those everybody marks gaps by are missing"""
    keys: frozenset[str]
    """as they stand there; an empty cell alone is missing"""
    features: frozenset[str] | None
    """where given, all columns but these are read as keys"""

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
) -> pd.DataFrame:
    """The table of a path: a file (CSV, Excel, parquet; packed or not), the parts in a folder or of a pattern, or `-`.

    `types`: columns that are text or numbers whatever they look like. `keys`: columns of names, in a CSV read as they
    stand there (01001 is not 1001, NA is Namibia), where an empty cell alone is missing. With `features`, all columns
    but these are read so. `form`: how a CSV is written, where it does not show.

    `decimals`: how an earlier file was read, whose numbers these continue. The frame has `attrs["decimals"]`: of each
    column of texts that was read as numbers the mark before decimals, with "%" behind it for percents.

    Raises `DataError` for a file that is not there or not what its name says, and for columns that cannot be so. Warns
    of what was assumed (`FileNote`).
    """
    types = types or {}
    wanted = _wanted(types, keys, features)
    found = sources(path)
    frame, form = _read(found[0], wanted, form)
    if len(found) > 1:
        frame = _joined(found, frame, wanted, form)
    frame.attrs["decimals"] = convert(frame, types, form, path, decimals)
    return frame


def read_piece(
    source: TableSource | tuple[TableSource, Any],
    types: Mapping[str, str],
    keys: Collection[str],
    features: Collection[str] | None,
    form: FileFormat,
) -> pd.DataFrame:
    """Return a table, or a piece of one, as `read_rows` reads it before columns get their types.

    A piece of a text table is a source whose content begins with the header. A piece of a parquet file is the source
    and an arrow table.
    """
    wanted = _wanted(types, keys, features)
    return _read(source, wanted, form)[0] if isinstance(source, TableSource) else _named(*source, wanted)


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
            frame[column], assumed[column] = _as_numbers(frame[column], form, path, earlier)
    if form.decimal == ",":  # so pandas has read it
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
    """The parts of a table under one another. Raises `DataError` unless they have the same columns."""
    parts = [first, *(_read(source, wanted, form)[0] for source in found[1:])]
    for source, part in zip(found, parts, strict=True):
        if lacking := {*first.columns} ^ {*part.columns}:
            raise DataError(
                f"file {str(source.path)!r} must have the columns of {str(found[0].path)!r}, got a difference in "
                f"{', '.join(map(repr, sorted(lacking)[:5]))}."
            )
    kinds = {name: {is_numeric_dtype(part[name]) for part in parts if part[name].notna().any()} for name in first}
    if mixed := [name for name, kind in kinds.items() if len(kind) > 1 and not wanted.is_text(name)]:
        # 7 is "7" beside texts, whatever a gap made of it in its part
        again = replace(wanted, texts=wanted.texts | _both(mixed))
        return _joined(found, _read(found[0], again, form)[0], again, form)
    return pd.concat([part[list(first.columns)] for part in parts], ignore_index=True)


def _read(source: TableSource, wanted: _Wanted, form: FileFormat) -> tuple[pd.DataFrame, FileFormat]:
    """One table, and how it is written."""
    try:
        if source.kind == "parquet":
            frame = _read_parquet(source, wanted)
        elif source.kind == "excel":
            frame = _read_excel(source, wanted, form)
        else:
            frame, form = _read_csv(source, wanted, form)
    except (OSError, ValueError, EOFError, LookupError) as error:  # of pandas, arrow and what unpacks
        raise DataError(f"file {str(source.path)!r} cannot be read as {source.kind}: {one_line(error)}") from error
    return _renamed(frame, source), form


def _renamed(frame: pd.DataFrame, source: TableSource) -> pd.DataFrame:
    frame.columns = [str(name) for name in frame.columns]  # as they are named on the command line
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
    for name in exact:  # whole numbers of 64 bits beside a null are not floats, which would merge them
        frame[name] = table.column(name).to_pandas(integer_object_nulls=True).to_numpy()
    return frame


def _read_excel(source: TableSource, wanted: _Wanted, form: FileFormat) -> pd.DataFrame:
    with source.open() as file:
        try:
            frame: pd.DataFrame = pd.read_excel(
                file,
                skiprows=form.skip_rows,
                keep_default_na=True,
                na_values=list(form.missing),
                converters=None,
            )
        except ImportError as error:
            raise DataError(
                f"file {str(source.path)!r} needs openpyxl to be read. Install it (pip install openpyxl), or save the "
                "table as .csv."
            ) from error
    del wanted
    return frame


def _read_csv(source: TableSource, wanted: _Wanted, form: FileFormat) -> tuple[pd.DataFrame, FileFormat]:
    head = source.head()
    encoding = form.encoding or encoding_of(head, source)
    text = head.decode(encoding, errors="replace")
    if len(head) >= HEAD:
        text = text[: text.rfind("\n") + 1]
    if re.match(r"\s*<(!doctype|html|\?xml|table)", text, re.IGNORECASE):
        raise DataError(f"file {str(source.path)!r} is a web page or XML. Save the table in it as .csv.")
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
            warnings.simplefilter("error", ParserWarning)  # of rows with more values than there are names
            frame = parsed(
                decimal=dialect.decimal,
                dtype=texts,
                low_memory=False,
                keep_default_na=False,
                na_values={name: [""] if name in keys else marks for name in header},
                index_col=False,  # else pandas shifts the columns where rows end with a comma
            )
    except UnicodeDecodeError as error:
        raise DataError(_other_encoding(source, encoding)) from error
    except ParserWarning as error:
        raise DataError(
            f"file {str(source.path)!r} has more values in a row than the {len(header)} names of its header. Name "
            "every column, or take the commas at the ends of rows away. If lines stand before the header: "
            "--skip-rows 1 (so many)."
        ) from error
    for note in (dialect.note, dialect.numbers if len(texts) < len(header) else ""):
        if note:
            warnings.warn(f"file {str(source.path)!r}: {note}.", FileNote, stacklevel=4)
    return frame, replace(form, separator=dialect.separator, decimal=form.decimal or _certain(dialect))


def _certain(dialect: Dialect) -> str | None:
    return "," if dialect.decimal == "," else None


def encoding_of(head: bytes, source: TableSource) -> str:
    """Return the encoding of a text table. Raises `DataError` for UTF-16 without its mark."""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    if len(head) >= _FEWEST_BYTES and head[:2_000].count(0) > len(head[:2_000]) / 4:
        told = "utf-16-le" if head[1:2_000:2].count(0) > head[:2_000:2].count(0) else "utf-16-be"
        raise DataError(f"file {str(source.path)!r} must be UTF-8, and looks like UTF-16. Give --encoding {told}.")
    return "utf-8"


def _other_encoding(source: TableSource, encoding: str) -> str:
    """Advice for a text that is not in the encoding it was read in."""
    with source.open() as file:
        content = file.read()
    try:
        content.decode(encoding)
        return f"file {str(source.path)!r} is not in {encoding}. Give another --encoding."
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
        f"file {str(source.path)!r} must be in {encoding.upper()}, and is not (byte {start:,}). Save it as UTF-8, or "
        f"give its encoding. With --encoding {fit} the text there is {word!r}. If that looks wrong, try another."
    )


def _as_numbers(column: pd.Series, form: FileFormat, path: Path, earlier: str | None) -> tuple[pd.Series, str]:
    """A column of texts as numbers, and the mark before decimals (% for percents). Warns how it was read."""
    usual = (earlier or "").rstrip("%") or "."
    found = read_number_text(column, decimal=form.decimal, missing=form.missing, usual=usual)
    name, broken = str(column.name), found.broken
    if len(broken):
        marks = list(dict.fromkeys(broken))
        some = "" if len(marks) > 5 else f" Name what marks missing ones: --missing {shlex.quote(csv_line(marks))}."
        raise DataError(
            f"file {str(path)!r}: {len(broken):,} values of column {name!r} are no numbers, such as "
            f"{broken.iloc[0]!r} in row {broken.index[0]} (counted from 0).{some}"
        )
    if earlier is not None and found.values.notna().any() and found.percent != earlier.endswith("%"):
        ways = ("with and without" if earlier.endswith("%") else "without and with").split(" and ")
        raise DataError(
            f"file {str(path)!r}: column {name!r} must hold numbers {ways[0]} %, as in fit, got some {ways[1]}."
        )
    if len(column):
        warnings.warn(f"file {str(path)!r}: {reading_of(name, found)}.", FileNote, stacklevel=3)
    return found.values, found.decimal + "%" * found.percent


def _once(names: Sequence[str], path: Path) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"file {str(path)!r} has two columns called {repeated[0]!r}. Rename one of them.")


def repeated(frame: pd.DataFrame, name: str, path: Path) -> pd.DataFrame:
    """Each row as often as a column says, without the column. Raises `DataError` unless it holds whole numbers from 0,
    of at most `_MOST_REPEATED` rows in all."""
    column = column_of(frame, name, path)
    numbers = column if is_numeric_dtype(column) else read_number_text(column).values
    times = pd.to_numeric(numbers).to_numpy(dtype=np.float64, na_value=np.nan)
    if not ((times >= 0) & (times % 1 == 0)).all():
        wrong = column[~((times >= 0) & (times % 1 == 0))].iloc[0]
        raise DataError(f"file {str(path)!r}: column {name!r} must hold whole numbers from 0, got {wrong!r}.")
    if times.sum() > _MOST_REPEATED:
        raise DataError(
            f"file {str(path)!r}: column {name!r} must add up to {_MOST_REPEATED:,} at most, got {times.sum():,.0f}."
        )
    places = np.repeat(np.arange(len(frame)), times.astype(np.int64))
    return frame.drop(columns=[str(column.name)]).iloc[places].reset_index(drop=True)


def demand_room(path: Path) -> None:
    """Raises `DataError` for a table that `write_rows` cannot write: another ending, no folder, a read-only one."""
    if path.suffix not in (".csv", ".parquet"):
        raise DataError(f"{str(path)!r} must end in .csv or .parquet.")
    told = f"{str(path)!r} is a folder" if path.is_dir() else obstacle(path)
    if told:
        raise DataError(f"file {str(path)!r} cannot be written: {told}. Choose another name.")
    if not path.parent.is_dir():
        absent = str(path.parent)
        raise DataError(f"file {str(path)!r} cannot be written: there is no folder {absent!r}. Make it first.")


def write_rows(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, without its index; in a .csv texts that a spreadsheet would take for a formula get an apostrophe.

    Raises `DataError` as `demand_room`, and if the disk does not let it."""
    demand_room(path)
    try:
        replace_file(path, frame.to_parquet(index=False) if path.suffix == ".parquet" else frame_as_csv(frame))
    except OSError as error:
        raise DataError(f"file {str(path)!r} cannot be written: {one_line(error)}") from error


def column_of(frame: pd.DataFrame, name: str, path: Path) -> pd.Series:
    """A column of a file's table. Raises `DataError` with the nearest names if there is none."""
    known = [str(column) for column in frame.columns]
    column = matching_column(name, known)
    if column is None:
        some = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
        raise DataError(
            f"file {str(path)!r} has no column {name!r}. {nearest_columns(name, known)}Its columns are: {some}."
        )
    return frame.iloc[:, known.index(column)]


def has_column(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a table has a column of a name, as `column_of` finds it."""
    return matching_column(name, [str(column) for column in frame.columns]) is not None


def bag_keys(frame: pd.DataFrame, names: Sequence[str], path: Path) -> pd.DataFrame:
    """The columns that say which bag a row is of, as texts: two files may hold them in different types. A whole number
    is that also where gaps in its column made pandas write 7.0; raises `DataError` if a file has it both ways."""
    keys = {}
    for name in names:
        column = column_of(frame, name, path)
        _require_exact(column, path)
        written = as_text(column).str.strip()
        keys[name] = _key_texts(written)
        ways = written.map(plain, na_action="ignore").groupby(keys[name]).unique()
        several = ways[[len({*map(_without_midnight, each)}) > 1 for each in ways]]
        if several.size:
            both = " and ".join(map(repr, several.iloc[0]))
            raise DataError(
                f"column {name!r} of file {str(path)!r} calls bags {both}, which is the same number. Write it "
                "in one way."
            )
    return pd.DataFrame(keys)


def _require_exact(column: pd.Series, path: Path) -> None:
    """Raises `DataError` for identifiers that a program has rounded, so that one name may stand for several bags."""
    found: Any = None
    if column.dtype.kind == "f":
        large = column[column.abs() >= _EXACT]
        found = f"{large.iloc[0]:.0f}" if len(large) else None
    elif column.dtype == object or pd.api.types.is_string_dtype(column):
        rounded = column.dropna().astype(str).str.fullmatch(r"\s*\d[.,]\d+[eE]\+\d\d\s*")
        found = column.dropna()[rounded.to_numpy(dtype=bool)].iloc[0] if rounded.any() else None
    if found is not None:
        raise DataError(
            f"column {str(column.name)!r} of file {str(path)!r} must hold exact identifiers, got {found!r}, which "
            "another program has rounded: different bags may have one name. Write it again as text or as whole numbers."
        )


def bags_as_texts(bags: Any, names: Sequence[str]) -> Any:
    """[bags] the labels of bags, as `bag_keys` has those of files. Raises `LLPBenchError` unless each is of as many
    columns as there are `names`."""
    keys = [bag if isinstance(bag, tuple) else (bag,) for bag in bags]
    if len(keys[0]) != len(names):
        raise LLPBenchError(
            f"bags must be named by as many columns as in fit ({len(keys[0])}, as in {bags[0]!r}), got {len(names)} "
            f"({', '.join(names)}). Give the same columns: --bag-column NAME+NAME."
        )
    texts = [_key_texts(pd.Series(column, dtype=object)) for column in zip(*keys, strict=True)]
    found = np.empty(len(keys), dtype=object)
    found[:] = list(zip(*texts, strict=True)) if len(names) > 1 else texts[0].tolist()
    return found


def _key_texts(keys: pd.Series) -> pd.Series:
    return as_text(keys).str.strip().map(_key_text, na_action="ignore")


def _key_text(text: str) -> str:
    """A name of a bag: whole numbers lose their decimals, midnight its hour, letters are composed."""
    return plain(without_decimals(_without_midnight(text)))


def _without_midnight(text: str) -> str:
    """A date for the first moment of a day, other times in one form; any other text as it is."""
    found = _TIME.fullmatch(text)
    if found is None:
        return text
    day, time, seconds, zone = found.groups()
    seconds = re.sub(r"\.?0+$", "", seconds or "") if "." in (seconds or "") else seconds
    clock = f"{time}{seconds or ':00'}"
    return day if clock == "00:00:00" else f"{day} {clock}{zone or ''}"


_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[-+]\d\d:?\d\d)?")
_MOST_REPEATED = 20_000_000
_EXACT = 2.0**53
"""from which floats leave out whole numbers"""
