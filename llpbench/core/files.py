"""Files that are written completely or not at all, temporary folders, and unpacking with a limit."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import secrets
import shutil
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.text import one_line

MODE = 0o666
"""permissions of a new file, before the umask"""
_SECONDS_TO_WRITE = 86_400.0
"""Time without a change after which a temporary file is considered abandoned by its process."""


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace the file at `path`, as `replaced` does."""
    with replaced(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file that replaces the one at `path`; on any failure the old file stays unchanged. Raises `OSError`.

    An existing file keeps its permissions. A new one has `MODE`, reduced by the umask. What a killed process has left
    is removed when `path` is written again, a day later or more.
    """
    path = Path(os.path.realpath(path))  # replace the target of a link, not the link
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    for old in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError):
            if time.time() - old.lstat().st_mtime > _SECONDS_TO_WRITE:
                old.unlink()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    private = MODE if mode is None else stat.S_IRUSR | stat.S_IWUSR
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, private)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)  # the umask does not apply to permissions that the owner has chosen
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def explained_failure(what: str, advice: str = "Choose another --out.") -> Iterator[None]:
    """Raise `LLPBenchError` instead of an `OSError` of the block. `what` failed, such as `plots cannot be written`."""
    try:
        yield
    except OSError as error:
        raise LLPBenchError(f"{what}: {error.strerror or error}. {advice}") from error


def at_home(path: str | Path) -> Path:
    """Return a path with a leading `~` expanded. Raises `LLPBenchError` if the home folder is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise LLPBenchError(f"the home folder of {str(path)!r} is unknown. Write the full path, or set HOME.") from None


def obstacle(path: Path) -> str:
    """Return why a file at `path` cannot be created or replaced; "" if no obstacle is visible in advance.

    The folders above `path` are checked as well.
    """
    try:
        above = next(each for each in (path, *path.absolute().parents) if each.exists())
        if above != path and not above.is_dir():
            return f"{str(above)!r} is a file"
        if not os.access(above, os.W_OK):
            return f"{str(above)!r} is read-only"
        with tempfile.TemporaryFile(dir=above if above.is_dir() else above.parent) as file:
            file.write(bytes(4096))  # fails if the disk is full
        return ""
    except OSError as error:
        return error.strerror or one_line(error)


_WRITTEN = ".written"
"""file with the names of the generated files in a folder, one per line"""


def generated(folder: Path) -> list[str]:
    """Return the names of the generated files in a folder. Raises `OSError`."""
    memory = folder / _WRITTEN
    return memory.read_text(encoding="utf-8").splitlines() if memory.is_file() else []


def forget_stale(folder: Path, names: Iterable[str]) -> None:
    """Delete generated files that are not in `names`, and store `names` as the generated files.

    Files that were not generated stay unchanged. Raises `OSError`.
    """
    now = sorted(names)
    for name in set(generated(folder)).difference(now):
        if name == Path(name).name:
            (folder / name).unlink(missing_ok=True)
    replace_file(folder / _WRITTEN, "".join(f"{name}\n" for name in now))


USER = str(os.getuid()) if hasattr(os, "getuid") else ""
"""Number of the user, on systems with numbers."""
_LOCK = "lock"
_PREFIX = "t"
"""Start of the name of a folder with a lock. Names are short, since paths of sockets are limited."""


def private_root(base: Path | None = None) -> Path:
    """Return the folder for this user's temporary folders, in `base` (default: the system's temporary folder).

    Libraries may open folders inside it to all users, as Ray does: no other user can pass this one. It is never
    removed, since the last processes of Ray would create it again, open.

    Raises `LLPBenchError` if another user has made it or can write to it.
    """
    root = (base or Path(tempfile.gettempdir())) / f"llpbench-{USER}"
    with suppress(FileExistsError):
        root.mkdir(mode=0o700)
    status = root.lstat()
    if USER and (not stat.S_ISDIR(status.st_mode) or str(status.st_uid) != USER or status.st_mode & 0o022):
        raise LLPBenchError(
            f"{str(root)!r} must be a folder that only you can enter. Remove it, or set TMPDIR to another folder."
        )
    root.chmod(0o700)
    return root


@contextmanager
def temporary_folder(base: Path | None = None) -> Iterator[Path]:
    """Make a folder in `private_root(base)` and remove it at the end. Folders of killed processes are removed, too.

    A lock file in each folder shows that its process lives.
    """
    from filelock import FileLock, Timeout

    while True:
        root = private_root(base)
        for abandoned in root.glob(f"{_PREFIX}*"):  # of processes that were killed
            with suppress(Timeout, OSError), FileLock(abandoned / _LOCK, timeout=0):
                shutil.rmtree(abandoned, ignore_errors=True)
        with suppress(FileNotFoundError):  # another process has removed the folder before it was locked
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
            lock = FileLock(folder / _LOCK)
            lock.acquire()
            break
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


_MOST_TIMES = 100
"""Largest size of unpacked data relative to packed data. It is 5 to 12 for journals, and 3 to 40 for tables."""
_ALWAYS_ALLOWED = 10**9
"""Unpacked size in bytes that is allowed for any packed size."""
_OPENERS: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}


def open_packed(path: Path, kind: str, always: int = _ALWAYS_ALLOWED) -> IO[bytes]:
    """Return the unpacked bytes of a file. `kind` is gzip, bz2 or xz.

    Reading raises `DataError` for damaged data, and beyond `_MOST_TIMES` the packed size or `always` bytes, whichever
    is larger.
    """
    limit = max(_MOST_TIMES * path.stat().st_size, always)
    return cast(IO[bytes], io.BufferedReader(_Limited(_OPENERS[kind](path), path, limit), 1 << 20))


def require_unpackable(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise `DataError` if an archive says that its files are larger than the limit of `open_packed`.

    `zipfile` never reads more than that.
    """
    members = archive.infolist()
    limit = max(_MOST_TIMES * sum(each.compress_size for each in members), _ALWAYS_ALLOWED)
    if sum(each.file_size for each in members) > limit:
        raise _too_large(path, limit)


def _too_large(path: Path, limit: int) -> DataError:
    return DataError(
        f"file {str(path)!r} unpacks from {path.stat().st_size / 1e6:,.2f} MB to more than {limit / 1e6:,.0f} MB. "
        "Replace it if it is damaged, or unpack it yourself and give the unpacked file."
    )


class _Limited(io.RawIOBase):
    """A stream that raises `DataError` beyond the limit."""

    def __init__(self, file: Any, path: Path, limit: int) -> None:
        self._file, self._path, self._limit, self._left = file, path, limit, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
            raise DataError(f"file {str(self._path)!r} cannot be unpacked: {error}. Replace it.") from error
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(self._path, self._limit)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
