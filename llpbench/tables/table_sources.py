"""Files of a table: a text table (packed or not), a workbook or parquet; a folder or a pattern has several."""

from __future__ import annotations

import glob
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from llpbench.core.errors import DataError
from llpbench.core.files import open_packed, require_unpackable

_TEXTS = (".csv", ".tsv", ".tab", ".txt")
_BOOKS = (".xlsx", ".xlsm")
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
_ENDINGS = (*_TEXTS, *_BOOKS, ".parquet", ".pq")
HEAD = 1 << 20
_BYTES_OF_A_VALUE = 8
_UNPACKED = 4.0
"""Assumed size of an unpacked text table, relative to the packed one."""
_PACKINGS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "xz"}
_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook. Save it as .xlsx or .csv",
    b"%PDF": "is a PDF. Give a table: .csv, .xlsx or .parquet",
}


@dataclass(frozen=True, eq=False)
class TableSource:
    """One file."""

    path: Path
    kind: str
    """csv, excel or parquet"""
    packed: str | None = None
    """gzip, bz2 or xz"""
    default: str = ","
    """separator if none is detected"""
    keys: tuple[tuple[str, str], ...] = ()
    """columns from names of folders, such as district=D01"""

    def open(self) -> IO[bytes]:
        """Return the unpacked bytes. Reading raises `DataError` if there are far too many (`core/files.py`)."""
        return open(self.path, "rb") if self.packed is None else open_packed(self.path, self.packed)

    def head(self) -> bytes:
        """Return the first megabyte."""
        with self.open() as file:
            return file.read(HEAD)

    @property
    def values(self) -> float:
        """Approximate size of the table in memory in bytes, without reading it."""
        if self.kind != "parquet":
            return self.path.stat().st_size * (_UNPACKED if self.packed else 1.0)
        try:
            found = pq.read_metadata(self.path)
        except (pa.ArrowException, OSError):  # the fit reports it
            return 0.0
        return float(found.num_rows * found.num_columns * _BYTES_OF_A_VALUE)

    @staticmethod
    def all(path: Path) -> list[TableSource]:
        """Return the files of a path (a file, a folder or a pattern). Raises `DataError` if there is none."""
        if str(path) == "-":
            raise DataError("standard input cannot be read, got -. Give a file.")
        if not (files := TableSource.files(path)):
            what = f"folder {str(path)!r} has no table" if path.is_dir() else f"there is no file {str(path)!r}"
            raise DataError(f"{what}. Give a .csv, .tsv, .xlsx or .parquet file, or a folder with such files.")
        return [_source(each, _keys(each.relative_to(path)) if path.is_dir() else ()) for each in files]

    @staticmethod
    def files(path: Path) -> dict[Path, tuple[int, int]]:
        """Return the files of a path (a file, a folder or a pattern), each with its size and time; none if absent."""
        if path.is_dir():
            files = [each for each in path.rglob("*") if _is_part(each.relative_to(path))]
        else:
            files = [path] if path.exists() else [*map(Path, glob.glob(str(path), recursive=True))]
        found = {}
        for file in sorted(files):
            with suppress(FileNotFoundError):  # removed just now
                if not file.is_dir():
                    status = file.stat()
                    found[file] = status.st_size, status.st_mtime_ns
        return found


def _is_part(path: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and any(suffix.lower() in _ENDINGS for suffix in path.suffixes[-2:])


def _keys(path: Path) -> tuple[tuple[str, str], ...]:
    pairs = (part.partition("=") for part in path.parts[:-1])
    return tuple((name, value) for name, equals, value in pairs if equals)


def _source(path: Path, keys: tuple[tuple[str, str], ...]) -> TableSource:
    """Return the kind of a file, by its first bytes and its ending. Raises `DataError` if it is no table."""
    if not path.is_file():
        raise DataError(f"{str(path)!r} is a pipe or device, which can be read only once. Give a file.")
    try:
        with open(path, "rb") as file:
            first = file.read(8)
    except OSError as error:
        raise DataError(f"file {str(path)!r} cannot be read: {error.strerror or error}.") from error
    suffixes = [suffix.lower() for suffix in path.suffixes]
    ending = next((each for each in reversed(suffixes) if each not in _PACKED), "")
    packed = next((kind for mark, kind in _PACKINGS.items() if first.startswith(mark)), None)
    if told := next((told for mark, told in _FOREIGN.items() if first.startswith(mark)), ""):
        raise DataError(f"file {str(path)!r} {told}.")
    if packed and ending in (*_BOOKS, ".parquet", ".pq"):
        raise DataError(f"file {str(path)!r} is packed, which only text tables can be. Unpack it.")
    if first.startswith(_ZIP):
        _require_workbook(path)
        return TableSource(path, "excel", keys=keys)
    if first.startswith(_PARQUET) or ending in (".parquet", ".pq"):
        return TableSource(path, "parquet", keys=keys)
    if ending in _BOOKS:
        raise DataError(f"file {str(path)!r} has the name of an Excel workbook but is none. Save it again.")
    if ending not in _TEXTS and not (packed and not ending):
        raise DataError(
            f"file {str(path)!r} must end in {', '.join(_ENDINGS)}, text tables also with .gz, .bz2 or .xz."
        )
    return TableSource(path, "csv", packed, "\t" if ending in (".tsv", ".tab") else ",", keys)


def _require_workbook(path: Path) -> None:
    """Raise `DataError` unless a .zip file is an Excel workbook that unpacks to a reasonable size."""
    try:
        with zipfile.ZipFile(path) as archive:
            if "[Content_Types].xml" not in archive.namelist():
                raise DataError(f"file {str(path)!r} is an archive. Unpack it, and give the table in it.")
            require_unpackable(archive, path)
    except zipfile.BadZipFile as error:
        raise DataError(f"file {str(path)!r} cannot be unpacked: {error}. Replace it.") from error
