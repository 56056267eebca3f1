"""Detection of the format of a text table: separator, decimal mark, lines before the header, a second header."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from llpbench.core.errors import LLPBenchError
from llpbench.tables.marks import GAPS

_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}
_RECORDS = 300
_MOST_TITLES = 20
_NUMBER = re.compile(r"[-+\u2212(]?[$€£]?\s?\d[\d.,' \u00a0]*\s?[%)€]?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_DECIMAL_POINT = re.compile(r"[-+]?\d*\.\d+")
_MANY_GROUPS = re.compile(r"[-+]?\d{1,3}(,\d{3}){2,}")
_POINT_GROUPS = re.compile(r"[1-9]\d{0,2}(\.\d{3})+")
_CENSUS_KEYS = {"geography", "geographic area name", "geographic identifier", "id", "name"}


@dataclass(frozen=True)
class FileFormat:
    """Format of a text table as the user has set it; None means that it is detected."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    skip_rows: int | None = None
    missing: tuple[str, ...] = ()
    """further marks of missing values"""

    def __post_init__(self) -> None:
        """Raise `LLPBenchError` for an invalid format."""
        separator = _NAMED.get(self.separator or "", self.separator)
        object.__setattr__(self, "separator", separator)
        if separator is not None and (len(separator) != 1 or separator in '"\n\r'):
            raise LLPBenchError(f"separator must be one character, or tab, got {separator!r}.")
        if self.decimal not in (None, ".", ","):
            raise LLPBenchError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        if self.skip_rows is not None and self.skip_rows < 0:
            raise LLPBenchError(f"skip_rows must be at least 0, got {self.skip_rows}.")
        try:
            "".encode(self.encoding or "utf-8")
        except LookupError as error:
            raise LLPBenchError(f"encoding must be one that Python knows, got {self.encoding!r}.") from error


AS_IT_SHOWS = FileFormat()


@dataclass(frozen=True)
class Dialect:
    """Detected format of a text table."""

    separator: str
    decimal: str
    skipped: tuple[int, ...]
    """lines to skip, counted from 0"""
    note: str = ""
    """message about skipped lines"""
    numbers: str = ""
    """message about decimal marks"""


class AmbiguousError(Exception):
    """A text table has two possible formats."""


def read_dialect(text: str, form: FileFormat, usual: str, wanted: Collection[str] = ()) -> Dialect:
    """Return the format of a text table, given its beginning.

    `usual` is the separator if the text does not show it. `wanted` are columns that the table should have. Raises
    `AmbiguousError` if two separators are possible.
    """
    lines = text.splitlines(keepends=True)
    before = form.skip_rows or 0
    separator = form.separator
    if form.skip_rows is None and lines and (told := re.fullmatch(r'\ufeff?"?sep=(.)"?\s*', lines[0])):
        separator, before = separator or told[1], 1
    tables = {each: _Records.of(lines[before:], each) for each in ([separator] if separator else _SEPARATORS)}
    if separator is None:
        separator = _separator(tables, usual, wanted, form.skip_rows is None)
    table = tables[separator]
    first = table.titles() if form.skip_rows is None and before == 0 else 0
    header, rows = table.parts(first)
    columns = [[row[place].strip() for row in rows if place < len(row)] for place in range(len(header))]
    second = _is_second_header(columns)
    if second:
        columns = [column[1:] for column in columns]
    decimal = form.decimal or _decimal(columns, separator)
    skipped = [*range(before + first)]
    notes, numbers = [], ""
    if first:
        notes.append(f"skipped {first} line{'s' * (first > 1)} before the header ({_short(table.records[0])})")
    if second:
        skipped.append(before + table.place_after_header(first))
        notes.append(f"skipped a second header ({_short(rows[0])})")
    if decimal == "," and form.decimal is None:
        numbers = "read numbers with decimal commas (if these separate thousands: --decimal .)"
    elif form.decimal is None and (place := _point_groups(columns)) is not None:
        example = next(cell for cell in columns[place] if _POINT_GROUPS.fullmatch(cell))
        numbers = (
            f"read {example!r} in column {header[place]!r} with a decimal point; if points separate thousands: "
            f"--decimal , --types '{header[place]}=number'"
        )
    return Dialect(separator, decimal, tuple(skipped), "; ".join(notes), numbers)


@dataclass(frozen=True)
class _Records:
    """First lines of a text, split by one separator."""

    records: list[list[str]]

    @classmethod
    def of(cls, lines: Iterable[str], separator: str) -> _Records:
        try:
            return cls(list(islice(csv.reader(lines, delimiter=separator), _RECORDS)))
        except csv.Error:
            return cls([])

    @property
    def filled(self) -> list[list[str]]:
        return [record for record in self.records if record]

    def width(self) -> int:
        """Number of values in most lines."""
        widths = [len(record) for record in self.filled]
        return max(set(widths), key=lambda width: (widths.count(width), width), default=0)

    def start(self) -> int | None:
        """Return the first line from which nearly all filled lines have the same width; None if there is none."""
        width, widths = self.width(), [len(record) for record in self.filled]
        if width < 2:
            return None
        start = widths.index(width)
        rest = widths[start:]
        regular = max(rest) == width and sum(each == width for each in rest) >= 0.9 * len(rest)
        return start if regular and start <= _MOST_TITLES else None

    def is_even(self, start: int) -> bool:
        """Return whether all filled lines from `first` on have the same number of values."""
        return all(len(record) == self.width() for record in self.filled[start:])

    def titles(self) -> int:
        """Return the number of lines before the header. Such titles fill fewer cells than a header."""
        start, filled = self.start(), [place for place, record in enumerate(self.records) if record]
        if start is None:
            return 0
        records, width = self.filled, self.width()
        here = start
        while here + 1 < len(records) and here < _MOST_TITLES and _is_title(records[here], width):
            here += 1
        if here and (width < 2 or not _is_header(records[here]) or len(records[here]) != width):
            here = start if start and _is_header(records[start]) else 0
        alone = all(sum(map(bool, map(str.strip, record))) <= 1 for record in records[:here])
        if not any(record[0].strip() for record in records[:here]):
            return 0
        below = any(_NUMBER.fullmatch(cell.strip()) for record in records[here + 1 :] for cell in record)
        return filled[here] if here and (alone or below) else 0

    def parts(self, first: int) -> tuple[list[str], list[list[str]]]:
        """Return the header at a line, and the rows below it."""
        records = [record for record in self.records[first:] if record]
        return (records[0], records[1:]) if records else ([], [])

    def place_after_header(self, first: int) -> int:
        """Return the line of the first row below the header."""
        return [place for place, record in enumerate(self.records) if record and place >= first][1]


def _separator(tables: dict[str, _Records], usual: str, wanted: Collection[str], may_skip: bool) -> str:
    starts = {mark: start for mark, table in tables.items() if (start := table.start()) is not None}
    perfect = {mark: start for mark, start in starts.items() if tables[mark].is_even(start)}
    starts = perfect or starts
    if not may_skip:
        starts = {mark: start for mark, start in starts.items() if start == 0}
    if not starts:
        return usual
    least = min(starts.values())
    best = [mark for mark, start in starts.items() if start == least]
    if least:
        return max(best, key=lambda mark: (tables[mark].width(), mark == usual))
    having = [mark for mark in best if wanted and {*wanted} <= {name.strip() for name in tables[mark].filled[0]}]
    best = having if len(having) == 1 else best
    if len(best) > 1:
        ways = " or ".join(f"{_SEPARATORS[mark]} ({tables[mark].width()} columns)" for mark in best)
        raise AmbiguousError(f"could be separated by {ways}. Say which: --separator {_SEPARATORS[best[0]]}.")
    return best[0]


def _is_title(record: Sequence[str], width: int) -> bool:
    """Return whether a line of full width has at most one text, in its first cell."""
    return len(record) == width > 1 and not any(cell.strip() for cell in record[1:])


def _is_header(record: Sequence[str]) -> bool:
    cells = [cell.strip() for cell in record]
    return all(cells) and len({*cells}) == len(cells) and not any(map(_NUMBER.fullmatch, cells))


def _is_second_header(columns: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row describes columns that hold numbers below, as in files of the census."""
    if not columns or min(map(len, columns)) < 3:
        return False
    numeric = 0
    for first, *below in columns:
        if not first or first in below or _NUMBER.fullmatch(first) or first.lower() in GAPS:
            return False
        filled = [cell for cell in below if cell and cell.lower() not in GAPS]
        numbers = [cell for cell in filled if _NUMBER.fullmatch(cell)]
        if len(numbers) >= 0.9 * max(len(filled), 1):
            if len(first) < 4 or not re.search("[^\\W\\d]{3}", first):
                return False
            numeric += bool(numbers)
    return numeric >= 2 or (numeric == 1 and columns[0][0].lower() in _CENSUS_KEYS)


def _decimal(columns: Sequence[Sequence[str]], separator: str) -> str:
    """Return a comma if numbers have commas that must be decimal marks and no number has a point."""
    found = [cell for column in columns if _mostly_numbers(column) for cell in column]
    commas = [cell for cell in found if _DECIMAL_COMMA.fullmatch(cell)]
    if not commas or any(map(_DECIMAL_POINT.fullmatch, found)) or any(map(_MANY_GROUPS.fullmatch, found)):
        return "."
    if separator == ";":
        return ","
    certain = any(len(cell.rpartition(",")[2]) != 3 or cell.lstrip("+-").startswith("0,") for cell in commas)
    return "," if certain else "."


def _mostly_numbers(column: Sequence[str]) -> bool:
    filled = [cell for cell in column if cell and cell.lower() not in GAPS]
    return sum(bool(_NUMBER.fullmatch(cell)) for cell in filled) >= 0.9 * len(filled) > 0


def _point_groups(columns: Sequence[Sequence[str]]) -> int | None:
    """Return a column such as 12, 999 and 1.234 (but no 12.5), whose points may separate thousands."""
    for place, column in enumerate(columns):
        filled = [cell for cell in column if cell]
        grouped = [cell for cell in filled if _POINT_GROUPS.fullmatch(cell)]
        small = [cell for cell in filled if re.fullmatch(r"\d{1,3}", cell)]
        if grouped and small and len(grouped) + len(small) == len(filled):
            return place
    return None


def _short(record: Sequence[str]) -> str:
    text = next((cell.strip() for cell in record if cell.strip()), "")
    return repr(text if len(text) <= 40 else f"{text[:40]}...")
