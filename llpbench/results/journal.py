"""The journal: an append-only file of results, one JSON object per line.

Only the driver writes it, with one `write` and one `fsync` per record. While it does, it locks a file beside it. This
file stays behind, but is locked only while the process lives. Before each write the open file is compared with its
path: if it was replaced, removed, moved or changed, all results go to a separate file, and the run stops.

A kill or a full disk can leave at most a torn last line. It is dropped, and its run repeated. `settle` decides which
of several records of a run counts, usually the last. So a retry simply appends, and concatenating the journals of two
machines merges them.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import re
import shlex
import stat
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, count
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, cast

from filelock import FileLock, Timeout

from llpbench.core.cell import bagging_text
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import MODE, explained_failure, open_packed, replace_file
from llpbench.core.record import SCHEMA, Record, TuningRecord
from llpbench.core.text import plural
from llpbench.results.lines import DamagedError, OtherSchemaError, read_line, to_line, validator

FILE = "journal.jsonl"
"""name of the journal inside an output folder"""
SHARDS, SHARD_SUFFIX = "journal", ".jsonl.xz"
"""Folder and suffix of a published journal: one compressed file per dataset, never appended to."""
LOCK = ".journal.lock"
"""name of the lock file beside the journal"""
SAVED = "journal.saved.jsonl"
"""name of the file for the results of a run whose journal was removed"""

_SMALL = 1 << 24
"""Unpacked bytes of a shard that are accepted for any packed size."""
SAME = 1e-6
"""Largest relative difference between numbers that count as the same."""
TOLERANCE = 0.02
"""Largest accepted difference in test AUC between results of one run, for example on other hardware or libraries.

Results that differ by more are disputed: none of them counts until a user decides (`llpbench merge --prefer`).
"""

_LINE_START = b'{"schema":'
"""beginning of every line written by `Journal.append`, to distinguish a torn line from a foreign file"""
_SEARCH_START = re.compile(rb'\{"schema":\d+,"tuning":')
"""Beginning of the line of a search."""


Preference = Literal["newest", "first"]
"""Preferred result of a run with different ones."""


@dataclass(frozen=True)
class Contents:
    """Content of a journal."""

    runs: dict[str, list[Record]]
    """Records of each run, by run id in the order of first appearance: the last, and others with different results."""
    tunings: dict[str, TuningRecord] = field(default_factory=dict)
    """Newest record of each search, by id."""
    warnings: tuple[str, ...] = ()
    """One line for each line of the file that was left out."""
    unterminated: bool = False
    """Whether the last line is complete but lacks its line break, as editors may leave it."""
    end: int = 0
    """Number of bytes up to the end of the last complete line. Anything after it is torn."""
    superseded: int = 0
    """Number of runs' records of other code that were left out when journals were joined."""

    @classmethod
    def read(cls, path: Path) -> Contents:
        """Return the records of a journal or a shard of one; none if there is no such file.

        Unreadable lines become warnings. Raises `LLPBenchError` if the file is unreadable, no journal at all, or
        written by a newer or older llpbench.
        """
        with explained_failure(f"journal {str(path)!r} cannot be read"):
            try:
                mode = path.stat().st_mode
                if not stat.S_ISREG(mode):
                    raise LLPBenchError(f"journal {str(path)!r} is not a file. Choose another --out, or move it away.")
                if path.name.endswith(SHARD_SUFFIX):
                    with open_packed(path, "xz", always=_SMALL) as file:
                        data = file.read()
                else:
                    data = path.read_bytes()
            except FileNotFoundError:
                return cls({})
        collecting = gc.isenabled()
        gc.disable()  # a million small objects, none of them garbage: searching them takes a third of the time
        try:
            return _parse(data, path)
        finally:
            if collecting:
                gc.enable()

    @classmethod
    def of_run(cls, folder: Path) -> Contents:
        """Read the journal of a run's folder. Raises `LLPBenchError` if the folder holds a published journal."""
        if shards(folder):
            raise LLPBenchError(f"{str(folder)!r} holds a published journal. Choose another --out.")
        return cls.read(folder / FILE)

    @classmethod
    def joined(cls, journals: Iterable[Contents], prefer: Preference | None = None) -> Contents:
        """Join the contents of journals in any order (`settle`). Of different results keep only the preferred one.

        Within a journal its order counts, otherwise the time stamp.
        """
        runs: dict[str, list[Record]] = {}
        several = set[str]()
        tunings: dict[str, TuningRecord] = {}
        warnings, time = list[str](), itemgetter("finished")
        for contents in journals:
            warnings += contents.warnings
            for name, tuning in contents.tunings.items():
                tunings[name] = _newer(*sorted((tunings[name], tuning), key=time)) if name in tunings else tuning
            for run, records in contents.runs.items():
                if run in runs:
                    several.add(run)
                known = runs.setdefault(run, [])
                known += [record for record in records if record not in known]
        runs = {name: sorted(each, key=time) if name in several else each for name, each in runs.items()}
        settled = {name: settle(each) for name, each in runs.items()}
        if prefer is not None:
            settled = {r: [_first(kept, runs[r]) if prefer == "first" else kept[-1]] for r, kept in settled.items()}
        superseded = sum(_code(each) != _code(settled[name][-1]) for name, known in runs.items() for each in known)
        warnings += _mixtures(records[-1] for records in settled.values())
        return cls(settled, tunings, tuple(warnings), superseded=superseded)

    @property
    def lines(self) -> bytes:
        """All records as the content of a journal."""
        runs = map(to_line, chain.from_iterable(self.runs.values()))
        return b"".join([*runs, *map(to_line, self.tunings.values())])

    @property
    def records(self) -> dict[str, Record]:
        """The last record of each run."""
        return {run: records[-1] for run, records in self.runs.items()}

    @property
    def counting(self) -> dict[str, Record]:
        """Records for reports: `records` without runs whose results disagree."""
        return {run: records[-1] for run, records in self.runs.items() if agree(records)}

    @property
    def disputes(self) -> list[str]:
        """One line for each run with different results."""
        return [dispute(records) for _, records in sorted(self.runs.items()) if len(records) > 1]

    @staticmethod
    def is_older(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Return whether the code of a record is older: its engine or, for the same engine, a declared version.

        Hashes have no order. If one part has a higher version and another a lower one, neither code is older. Of the
        records only `numerics` and `versions` count.
        """
        if one["numerics"] != other["numerics"]:
            return bool(one["numerics"] < other["numerics"])
        parts = ("method", "encoder", "bagging")  # the version of a dataset is a hash
        both = ([each["versions"].get(part) or "" for each in (one, other)] for part in parts)
        steps = {int(new) - int(old) for old, new in both if old.isdecimal() and new.isdecimal()}
        return max(steps, default=0) > 0 and min(steps) >= 0

    def add(self, *records: Record | TuningRecord) -> None:
        """Add records that are later than the others."""
        for record in records:
            if "run" in record:
                run = cast(Record, record)
                self.runs[run["run"]] = settle([*self.runs.get(run["run"], ()), run])
            else:
                earlier = self.tunings.get(record["tuning"])
                self.tunings[record["tuning"]] = record if earlier is None else _newer(earlier, record)


def shards(folder: Path) -> list[Path]:
    """Return the shards of a published journal in `folder`, sorted by dataset; none if it holds no such journal."""
    return sorted((folder / SHARDS).glob(f"*{SHARD_SUFFIX}"))


class Journal:
    """A journal open for writing, locked by this process. A context manager; closing it releases the lock."""

    def __init__(self, folder: Path) -> None:
        """Open or create the journal in `folder` and repair its end. Raises `LLPBenchError` on failure."""
        self.path = folder / FILE
        Contents.of_run(folder)  # a foreign file must be rejected before anything is locked or repaired
        self._lock = FileLock(folder / LOCK, timeout=0)
        self._made = [each for each in (folder, *folder.parents) if not each.exists()]
        """folders to be created, the innermost first"""
        with explained_failure(f"results cannot be written to {str(folder)!r}"):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._lock.acquire()
                self._locked = os.stat(self._lock.lock_file)
            except Timeout as error:
                told = f"another llpbench is writing to {str(self.path)!r}"
                raise LLPBenchError(f"{told}. Wait until it ends, or choose another --out.") from error
        try:
            self.contents = Contents.read(self.path)
            self._file = self._open()
        except BaseException:
            self._lock.release()
            raise
        self._size = os.fstat(self._file).st_size
        """size of the file, unless another program writes to it"""
        self._appended = False
        """whether results were written here, which must be in the file when it is closed"""

    def __enter__(self) -> Journal:
        for kind in (Record, TuningRecord):
            validator(kind)  # now, since a signal that should end a run may be swallowed while it is built
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._appended:
                self._require_unchanged()
            if error is not None and self._made and self._size == 0 and not self._change():
                self._leave_nothing()
        finally:
            os.close(self._file)
            self._lock.release()

    def _leave_nothing(self) -> None:
        """Remove the new files and folders of a run without results, unless a folder contains something else."""
        with contextlib.suppress(OSError):
            self.path.unlink()
            Path(self._lock.lock_file).unlink()  # while it is locked: a waiting process sees that it is gone
            for folder in self._made:
                folder.rmdir()

    def append(self, *records: Record | TuningRecord) -> None:
        """Write records, one after the other, so that they survive a crash of the machine.

        Raises `LLPBenchError` if the disk is full, or if the file is no longer the one that was opened. In the latter
        case all results, including these, have been saved beside it.
        """
        for number, record in enumerate(records):
            self._require_unchanged(records[number:])
            read = read_line(line := to_line(record))  # as the next command will read it: without NaN
            self._write(line)
            self.contents.add(read)

    def replace(self, content: bytes) -> None:
        """Replace the whole content of the journal. Raises `LLPBenchError` if it cannot be written."""
        self._require_unchanged()
        with explained_failure(f"journal {str(self.path)!r} cannot be written", "Make room."):
            replace_file(self.path, content)
            file = os.open(self.path, os.O_RDWR | os.O_APPEND)
        os.close(self._file)
        self._file, self._size = file, os.fstat(file).st_size

    def _require_unchanged(self, pending: Sequence[Record | TuningRecord] = ()) -> None:
        """Raise `LLPBenchError` if the file is no longer the one that was opened, after saving the results of the run.

        `pending`: records not yet written.
        """
        change = self._change()
        if not change:
            return
        told = f"journal {str(self.path)!r} was {change} during this command."
        if not (pending or self._appended):
            raise LLPBenchError(f"{told} Nothing was written to it. Run the same command again.")
        self._appended = False  # save them only once
        self.contents.add(*pending)
        saved = self._save(told)
        joined = [str(each) for each in (self.path, saved) if each.exists()]
        raise LLPBenchError(
            f"{told} All results are in {str(saved)!r}. Join them: llpbench merge {shlex.join(joined)} "
            f"--out {shlex.quote(str(self.path.parent))}; then run the same command again."
        )

    def _change(self) -> str:
        """Return how the file has changed since it was last written; "" if it has not."""
        try:
            there = os.stat(self.path)
        except OSError:
            return "removed or moved"
        here = os.fstat(self._file)
        if not os.path.samestat(there, here):
            return "replaced"
        if here.st_size != self._size:
            return "truncated" if here.st_size < self._size else "written to by another program"
        return "" if self._keeps_lock() else "opened by another llpbench"

    def _keeps_lock(self) -> bool:
        """Return whether this process still holds the lock. A removed lock file is created and locked again."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self._lock.lock_file), self._locked):
                return True
        try:
            self._lock.release()  # the removed file, which no other process can find
            self._lock.acquire()
            self._locked = os.stat(self._lock.lock_file)
        except (Timeout, OSError):
            return False
        return True

    def _save(self, failure: str) -> Path:
        """Write all known records to a new file, beside the journal or else in the folder for temporary files."""
        content = self.contents.lines
        mode = stat.S_IMODE(os.fstat(self._file).st_mode)
        for folder in (self.path.parent, Path(tempfile.gettempdir())):
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                names = (SAVED if number == 1 else SAVED.replace(".jsonl", f"-{number}.jsonl") for number in count(1))
                path = next(folder / name for name in names if not (folder / name).exists())
                path.touch(mode, exist_ok=False)
                try:
                    replace_file(path, content)
                except OSError:
                    path.unlink()
                    raise
                return path
        raise LLPBenchError(f"{failure} Its results can be saved neither beside it nor in {tempfile.gettempdir()!r}.")

    def _write(self, line: bytes) -> None:
        size, whole = self._size, self._size + len(line)
        try:
            while line:  # one write; a nearly full disk takes a part, and the next write raises the reason
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
            self._size, self._appended = whole, True
        except KeyboardInterrupt:  # after the write, before its size is stored
            self._size, self._appended = os.fstat(self._file).st_size, True
            raise
        except OSError as error:
            with contextlib.suppress(OSError):  # otherwise the next run repairs it
                os.ftruncate(self._file, size)
            self._size = os.fstat(self._file).st_size
            told = f"journal {str(self.path)!r} cannot be written: {error.strerror or error}. Its content is safe"
            raise LLPBenchError(f"{told}: make room and run the same command again.") from error

    def _open(self) -> int:
        """Open the file, repair its end, and return its descriptor."""
        with explained_failure(f"results cannot be written to {str(self.path.parent)!r}"):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, MODE)
        with explained_failure(f"journal {str(self.path)!r} cannot be repaired", "Make room."):
            try:
                if self.contents.unterminated:
                    os.write(file, b"\n")
                elif os.fstat(file).st_size > self.contents.end:
                    os.ftruncate(file, self.contents.end)
            except OSError:
                os.close(file)
                raise
        return file


def settle(records: Sequence[Record], *, of_any_data: bool = False) -> list[Record]:
    """Return the records of one run to keep, with the one that counts last. `records` are in the order of the journal.

    The last record has the newest code, unless an earlier one declares a higher version (`Contents.is_older`); clocks
    do not count, since they may be wrong. Records of other code (`core/provenance.py`) are superseded, whatever their
    status, and so are those of other data than the last success. A failure is replaced by any later record, and never
    replaces a success. Of successes with the same results the more complete one is kept (earlier versions had fewer
    metrics and criteria), or the last if they are equally complete. Successes with different results are all kept.
    `of_any_data`: data do not count.
    """
    if len(records) == 1:
        return [*records]
    code = _code(reduce(lambda one, other: one if Contents.is_older(other, one) else other, records))
    current = [record for record in records if _code(record) == code]
    tables = [of for each in current if each["status"] == "ok" and (of := each["data"].get("fingerprint"))]
    kept: list[Record] = []
    for record in current:
        if tables and not of_any_data and record["data"].get("fingerprint", tables[-1]) != tables[-1]:
            continue
        succeeded = [each for each in kept if each["status"] == "ok"]
        if record["status"] != "ok":
            kept = succeeded or [record]
            continue
        counts = record
        for each in succeeded:
            if contains(each["results"], record["results"]) and not contains(record["results"], each["results"]):
                counts = each
        kept = [each for each in succeeded if not contains(counts["results"], each["results"])] + [counts]
    return kept


def _first(kept: Sequence[Record], records: Sequence[Record]) -> Record:
    """Return the one of the kept records whose results came first among all records of the run."""

    def context(record: Record) -> tuple[Any, ...]:
        return _code(record), record["data"], record["status"]

    pairs = ((one, each) for one in records for each in kept if context(one) == context(each))
    return next(each for one, each in pairs if contains(each["results"], one["results"]))


def contains(one: Any, other: Any) -> bool:
    """Return whether nested results contain all of the others, with numbers equal up to `SAME`."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(name in one and contains(one[name], value) for name, value in other.items())
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SAME)  # published lines are rounded
    return bool(one == other)


def agree(records: Sequence[Record]) -> bool:
    """Return whether results of one run agree up to `TOLERANCE`, by every criterion that all of them have."""
    return len(records) < 2 or widest(records).points <= TOLERANCE


class _Disagreement(NamedTuple):
    """Largest difference between results of one run."""

    points: float
    """Difference between the lowest and the highest value; infinite if only some have a score."""
    metric: str
    values: tuple[float | None, ...]
    """Value of each result, in their order; None without a score."""


def widest(records: Sequence[Record]) -> _Disagreement:
    """Return the largest difference between results of one run: in AUC, or without labels in metrics of proportions."""
    results = [record["results"] for record in records]
    labelled = any("auc" in each["test"] for result in results for each in result.values())
    differences = []
    for name in (name for name in results[-1] if all(name in result for result in results)):
        for metric in ("auc",) if labelled else ("l1", "mpiou"):
            values = tuple(result[name]["test"].get(metric) for result in results)
            known = [value for value in values if value is not None]
            whole = len(known) == len(values) or not known
            points = max(known, default=0.0) - min(known, default=0.0) if whole else math.inf
            differences.append(_Disagreement(points, metric, values))
    none = _Disagreement(math.inf, "auc", (None,) * len(records))
    return max(differences, key=lambda difference: difference.points, default=none)


def dispute(records: Sequence[Record]) -> str:
    """Return one line about the different results of a run."""
    spec, seed, apart = records[-1]["spec"], records[-1]["seed"], widest(records)
    shown = ", ".join("none" if value is None else f"{100 * value:.4f}" for value in apart.values)
    how = f"more than {100 * TOLERANCE:g} points apart" if math.isfinite(apart.points) else "a score and none"
    bags = (bagging_text(spec["bagging"], spec.get("max_bags")), str(spec["bag_size"] or ""))
    what = (spec["method"], spec["encoder"], "on", spec["dataset"], *bags)
    prefer = "until one is preferred: llpbench merge JOURNAL --out FOLDER --prefer newest (or first)"
    return (
        f"{' '.join(filter(None, what))}, seed {seed}: {len(records)} different results, "
        f"test {apart.metric.upper()} {shown}; "
        f"{'the last one counts' if agree(records) else f'{how}, so none counts {prefer}'}"
    )


def _mixtures(records: Iterable[Record]) -> Iterator[str]:
    """Yield a line for each method with cells whose runs are of different versions."""
    versions = defaultdict[tuple[str, str, str], set[str | None]](set)
    for record in records:
        for part, version in record["versions"].items():
            versions[record["spec"]["method"], part, record["cell"]] |= {version} - {None}  # None: unknown
    for (method, part), cells in Counter(name[:2] for name, known in versions.items() if len(known) > 1).items():
        yield f"{method}: {plural(cells, 'cell')} with runs of different versions of {part}. Repeat the older runs."


def _code(record: Record | TuningRecord) -> tuple[int, dict[str, str | None]]:
    return record["numerics"], record["versions"]


def _parse(data: bytes, path: Path) -> Contents:
    *lines, tail = data.split(b"\n")
    contents, warnings, unterminated = Contents({}), [], bool(tail)
    for number, line in enumerate([*lines, tail], start=1):
        try:
            contents.add(read_line(line))
        except OtherSchemaError as error:
            later = error.schema > SCHEMA
            raise LLPBenchError(
                f"{str(path)!r} was written by {'a newer' if later else 'an older'} llpbench (schema {error.schema}, "
                f"this one knows {SCHEMA}). {'Update llpbench, or choose' if later else 'Choose'} another --out; "
                "nothing was changed in it."
            ) from None
        except DamagedError as error:
            is_last = number > len(lines)
            is_torn = is_last and not error.is_json
            unterminated = unterminated and not is_torn
            if line.strip():
                where = f"{'the last line' if is_last else f'line {number}'} of {str(path)!r}"
                missing = f"its {'search' if _SEARCH_START.match(line) else 'run'} counts as missing"
                warnings.append(f"{where}{' is torn' if is_torn else f': {error}'}; {missing}")
    if not contents.runs and not contents.tunings and not _is_ours(data):
        raise LLPBenchError(f"{str(path)!r} is not a journal of llpbench. Choose another --out, or move the file away.")
    return replace(contents, warnings=tuple(warnings), end=len(data) - len(tail), unterminated=unterminated)


def _newer(one: TuningRecord, other: TuningRecord) -> TuningRecord:
    """Return the record of a tuning that counts; `one` is before `other` in the journal.

    Newer code wins, as in `settle`; for the same code a success wins over a failure. The result remembers the cells
    that the other record has selected (`former`), whose runs may be in the journal.
    """
    same = _code(one) == _code(other)
    if same and one["status"] != other["status"] and "ok" in (one["status"], other["status"]):
        counts = one if one["status"] == "ok" else other
    else:
        counts = one if Contents.is_older(other, one) else other
    gone = other if counts is one else one
    before = {*counts.get("former", ()), *gone.get("former", ()), *_chosen(gone)} - _chosen(counts)
    return {**counts, "former": sorted(before)} if before else counts


def _chosen(record: TuningRecord) -> set[str]:
    """Return ids of the cells that a search has selected."""
    return {choice["cell"] for choice in record["best"].values()}


def _is_ours(data: bytes) -> bool:
    """Return whether a file without a complete record is the torn or damaged beginning of a journal, not foreign."""
    if not data.strip(b"\0\n"):  # a crash of the machine can leave zeros
        return True
    return _LINE_START.startswith(data) or any(line.startswith(_LINE_START) for line in data.splitlines())
