"""Common parts of commands on your own data: options of bags and files, names of columns, messages with flags."""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from llpbench.cli.options import OWN_DATA, AnyPath, Command, add_options
from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError, LLPBenchWarning
from llpbench.tables.column_names import csv_parts, matching_column, split_names
from llpbench.tables.csv_dialect import FileFormat

_PREFIXED = re.compile(r"--(separator|decimal|encoding|skip-rows) ")
LARGE = 2_000_000_000
"""Size of values in bytes above which rows are read in batches by default."""
out_of_core_option: Callable[[Any], Any] = click.option(
    "--out-of-core/--in-memory", default=None, help="Read ROWS in batches. [default: for more than 2 GB]"
)
column_option = functools.partial(click.option, metavar="NAME")
names_option = functools.partial(click.option, multiple=True, metavar="NAMES")
number_option = functools.partial(click.option, metavar="N", show_default=True)
file_option = functools.partial(click.option, type=AnyPath(path_type=Path), metavar="FILE")
_marks = functools.partial(click.option, multiple=True, metavar="MARKS")
_FORMAT_OPTIONS = (
    click.option("--separator", multiple=True, metavar="MARK", help="Separator of values, such as ';', tab or '|'."),
    click.option("--decimal", multiple=True, metavar="MARK", help="Decimal mark, '.' or ','."),
    click.option("--encoding", multiple=True, metavar="NAME", help="Encoding of text, such as cp1252 or utf-16."),
    click.option("--skip-rows", multiple=True, metavar="N", help="Number of lines before the header."),
    _marks(
        "--missing",
        help="Marks of missing values (no prefix), such as '-,NA'; put a mark with a comma in double quotes.",
    ),
)


class Formats(NamedTuple):
    """Formats of both files, as far as the user has set them."""

    rows: FileFormat
    bags: FileFormat


own_data_command = functools.partial(click.command, cls=Command, groups=OWN_DATA)
"""`click.command` for commands on your own data."""


def format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of files. The command gets them as `formats`. Its warnings are printed as lines."""

    @functools.wraps(command)
    def called(missing: Sequence[str], **given: Any) -> Any:
        found: dict[str, dict[str, Any]] = {"rows": {}, "bags": {}}
        for name in ("separator", "decimal", "encoding", "skip_rows"):
            flag = f"--{name.replace('_', '-')}"
            for text in given.pop(name):
                role, _, value = text.partition(":")
                roles, value = ([role], value) if role in found and value else ([*found], text)
                for each in roles:
                    if (before := found[each].setdefault(name, value)) != value:
                        one = f"{flag} must be given once for {each.upper()}, got {before!r} and {value!r}"
                        raise LLPBenchError(f"{one}. Leave one out.")
        for of_role in found.values():
            if not (skipped := of_role.get("skip_rows", "0")).isdecimal():
                raise LLPBenchError(f"--skip-rows must be a whole number from 0, got {skipped!r}.")
            of_role |= {"skip_rows": int(skipped)} if "skip_rows" in of_role else {}
        marks = tuple(mark for text in missing for mark in csv_parts(text))
        formats = Formats(FileFormat(**found["rows"], missing=marks), FileFormat(**found["bags"]))
        with _warnings_as_lines():
            return command(formats=formats, **given)

    return add_options(called, _FORMAT_OPTIONS)


@contextlib.contextmanager
def reading(role: str) -> Iterator[None]:
    """Add the role of a file to options in its errors: `--encoding bags:cp1252`."""
    try:
        yield
    except LLPBenchError as error:
        raise type(error)(_PREFIXED.sub(rf"--\1 {role}:", error.message)) from error


def read_pairs(texts: Iterable[str], flag: str) -> dict[str, str]:
    """Return values by name from texts such as `zip=text`. Raises `LLPBenchError` for other texts."""
    pairs = dict[str, str]()
    for text in texts:
        name, equals, value = text.rpartition("=") if flag == "--types" else text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise LLPBenchError(f"{flag} must be NAME=VALUE, got {text!r}.")
        if flag == "--types" and value.strip() not in ("text", "number"):
            raise LLPBenchError(f"the type in {flag} must be text or number, got {text!r}.")
        if (before := pairs.setdefault(name.strip(), value.strip())) != value.strip():
            one = f"{flag} must be given once for {name.strip()!r}, got {before!r} and {value.strip()!r}"
            raise LLPBenchError(f"{one}. Leave one out.")
    return pairs


def is_large(requested: bool | None, rows: Path, needs_memory: str) -> bool:
    """Return whether rows are read in batches: as `requested`, or above `LARGE`.

    Raises `LLPBenchError` if that is requested but something `needs_memory` (its name).
    """
    from llpbench.tables.table_sources import TableSource

    if requested and needs_memory:
        raise LLPBenchError(f"{needs_memory} and --out-of-core cannot be combined. Leave one of them out.")
    if requested is not None or needs_memory:
        return bool(requested)
    size = sum(source.values for source in TableSource.all(rows))
    if size > LARGE:
        large = f"{rows} has about {size / 1e9:.0f} GB of values"
        echo(f"llpbench: {large}: read in batches (--in-memory reads all at once)", err=True)
    return size > LARGE


_FLAGS = {
    "X": "ROWS",
    "sample_weight": "--weight-column",
    "time": "--time-column",
    "sizes": "--size-column",
    "rest": "--rest-as",
    "weights": "--weight-column",
    "random_state": "--seed",
    "impossible='suppress'": "--suppress-impossible",
    "unmatched='drop'": "--drop-unmatched",
    "method='bag-gp'": "--method bag-gp in llpbench fit",
}
"""Flags that do not have the name of their argument."""


def flag_of(argument: str) -> str:
    """Return the flag of an argument of `LLPClassifier` in a message, such as `noise=` or `sampled=True`."""
    name = argument.partition("=")[0]
    return _FLAGS.get(argument) or _FLAGS.get(name) or f"--{name.replace('_', '-')}"


_BAG_OPTIONS = (
    names_option("--counts", help="Columns of BAGS with counts: one for each class, or one for the positive class."),
    names_option("--proportions", help="Columns of BAGS with proportions, instead of --counts."),
    column_option("--class-column", help="Column of BAGS with the class, if it has a line for each bag and class."),
    _marks("--suppressed", help="Marks of suppressed numbers in BAGS, such as '*,<5'."),
)
"""Options that name columns of a table of bags."""


def bag_options(required: bool) -> Callable[[Any], Any]:
    """Add the option for columns that name a bag, and `_BAG_OPTIONS`. The command gets them as `columns`."""
    text = "Column of ROWS and BAGS that names the bag; join several with +."
    column = click.option("--bag-column", required=required, multiple=True, metavar="NAME[+NAME]", help=text)

    def decorate(command: Any) -> Any:
        @functools.wraps(command)
        def called(suppressed: tuple[str, ...], **given: Any) -> Any:
            names = ("counts", "proportions", "class_column", "size_column", "time_column")
            columns = {name: given.pop(name) for name in names if name in given}
            columns["suppressed"] = [mark for text in suppressed for mark in csv_parts(text)]
            return command(columns=columns, **given)

        return add_options(called, [column, *_BAG_OPTIONS])

    return decorate


@contextlib.contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print warnings of fits and predictions as lines."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **others: Any) -> None:
            if isinstance(message, LLPBenchWarning):
                echo(f"llpbench: warning: {message.in_shell(flag_of)}", err=True)
            else:
                usual(message, category, *where, **others)

        warnings.simplefilter("always", LLPBenchWarning)
        warnings.showwarning = show
        yield


def possible_names(given: Sequence[str]) -> list[str]:
    """Return every column of ROWS that --bag-column could name: each text, and its parts."""
    texts = [*given, *(text.partition("=")[0] for text in given)]
    return [name for text in texts for name in (text, *csv_parts(text, "+"))]


def key_names(given: tuple[str, ...], known: list[str]) -> tuple[list[str], list[str]]:
    """Return the columns that name a bag, in ROWS with the `known` columns, and in BAGS (`district=precinct`)."""
    sides = [(text, "", "") if matching_column(text, known) else text.partition("=") for text in given]
    names = split_names([rows for rows, _, _ in sides], known, "+")
    others = [name for rows, _, bags in sides for name in split_names([bags or rows], () if bags else known, "+")]
    if not names or len(names) != len(others) or len({*names}) < len(names):
        wrong = f"--bag-column must name a column, got {''.join(given)!r}"
        raise LLPBenchError(f"{wrong}. Give as many different columns of ROWS as of BAGS: state+district=st+precinct.")
    return names, others
