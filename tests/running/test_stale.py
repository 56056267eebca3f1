"""Stale runs: the same command runs edited code again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bench import PLUGIN, LLPBench, arguments, start

from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record
from llpbench.core.registry import REGISTRIES
from llpbench.report.wording import STALE_NOTE
from llpbench.results import staleness
from llpbench.results.journal import FILE, Contents
from llpbench.results.staleness import stale_reasons


@pytest.fixture
def bench(plugin: Path, tmp_path: Path) -> Path:
    """A plugin that tests edit."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "tiny.parquet").write_bytes((plugin.parent / "tiny.parquet").read_bytes())
    path = folder / "tiny_bench.py"
    path.write_text(PLUGIN)
    return path


@pytest.fixture
def again(llpbench: LLPBench, bench: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Run the same command as in a new process: the plugin is loaded again. Returns its first line and result."""
    original = {registry.kind: dict(registry._entries) for registry in REGISTRIES.values()}

    def again(*more: str):  # type: ignore[no-untyped-def]
        for registry in REGISTRIES.values():
            monkeypatch.setattr(registry, "_entries", dict(original[registry.kind]))
        monkeypatch.setattr("llpbench.core.registry._loaded_plugins", {})
        sys.modules.pop("llpbench_plugin_tiny_bench", None)
        result = llpbench(*arguments(bench, bench.parent / "out", "--bag-sizes", "8", "--seeds", "1", *more))
        return (result.err or result.out).splitlines()[0], result

    return again


def records(bench: Path) -> list[Record]:
    return list(Contents.read(bench.parent / "out" / FILE).records.values())


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


DONE = "nothing to run: 0 runs to do in 0 cells, 2 done"


def test_runs_of_later_code_are_not_repeated(again, bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    again()
    with monkeypatch.context() as patch:
        patch.setattr(staleness, "NUMERICS", 99)
        assert f"stale: quick-a: version of engine {NUMERICS}, now 99 (1 run)" in again("--dry-run")[1].out
    path = bench.parent / "out" / FILE
    path.write_text(path.read_text().replace(f'"numerics":{NUMERICS}', f'"numerics":{NUMERICS + 1}'))
    before = path.read_bytes()
    told, result = again()
    assert result.code == 2
    for named in ("quick-a", f"version of engine {NUMERICS + 1}, here {NUMERICS}", "--keep-stale", "--out"):
        assert named in told
    assert path.read_bytes() == before
    assert again("--keep-stale")[1].code == 0


def test_edited_plugin_is_run_again(again, bench: Path) -> None:  # type: ignore[no-untyped-def]
    first, _ = again()
    assert first.startswith("2 runs to do in 2 cells;")
    assert again()[0] == DONE
    before = {record["run"]: record for record in records(bench)}
    edit(bench, "rows.numeric @ weights", "2 * rows.numeric @ weights")
    _, result = again("--dry-run")
    assert "stale: quick-a: file of method changed; file of dataset changed (1 run)" in result.out
    assert again()[0].startswith("2 runs to do in 2 cells, 2 of them stale;")
    assert again()[0] == DONE
    after = {record["run"]: record for record in records(bench)}
    assert before.keys() == after.keys()
    assert all(before[run]["versions"] != after[run]["versions"] for run in before)
    assert Contents.read(bench.parent / "out" / FILE).disputes == [], "other code, no dispute"


def test_kept_stale_runs_are_marked(again, bench: Path) -> None:  # type: ignore[no-untyped-def]
    again()
    edit(bench, "rows.numeric @ weights", "2 * rows.numeric @ weights")
    before = (bench.parent / "out" / FILE).read_bytes()
    first, _ = again("--keep-stale")
    assert first == "nothing to run: 0 runs to do in 0 cells, 2 stale and kept"
    assert (bench.parent / "out" / FILE).read_bytes() == before
    assert STALE_NOTE in (bench.parent / "out" / "README.md").read_text()
    assert "stale" in again("--keep-stale", "--dry-run")[1].out
    assert again("--retry", "stale")[0].startswith("2 runs to do in 2 cells, 2 of them stale;")
    assert "stale" not in (bench.parent / "out" / "README.md").read_text()


def test_runs_without_plugin_are_not_stale(again, bench: Path, llpbench: LLPBench) -> None:  # type: ignore[no-untyped-def]
    again()
    assert stale_reasons(records(bench)) == {}
    changed = records(bench)
    for record in changed:
        record["versions"]["method"] = "1"
    (reason,) = set(stale_reasons(changed).values())
    assert reason.startswith("version of method 1, now file:")
    for record in changed:
        record["spec"]["method"] = "not-here"
    assert stale_reasons(changed) == {}
    edit(bench, "rows.numeric @ weights", "2 * rows.numeric @ weights")
    out = bench.parent / "out"
    process = start(["report", "--no-plots", "--out", str(out), "--plugin", str(bench)])
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert STALE_NOTE in (out / "README.md").read_text()
    assert llpbench("report", "--no-plots", "--out", str(out)).code == 0
