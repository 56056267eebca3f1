"""The one table object: everything that is published as a table is a `ReportTable`, and every format is made from it.

A field holds what people read (`lines`) and what machines read (`values`): a score is one field with the parts mean,
std and n. Markdown and LaTeX show the lines; CSV and JSON the values, a column for each part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from llpbench.report.boards import Summary
from llpbench.report.wording import NOTHING, clean, summary_text

Value = float | int | str | bool | None

SCORE = ("mean", "std", "n")
"""the parts of a field that summarises several seeds"""


NO_NOTES: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True)
class Field:
    """A field of a table."""

    lines: tuple[str, ...]
    """as people read it; what could not be measured is `NOTHING`, never an empty text"""
    values: Mapping[str, Value] = field(default_factory=dict)
    """by part of the column's heading; what is absent is unknown"""
    strong: bool = False


@dataclass(frozen=True)
class Heading:
    """A column."""

    text: str
    parts: tuple[str, ...] = ("",)
    """of the values below it"""
    numeric: bool = True
    key: str = ""
    """name that code uses, whatever the text"""

    @property
    def names(self) -> list[str]:
        """Names of the column's values in CSV and JSON, one for each part."""
        return [f"{self.text} {part}".strip() for part in self.parts]


@dataclass(frozen=True)
class ReportTable:
    """One published table."""

    name: str
    """of its files"""
    title: str
    caption: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Field, ...], ...]
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """lines to be read with it, by what they are about"""

    def place(self, key: str) -> int:
        """Position of the column of a key."""
        return [heading.key or heading.text for heading in self.headings].index(key)

    def columns(self) -> list[TableColumn]:
        """Its columns."""
        return [(heading, [row[place] for row in self.rows]) for place, heading in enumerate(self.headings)]

    def beside(self, columns: Iterable[TableColumn]) -> ReportTable:
        """The table with further columns behind its own."""
        return columns_of(self.name, self.title, self.caption, [*self.columns(), *columns], self.notes)

    def with_rows(self, rows: Iterable[int]) -> ReportTable:
        """The table with some of its rows, by place."""
        return replace(self, rows=tuple(self.rows[row] for row in rows))

    def taken(self, columns: Iterable[int], rows: Iterable[int]) -> ReportTable:
        """The table with some of its columns and rows, by place."""
        places = [*columns]
        return replace(
            self,
            headings=tuple(self.headings[place] for place in places),
            rows=tuple(tuple(self.rows[row][place] for place in places) for row in rows),
        )

    @property
    def names(self) -> list[str]:
        """Names of its columns in CSV and JSON."""
        return [name for heading in self.headings for name in heading.names]

    def values(self) -> Iterator[dict[str, Value]]:
        """Its rows as machines read them."""
        for row in self.rows:
            pairs = zip(self.headings, row, strict=True)
            yield {n: f.values.get(p) for h, f in pairs for n, p in zip(h.names, h.parts, strict=True)}


TableColumn = tuple[Heading, Sequence[Field]]
"""A heading, and what stands below it."""


def columns_of(
    name: str,
    title: str,
    caption: str,
    columns: Iterable[TableColumn],
    notes: Mapping[str, tuple[str, ...]] = NO_NOTES,
) -> ReportTable:
    """A table of columns of equal length."""
    found = [*columns]
    rows = zip(*(fields for _, fields in found), strict=True)
    return ReportTable(name, title, caption, tuple(heading for heading, _ in found), tuple(rows), notes)


def rows_of(
    name: str,
    title: str,
    caption: str,
    rows: Sequence[Mapping[Heading, Field]],
    notes: Mapping[str, tuple[str, ...]] = NO_NOTES,
) -> ReportTable:
    """A table of rows, each with the same headings in the same order."""
    headings = tuple(rows[0]) if rows else ()
    return ReportTable(name, title, caption, headings, tuple(tuple(row.values()) for row in rows), notes)


def text(value: str, *, strong: bool = False) -> Field:
    """A field of words."""
    return Field((clean(value),), {"": value}, strong)


def number(value: float | None, digits: int = 2) -> Field:
    """A field of one number; None is shown as unknown."""
    if value is None:
        return Field((NOTHING,))
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"
    return Field((shown,), {"": value if isinstance(value, int) else round(value, 6)})


def score(summary: Summary | None, *more: str, strong: bool = False, digits: int = 2) -> Field:
    """A field that summarises several seeds, with further lines below."""
    if summary is None:
        return Field((NOTHING, *more), {"n": 0})
    values = {
        "mean": round(summary.mean, 6),
        "std": None if summary.std is None else round(summary.std, 6),
        "n": summary.n,
    }
    return Field((summary_text(summary, digits), *more), values, strong)
