"""Common parts of commands on your own data: options of bags, names of columns, messages with flags."""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from llpbench.cli.options import add_options
from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError, LLPBenchWarning
from llpbench.tables.column_names import csv_parts

_SAME = (
    *("noise", "noise_kind", "folds", "repeats", "methods", "refits", "by", "rest_as"),
    *("separator", "decimal", "skip_rows", "encoding"),
)
"""Arguments that have the name of their flag."""
_FLAGS = {
    **{f"{name} must": f"--{name.replace('_', '-')} must" for name in _SAME},
    "random_state must": "--seed must",
    "sample_weight=": "--weight-column",
    "labels=": "--label-column",
    "time=": "--time-column",
    "with choose": "with llpbench choose",
    "method='bag-gp'": "--method bag-gp in llpbench fit",
    "sampled=True": "--sampled",
    "as_shares=True": "--as-shares",
    "shares as proportions=": "shares in --proportions",
    "are suppressed, give NaN": "are suppressed, add a line with empty values",
    "Give NaN for unknown values": "Leave unknown values empty",
    "give them as counts=": "use --counts",
    "noise=": "--noise",
    "impossible='suppress'": "--suppress-impossible",
    "unmatched='drop'": "--drop-unmatched",
    "sizes=": "--size-column",
    "classes=": "--classes",
    "sizes=. For cross-validation, split with GroupKFold": "--size-column",
    ". For cross-validation, split with GroupKFold": "",
    "rest_as=": "--rest-as",
    "Give counts= or proportions= of all bags of X": "Give their counts with --bags (a table of all bags in ROWS)",
    "predict_interval needs": "--interval needs",
    "counts= of these": "--bags, a table of these",
    "use predict_proba(X, bags)": "leave --whole-bags out",
    "contains only missing values. Leave it out.": "contains only missing values. Use --leave-out.",
}
"""Arguments of `LLPClassifier` in messages, and the flags that replace them."""
_QUOTED = r"(?<![\w=])'[^']*'|(?<![\w=])\"[^\"]*\""
_WORDS = re.compile(
    "|".join((_QUOTED, r"\bX\b(?!\[|\.\w)", *(rf"\b{re.escape(flag)}(?!X\[)" for flag in sorted(_FLAGS, reverse=True))))
)
"""Arguments in a message, the longest first, and the argument X. Quoted texts are of the user; X[...] is Python."""


@contextlib.contextmanager
def told_in_flags() -> Iterator[None]:
    """Replace arguments of `LLPClassifier` in errors by the names of the shell."""
    try:
        yield
    except LLPBenchError as error:
        from llpbench.tables.number_text import TextsAmongNumbersError

        if isinstance(error, TextsAmongNumbersError):
            raise LLPBenchError(error.in_flags) from error
        raise type(error)(in_flags(str(error))) from error


def in_flags(message: str) -> str:
    """Return a message with flags instead of arguments of `LLPClassifier`, and ROWS instead of X."""
    return _WORDS.sub(lambda found: "ROWS" if found[0] == "X" else _FLAGS.get(found[0], found[0]), message)


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
                echo(f"llpbench: warning: {in_flags(str(message))}", err=True)
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
