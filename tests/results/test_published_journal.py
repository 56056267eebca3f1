"""Published results: shards of one dataset each, and the table that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from factory import failed, make_cell_of, make_record, record, searched
from pyarrow import parquet

from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.results.journal import FILE, SHARD_SUFFIX, SHARDS, Journal, contains, read, shards
from llpbench.results.merging import SHIPPED, journal_files, merge, merge_into, read_shipped
from llpbench.results.published import TABLE, read_table, write_published
from llpbench.results.staleness import stale_runs, stale_searches

LEADERBOARDS = Path(__file__).parents[2] / "leaderboards"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A published folder with two datasets."""
    write_published(tmp_path, [record("a"), record("b"), record("a", dataset="credit")], [])
    return tmp_path


def own(folder: Path, *records: Record) -> list[Path]:
    with Journal(folder) as opened:
        for each in records:
            opened.append(each)
    return [folder / FILE]


def test_each_dataset_is_a_shard_and_all_are_read_as_one(folder: Path) -> None:
    assert [path.name for path in shards(folder)] == [f"adult{SHARD_SUFFIX}", f"credit{SHARD_SUFFIX}"]
    merged = merge(journal_files(str(folder)))
    found = {(run["spec"]["method"], run["spec"]["dataset"]) for run in merged.records.values()}
    assert found == {("a", "adult"), ("b", "adult"), ("a", "credit")}
    of_shards = [each for path in shards(folder) for each in read(path).records.values()]
    assert [*merged.records.values()] == of_shards, "a shard is a journal"


def test_only_merging_changes_it_and_only_the_shards_that_have_new_runs(folder: Path, tmp_path: Path) -> None:
    before = {path.name: path.stat().st_ino for path in shards(folder)}
    mine = own(tmp_path / "mine", record("c", dataset="credit"))
    with pytest.raises(LLPBenchError):
        merge_into(folder, mine)
    with pytest.raises(LLPBenchError):
        Journal(folder)
    with pytest.raises(LLPBenchError, match=r"'\.\./x'"):
        write_published(tmp_path / "new", [record("a", dataset="../x")], [])
    assert len(merge(journal_files(str(folder))).records) == 3
    merge_into(folder, [*journal_files(str(folder)), *mine])
    after = {path.name: path.stat().st_ino for path in shards(folder)}
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {f"credit{SHARD_SUFFIX}"}
    assert len(merge(journal_files(str(folder))).records) == len(read_table(folder / TABLE).records) == 4


def test_a_damaged_shard_or_table_is_one_clear_error(folder: Path) -> None:
    path = folder / SHARDS / f"adult{SHARD_SUFFIX}"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(LLPBenchError, match="adult"):
        read(path)
    (folder / TABLE).write_bytes(b"PAR1")
    with pytest.raises(LLPBenchError, match=TABLE):
        read_table(folder / TABLE)


@pytest.mark.parametrize("fields", [None, ("spec", "times")])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cell", None),
        ("seed", ["0"]),
        ("seed", [-1]),
        ("spec", None),
        ("spec", [1]),
        ("spec", ["{"]),
        ("spec", ["[]"]),
        ("spec", [[1]]),
        ("spec", ["[" * 10**5]),
        ("spec", ["1" * 5000]),
        ("spec", [b"\xff"]),
    ],
)
def test_a_table_with_other_columns_or_values_is_one_clear_line(
    name: str, values: list[Any] | None, fields: tuple[str, ...] | None, folder: Path
) -> None:
    path = folder / TABLE
    table = parquet.read_table(path)
    place = table.column_names.index(name)
    rest = table.drop_columns([name])
    parquet.write_table(rest if values is None else rest.add_column(place, name, [values * len(table)]), path)
    with pytest.raises(LLPBenchError, match=r"published results .* cannot be read: .* Reinstall llpbench") as error:
        read_table(path, fields=fields)
    assert "\n" not in str(error.value)


def test_a_table_of_far_too_many_rows_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llpbench.results.published._MOST_ROWS", 1)
    with pytest.raises(LLPBenchError, match="rows, more than 1"):
        read_table(folder / TABLE)


def test_the_table_says_what_boards_are_made_of(tmp_path: Path) -> None:
    run, worst = make_record(make_cell_of()), failed("b")
    search = searched(make_cell_of("c"), "coarse", {"mpiou": (make_cell_of("c"), 0.5, 0.4)})
    run["results"]["mpiou"]["test"]["accuracy"] = None
    run["results"]["auc"]["validation"] = None
    write_published(tmp_path, [run, worst], [search])
    table = read_table(tmp_path / TABLE)
    assert table.tunings == {search["tuning"]: search}
    assert table.records[worst["run"]]["status"] == worst["status"] != "ok"
    found = table.records[run["run"]]
    assert contains(found["results"], {name: {**run["results"][name], "diagnostics": {}} for name in BOARD_CRITERIA})
    for name in ("spec", "method", "dataset", "data", "versions", "numerics", "hardware", "epochs", "finished"):
        assert found[name] == run[name]  # type: ignore[literal-required]
    assert found["times"] == pytest.approx(run["times"])
    assert found["curves"] == {}
    parts = read_table(tmp_path / TABLE, fields=("spec", "times"))
    assert parts.tunings == {}
    assert parts.records.keys() == table.records.keys()
    for name, each in parts.records.items():
        assert all(each[part] == table.records[name][part] for part in ("run", "cell", "seed", "spec", "times"))
        assert not {"status", "bags", "hardware"} & each.keys()


def test_runs_with_different_results_are_not_in_the_table(tmp_path: Path) -> None:
    write_published(tmp_path, [record("a", 0.8), record("a", 0.7), record("b")], [])
    assert {run["spec"]["method"] for run in read_table(tmp_path / TABLE).records.values()} == {"b"}
    assert len(merge(journal_files(str(tmp_path))).disputed) == 1


@pytest.mark.parametrize("name", SHIPPED)
def test_no_published_run_is_stale(name: str) -> None:
    contents = read_shipped(name)
    assert stale_runs(contents.records.values()) == {}
    assert stale_searches(contents.tunings.values()) == {}


@pytest.mark.skipif(not shards(LEADERBOARDS), reason="an installed package has the table alone")
def test_the_published_table_is_that_of_the_published_shards() -> None:
    some = [path for path in shards(LEADERBOARDS) if path.name.split(".")[0] in ("bank_marketing", "letter")]
    whole, table = merge(some), read_shipped()
    datasets = {run["spec"]["dataset"] for run in table.records.values()}
    assert {f"{dataset}{SHARD_SUFFIX}" for dataset in datasets} == {path.name for path in shards(LEADERBOARDS)}
    mine = {name: run for name, run in table.records.items() if run["spec"]["dataset"] in ("bank_marketing", "letter")}
    assert mine.keys() == whole.records.keys()
    assert (table.disputed, table.warnings) == ({}, ())
    for run, told in mine.items():
        full = whole.records[run]
        assert contains(full["results"], {name: {**each, "diagnostics": {}} for name, each in told["results"].items()})
        assert (full["spec"], full["versions"]) == (told["spec"], told["versions"])
        assert full["bags"].get("sizes") == told["bags"].get("sizes")
