"""Detection of the format of a text table: separator, decimal mark, lines before the header."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from llpbench.core.errors import DataError, LLPBenchError, argument

GAPS = frozenset(
    (
        *("-", "--", "---", "–", "—", ".", "..", "...", "…", "*", "**", "***", "?", ":", "n/a", "na", "n.a.", "nan"),
        *("null", "none", "nil", "x", "(x)", "(na)", "(d)", "(s)", "n", "d", "s", "c", "nd", "missing", "unknown"),
        *("not available", "#n/a", "#na", "#value!", "#div/0!", "#ref!", "#null!", "#num!"),
    )
)
"""Marks of missing values among numbers, in lower case."""
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}
_RECORDS = 300
_MOST_TITLES = 20
_NEARLY_ALL = 0.9
_NUMBER = re.compile(r"[-+\u2212(]?[$€£]?\s?\d[\d.,' \u00a0]*\s?[%)€]?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_DECIMAL_POINT = re.compile(r"[-+]?\d*\.\d+")
_MANY_GROUPS = re.compile(r"[-+]?\d{1,3}(,\d{3}){2,}")
_POINT_GROUPS = re.compile(r"[1-9]\d{0,2}(\.\d{3})+")


@dataclass(frozen=True)
class FileFormat:
    """Format of a text table as the user has set it; None means that it is detected."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    skip_rows: int | None = None
    missing: tuple[str, ...] = ()  # further marks of missing values

    def __post_init__(self) -> None:
        separator = _NAMED.get(self.separator or "", self.separator)
        object.__setattr__(self, "separator", separator)
        if separator is not None and (len(separator) != 1 or separator in '"\n\r' or not separator.isascii()):
            raise LLPBenchError(f"{argument('separator')} must be one character, or tab, got {separator!r}.")
        if self.decimal not in (None, ".", ","):
            raise LLPBenchError(f"{argument('decimal')} must be '.' or ',', got {self.decimal!r}.")
        if self.skip_rows is not None and self.skip_rows < 0:
            raise LLPBenchError(f"{argument('skip_rows')} must be at least 0, got {self.skip_rows}.")
        try:
            "".encode(self.encoding or "utf-8")
        except (LookupError, ValueError) as error:  # a null character is a ValueError
            raise LLPBenchError(f"{argument('encoding')} must be known to Python, got {self.encoding!r}.") from error

    def dialect(self, text: str, default: str, wanted: Collection[str] = ()) -> _Dialect:
        """Return the format of a text table, given its beginning.

        `default`: separator if none is detected. `wanted`: columns that it should have. Raises `DataError` if two
        separators are possible, or if the text is empty.
        """
        before, separator = self.skip_rows or 0, self.separator
        if self.skip_rows is None and (sep := re.match(r'"?sep=(.)"?\s*[\r\n]', text)):
            separator, before = separator or sep[1], 1
        tables = {mark: _Records(text, mark, before) for mark in ([separator] if separator else _SEPARATORS)}
        separator = separator or _separator(tables, default, wanted, may_skip=self.skip_rows is None)
        table = tables[separator]
        if not table.records:
            raise DataError("is empty. Give a file with a header and rows.")
        place = table.header() if self.skip_rows is None and not before else 0
        names, rows = table.records[place], table.records[place + 1 :]
        title = next((cell.strip() for cell in table.records[0] if cell.strip()), "")[:40]
        note = f"skipped the lines before the header in line {table.ends[place]} ({title!r})" if place else ""
        columns = [[row[n].strip() for row in rows if n < len(row)] for n in range(len(names))]
        decimal, numbers = self.decimal or _decimal(columns, separator), ""
        if self.decimal is None:
            commas = "read numbers with decimal commas (if these separate thousands: --decimal .)"
            numbers = commas if decimal == "," else _point_groups(names, columns)
        return _Dialect(separator, decimal, names, table.ends[place], bool(rows), note, numbers)


AS_IT_SHOWS = FileFormat()


class _Dialect(NamedTuple):
    separator: str
    decimal: str  # "" if no number shows it
    names: list[str]  # header
    lines: int  # number of lines up to the header, which is included
    has_rows: bool
    note: str  # assumption about skipped lines
    numbers: str  # assumption about decimal marks


class _Records:
    """First lines of a text that are not empty, split by a separator, without the `before` very first ones."""

    def __init__(self, text: str, separator: str, before: int) -> None:
        lines = io.StringIO(text, newline="")
        for _ in range(before):
            lines.readline()
        reader, limit = csv.reader(lines, delimiter=separator), csv.field_size_limit(1 << 20)
        try:
            pairs = [(record, reader.line_num + before) for record in islice(reader, _RECORDS) if record]
        finally:
            csv.field_size_limit(limit)
        self.records = [record for record, _ in pairs]
        self.ends = [end for _, end in pairs]  # number of lines up to the end of each record
        self.widths = [*map(len, self.records)]
        self.width = max({*self.widths}, key=lambda width: (self.widths.count(width), width), default=0)

    def start(self) -> int | None:
        """Return the first record from which nearly all have the same number of values; None if there is none."""
        widths, width = self.widths, self.width
        if width < 2 or (start := widths.index(width)) > _MOST_TITLES:
            return None
        rest = widths[start:]
        return start if max(rest) == width and rest.count(width) >= _NEARLY_ALL * len(rest) else None

    def header(self) -> int:
        """Return the place of the header, which is below titles. Titles fill fewer cells."""
        filled = [[cell.strip() for cell in record] for record in self.records[: _MOST_TITLES + 1]]
        titles = [len(cells) != self.width or not any(cells[1:]) for cells in filled]
        if self.start() is None or False not in titles:
            return 0
        place = titles.index(False)
        header, above = filled[place], filled[:place]
        is_header = all(header) and len({*header}) == len(header) and not any(map(_NUMBER.fullmatch, header))
        alone = all(sum(map(bool, cells)) <= 1 for cells in above) and any(cells[0] for cells in above)
        below = any(_NUMBER.fullmatch(cell.strip()) for record in self.records[place + 1 :] for cell in record)
        return place if is_header and (alone or below) else 0


def _separator(tables: Mapping[str, _Records], default: str, wanted: Collection[str], *, may_skip: bool) -> str:
    starts = {mark: start for mark, table in tables.items() if (start := table.start()) is not None}
    even = [mark for mark, start in starts.items() if {*tables[mark].widths[start:]} == {tables[mark].width}]
    starts = {mark: starts[mark] for mark in even or starts}
    if not may_skip:
        starts = {mark: start for mark, start in starts.items() if start == 0}
    best = [mark for mark, start in starts.items() if start == min(starts.values())]
    if len(best) > 1 and starts[best[0]]:
        return max(best, key=lambda mark: (tables[mark].width, mark == default))
    having = [mark for mark in best if wanted and {*wanted} <= {*map(str.strip, tables[mark].records[0])}]
    best = having if len(having) == 1 else best
    if len(best) > 1:
        ways = " or ".join(f"{_SEPARATORS[mark]} ({tables[mark].width} columns)" for mark in best)
        raise DataError(f"could be separated by {ways}. Say which: --separator {_SEPARATORS[best[0]]}.")
    return best[0] if best else default


def _decimal(columns: Sequence[Sequence[str]], separator: str) -> str:
    """Return a comma if numbers have commas that must be decimal marks and no number has a point; "" if unknown."""
    cells = [cell for column in columns if _are_numbers(column) for cell in column]
    commas = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    points = [cell for cell in cells if _DECIMAL_POINT.fullmatch(cell) or _MANY_GROUPS.fullmatch(cell)]
    if points or not commas:
        return "" if all(map(_POINT_GROUPS.fullmatch, points)) else "."
    certain = any(len(cell.rpartition(",")[2]) != 3 or cell.lstrip("+-").startswith("0,") for cell in commas)
    return "," if certain or separator == ";" else ""


def _are_numbers(column: Sequence[str]) -> bool:
    filled = [cell for cell in column if cell and cell.lower() not in GAPS]
    return sum(map(bool, map(_NUMBER.fullmatch, filled))) >= _NEARLY_ALL * len(filled) > 0


def _point_groups(names: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
    """Return a note on a column such as 12, 999 and 1.234 (but no 12.5), whose points may separate thousands."""
    for name, column in zip(names, columns, strict=True):
        filled = [cell for cell in column if cell]
        grouped = [cell for cell in filled if _POINT_GROUPS.fullmatch(cell)]
        small = sum(cell.isdecimal() and len(cell) <= 3 for cell in filled)
        if grouped and small and len(grouped) + small == len(filled):
            read = f"read {grouped[0]!r} in column {name!r} with a decimal point; if points separate thousands"
            return f"{read}: --decimal , --types '{name}=number'"
    return ""
