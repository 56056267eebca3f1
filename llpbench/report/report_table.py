"""Table of texts: the form in which pages, Markdown files and the terminal show results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from llpbench.report.wording import NOTHING, clean


@dataclass(frozen=True)
class Field:
    """Text of one row in one column."""

    lines: tuple[str, ...]
    """at least one; an unknown value is `NOTHING`"""
    strong: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the value is unknown."""
        return self.lines == (NOTHING,)


@dataclass(frozen=True)
class Heading:
    """Heading of a column."""

    text: str
    numeric: bool = True


@dataclass(frozen=True)
class ReportTable:
    """Table with a title, a caption and notes."""

    name: str
    title: str
    caption: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Field, ...], ...]
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """lines of text by their heading"""

    def columns(self) -> list[TableColumn]:
        """Return each heading with the fields below it."""
        return [(heading, [row[place] for row in self.rows]) for place, heading in enumerate(self.headings)]


TableColumn = tuple[Heading, Sequence[Field]]
"""A heading and the fields below it."""


def columns_of(
    name: str,
    title: str,
    caption: str,
    columns: Iterable[TableColumn],
    notes: Mapping[str, Sequence[str]] | None = None,
) -> ReportTable:
    """Return a table made of columns of equal length. Notes without lines are dropped."""
    headings, fields = zip(*columns, strict=True)
    return ReportTable(name, title, caption, headings, tuple(zip(*fields, strict=True)), _nonempty(notes))


def rows_of(
    name: str,
    title: str,
    caption: str,
    rows: Sequence[Mapping[Heading, Field]],
    notes: Mapping[str, Sequence[str]] | None = None,
) -> ReportTable:
    """Return a table made of rows with the same headings in the same order. Notes without lines are dropped."""
    headings = tuple(rows[0]) if rows else ()
    return ReportTable(name, title, caption, headings, tuple(tuple(row.values()) for row in rows), _nonempty(notes))


def _nonempty(notes: Mapping[str, Sequence[str]] | None) -> dict[str, tuple[str, ...]]:
    return {title: tuple(lines) for title, lines in (notes or {}).items() if lines}


def text(value: str, *, strong: bool = False) -> Field:
    """Return a field of words."""
    return Field((clean(value),), strong)


def number(value: float | None, digits: int = 2) -> Field:
    """Return a field of one number: integers with thousands separators, others with `digits` decimals."""
    if value is None:
        return Field((NOTHING,))
    return Field((f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}",))
