"""Printing to streams that may be full or closed, without control characters."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from math import isnan
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console


_UNLIMITED = 100_000
"""Characters of a line in a file or pipe."""


_STYLES = {
    "done": "green",
    "ok": "green",
    "failed": "red",
    "stale": "magenta",
    "to run": "cyan",
    "impossible": "yellow",
    "does not apply": "yellow",
}
"""Colours of states and results."""


class OutputError(Exception):
    """Standard output cannot be written."""


def echo(text: str, *, err: bool = False) -> None:
    """Print a line without control characters, whatever its source."""
    click.echo(_printable(text), err=err)


def _printable(text: str) -> str:
    """Return a text with escaped control characters (except line ends), which a terminal would execute."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" or unicodedata.category(char) == "Zs" else ascii(char)[1:-1]
        for char in text
    )


def tables_console() -> Console:
    """Return a console for tables. In files and pipes each row is one line, unless COLUMNS limits it."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNLIMITED
    return console


def print_table(headings: Iterable[str], rows: Iterable[Iterable[str]], *, title: str = "", caption: str = "") -> None:
    """Print a table. Long texts are folded, states and results have colours."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in (headings := [*map(_printable, headings)]):
        table.add_column(Text(heading), overflow="fold")
    for row in rows:
        cells = zip(headings, map(_printable, row), strict=True)
        styled = ((cell, _STYLES[cell] if heading in ("state", "result") else "") for heading, cell in cells)
        table.add_row(*(Text(cell, style=style) for cell, style in styled))
    console = tables_console()
    for text, style in ((title, "bold"), (caption, "dim")):
        if text:
            console.print(Text(_printable(text), style=style))
    console.print(table)


def percent(share: float, lower: float, upper: float) -> str:
    """Return a share with its interval; `-` for a group without people."""
    return "-" if isnan(share) else f"{100 * share:.1f} [{100 * lower:.1f}, {100 * upper:.1f}]"


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
            with suppress(OSError, ValueError):  # otherwise Python fails again when it flushes at exit
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
