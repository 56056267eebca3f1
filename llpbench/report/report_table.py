"""Table of texts: the form in which pages, Markdown files and the terminal show results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral

from pandas import isna

from llpbench.report.wording import NOTHING, clean


@dataclass(frozen=True)
class Field:
    """Text of one row in one column."""

    lines: tuple[str, ...]
    """at least one; an unknown value is `NOTHING`"""
    strong: bool = False

    @classmethod
    def text(cls, value: str) -> Field:
        """Return a field of words."""
        return cls((clean(value),))

    @classmethod
    def number(cls, value: float | None, digits: int = 2) -> Field:
        """Return a field of one number: integers with thousands separators, others with `digits` decimals."""
        if isna(value):
            return cls((NOTHING,))
        return cls((f"{value:,}" if isinstance(value, Integral) else f"{value:.{digits}f}",))

    @property
    def is_empty(self) -> bool:
        """Whether the value is unknown."""
        return self.lines == (NOTHING,)


@dataclass(frozen=True)
class Heading:
    """Heading of a column."""

    text: str
    numeric: bool = True


TableColumn = tuple[Heading, Sequence[Field]]
"""A heading and the fields below it."""


@dataclass(frozen=True)
class ReportTable:
    """Table with a title, a caption and notes."""

    name: str
    title: str
    caption: str
    columns: Sequence[TableColumn]
    """of equal length"""
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """lines of text by their heading, which is dropped if there are none"""

    def __post_init__(self) -> None:
        """Drop notes without lines."""
        object.__setattr__(self, "notes", {title: tuple(lines) for title, lines in self.notes.items() if lines})

    @property
    def headings(self) -> list[Heading]:
        """Headings of the columns."""
        return [heading for heading, _ in self.columns]

    @property
    def rows(self) -> list[tuple[Field, ...]]:
        """Fields of each row."""
        return [*zip(*(fields for _, fields in self.columns), strict=True)]


@dataclass(frozen=True)
class Plot:
    """A written plot."""

    name: str
    """unique name; its anchor on the page is `plot-<name>`"""
    title: str
    caption: str
    svg: str
    width: int
    """in points, which a page reserves before the plot is loaded"""
    height: int
