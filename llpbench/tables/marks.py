"""Marks of missing values, and texts with several of them. Imports no library, because `--help` uses it."""

from __future__ import annotations

import csv
from collections.abc import Iterable

from llpbench.core.errors import LLPBenchError

GAPS = frozenset(
    [
        "-",
        "--",
        "---",
        "–",
        "—",
        ".",
        "..",
        "...",
        "…",
        "*",
        "**",
        "***",
        "?",
        ":",
        "n/a",
        "na",
        "n.a.",
        "nan",
        "null",
        "none",
        "nil",
        "x",
        "(x)",
        "(na)",
        "(d)",
        "(s)",
        "n",
        "d",
        "s",
        "c",
        "nd",
        "missing",
        "unknown",
        "#n/a",
        "#na",
        "#value!",
        "#div/0!",
        "#ref!",
        "#null!",
        "#num!",
    ]
) | {"not available"}
"""Marks of missing values among numbers, in lower case."""


def csv_line(texts: Iterable[str]) -> str:
    """Return texts as one line of CSV, quoted if they contain a comma."""
    return ",".join(f'"{text.replace(chr(34), chr(34) * 2)}"' if {*text} & {",", '"'} else text for text in texts)


def csv_parts(text: str, between: str = ",") -> list[str]:
    """Return the parts of one line of CSV, without outer spaces. Raises `LLPBenchError` if it is not one line."""
    try:
        rows = list(csv.reader([text], delimiter=between, skipinitialspace=True)) if text.strip() else []
    except csv.Error as error:
        raise LLPBenchError(
            f"a list of names must be one line of at most {csv.field_size_limit():,} characters a name, got "
            f"{text[:40]!r}. Quote names that contain line ends."
        ) from error
    return [part.strip() for part in (rows[0] if rows else []) if part.strip()]
