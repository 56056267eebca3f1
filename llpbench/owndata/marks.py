"""Marks of missing values, and several of them in one text. Loads no library: the command line needs it for --help."""

from __future__ import annotations

import csv
from collections.abc import Iterable

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
"""what stands for a missing value among numbers, in lower case"""


def csv_line(texts: Iterable[str]) -> str:
    """Texts as one line of CSV, quoted where they hold a comma."""
    return ",".join(f'"{text.replace(chr(34), chr(34) * 2)}"' if {*text} & {",", '"'} else text for text in texts)


def csv_parts(text: str, between: str = ",") -> list[str]:
    """The parts of one line of CSV, without outer spaces."""
    rows = list(csv.reader([text], delimiter=between, skipinitialspace=True)) if text.strip() else []
    return [part.strip() for part in (rows[0] if rows else []) if part.strip()]
