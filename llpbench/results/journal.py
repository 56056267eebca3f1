"""The journal: an append-only file of results, one JSON object a line.

Only the driver writes it, one `write` and one `fsync` a record, and meanwhile it holds a lock. What a kill or a full
disk can leave behind is therefore a torn last line at most; it is dropped, and its run repeated. The last record of a
run counts, so a retry simply appends, and the concatenation of two machines' journals is their merge.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import math
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, cast, get_args

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import SCHEMA, Record, Status

FILE = "journal.jsonl"
"""name of the journal inside an output folder"""

_LINE_START = b'{"schema":'
"""what every line that `Journal.append` writes begins with, so that a torn one can be told from a stranger's file"""
_DICTIONARIES = ("spec", "method", "results", "times", "data", "code", "libraries", "hardware")
_SPEC: dict[str, Any] = {
    "method": str,
    "dataset": str,
    "bagging": str,
    "bag_size": int,
    "encoder": str | None,
    "params": dict,
    "pretraining": str,
    "protocol": dict | None,
}


@dataclass(frozen=True)
class Contents:
    """What a journal holds."""

    records: dict[str, Record]
    """the record of each run that counts, mostly the last, by run id, in the order of their first appearance"""
    warnings: tuple[str, ...] = ()
    """one line for each line of the file that had to be left out"""
    disputed: dict[str, tuple[Record, ...]] = field(default_factory=dict)
    """by run id: all records of a run that succeeded several times, with different results (`merge`)"""
    end: int = 0
    """bytes up to and including the last whole line; anything after it is torn"""
    unterminated: bool = False
    """the last line is whole but lacks its line break (an editor's work)"""


def read(path: Path) -> Contents:
    """The records of a journal; none if there is no such file.

    Lines that cannot be read become warnings. Raises `LLPBenchError` if the file is unreadable, no journal at all, or
    written by a newer llpbench.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise LLPBenchError(f"journal {str(path)!r} is not a file. Choose another --out, or move it away.")
        data = path.read_bytes()
    except FileNotFoundError:
        return Contents({})
    except OSError as error:
        raise LLPBenchError(f"journal {str(path)!r} cannot be read: {_reason(error)}. Choose another --out.") from error
    collecting = gc.isenabled()
    gc.disable()  # a million small objects, none of them garbage: looking for some takes a third of the time
    try:
        return _parse(data, path)
    finally:
        if collecting:
            gc.enable()


class Journal:
    """A journal open for writing, held by this process alone. A context manager; closing it gives up the lock."""

    def __init__(self, folder: Path) -> None:
        """Open or create the journal in `folder` and mend its end. Raises `LLPBenchError` if that cannot be done."""
        self.path = folder / FILE
        read(self.path)  # a stranger's file must be refused before anything is locked or mended
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise LLPBenchError(
                f"results cannot be written to {str(folder)!r}: {_reason(error)}. Choose another --out."
            ) from error
        try:
            self._lock()
            self.contents = read(self.path)
            self._mend()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._file)

    def append(self, record: Record) -> None:
        """Write one record so that it survives a crash of the machine. Raises `LLPBenchError` if the disk is full."""
        line = to_line(record)
        size = os.fstat(self._file).st_size
        try:
            while line:  # one write; a disk that is nearly full takes a part, and says why at the next one
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):  # else the next run mends it
                os.ftruncate(self._file, size)
            raise LLPBenchError(
                f"journal {str(self.path)!r} cannot be written: {_reason(error)}. What is in it is safe: "
                "make room and run the same command again."
            ) from error
        self.contents.records[record["run"]] = record

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LLPBenchError(
                f"another llpbench is writing to {str(self.path)!r}. Wait until it ends, or choose another --out."
            ) from error
        except OSError as error:
            raise LLPBenchError(
                f"journal {str(self.path)!r} cannot be locked: {_reason(error)}. Choose an --out on another disk."
            ) from error

    def _mend(self) -> None:
        try:
            if self.contents.unterminated:
                os.write(self._file, b"\n")
            elif os.fstat(self._file).st_size > self.contents.end:
                os.ftruncate(self._file, self.contents.end)
        except OSError as error:
            raise LLPBenchError(f"journal {str(self.path)!r} cannot be mended: {_reason(error)}. Make room.") from error


def keep(earlier: Sequence[Record], record: Record) -> list[Record]:
    """The records to be kept of one run once there is another, that which counts last.

    A failure gives way to whatever comes after it, and never takes the place of a success; successes with the same
    results are one, with different results all of them are kept.
    """
    if record["status"] != "ok":
        return [each for each in earlier if each["status"] == "ok"] or [record]
    others = [each for each in earlier if each["status"] == "ok" and each["results"] != record["results"]]
    return [*others, record]


def to_line(record: Record) -> bytes:
    """A record as the journal holds it: one line of JSON, with null for NaN and infinities."""
    ordered = {"schema": record["schema"], **record}
    text = json.dumps(_finite(ordered), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode() + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _parse(data: bytes, path: Path) -> Contents:
    *lines, tail = data.split(b"\n")
    kept: dict[str, list[Record]] = {}
    warnings: list[str] = []

    def take(record: Record) -> None:
        kept[record["run"]] = keep(kept.get(record["run"], ()), record)

    for number, line in enumerate(lines, start=1):
        record = _record(line, path)
        if record is not None:
            take(record)
        elif line.strip():
            warnings.append(f"line {number} of {str(path)!r} cannot be read; its run counts as missing")
    last = _record(tail, path)
    if last is not None:
        take(last)
    elif tail:
        warnings.append(f"the last line of {str(path)!r} is torn; its run counts as missing")
    if not kept and not _is_ours(data):
        raise LLPBenchError(f"{str(path)!r} is not a journal of llpbench. Choose another --out, or move the file away.")
    return Contents(
        records={run: records[-1] for run, records in kept.items()},
        warnings=tuple(warnings),
        disputed={run: tuple(records) for run, records in kept.items() if len(records) > 1},
        end=len(data) - len(tail),
        unterminated=last is not None,
    )


def _record(line: bytes, path: Path) -> Record | None:
    """The record in a line, None if there is none. Raises if a newer llpbench wrote it."""
    try:
        value = json.loads(line.decode(), parse_constant=lambda _: None)
        if b"\\ud" in line.lower():  # half of a surrogate pair, perhaps: JSON can name one, no file can hold it
            json.dumps(value, ensure_ascii=False).encode()
    except ValueError:  # of the decoding too
        return None
    if not isinstance(value, dict) or not isinstance(value.get("schema"), int) or "run" not in value:
        return None
    if value["schema"] > SCHEMA:
        raise LLPBenchError(
            f"{str(path)!r} was written by a newer llpbench (schema {value['schema']}, this one knows {SCHEMA}). "
            "Update llpbench, or choose another --out."
        )
    return cast(Record, value) if _is_whole(value) else None


def _is_whole(value: dict[str, Any]) -> bool:
    return (
        value.keys() >= Record.__required_keys__
        and isinstance(value["seed"], int)
        and value["run"] == f"{value['cell']}-{value['seed']}"
        and value["status"] in get_args(Status)
        and isinstance(value["reason"], str)
        and isinstance(value["finished"], str)
        and all(isinstance(value[name], dict) for name in _DICTIONARIES)
        and all(isinstance(value.get(name, {}), dict) for name in Record.__optional_keys__)
        and all(isinstance(value["spec"].get(name), kind) for name, kind in _SPEC.items())
        and all(_is_selected(result) for result in value["results"].values())
        and (value["status"] != "ok" or "auc" in value["results"])
    )


def _is_selected(result: Any) -> bool:
    return (
        isinstance(result, dict) and {"epoch", "validation"} <= result.keys() and isinstance(result.get("test"), dict)
    )


def _is_ours(data: bytes) -> bool:
    """Whether a file without a single whole record is the torn or damaged beginning of a journal, not a stranger's."""
    if not data.strip(b"\0\n"):  # zeros are what a crash of the machine can leave
        return True
    return _LINE_START.startswith(data) or any(line.startswith(_LINE_START) for line in data.splitlines())


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
