"""The journal survives damage to its file, and its loss while it is open; it never loses or changes records."""

from __future__ import annotations

import copy
import errno
import json
import math
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from bench import LLPBench, arguments, refusal
from factory import MISSING, changed, make_cell_of, make_record, places, record, searched

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import SCHEMA
from llpbench.results.journal import FILE, LOCK, SAVED, Contents, Journal
from llpbench.results.lines import read_line, to_line
from llpbench.results.merging import merge_into

CELL = make_cell_of()
RECORDS = [make_record(CELL, seed) for seed in range(5)]


def write(folder: Path, *lines: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / FILE
    path.write_bytes(b"".join(lines))
    return path


@contextmanager
def no_more_room() -> Iterator[None]:
    """A disk on which no file can grow beyond 5000 bytes; not longer than needed, since pytest writes files too."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_last_record_of_run_counts(tmp_path: Path) -> None:
    failed = make_record(CELL, 0, "failed")
    with Journal(tmp_path / "new" / "folder") as journal:
        journal.append(failed, *RECORDS[:3])
        assert list(journal.contents.records.values()) == RECORDS[:3]
    whole = journal.path.read_bytes()
    for content in (whole, whole + whole, whole.rstrip(b"\n")):
        contents = Contents.read(write(tmp_path, content))
        assert contents.records == {record["run"]: record for record in RECORDS[:3]}
        assert contents.warnings == ()
    with Journal(tmp_path) as journal:  # without a last line break
        journal.append(make_record(CELL, 3))
    assert len(Contents.read(journal.path).records) == 4


def test_record_is_one_synced_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Mock()
    for name in ("write", "fsync"):
        calls.attach_mock(Mock(wraps=getattr(os, name)), name)
        monkeypatch.setattr(os, name, getattr(calls, name))
    with Journal(tmp_path) as journal:
        journal.append(make_record(CELL, reason="two\nlines"))
        assert [name for name, *_ in calls.method_calls] == ["write", "fsync"]
        assert journal.path.read_bytes().count(b"\n") == 1


def test_records_count_as_they_are_read(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(record("a", math.nan), record("a", math.nan))
        assert journal.contents.runs == Contents.read(tmp_path / FILE).runs
        assert not journal.contents.disputes


def test_torn_last_line_is_dropped_and_repaired(tmp_path: Path) -> None:
    first, last = map(to_line, RECORDS[:2])
    for cut in range(1, len(last) - 1):
        path = write(tmp_path, first, last[:cut])
        contents = Contents.read(path)
        assert list(contents.records.values()) == RECORDS[:1], cut
        assert len(contents.warnings) == 1
        assert "torn" in contents.warnings[0]
        if cut % 50 == 1:  # reading changes nothing; writing repairs
            assert path.read_bytes() == first + last[:cut]
            with Journal(tmp_path) as journal:
                journal.append(RECORDS[1])
            assert path.read_bytes() == first + last
    for torn in (first[:1], first[:9], first[:40], b"\0" * 512):  # of the first line, too
        path = write(tmp_path, torn)
        with Journal(tmp_path) as journal:
            assert len(journal.contents.warnings) == 1
            journal.append(RECORDS[0])
        assert path.read_bytes() == first


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1,2\n", b'{"name": "x"}\n{"name": "y"}\n', b"\x89PNG\r\n\x1a\n\0\0", b"no line break", b"{}", b"\xff\xfe"],
)
def test_foreign_file_is_refused_unchanged(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content)
    with refusal("not a journal"):
        Journal(tmp_path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(("schema", "age"), [(SCHEMA + 1, "a newer"), (1, "an older")])
def test_other_schema_is_refused_unchanged(tmp_path: Path, schema: int, age: str) -> None:
    path = write(tmp_path, to_line(RECORDS[0]), to_line(make_record(CELL, 1, schema=schema)))
    before = path.read_bytes()
    for use in (Contents.read, lambda _: Journal(tmp_path)):
        with refusal(rf"{age} llpbench \(schema {schema}, this one knows {SCHEMA}\)"):
            use(path)
    assert path.read_bytes() == before


def test_unreadable_or_unwritable_journal_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / FILE).mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / FILE).symlink_to("/dev/zero")
    (tmp_path / "file").write_text("")
    unwritable = (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/llpbench"))
    for told, folders in (("is not a file", (tmp_path / "a", tmp_path / "b")), ("Choose another --out", unwritable)):
        for folder in folders:
            with refusal(told):
                Journal(folder)

    path = write(tmp_path, to_line(RECORDS[0]))
    denied = PermissionError(errno.EACCES, "Permission denied", str(path))
    monkeypatch.setattr(Path, "read_bytes", Mock(side_effect=denied))  # as root, every file can be read
    with refusal("cannot be read: Permission denied"):
        Contents.read(path)


def test_stale_lock_file_is_ignored(tmp_path: Path) -> None:
    process = holder(tmp_path)
    with pytest.raises(LLPBenchError, match="another llpbench is writing"):
        Journal(tmp_path)
    process.kill()
    process.communicate()
    assert (tmp_path / LOCK).exists()
    with Journal(tmp_path) as journal:
        journal.append(RECORDS[0])


def test_full_disk_loses_no_finished_run(tmp_path: Path) -> None:
    with no_more_room(), Journal(tmp_path) as journal:
        longest = len(to_line(make_record(CELL, 99)))
        while journal.path.stat().st_size + longest <= 5000:
            journal.append(make_record(CELL, len(journal.contents.records)))
        written = len(journal.contents.records)
        with refusal("cannot be written: File too large.*make room and run the same command again"):
            journal.append(make_record(CELL, written))
        assert len(journal.contents.records) == written > 1
    contents = Contents.read(journal.path)
    assert len(contents.records) == written
    assert contents.warnings == ()  # the part that still fitted was taken back
    with Journal(tmp_path) as journal:
        journal.append(make_record(CELL, written))
    assert len(Contents.read(journal.path).records) == written + 1


def test_failing_sync_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(tmp_path) as journal:
        journal.append(RECORDS[0])
        monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        with refusal("No space left on device"):
            journal.append(RECORDS[1])
    assert list(Contents.read(journal.path).records.values()) == RECORDS[:1]


def test_interrupt_before_sync_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def append() -> None:
        with Journal(tmp_path) as journal:
            journal.append(RECORDS[0])
            monkeypatch.setattr(os, "fsync", Mock(side_effect=KeyboardInterrupt))
            journal.append(RECORDS[1])

    with pytest.raises(KeyboardInterrupt):
        append()
    assert list(Contents.read(tmp_path / FILE).records.values()) == RECORDS[:2]


FOREIGN = to_line(make_record(make_cell_of("somebody-else"), 7))


def replaced(path: Path) -> None:
    """As `git pull`, `rsync` and most editors do."""
    other = path.with_name("other")
    other.write_bytes(FOREIGN)
    other.replace(path)


def replaced_by_a_copy(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def taken_over(path: Path) -> None:
    """The folder is moved, and another run has made one of the same name."""
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.mkdir()
    path.write_bytes(FOREIGN)


@contextmanager
def stopped(folder: Path, line: list[str] | None = None) -> Iterator[Journal]:
    """A journal whose use ends in an error of one `line`."""
    told = ""
    try:
        with Journal(folder) as journal:
            yield journal
    except LLPBenchError as error:
        told = str(error)
    assert len(told.splitlines()) == 1
    if line is not None:
        line.append(told)


CHANGES: dict[str, Callable[[Path], object]] = {
    "replaced": replaced,
    "replaced by a copy": replaced_by_a_copy,
    "deleted": Path.unlink,
    "truncated": lambda path: os.truncate(path, 10),
    "overwritten in place by something longer": lambda path: path.write_bytes(FOREIGN * 20),
    "folder moved": lambda path: path.parent.rename(path.parent.with_name("elsewhere")),
    "folder removed": lambda path: shutil.rmtree(path.parent),
    "folder taken over": taken_over,
}
each_change = pytest.mark.parametrize("change", CHANGES)


@each_change
def test_rescued_results_replace_no_file(change: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Journal(out) as journal:
        journal.append(RECORDS[0])
    path, old = out / FILE, out / SAVED
    with stopped(out) as journal:
        journal.append(RECORDS[1])
        CHANGES[change](path)
        left = path.read_bytes() if path.exists() else None
        if out.exists():
            old.write_text("of an earlier accident")
        journal.append(RECORDS[2], RECORDS[3])
    saved = out / "journal.saved-2.jsonl" if old.exists() and old.read_text() == "of an earlier accident" else old
    assert list(Contents.read(saved).records.values()) == RECORDS[:4], "what was there before, too"
    assert (path.read_bytes() if path.exists() else None) == left
    assert not [each.name for each in out.iterdir() if each.name not in {FILE, LOCK, SAVED, saved.name}]


@each_change
@pytest.mark.parametrize("interrupted", [False, True])
def test_removed_journal_is_noticed_at_end(change: str, interrupted: bool, tmp_path: Path) -> None:
    with stopped(tmp_path / "out") as journal:
        journal.path.chmod(0o600)
        journal.append(RECORDS[0])
        CHANGES[change](journal.path)
        if interrupted:
            raise KeyboardInterrupt
    saved = tmp_path / "out" / SAVED
    assert list(Contents.read(saved).records.values()) == RECORDS[:1]
    assert saved.stat().st_mode & 0o777 == 0o600


def test_rescued_results_join_existing_ones(tmp_path: Path, llpbench: LLPBench) -> None:
    line: list[str] = []
    with stopped(tmp_path / "a folder", line) as journal:
        journal.append(RECORDS[0])
        replaced(journal.path)
        journal.append(RECORDS[1])
    command = line[0].partition("Join them: ")[2].partition(";")[0]
    llpbench.succeed(*shlex.split(command)[1:])
    assert len(Contents.read(journal.path).records) == 3


def test_results_go_to_other_folder_if_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spare").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spare"))
    with stopped(tmp_path / "out") as journal:
        journal.append(RECORDS[0])
        shutil.rmtree(tmp_path / "out")
        (tmp_path / "out").write_text("a file by now")
    assert list(Contents.read(tmp_path / "spare" / SAVED).records.values()) == RECORDS[:1]


def test_nothing_is_rescued_without_results(tmp_path: Path) -> None:
    with Journal(tmp_path / "out") as journal:
        shutil.rmtree(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with stopped(tmp_path / "out") as journal:
        replaced(journal.path)
        journal.replace(b"")
    assert (tmp_path / "out" / FILE).read_bytes() == FOREIGN
    assert not (tmp_path / "out" / SAVED).exists()


def test_failed_run_removes_only_its_empty_journal(tmp_path: Path) -> None:
    with Journal(tmp_path / "ended"):
        pass
    assert (tmp_path / "ended" / FILE).exists(), "this one did not fail"
    with suppress(KeyError), Journal(tmp_path / "out") as journal:
        taken_over(journal.path)
        raise KeyError
    assert (tmp_path / "out" / FILE).read_bytes() == FOREIGN


HOLD = """
import sys
from pathlib import Path
from filelock import FileLock
from llpbench.results.journal import Journal
path = Path(sys.argv[1])
with Journal(path) if path.is_dir() else FileLock(path):
    print("open", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[bytes]:
    """Another process, which writes to the journal of a folder, or holds a lock file."""
    command = [sys.executable, "-c", HOLD, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"open\n"
    return process


def test_removed_lock_file_is_recreated(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(RECORDS[0])
        (tmp_path / LOCK).unlink()
        journal.append(RECORDS[1])
        with pytest.raises(LLPBenchError):
            Journal(tmp_path)
        journal.append(RECORDS[2])
    assert len(Contents.read(journal.path).records) == 3


def test_lost_lock_ends_run(tmp_path: Path) -> None:
    with stopped(tmp_path) as journal:
        journal.append(RECORDS[0])
        (tmp_path / LOCK).unlink()
        other = holder(tmp_path / LOCK)
        try:
            journal.append(RECORDS[1])
        finally:
            other.communicate()
    assert list(Contents.read(journal.path).records.values()) == RECORDS[:1]
    assert list(Contents.read(tmp_path / SAVED).records.values()) == RECORDS[:2]


def test_run_with_lost_journal_keeps_all(plugin: Path, tmp_path: Path, llpbench: LLPBench, monkeypatch: Any) -> None:
    """As one by Ray does (`test_executors.py`)."""
    out, append = tmp_path / "out", Journal.append
    written: list[Any] = []

    def appended(journal: Journal, *records: Any) -> None:
        written.extend(records)
        append(journal, *records)
        if len(written) == 4:  # two seeds at a time
            replaced_by_a_copy(journal.path)

    monkeypatch.setattr(Journal, "append", appended)
    result = llpbench(*arguments(plugin, out))
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[-1].startswith("llpbench: journal ")
    assert 4 < len(written) < 8
    assert [*Contents.read(out / SAVED).records.values()] == written


@pytest.mark.parametrize(("name", "value"), [("likelihood", -6e14), ("dsq", 2e7), ("easyllp", -2e7)])
def test_criteria_of_bags_of_millions_of_rows_are_accepted(name: str, value: float) -> None:
    run = record("a")
    run["results"][name] = {**run["results"]["auc"], "validation": value}
    assert read_line(to_line(run)) == run


GOOD: list[Any] = [record("a"), record("b", seed=3), searched(CELL, "fine", {"auc": (CELL, 0.8, None)})]
RUN = copy.deepcopy(record("c"))
RUN["results"]["auc"] |= {"epoch": 7, "test": {"auc": 0.95, "accuracy": None}}
SEARCH = searched(CELL, "coarse", {"l1": (CELL, 0.2, 0.3), "kl": (CELL, 0.1, None)})
RUN_LINE, SEARCH_LINE = (json.loads(to_line(each)) for each in (RUN, SEARCH))
FAULTS: list[tuple[str, object]] = [
    *(("run", "x"), ("cell", "../../etc/passwd"), ("seed", -1), ("seed", 1.0), ("seed", True), ("status", "fine")),
    *(("reason", None), ("finished", "yesterday"), ("results", {}), ("results", []), ("results.auc", "x")),
    *(("results.auc.judged", 2), ("results.auc.judged", True), ("results.auc.judged", -1), ("judged", None)),
    *(("judged", [3]), ("judged.0.epoch", -1), ("judged.0.epoch", MISSING), ("judged.0.test", MISSING)),
    *(("judged.0.test.accuracy", "0.8"), ("judged.0.diagnostics", [1])),
    *(("curves.auc", ["x"]), ("epochs", -40), ("memory_mb", "much"), ("times.total", -1.0), ("spec", [])),
    *(("spec.dataset", MISSING), ("spec.method", "two\nlines"), ("spec.method", "x" * 20_000), ("spec.params", None)),
    *(("spec.bag_size", "many"), ("spec.protocol", 3), ("spec.protocol.patience", 0), ("method.role", "roof")),
    *(("method.changed", MISSING), ("dataset.classes", 2.5), ("bags.sizes", [1, 2]), ("bags.histograms", [[1, 2]])),
    *(("data", {"fingerprint": 1}), ("versions", None), ("numerics", "1"), ("code", {"version": "1"})),
    *(("libraries", {"torch": None}), ("hardware", {"device": 3}), ("schema", "2")),
    *(("bags", {}), ("bags.number", MISSING), ("bags.histograms", MISSING)),
    *(("hardware", {}), ("hardware.name", MISSING)),
]
SEARCH_FAULTS: list[tuple[str, object]] = [
    *(("tuning", "x/y"), ("spec.cell", MISSING), ("spec.cell.encoder", 3), ("spec.regime", "medium")),
    *(("spec.depth", 3), ("spec.trials", 0), ("best.l1", {}), ("best.l1.value", "x"), ("trials", {})),
    *(("trials.0.status", "lost"), ("trials.0.rungs", [[1]])),
]
NO_RECORDS: list[bytes] = [
    *(b"\0" * 30, b"\x89PNG\r\x1a\xff", b"[" * 200_000, b"[1]", b"{}", to_line(RUN)[:200]),
    to_line(RUN)[:-1] + to_line(RUN),
    *(to_line(RUN).replace(b'"seed":0', b'"seed":' + number) for number in (b"9" * 5000, b"NaN")),
    to_line(RUN).replace(b'"total":4.0', b'"total":1e999'),
    *(to_line(RUN).replace(b'"reference":""', b'"reference":"%b"' % text) for text in (b"\\ud800", b"\xed\xa0\x80")),
]


def read_with(folder: Path, *damaged: bytes) -> Contents:
    """Return the contents of a journal with these lines among good ones, which must all be read."""
    good = [to_line(each) for each in GOOD]
    (folder / FILE).write_bytes(b"".join([good[0], *(line.rstrip(b"\n") + b"\n" for line in damaged), *good[1:]]))
    contents = Contents.read(folder / FILE)
    found = contents.records | contents.tunings
    assert found.items() >= {each["run"] if "run" in each else each["tuning"]: each for each in GOOD}.items()
    return contents


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        *((json.dumps(changed(RUN_LINE, {path: value})).encode(), path) for path, value in FAULTS),
        *((json.dumps(changed(SEARCH_LINE, {path: value})).encode(), path) for path, value in SEARCH_FAULTS),
        *((line, "") for line in NO_RECORDS),
    ],
)
def test_invalid_line_gives_one_warning_that_names_the_wrong_field(line: bytes, fault: str, tmp_path: Path) -> None:
    (warning,) = read_with(tmp_path, line).warnings
    where, _, told = warning.partition(": ")
    assert where == f"line 2 of {str(tmp_path / FILE)!r}"
    assert told.startswith("spec" if fault == "spec.depth" else fault)
    assert warning.isprintable()
    assert len(warning) < 500


def test_fields_of_later_versions_are_kept(tmp_path: Path) -> None:
    new: Any = {**changed(RUN, {"spec.depth": 3}), "mood": {"good": [1, {"very": True}]}}
    new["results"]["new"] = {**new["results"]["auc"], "test": {"auc": 0.5, "new": -7.0}, "mood": "good"}
    assert read_with(tmp_path, to_line(new)).records[RUN["run"]] == new
    merge_into(tmp_path / "merged", [tmp_path / FILE])
    assert Contents.read(tmp_path / "merged" / FILE).records[RUN["run"]] == new


STRANGE: list[Any] = [None, True, -1, 0, 0.5, 1e9, -1e300, 10**400, "", "a\nb", "x" * 5000]
STRANGE += [[], {}, [[]], {"auc": 1}, float("inf")]


@pytest.mark.parametrize("seed", range(3))
def test_random_damage_costs_no_other_run(tmp_path: Path, seed: int) -> None:
    rng, damaged = random.Random(seed), []
    for _ in range(300):
        line: Any = copy.deepcopy(rng.choice([RUN_LINE, SEARCH_LINE]))
        inner, key = rng.choice([*places(line)])
        if rng.random() < 0.2:
            del inner[key]
        else:
            inner[key] = rng.choice(STRANGE)
        text = bytearray(json.dumps(line | {"schema": SCHEMA}).encode())
        if rng.random() < 0.2:
            text[rng.randrange(1, len(text))] = rng.randrange(256)
        damaged += bytes(text).splitlines()
    damaged = [line for line in damaged if b'"schema": 4,' in line]  # another schema is another version
    contents = read_with(tmp_path, *damaged)
    assert 0 < len(contents.warnings) <= len(damaged)
    assert all(warning.isprintable() for warning in contents.warnings)
    merged = merge_into(tmp_path / "merged", [tmp_path / FILE])
    again = Contents.read(tmp_path / "merged" / FILE)
    assert (again.warnings, again.runs, again.tunings) == ((), merged.runs, merged.tunings)
