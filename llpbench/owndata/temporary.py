"""Temporary files of passes over more rows than memory holds."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llpbench.core.errors import DataError
from llpbench.core.text import one_line


def temporary_folder(size: int) -> tempfile.TemporaryDirectory[str]:
    """Return a new folder on a disk with room for files of `size` bytes. Raises `DataError` without room."""
    folder = tempfile.TemporaryDirectory(prefix="llpbench-")
    free, place = shutil.disk_usage(folder.name).free, Path(folder.name).parent
    if free < 1.1 * size:
        folder.cleanup()
        raise DataError(
            f"temporary files of {size / 1e9:.1f} GB do not fit into {str(place)!r}, which has {free / 1e9:.1f} GB. "
            "Set TMPDIR to another folder."
        )
    return folder


@contextmanager
def writing() -> Iterator[None]:
    """Turn errors of writing temporary files into `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"temporary files cannot be written: {one_line(error)}. Set TMPDIR to another folder."
        ) from error
