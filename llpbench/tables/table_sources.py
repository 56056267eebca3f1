"""Sources of a table: a file, compressed or not, standard input, a folder, or a pattern."""

from __future__ import annotations

import glob
import io
import sys
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from llpbench.core.errors import DataError
from llpbench.core.unpacking import open_member, open_packed, require_unpackable

_TEXTS = (".csv", ".tsv", ".tab", ".txt")
_BOOKS = (".xlsx", ".xlsm")
_PACKED = (".gz", ".bz2", ".xz", ".zip")
ENDINGS = (*_TEXTS, *_BOOKS, ".parquet", ".pq")
HEAD = 1 << 20
_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook. Save it as .xlsx or .csv",
    b"%PDF": "is a PDF. Give a table: .csv, .xlsx or .parquet",
}


@dataclass(frozen=True, eq=False)
class TableSource:
    """One table."""

    path: Path
    kind: str
    """csv, excel or parquet"""
    packed: str | None = None
    """gzip, bz2, xz or zip"""
    content: bytes | None = None
    """content, if it is not in a file of its own"""
    usual: str = ","
    """default separator"""
    keys: tuple[tuple[str, str], ...] = ()
    """columns from names of folders, such as district=D01"""
    member: str = ""
    """name in the .zip file"""

    def open(self) -> IO[bytes]:
        """Return the unpacked bytes. Reading raises `DataError` if there are far too many (`core/unpacking.py`)."""
        if self.packed == "zip":
            return open_member(self.path, self.member, self.content)
        if self.packed is not None:
            return open_packed(self.path, self.packed, self.content)
        return open(self.path, "rb") if self.content is None else io.BytesIO(self.content)

    def head(self) -> bytes:
        """Return the first megabyte."""
        with self.open() as file:
            return file.read(HEAD)


def sources(path: Path) -> list[TableSource]:
    """Return the tables of a path: `-` is standard input; a folder or pattern has parts.

    Raises `DataError` if there is no table, and for other files.
    """
    if str(path) == "-":
        return [_source(path, sys.stdin.buffer.read())]
    files = parts_of(path)
    if not files:
        what = f"folder {str(path)!r} has no table" if path.is_dir() else f"there is no file {str(path)!r}"
        raise DataError(f"{what}. Give a .csv, .tsv, .xlsx or .parquet file, or a folder with such files.")
    if path.is_dir():
        return [_source(each, keys=_keys(each.relative_to(path))) for each in files]
    return [_source(each, None if each.is_file() else each.read_bytes()) for each in files]


def parts_of(path: Path) -> list[Path]:
    """Return the files of a path that is a file, a folder or a pattern; none if there are none."""
    if path.is_dir():
        return sorted(each for each in path.rglob("*") if _is_part(each.relative_to(path)) and each.is_file())
    if path.exists():
        return [path]
    found = sorted(map(Path, glob.glob(str(path), recursive=True))) if glob.has_magic(str(path)) else []
    return [each for each in found if each.is_file()]


def is_among(path: Path, read: Path) -> bool:
    """Return whether a file belongs to a path that is read (a file, a folder or a pattern)."""
    if not path.suffix or str(read) == "-":
        return False
    if read.is_dir():
        return read.resolve() in path.resolve().parents
    if read.exists():
        return path.exists() and path.samefile(read)
    return glob.has_magic(str(read)) and path.resolve().match(str(read.absolute()))


def _is_part(path: Path) -> bool:
    endings = [suffix.lower() for suffix in path.suffixes]
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return bool(endings) and not hidden and any(each in ENDINGS for each in endings[-2:])


def _keys(path: Path) -> tuple[tuple[str, str], ...]:
    pairs = (part.partition("=") for part in path.parts[:-1])
    return tuple((name, value) for name, equals, value in pairs if equals)


def _source(path: Path, content: bytes | None = None, keys: tuple[tuple[str, str], ...] = ()) -> TableSource:
    try:
        first = content[:8] if content is not None else _first(path)
    except OSError as error:
        raise DataError(f"file {str(path)!r} cannot be read: {error.strerror or error}.") from error
    endings = [suffix.lower() for suffix in path.suffixes]
    ending = next((each for each in reversed(endings) if each not in _PACKED), "")
    usual = "\t" if ending in (".tsv", ".tab") else ","
    packed = _packing(first)
    if first[:4] == _PARQUET:
        return TableSource(path, "parquet", content=content, keys=keys)
    if first[:4] == _ZIP:
        return _zipped(path, content, keys)
    if told := next((told for mark, told in _FOREIGN.items() if first.startswith(mark)), ""):
        raise DataError(f"file {str(path)!r} {told}.")
    if ending in (".parquet", ".pq"):
        if packed:
            raise DataError(f"file {str(path)!r} is a compressed parquet file. Unpack it.")
        return TableSource(path, "parquet", content=content, keys=keys)
    if ending in _BOOKS:
        raise DataError(f"file {str(path)!r} has the name of an Excel workbook but is none. Save it again.")
    if content is None and ending not in _TEXTS and not (packed and not ending):
        raise DataError(f"file {str(path)!r} must end in {', '.join(ENDINGS)}, also with .gz, .bz2, .xz or .zip.")
    return TableSource(path, "csv", packed, content, usual, keys)


def _packing(first: bytes) -> str | None:
    found = {b"\x1f\x8b": "gzip", b"BZ": "bz2", b"\xfd7": "xz"}.get(first[:2])
    return found if found != "bz2" or first[:3] == b"BZh" else None


def _first(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(8)


def _zipped(path: Path, content: bytes | None, keys: tuple[tuple[str, str], ...]) -> TableSource:
    """Return the only table in a .zip file. An Excel workbook is also a .zip file."""
    try:
        with zipfile.ZipFile(path if content is None else io.BytesIO(content)) as archive:
            names = archive.namelist()
            if "[Content_Types].xml" in names:
                require_unpackable(archive, path)
                return TableSource(path, "excel", content=content, keys=keys)
        tables = [name for name in names if Path(name).suffix.lower() in ENDINGS and "__MACOSX" not in name]
        if len(tables) != 1:
            some = ", ".join(tables[:5]) or "none"
            raise DataError(f"file {str(path)!r} must contain one table, got {some}. Unpack it, and give one table.")
        inner = path.with_name(Path(tables[0]).name)
        with open_member(path, tables[0], content) as file:
            first = file.read(8)
            if first[:4] in (_PARQUET, _ZIP) or _packing(first) is not None:
                return _source(inner, first + file.read(), keys)
        return replace(_source(inner, first, keys), path=path, packed="zip", member=tables[0], content=content)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error) as error:
        raise DataError(f"file {str(path)!r} cannot be unpacked: {error}.") from error
