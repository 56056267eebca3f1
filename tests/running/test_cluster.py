"""Machines of a cluster that share no folder with the driver's are given what they lack, and refused if they differ."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from llpbench.core.cell import Environment
from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import software
from llpbench.running import ray_host
from llpbench.running.cluster import NodeFiles, Room


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeFiles:
    """As the driver has packed it, with the temporary folder of another machine."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tables = {"credit": ("/driver/data/credit.parquet", 4, b"rows"), "movies": ("/driver/data/ml.zip", 3, b"zip")}
    tables["openml:31"] = ("/driver/data/openml-31.parquet", 5, b"toads")
    return NodeFiles("llpbench-1", software(), {"/driver/mine.py": b"x = 1\n"}, tables)


def test_what_a_machine_lacks_is_unpacked_once(files: NodeFiles, tmp_path: Path) -> None:
    driver = Environment(
        data_dir="/driver/data", pretrained="/driver/out/p", tuning="/driver/out/t", plugins=("/driver/mine.py",)
    )
    fetched: list[bytes] = []

    def fetch(content: bytes) -> bytes:
        fetched.append(content)
        return content

    for _ in range(2):
        here = files.unpack(driver, "credit", fetch)
        assert here.data_dir is not None
        assert Path(here.data_dir, "credit.parquet").read_bytes() == b"rows"
        assert [Path(path).name for path in here.plugins] == ["mine.py"]
        assert Path(here.plugins[0]).read_bytes() == b"x = 1\n"
        assert here.pretrained == str(files.folder / "p")
        assert here.tuning == str(files.folder / "t")
    assert fetched == [b"rows"]
    assert files.folder == tmp_path / "llpbench-1"
    assert files.folder.stat().st_mode & 0o077 == 0, "nobody else's business"
    assert files.unpack(driver, "movies", fetch).data_dir == str(files.folder / "data-movies")
    assert (files.folder / "data-movies" / "ml.zip").read_bytes() == b"zip"
    assert files.unpack(driver, "openml:31", fetch).data_dir == str(files.folder / "data-openml-31")
    assert (files.folder / "data-openml-31" / "openml-31.parquet").read_bytes() == b"toads"
    assert files.unpack(driver, "adult", fetch).data_dir is None, "it is embedded"


def test_what_a_machine_shares_is_used_as_it_is(files: NodeFiles, tmp_path: Path) -> None:
    for name, content in {"credit.parquet": b"rows", "mine.py": b"x = 1\n"}.items():
        (tmp_path / name).write_bytes(content)
    path, plugin = (str(tmp_path / name) for name in ("credit.parquet", "mine.py"))
    packed = replace(files, tables={"credit": (path, 4, b"rows")}, plugins={plugin: b"x = 1\n"})
    driver = Environment(data_dir=str(tmp_path), pretrained=str(tmp_path / "p"), plugins=(plugin,))
    assert packed.unpack(driver, "credit", pytest.fail) == driver
    (tmp_path / "mine.py").write_bytes(b"x = 2\n")
    assert packed.unpack(driver, "credit", pytest.fail).plugins != (plugin,), "another version of it"


def test_a_machine_with_other_software_is_refused(files: NodeFiles) -> None:
    packed = replace(files, software={**software(), "torch": "1.0"})
    with pytest.raises(LLPBenchError, match=r"must have torch 1\.0 "):
        packed.unpack(Environment(), "adult", pytest.fail)


def test_rooms_add_up() -> None:
    assert Room.sum([Room(1, 0.5, 10), Room(2, 0, 5)]) == Room(3, 0.5, 15)
    assert Room.sum([]) == Room(0)
    assert Room(2, 1, 10).holds(Room(2, 0.5, 10))
    assert not Room(2, 1, 10).holds(Room(1, 0, 11))


def test_who_waits_for_another_process_that_starts_ray_says_so_and_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ray_host, "_SECONDS_TO_WARN", 0.1)
    monkeypatch.setattr(ray_host, "_SECONDS_TO_GIVE_UP", 0.1)
    file = tmp_path / "ray.lock"
    with FileLock(file), pytest.raises(LLPBenchError, match="is locked by another process"):
        ray_host._waiting(FileLock(file))
    assert str(file) in caplog.text
    with ray_host._waiting(FileLock(file)) as lock:
        assert lock.is_locked
