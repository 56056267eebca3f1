"""Options for the format of files."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from llpbench.cli.helping import OWN_DATA, Command
from llpbench.cli.options import add_options
from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError
from llpbench.tables.column_names import csv_parts
from llpbench.tables.csv_dialect import FileFormat

_ONCE = ("--size-column", "--class-column", "--time-column")
"""Options that must be given once, because a second one would replace the first."""
_ROLES = ("rows", "bags")
_PREFIXED = re.compile(r"--(separator|decimal|encoding|skip-rows) ")
LARGE = 2_000_000_000
"""Size of values in bytes above which rows are read in batches by default."""
out_of_core_option: Callable[[Any], Any] = click.option(
    "--out-of-core/--in-memory",
    default=None,
    help="Read ROWS in batches, without holding all rows in memory. [default: for more than 2 GB]",
)
_FORMAT_OPTIONS = (
    click.option("--separator", multiple=True, metavar="MARK", help="Separator of values, such as ';', tab or '|'."),
    click.option("--decimal", multiple=True, metavar="MARK", help="Decimal mark, '.' or ','."),
    click.option("--encoding", multiple=True, metavar="NAME", help="Encoding of text, such as cp1252 or utf-16."),
    click.option("--skip-rows", multiple=True, metavar="N", help="Number of lines before the header."),
    click.option(
        "--missing",
        multiple=True,
        metavar="MARKS",
        help="Marks of missing values in ROWS, such as '-,NA'; put a mark with a comma in double quotes.",
    ),
)


@dataclass(frozen=True)
class Formats:
    """Formats of both files, as far as the user has set them."""

    rows: FileFormat
    bags: FileFormat


class _OwnDataCommand(Command):
    """Command that does not allow some options twice."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raise `LLPBenchError` for an option that is given twice."""
        if not ctx.resilient_parsing:
            order = [param.opts[0] for param in self.make_parser(ctx).parse_args(list(args))[2]]
            if twice := [name for name in _ONCE if order.count(name) > 1]:
                raise LLPBenchError(
                    f"{twice[0]} must be given once, got {order.count(twice[0])}. Leave out the others."
                )
        return super().parse_args(ctx, args)


own_data_command = functools.partial(click.command, cls=_OwnDataCommand, groups=OWN_DATA)
"""`click.command` for commands on your own data."""


def format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of files. The command gets them as `formats`."""

    @functools.wraps(command)
    def called(
        separator: Sequence[str],
        decimal: Sequence[str],
        encoding: Sequence[str],
        skip_rows: Sequence[str],
        missing: Sequence[str],
        **others: Any,
    ) -> Any:
        given = {
            "separator": _by_role(separator, "--separator"),
            "decimal": _by_role(decimal, "--decimal"),
            "encoding": _by_role(encoding, "--encoding"),
            "skip_rows": _by_role(skip_rows, "--skip-rows"),
        }
        marks = tuple(mark for text in missing for mark in csv_parts(text))
        rows, bags = ({name: values.get(role) for name, values in given.items()} for role in _ROLES)
        formats = Formats(_format(rows, marks), _format(bags, ()))
        return command(formats=formats, **others)

    return add_options(called, _FORMAT_OPTIONS)


@contextlib.contextmanager
def reading(role: str) -> Iterator[None]:
    """Add the role of a file to options in its errors: `--encoding bags:cp1252`."""
    try:
        yield
    except LLPBenchError as error:
        raise type(error)(_PREFIXED.sub(rf"--\1 {role}:", error.args[0])) from error


def _by_role(given: Sequence[str], flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        role, colon, value = text.partition(":")
        roles = (role,) if colon and role in _ROLES and value else _ROLES
        value = value if len(roles) == 1 else text
        for each in roles:
            if each in found:
                raise LLPBenchError(
                    f"{flag} must be given once for {each.upper()}, got {found[each]!r} and {value!r}. Leave one out."
                )
            found[each] = value
    return found


def _format(given: dict[str, str | None], missing: tuple[str, ...]) -> FileFormat:
    skipped = given["skip_rows"]
    if skipped is not None and not skipped.isdecimal():
        raise LLPBenchError(f"--skip-rows must be a whole number from 0, got {skipped!r}.")
    return FileFormat(
        given["separator"], given["decimal"], given["encoding"], None if skipped is None else int(skipped), missing
    )


def read_pairs(texts: Iterable[str], flag: str) -> dict[str, str]:
    """Return values by name from texts such as `zip=text`. Raises `LLPBenchError` for other texts."""
    pairs = {}
    for text in texts:
        name, equals, value = text.rpartition("=") if flag == "--types" else text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise LLPBenchError(f"{flag} must be NAME=VALUE, got {text!r}.")
        if flag == "--types" and value.strip() not in ("text", "number"):
            raise LLPBenchError(f"the type in {flag} must be text or number, got {text!r}.")
        pairs[name.strip()] = value.strip()
    return pairs


def is_large(requested: bool | None, rows: Path, able: bool) -> bool:
    """Return whether rows are read in batches: as `requested`, or above `LARGE` if the method is `able` to."""
    from llpbench.tables.row_files import unpacked_bytes

    if requested is not None or not able:
        return bool(requested)
    size = unpacked_bytes(rows)
    if size > LARGE:
        told = f"{rows} has about {size / 1e9:.0f} GB of values: read in batches (--in-memory reads all at once)"
        echo(f"llpbench: {told}", err=True)
    return size > LARGE
