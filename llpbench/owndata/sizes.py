"""Checks of the shape of a table before a fit: errors and warnings."""

from __future__ import annotations

from collections.abc import Sequence

from llpbench.core.errors import LLPBenchError, LLPBenchWarning

_FEW_CLASSES, _ROWS_OF_A_CLASS = 20, 5
_MANY_COLUMNS, _MANY_CATEGORIES = 1_000, 20_000


class LargeFit(LLPBenchWarning):
    """A fit may take hours or many gigabytes."""


def require_classes(classes: int, rows: int) -> None:
    """Raise `LLPBenchError` for nearly as many classes as rows, because this column probably identifies rows."""
    if classes > _FEW_CLASSES and classes * _ROWS_OF_A_CLASS > rows:
        raise LLPBenchError(
            f"classes must have at least {_ROWS_OF_A_CLASS} rows on average, got {classes:,} classes for {rows:,} "
            "rows. Name the column with classes, not a column that identifies rows, or merge rare classes."
        )


def size_warning(rows: int, columns: int, cardinalities: Sequence[int]) -> str:
    """Return a warning about a very wide table; "" for other tables."""
    categories = sum(cardinalities)
    if columns <= _MANY_COLUMNS and categories <= _MANY_CATEGORIES:
        return ""
    return (
        f"{rows:,} rows have {columns:,} columns with {categories:,} categories: this may take hours and many GB of "
        "memory (2,000 rows of 10,000 columns: 8 GB). To leave columns out: --leave-out, in Python X.drop(columns=...)."
    )
