"""Standard streams that are full, closed or not read to their end, and texts that a terminal would obey."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from bench import LLPBench, arguments, start
from districts import counted, people

from llpbench.results.journal import FILE


def shell(words: str, *given: object) -> subprocess.CompletedProcess[str]:
    """`llpbench` with redirections of a shell; `given` are its arguments from $1 on."""
    command = ["sh", "-c", words.replace("llpbench", f"{sys.executable} -P -m llpbench"), "sh", *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


@pytest.mark.parametrize("closed", ["2>/dev/full", "2>&- >&- <&-"])
def test_run_continues_with_closed_stderr(plugin: Path, tmp_path: Path, closed: str) -> None:
    some = ("--methods", "quick-a", "--bag-sizes", "8")
    done = shell(f'llpbench "$@" {closed}', *arguments(plugin, tmp_path / "out", *some))
    assert done.returncode == 0, done.stdout + done.stderr
    journal = (tmp_path / "out" / FILE).read_bytes()
    assert journal.count(b"\n") == 2
    assert journal.count(b'{"') >= 2


@pytest.mark.parametrize("command", ["list methods", "--help"])
def test_full_stdout_is_failure(command: str) -> None:
    done = shell(f"llpbench {command} >/dev/full")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("llpbench: ")
    assert "No space left on device" in line


def test_closed_pipe_ends_silently() -> None:
    process = start(["list", "methods"])
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 1
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_terminal_escapes_of_files_are_neutralised(
    tmp_path: Path, llpbench: LLPBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame, bags, votes = people(300, 12)
    evil = "\x1b]0;owned\x07\x9b2J"
    frame.assign(**{"district": bags, f"id{evil}": [f"{evil}{n}" for n in range(300)]}).to_csv("rows.csv", index=False)
    table = counted(bags, votes).rename_axis("district").reset_index()
    table.columns = pd.Index(["district", f"no{evil}", f"yes{evil}"])
    table.to_csv("bags.csv", index=False)
    common = ["fit", "rows.csv", "--bags", "bags.csv", "--bag-column", "district", "--method", "count-gbdt"]
    for more in (["--counts", f"no{evil},yes{evil}", "--out", "model"], ["--counts", "nothing", "--out", "other"]):
        result = llpbench(*common, *more)
        assert not {"\x1b", "\x07", "\x9b"} & {*result.out, *result.err}
        assert "\\x1b]0;owned\\x07\\x9b2J" in result.out + result.err
