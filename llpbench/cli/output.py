"""Printing to streams that may be full or closed, without control characters."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from llpbench.core.text import printable

if TYPE_CHECKING:
    from rich.console import Console


_UNLIMITED = 100_000
"""Characters of a line in a file or pipe."""


class OutputError(Exception):
    """Standard output cannot be written."""


def echo(text: str, *, err: bool = False) -> None:
    """Print a line without control characters, whatever its source."""
    click.echo(printable(text), err=err)


def tables_console() -> Console:
    """Return a console for tables. In files and pipes each row is one line, unless COLUMNS limits it."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNLIMITED
    return console


class _Stream:
    """A standard stream that raises `OutputError` on failure, or ignores failures."""

    def __init__(self, stream: Any, needed: bool) -> None:
        """Wrap a stream. If it is `needed`, failures raise `OutputError`; a broken pipe raises `BrokenPipeError`."""
        self._stream, self._needed = stream, needed
        self._error: Exception | None = None

    def write(self, text: str) -> int:
        with self._failing():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._failing():
            self._stream.flush()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            with contextlib.suppress(OSError, ValueError):  # otherwise Python fails again when it flushes at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            told = f"standard output cannot be written: {error.strerror or error}."
            self._error = error if isinstance(error, BrokenPipeError) else OutputError(told)
        if self._needed and self._error is not None:
            raise self._error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Open closed streams, so that no file takes their descriptor. A full standard error stops no command."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            os.set_inheritable(number, True)
    out, err = sys.stdout, sys.stderr
    sys.stdout = None if out is None else _Stream(out, needed=True)  # type: ignore[assignment]
    sys.stderr = None if err is None else _Stream(err, needed=False)  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
