"""Files appear whole, with the permissions that their owner has chosen."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import resource
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench import LLPBench, arguments, python
from factory import record

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.files import open_packed, private_root, replace_file, replaced, temporary_folder
from llpbench.results.journal import FILE, LOCK, Contents, Journal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


@pytest.fixture(params=[0o077, 0o007])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_replaced_file_keeps_permissions_and_new_one_follows_umask(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "file"
    replace_file(path, "new")
    with Journal(tmp_path) as journal:
        journal.append(record("a"))
    assert mode_of(path) == mode_of(tmp_path / FILE) == 0o666 & ~umask
    for mode in (0o600, 0o640, 0o664, 0o444):
        path.chmod(mode)
        replace_file(path, f"{mode}")
        assert (path.read_text(), mode_of(path)) == (f"{mode}", mode)


def test_failed_write_keeps_old_file_and_is_as_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []

    def fail(file: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(file).st_mode))
        raise OSError("no room")

    path = tmp_path / "old"
    replace_file(path, "before")
    path.chmod(0o600)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no room"):
        replace_file(path, "after")
    assert [each.name for each in tmp_path.iterdir()] == ["old"]
    assert (path.read_text(), modes) == ("before", [0o600])


KILLED = """
import os, pathlib, signal, sys
from llpbench.core.files import replaced, temporary_folder
path = pathlib.Path(sys.argv[1])
with temporary_folder(path) if path.is_dir() else replaced(path) as made:
    (made / "rows").touch() if path.is_dir() else made.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_file_of_killed_writer_replaces_nothing_and_is_removed_a_day_later(tmp_path: Path) -> None:
    path = tmp_path / "result[1].csv"
    replace_file(path, "before")
    python(KILLED, path)
    (left,) = {*tmp_path.iterdir()} - {path}
    with replaced(path) as mine:
        mine.write(b"first")
        with replaced(path) as other:
            assert {*tmp_path.iterdir()} == {path, left, Path(mine.name), Path(other.name)}
            assert path.read_text() == "before"
            other.write(b"second")
        assert path.read_text() == "second"
    assert ({*tmp_path.iterdir()}, path.read_text()) == ({path, left}, "first")
    os.utime(left, (0, time.time() - 90_000))
    replace_file(path, "last")
    assert [*tmp_path.iterdir()] == [path]


def test_strict_umask_hides_results_from_others(tiny_bench: Path, tmp_path: Path, llpbench: LLPBench) -> None:
    out, before = tmp_path / "out", os.umask(0o077)
    try:
        words = arguments(tiny_bench, out, "--save-predictions")
        llpbench.succeed(*words)
        llpbench.succeed("report", "--no-plots", "--out", str(out))
    finally:
        os.umask(before)
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".jsonl", ".parquet", ".md", ".html"}
    assert {str(path.relative_to(out)): oct(mode_of(path)) for path in files if mode_of(path) & 0o077} == {}
    assert (out / LOCK).exists()


def test_symbolic_link_is_kept_and_target_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(Path("far") / "file")
    for content in ("first", "second"):
        replace_file(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "file").read_text() == content


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", PACKERS)
def test_unpacking_stops_at_limit(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows"
    path.write_bytes(PACKERS[kind](bytes(50_000_000)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_packed(path, kind, always=1000) as file, pytest.raises(DataError, match="unpacks from"):
        file.read()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000, "kilobytes"
    with open_packed(path, kind) as file:
        assert file.read() == bytes(50_000_000)
    shard = tmp_path / "adult.jsonl.xz"
    shard.write_bytes(lzma.compress(b"{" + b" " * 30_000_000))
    with pytest.raises(DataError, match="unpacks from"):
        Contents.read(shard)


def test_library_that_opens_its_folder_to_everybody_stays_private(tmp_path: Path) -> None:
    with temporary_folder(tmp_path) as folder:
        folder.chmod(0o777)
        assert folder.parent.stat().st_mode & 0o077 == 0
    assert [*private_root(tmp_path).iterdir()] == []


def test_folder_of_killed_process_is_removed_and_that_of_living_process_is_kept(tmp_path: Path) -> None:
    with temporary_folder(tmp_path) as mine:
        python(KILLED, tmp_path)
        assert len([*tmp_path.glob("*/*/rows")]) == 1
        with temporary_folder(tmp_path) as another:
            assert {*mine.parent.iterdir()} == {mine, another}


@pytest.mark.parametrize("fault", ["group", "everybody", "sticky", "link", "owner"])
def test_unsafe_root_is_refused_and_readable_one_is_closed(tmp_path: Path, fault: str) -> None:
    root = private_root(tmp_path)
    root.chmod(0o755)  # as Ray makes it
    assert mode_of(private_root(tmp_path)) == 0o700
    if fault == "link":
        root.rename(tmp_path / "elsewhere")
        root.symlink_to("elsewhere")
    elif fault == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(root, 12345, 12345)
    else:
        root.chmod({"group": 0o770, "everybody": 0o707, "sticky": 0o1777}[fault])
    with pytest.raises(LLPBenchError, match="that only you can enter"), temporary_folder(tmp_path):
        pass
