"""Common parts of commands on your own data: options of bags, names of columns, messages with flags."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from llpbench.cli.options import add_options
from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError, LLPBenchWarning
from llpbench.tables.column_names import csv_parts

_FLAGS = {
    "X": "ROWS",
    "sample_weight": "--weight-column",
    "labels": "--label-column",
    "time": "--time-column",
    "sizes": "--size-column",
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
    click.option(
        "--counts",
        multiple=True,
        metavar="NAMES",
        help="Columns of BAGS with counts: one column per class (any order), or one for the positive class.",
    ),
    click.option(
        "--proportions", multiple=True, metavar="NAMES", help="Columns of BAGS with proportions, instead of --counts."
    ),
    click.option(
        "--class-column",
        metavar="NAME",
        help="Column of BAGS with the class, if BAGS has one line for each bag and class.",
    ),
    click.option(
        "--suppressed",
        multiple=True,
        metavar="MARKS",
        help="Marks of suppressed numbers in BAGS, such as '*,<5'.",
    ),
)
"""Options that name columns of a table of bags."""


def bag_options(required: bool) -> Callable[[Any], Any]:
    """Add the option for columns that name a bag, and `_BAG_OPTIONS`. The command gets them as `columns`."""

    column = click.option(
        "--bag-column",
        required=required,
        multiple=True,
        metavar="NAME[+NAME]",
        help="Column of ROWS and BAGS that names the bag; join several with +.",
    )

    def decorate(command: Any) -> Any:
        @functools.wraps(command)
        def called(
            counts: tuple[str, ...],
            proportions: tuple[str, ...],
            class_column: str | None,
            suppressed: tuple[str, ...],
            **others: Any,
        ) -> Any:
            columns = {
                "counts": counts,
                "proportions": proportions,
                "class_column": class_column,
                "suppressed": [mark for text in suppressed for mark in csv_parts(text)],
            }
            return command(columns=columns, **others)

        return add_options(called, [column, *_BAG_OPTIONS])

    return decorate


@contextlib.contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print warnings of fits and predictions as lines. Doubts are left to the command, which shows them at its end."""
    from llpbench.owndata.doubts import DoubtfulFit

    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **others: Any) -> None:
            if issubclass(category, LLPBenchWarning):
                echo(f"llpbench: warning: {message.in_shell(flag_of)}", err=True)
            else:
                usual(message, category, *where, **others)

        warnings.simplefilter("always", LLPBenchWarning)
        warnings.simplefilter("ignore", DoubtfulFit)
        warnings.showwarning = show
        yield


def possible_names(given: Sequence[str]) -> list[str]:
    """Return every column of ROWS that --bag-column could name: each text, and each sequence of its parts."""
    found = []
    for text in [*given, *(name.partition("=")[0] for name in given)]:
        parts = text.split("+")
        found += ["+".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)]
        found += csv_parts(text, "+")
    return found


def key_names(given: tuple[str, ...], known: list[str], *, of_bags: bool = False) -> list[str]:
    """Return the columns that name a bag, in ROWS with the `known` columns or in BAGS (`district=precinct`)."""
    from llpbench.tables.column_names import matching_column, split_names

    sides = [(text, "", "") if matching_column(text, known) else text.partition("=") for text in given]
    names = split_names([rows for rows, _, _ in sides], known, "+")
    others = [name for rows, _, bags in sides for name in split_names([bags or rows], () if bags else known, "+")]
    if not names or len(names) != len(others):
        raise LLPBenchError(
            f"--bag-column must name a column, got {''.join(given)!r}. Give the column with the bag of each row, or as "
            "many columns of ROWS as of BAGS: state+district=st+precinct."
        )
    return others if of_bags else names
