"""Temporary folders are private and do not outlive their processes for long."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import private_root, temporary_folder

KILLED = """
import os, pathlib, signal, sys
from llpbench.core.files import temporary_folder
with temporary_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "rows").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


def test_library_that_opens_its_folder_to_everybody_stays_private(tmp_path: Path) -> None:
    with temporary_folder(tmp_path) as folder:
        folder.chmod(0o777)
        assert folder.parent.stat().st_mode & 0o077 == 0
    assert [*tmp_path.iterdir()] == []


def test_folder_of_killed_process_is_removed_and_that_of_living_process_is_kept(tmp_path: Path) -> None:
    with temporary_folder(tmp_path) as mine:
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
        assert len([*tmp_path.glob("*/*/rows")]) == 1
        with temporary_folder(tmp_path) as another:
            assert {*mine.parent.iterdir()} == {mine, another}


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707])
def test_root_that_others_can_enter_is_refused(tmp_path: Path, mode: int) -> None:
    root = private_root(tmp_path)
    root.chmod(mode)
    with pytest.raises(LLPBenchError, match="that only you can enter"), temporary_folder(tmp_path):
        pass


def test_root_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    private_root().rename(tmp_path / "elsewhere")
    (tmp_path / f"llpbench-{os.getuid()}").symlink_to("elsewhere")
    with pytest.raises(LLPBenchError, match="that only you can enter"):
        private_root()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(private_root(tmp_path), 12345, 12345)
    with pytest.raises(LLPBenchError, match="that only you can enter"):
        private_root(tmp_path)
