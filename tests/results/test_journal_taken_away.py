"""A journal that is replaced, removed, moved or changed while it is open: no result is lost, nothing is overwritten."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from bench import LLPBench, arguments
from factory import make_cell_of, make_record

from llpbench.core.errors import LLPBenchError
from llpbench.results.journal import FILE, LOCK, SAVED, Journal, read
from llpbench.results.lines import to_line

CELL = make_cell_of()
RECORDS = [make_record(CELL, seed) for seed in range(5)]
FOREIGN = to_line(make_record(make_cell_of("somebody-else"), 7))


def replaced(path: Path) -> None:
    """As `git pull`, `rsync` and most editors do."""
    other = path.with_name("other")
    other.write_bytes(FOREIGN)
    other.replace(path)


def replaced_by_a_copy(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def deleted(path: Path) -> None:
    path.unlink()


def truncated(path: Path) -> None:
    os.truncate(path, 10)


def overwritten(path: Path) -> None:
    """In place, by something longer."""
    path.write_bytes(FOREIGN * 20)


def moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def removed(path: Path) -> None:
    shutil.rmtree(path.parent)


def taken_over(path: Path) -> None:
    """The folder is moved, and another run has made one of the same name."""
    moved(path)
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


CHANGES = (replaced, replaced_by_a_copy, deleted, truncated, overwritten, moved, removed, taken_over)
each_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)


@each_change
def test_rescued_results_replace_no_file(change: Callable[[Path], None], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Journal(out) as journal:
        journal.append(RECORDS[0])
    path, old = out / FILE, out / SAVED
    with stopped(out) as journal:
        journal.append(RECORDS[1])
        change(path)
        left = path.read_bytes() if path.exists() else None
        if out.exists():
            old.write_text("of an earlier accident")
        journal.append(RECORDS[2], RECORDS[3])
    saved = out / "journal.saved-2.jsonl" if old.exists() and old.read_text() == "of an earlier accident" else old
    assert list(read(saved).records.values()) == RECORDS[:4], "what was there before, too"
    assert (path.read_bytes() if path.exists() else None) == left
    assert not [each.name for each in out.iterdir() if each.name not in {FILE, LOCK, SAVED, saved.name}]


@each_change
@pytest.mark.parametrize("interrupted", [False, True])
def test_removed_journal_is_noticed_at_end(change: Callable[[Path], None], interrupted: bool, tmp_path: Path) -> None:
    with stopped(tmp_path / "out") as journal:
        journal.append(RECORDS[0])
        change(journal.path)
        if interrupted:
            raise KeyboardInterrupt
    assert list(read(tmp_path / "out" / SAVED).records.values()) == RECORDS[:1]


def test_rescued_results_join_existing_ones(tmp_path: Path, llpbench: LLPBench) -> None:
    line: list[str] = []
    with stopped(tmp_path / "a folder", line) as journal:
        journal.append(RECORDS[0])
        replaced(journal.path)
        journal.append(RECORDS[1])
    command = line[0].partition("Join them: ")[2].partition(";")[0]
    assert llpbench(*shlex.split(command)[1:]).code == 0
    assert len(read(journal.path).records) == 3


def test_results_go_to_other_folder_if_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spare").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spare"))
    with stopped(tmp_path / "out") as journal:
        journal.append(RECORDS[0])
        removed(journal.path)
        (tmp_path / "out").write_text("a file by now")
    assert list(read(tmp_path / "spare" / SAVED).records.values()) == RECORDS[:1]


def test_rescued_results_keep_permissions(tmp_path: Path) -> None:
    with stopped(tmp_path) as journal:
        journal.path.chmod(0o600)
        journal.append(RECORDS[0])
        deleted(journal.path)
    assert (tmp_path / SAVED).stat().st_mode & 0o777 == 0o600


def test_nothing_is_rescued_without_results(tmp_path: Path) -> None:
    with Journal(tmp_path / "out") as journal:
        removed(journal.path)
    assert not (tmp_path / "out").exists()
    with stopped(tmp_path / "out") as journal:
        replaced(journal.path)
        journal.replace(b"")
    assert (tmp_path / "out" / FILE).read_bytes() == FOREIGN
    assert not (tmp_path / "out" / SAVED).exists()


def test_failed_run_removes_only_its_empty_journal(tmp_path: Path) -> None:
    with suppress(KeyError), Journal(tmp_path / "out") as journal:
        taken_over(journal.path)
        raise KeyError
    assert (tmp_path / "out" / FILE).read_bytes() == FOREIGN


HOLD = """
import sys
from pathlib import Path
from typing import Any
from filelock import FileLock
with FileLock(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_removed_lock_file_is_recreated(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(RECORDS[0])
        (tmp_path / LOCK).unlink()
        journal.append(RECORDS[1])
        with pytest.raises(LLPBenchError):
            Journal(tmp_path)
        journal.append(RECORDS[2])
    assert len(read(journal.path).records) == 3


def test_lost_lock_ends_run(tmp_path: Path) -> None:
    with stopped(tmp_path) as journal:
        journal.append(RECORDS[0])
        (tmp_path / LOCK).unlink()
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path / LOCK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        try:
            journal.append(RECORDS[1])
        finally:
            holder.communicate()
    assert list(read(journal.path).records.values()) == RECORDS[:1]
    assert list(read(tmp_path / SAVED).records.values()) == RECORDS[:2]


def test_run_with_lost_journal_keeps_all_results(
    plugin: Path, tmp_path: Path, llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert [*read(out / SAVED).records.values()] == written
