"""Files of a table: a text table (packed or not), a workbook or parquet; a folder or a pattern has several.

Cells of workbooks are read as text.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.etree.ElementTree import iterparse
from zipfile import ZipFile

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from llpbench.core.errors import DataError
from llpbench.core.files import open_packed, require_unpackable
from llpbench.core.text import one_line

_TEXTS = (".csv", ".tsv", ".tab", ".txt")
_BOOKS = (".xlsx", ".xlsm")
_PACKED = (".gz", ".bz2", ".xz")
_PARQUETS = (".parquet", ".pq")
_ENDINGS = (*_TEXTS, *_BOOKS, *_PARQUETS)
HEAD = 1 << 20
_BYTES_OF_A_VALUE = 8
_UNPACKED = 4.0
"""Assumed size of an unpacked text table, relative to the packed one."""
_PACKINGS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "xz"}
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook. Save it as .xlsx or .csv.",
    b"%PDF": "is a PDF. Give a table: .csv, .xlsx or .parquet.",
}

_MOST_TITLES = 20
_FAR_MORE = 2
"""Factor between the rows of the sheet that is meant and those of any other with the same columns."""
_ALWAYS_READ, _MOST_TIMES = 10**7, 100
"""Cells of a sheet's rectangle that are always read; and their largest number, relative to the cells that it has."""
_MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"


@dataclass(frozen=True, eq=False)
class TableSource:
    """One file."""

    path: Path
    kind: str  # csv, excel or parquet
    packed: str | None = None  # gzip, bz2 or xz
    default: str = ","  # separator if none is detected
    keys: tuple[tuple[str, str], ...] = ()  # columns from names of folders, such as district=D01

    def open(self) -> IO[bytes]:
        """Return the unpacked bytes. Reading raises `DataError` if there are far too many (`core/files.py`)."""
        return open(self.path, "rb") if self.packed is None else open_packed(self.path, self.packed)

    def metadata(self) -> pq.FileMetaData | None:
        """Return what a parquet file says about its table; None for other files, and for one that cannot be read."""
        with suppress(pa.ArrowException, OSError):  # the fit reports it
            return pq.read_metadata(self.path) if self.kind == "parquet" else None
        return None

    @property
    def values(self) -> float:
        """Approximate size of the table in memory in bytes, without reading it."""
        if (found := self.metadata()) is not None:
            return float(found.num_rows * found.num_columns * _BYTES_OF_A_VALUE)
        return self.path.stat().st_size * (_UNPACKED if self.packed else 1.0)

    @staticmethod
    def all(path: Path) -> list[TableSource]:
        """Return the files of a path (a file, a folder or a pattern). Raises `DataError` if there is none."""
        if str(path) == "-":
            raise DataError("standard input cannot be read, got -. Give a file.")
        if not (files := TableSource.files(path)):
            what = f"folder {str(path)!r} has no table" if path.is_dir() else f"there is no file {str(path)!r}"
            raise DataError(f"{what}. Give a .csv, .tsv, .xlsx or .parquet file, or a folder with such files.")
        return [_source(each, path if path.is_dir() else each) for each in files]

    @staticmethod
    def files(path: Path) -> dict[Path, tuple[int, int]]:
        """Return the files of a path (a file, a folder or a pattern), each with its size and time; none if absent."""
        if path.is_dir():
            parts = {each: each.relative_to(path).parts for each in path.rglob("*")}
            files = [each for each, names in parts.items() if not any(name.startswith((".", "_")) for name in names)]
            files = [each for each in files if {*map(str.lower, each.suffixes[-2:])} & {*_ENDINGS}]
        else:
            files = [path] if path.exists() else [*map(Path, glob.glob(str(path), recursive=True))]
        found = {}
        for file in sorted(file for file in files if not file.is_dir()):
            with suppress(FileNotFoundError):  # removed just now
                found[file] = (status := file.stat()).st_size, status.st_mtime_ns
        return found


def _source(path: Path, root: Path) -> TableSource:
    """Return the kind of a file, by its first bytes and its ending. Raises `DataError` if it is no table."""
    pairs = (part.partition("=") for part in path.relative_to(root).parts[:-1])
    keys = tuple((name, value) for name, equals, value in pairs if equals)
    if not path.is_file():
        raise DataError(f"{str(path)!r} is a pipe or device, which can be read only once. Give a file.")
    try:
        with open(path, "rb") as file:
            first = file.read(8)
    except OSError as error:
        raise DataError.of(path, f"cannot be read: {error.strerror or error}.") from error
    suffixes = [suffix.lower() for suffix in path.suffixes]
    ending = next((each for each in reversed(suffixes) if each not in _PACKED), "")
    packed = next((kind for mark, kind in _PACKINGS.items() if first.startswith(mark)), None)
    if told := next((told for mark, told in _FOREIGN.items() if first.startswith(mark)), ""):
        raise DataError.of(path, told)
    if packed and ending in (*_BOOKS, *_PARQUETS):
        raise DataError.of(path, "is packed, which only text tables can be. Unpack it.")
    if ending in _BOOKS or (first.startswith(b"PK\x03\x04") and ending != ".zip"):
        return TableSource(path, "excel", keys=keys)
    if first.startswith(b"PAR1") or ending in _PARQUETS:
        return TableSource(path, "parquet", keys=keys)
    if ending not in _TEXTS and not (packed and not ending):
        raise DataError.of(path, f"must end in {', '.join(_ENDINGS)}, text tables also with .gz, .bz2 or .xz.")
    return TableSource(path, "csv", packed, "\t" if ending in (".tsv", ".tab") else ",", keys)


def sheet_as_csv(path: Path, wanted: Sequence[Sequence[str]] = ()) -> tuple[bytes, str]:
    """Return the sheet of a workbook as CSV, and a note that names it if others have content, too.

    `wanted` are columns that the sheet must have, each with its possible names. Of several such sheets the one with by
    far the most rows is meant: people, not their districts. Raises `DataError` if no sheet is meant, or if openpyxl is
    not installed.
    """
    try:
        _require_dense(path)
        sheets = pd.read_excel(
            path, sheet_name=None, header=None, dtype=str, keep_default_na=False, na_values=[""], engine="openpyxl"
        )
    except ImportError as error:
        advice = "Install it (pip install openpyxl), or save the table as .csv."
        raise DataError.of(path, f"needs openpyxl to be read. {advice}") from error
    except DataError:
        raise
    except Exception as error:  # openpyxl passes on errors of zipfile, zlib and XML
        raise DataError.of(path, f"is no readable workbook ({one_line(error)}). Save it again.") from error
    filled = {name: _without_empty(sheet) for name, sheet in sheets.items() if sheet.notna().any(axis=None)}
    having = [name for name, sheet in filled.items() if len(filled) == 1 or _has(sheet, wanted)]
    having.sort(key=lambda name: -len(filled[name]))
    if not having or (len(having) > 1 and len(filled[having[0]]) < _FAR_MORE * len(filled[having[1]])):
        names = ", ".join(map(repr, having or filled or ["no sheet"]))
        columns = " and ".join(dict.fromkeys(repr(each[0]) for each in wanted))
        wrong = f"must have one sheet with {columns or 'content'}, got {len(having)} of {names}"
        raise DataError.of(path, f"{wrong}. Save the sheet that you want as a separate file.")
    text = filled[having[0]].replace(_MIDNIGHT, r"\1", regex=True).to_csv(index=False, header=False)
    note = f"read sheet {having[0]!r} of {', '.join(map(repr, filled))}" if len(filled) > 1 else ""
    return text.encode(), note


def _require_dense(path: Path) -> None:
    """Raise `DataError` for a sheet with a cell so far away that the rows and columns up to it fill the memory."""
    from openpyxl.utils.cell import coordinate_to_tuple  # type: ignore[import-untyped]

    with ZipFile(path) as archive:
        require_unpackable(archive, path)
        for member in archive.namelist():
            if not re.fullmatch(r"/?xl/worksheets/[^/]+\.xml", member):
                continue
            cells = rows = columns = 0
            with archive.open(member) as sheet:
                for _, element in iterparse(sheet):
                    if element.tag.rpartition("}")[2] == "c" and (place := element.get("r")):
                        row, column = coordinate_to_tuple(place)
                        cells, rows, columns = cells + 1, max(rows, row), max(columns, column)
                    element.clear()
            if rows * columns > max(_ALWAYS_READ, _MOST_TIMES * cells):
                wrong = f"has a sheet of {rows:,} rows and {columns:,} columns, almost all empty"
                raise DataError.of(path, f"{wrong}. Delete the content far from its table, or save the table as .csv.")


def _without_empty(sheet: pd.DataFrame) -> pd.DataFrame:
    filled = sheet.notna().any(axis=1)
    return sheet.loc[filled.idxmax() : filled[::-1].idxmax()].dropna(axis="columns", how="all")


def _has(sheet: pd.DataFrame, wanted: Sequence[Sequence[str]]) -> bool:
    rows = ({str(cell).strip() for cell in row.dropna()} for _, row in sheet.head(_MOST_TITLES).iterrows())
    return any(all(any(name.strip() in row for name in each) for each in wanted) for row in rows)
