"""What was measured, one JSON line a row, and the clock that every part works by."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Values = dict[str, Any]

FILE = "rows.jsonl"


@dataclass(frozen=True)
class Row:
    """One thing that was measured or checked."""

    part: str
    key: str
    """names it within its part"""
    status: str
    """`ok`, `failed`, `skipped`; `started` when it begins, so that an unfinished row leaves a trace"""
    device: str
    """name of the GPU, or `cpu`"""
    values: Values = field(default_factory=dict)


class Rows:
    """The rows of an output folder; every row is on the disk as soon as it is known."""

    def __init__(self, folder: Path, device: str) -> None:
        """`device`: where the rows to come are measured; rows of another device are not continued."""
        self._path = folder / FILE
        self.device = device

    def add(self, part: str, key: str, status: str, values: Values | None = None) -> Row:
        """Write a row."""
        row = Row(part, key, status, self.device, values or {})
        line = json.dumps(vars(row), default=str) + "\n"
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        return row

    def every(self) -> list[Row]:
        """All rows of this device, in their order; a torn last line is left out."""
        found = []
        for line in self._lines():
            try:
                row = Row(**json.loads(line))
            except (ValueError, TypeError):
                continue
            if row.device == self.device:
                found.append(row)
        return found

    def last(self, part: str) -> dict[str, Row]:
        """The last row of each key of a part."""
        return {row.key: row for row in self.every() if row.part == part}

    def to_do(self, part: str, keys: list[str]) -> list[str]:
        """The keys that are not done, those that were started before and did not end last."""
        done = {row.key for row in self.every() if row.part == part and row.status in ("ok", "skipped")}
        started = [row.key for row in self.every() if row.part == part and row.status == "started"]
        return sorted((key for key in keys if key not in done), key=started.count)

    def _lines(self) -> Iterator[str]:
        if self._path.exists():
            yield from self._path.read_text(encoding="utf-8").splitlines()


@dataclass(frozen=True)
class Box:
    """The time that a part has, as `time.time` counts, so that processes agree on it."""

    end: float

    @staticmethod
    def of(seconds: float) -> Box:
        """A box that begins now."""
        return Box(time.time() + seconds)

    @property
    def left(self) -> float:
        """Seconds until the end; 0 when it is past."""
        return max(self.end - time.time(), 0.0)

    def within(self, seconds: float) -> Box:
        """A box of so many seconds that begins now and does not outlast this one."""
        return Box(min(self.end, time.time() + seconds))
