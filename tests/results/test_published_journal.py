"""Published results: shards of one dataset each, and the excerpt that ships with the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from factory import failed, make_cell_of, make_record, record, searched

from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record, TuningRecord
from llpbench.results.journal import SHARD_SUFFIX, SHARDS, Contents, Journal, contains, read, shards
from llpbench.results.merging import SHIPPED, journal_files, merge, merge_into, shipped, shipped_cells
from llpbench.results.published import EXCERPT, write_published
from llpbench.results.staleness import stale_runs, stale_searches

LEADERBOARDS = Path(__file__).parents[2] / "leaderboards"


def contents_of(*records: Record | TuningRecord) -> Contents:
    contents = Contents({})
    contents.add(*records)
    return contents


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A published folder with two datasets."""
    write_published(tmp_path, contents_of(record("a"), record("b"), record("a", dataset="credit")))
    return tmp_path


def test_shards_are_read_as_one_journal(folder: Path) -> None:
    assert [path.name for path in shards(folder)] == [f"adult{SHARD_SUFFIX}", f"credit{SHARD_SUFFIX}"]
    merged = merge(journal_files(str(folder)))
    found = {(run["spec"]["method"], run["spec"]["dataset"]) for run in merged.records.values()}
    assert found == {("a", "adult"), ("b", "adult"), ("a", "credit")}


def test_only_merging_changes_published_folder_and_only_shards_with_new_runs(folder: Path, tmp_path: Path) -> None:
    before = {path.name: path.stat().st_ino for path in shards(folder)}
    with Journal(tmp_path / "mine") as journal:
        journal.append(record("c", dataset="credit"))
    with pytest.raises(LLPBenchError):
        merge_into(folder, [journal.path])
    with pytest.raises(LLPBenchError):
        Journal(folder)
    with pytest.raises(LLPBenchError, match=r"'\.\./x'"):
        write_published(tmp_path / "new", contents_of(record("a", dataset="../x")))
    merge_into(folder, [*journal_files(str(folder)), journal.path])
    after = {path.name: path.stat().st_ino for path in shards(folder)}
    assert {name for name in after if after[name] != before[name]} == {f"credit{SHARD_SUFFIX}"}
    assert len(merge(journal_files(str(folder))).records) == len(read(folder / EXCERPT).records) == 4


@pytest.mark.parametrize("name", [f"{SHARDS}/adult{SHARD_SUFFIX}", EXCERPT])
def test_damaged_file_is_one_clear_error(folder: Path, name: str) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(LLPBenchError, match=path.name):
        read(path)


def test_excerpt_has_what_boards_show(tmp_path: Path) -> None:
    run, worst = make_record(make_cell_of()), failed("b")
    search = searched(make_cell_of("c"), "coarse", {"mpiou": (make_cell_of("c"), 0.5, 0.4)})
    run["results"]["mpiou"]["test"]["accuracy"] = None
    run["results"]["auc"]["validation"] = None
    write_published(tmp_path, contents_of(run, worst, search, record("x", 0.8), record("x", 0.7)))
    excerpt = read(tmp_path / EXCERPT)
    assert excerpt.tunings == {search["tuning"]: search}
    assert excerpt.records.keys() == {run["run"], worst["run"]}, "runs with different results do not count"
    assert excerpt.records[worst["run"]]["status"] == worst["status"] != "ok"
    found = excerpt.records[run["run"]]
    assert contains(found["results"], {name: {**run["results"][name], "diagnostics": {}} for name in BOARD_CRITERIA})
    for name in ("spec", "method", "dataset", "data", "versions", "numerics", "hardware", "epochs", "finished"):
        assert found[name] == run[name]  # type: ignore[literal-required]
    assert found["times"] == pytest.approx(run["times"])
    assert found["curves"] == {}


@pytest.mark.parametrize("name", SHIPPED)
def test_no_published_run_is_stale(name: str) -> None:
    contents = read(shipped(name))
    assert (contents.disputes, contents.warnings) == ([], ())
    cells = {run["cell"] for run in contents.records.values()}
    assert sorted(cells) == sorted(run["cell"] for run in shipped_cells(name))
    assert stale_runs(contents.records.values()) == {}
    assert stale_searches(contents.tunings.values()) == {}


@pytest.mark.skipif(not shards(LEADERBOARDS), reason="an installed package has the excerpt alone")
def test_published_excerpt_matches_published_shards() -> None:
    some = [path for path in shards(LEADERBOARDS) if path.name.split(".")[0] in ("bank_marketing", "letter")]
    whole, excerpt = merge(some).records, read(shipped()).records
    datasets = {run["spec"]["dataset"] for run in excerpt.values()}
    assert {f"{dataset}{SHARD_SUFFIX}" for dataset in datasets} == {path.name for path in shards(LEADERBOARDS)}
    mine = {name: run for name, run in excerpt.items() if run["spec"]["dataset"] in ("bank_marketing", "letter")}
    assert mine.keys() == whole.keys()
    for run, short in mine.items():
        shown = {name: {**result, "diagnostics": {}} for name, result in short["results"].items()}
        assert contains(whole[run]["results"], shown)
        assert (whole[run]["spec"], whole[run]["versions"]) == (short["spec"], short["versions"])
        assert whole[run]["bags"].get("sizes") == short["bags"].get("sizes")
