"""The one table object: everything that is published as a table is a `ReportTable`, and every format is made from it.

A field holds what people read (`lines`) and what machines read (`values`): a score is one field with the parts mean,
std and n. Markdown and LaTeX show the lines; CSV and JSON the values, a column for each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from llpbench.report.boards import Summary
from llpbench.report.wording import NOTHING, clean, summary_text

Value = float | int | str | bool | None

SCORE = ("mean", "std", "n")
"""the parts of a field that summarises several seeds"""


@dataclass(frozen=True)
class Field:
    """Where a row and a column meet."""

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

    @property
    def names(self) -> list[str]:
        """What machines call the column's values, one name for each part."""
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

    @property
    def names(self) -> list[str]:
        """What machines call its columns."""
        return [name for heading in self.headings for name in heading.names]

    def values(self) -> Iterator[dict[str, Value]]:
        """Its rows as machines read them."""
        for row in self.rows:
            pairs = zip(self.headings, row, strict=True)
            yield {n: f.values.get(p) for h, f in pairs for n, p in zip(h.names, h.parts, strict=True)}


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
