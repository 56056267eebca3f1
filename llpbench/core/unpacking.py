"""Unpacking with a limit: a small file must neither fill the memory nor run for ever."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, cast

from llpbench.core.errors import DataError

_MOST_TIMES = 100
"""Largest size of unpacked data relative to packed data. It is 5 to 12 for journals, and 3 to 40 for tables."""
_ALWAYS_ALLOWED = 10**9
"""Unpacked size in bytes that is allowed for any packed size."""
_BUFFER = 1 << 20
_OPENERS: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}


def open_packed(path: Path, kind: str, always: int = _ALWAYS_ALLOWED) -> IO[bytes]:
    """Return the unpacked bytes of a file. `kind` is gzip, bz2 or xz.

    Reading raises `DataError` for damaged data, and beyond `_MOST_TIMES` the packed size or `always` bytes, whichever
    is larger.
    """
    file = _OPENERS[kind](path)
    return cast(IO[bytes], io.BufferedReader(_Limited(file, path, path.stat().st_size, always), _BUFFER))


def require_unpackable(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise `DataError` if an archive says that its files are larger than the limit of `open_packed`.

    `zipfile` never reads more than that.
    """
    members = archive.infolist()
    packed = sum(each.compress_size for each in members)
    if sum(each.file_size for each in members) > _most(packed, _ALWAYS_ALLOWED):
        raise _too_large(path, packed, _ALWAYS_ALLOWED)


def _most(packed: int, always: int) -> int:
    return max(_MOST_TIMES * packed, always)


def _too_large(path: Path, packed: int, always: int) -> DataError:
    return DataError(
        f"file {str(path)!r} unpacks from {packed / 1e6:,.2f} MB to more than {_most(packed, always) / 1e6:,.0f} MB. "
        "Replace it if it is damaged, or unpack it yourself and give the unpacked file."
    )


class _Limited(io.RawIOBase):
    """A stream that raises `DataError` beyond the limit."""

    def __init__(self, file: Any, path: Path, packed: int, always: int) -> None:
        self._file, self._path, self._packed, self._always = file, path, packed, always
        self._left = _most(packed, always)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
            raise DataError(f"file {str(self._path)!r} cannot be unpacked: {error}. Replace it.") from error
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(self._path, self._packed, self._always)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
