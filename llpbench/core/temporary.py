"""Temporary folders that only their owner can enter, and that are removed even if their process is killed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.text import one_line

USER = str(os.getuid()) if hasattr(os, "getuid") else ""
"""Number of the user, on systems with numbers."""
_LOCK = "lock"
_PREFIX = "t"
"""Start of the name of a folder with a lock. Names are short, since paths of sockets are limited."""


def private_root(base: Path | None = None) -> Path:
    """Return the folder for this user's temporary folders, in `base` (default: the system's temporary folder).

    Libraries may open folders inside it to everybody, as Ray does: nobody else can pass this one. It is never removed,
    since the last processes of Ray would create it again, open.

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
def temporary_folder(base: Path | None = None, size: int = 0) -> Iterator[Path]:
    """Make a folder in `private_root(base)` and remove it at the end. Folders of killed processes are removed, too.

    A lock file in each folder shows that its process lives.

    Raises `DataError` if the disk has no room for files of `size` bytes.
    """
    from filelock import FileLock

    while True:
        root = private_root(base)
        _remove_abandoned(root)
        with suppress(FileNotFoundError):  # another process has removed the folder before it was locked
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
            lock = FileLock(folder / _LOCK)
            lock.acquire()
            break
    try:
        free = shutil.disk_usage(folder).free
        if free < 1.1 * size:
            raise DataError(
                f"temporary files of {size / 1e6:,.1f} MB do not fit into {str(root.parent)!r}, which has "
                f"{free / 1e6:,.1f} MB. Set TMPDIR to another folder."
            )
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _remove_abandoned(root: Path) -> None:
    """Remove the folders of processes that were killed."""
    from filelock import FileLock, Timeout

    for folder in root.glob(f"{_PREFIX}*"):
        with suppress(Timeout, OSError), FileLock(folder / _LOCK, timeout=0):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def writing() -> Iterator[None]:
    """Turn errors of writing temporary files into `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"temporary files cannot be written: {one_line(error)}. Set TMPDIR to another folder."
        ) from error
