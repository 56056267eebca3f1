"""Several journals as one, published ones, and your results beside them."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from itertools import permutations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench
from factory import contents_of, failed, make_cell_of, make_record, record, searched
from rich.console import Console

from benchmarks import shards as shards_of
from llpbench.core.criteria import BOARD_CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record, TuningRecord
from llpbench.report.comparing import compare
from llpbench.report.terminal import render
from llpbench.results.journal import FILE, SHARD_SUFFIX, SHARDS, Contents, Journal, contains, shards
from llpbench.results.merging import EXCERPT, SHIPPED, journal_files, merge, merge_into, shipped_cells
from llpbench.results.staleness import stale_reasons

LEADERBOARDS = Path(__file__).parents[2] / "leaderboards"


def journal(folder: Path, *records: Record) -> Path:
    with Journal(folder) as opened:
        for each in records:
            opened.append(each)
    return folder / FILE


def test_merge_joins_different_and_deduplicates_equal_runs(tmp_path: Path) -> None:
    first = journal(tmp_path / "a", record("a"), record("shared"))
    second = journal(tmp_path / "b", record("b"), record("shared", finished="2026-02-02T00:00:00Z"))
    merged = merge_into(tmp_path / "out", [first, second])
    assert {run["spec"]["method"] for run in merged.counting.values()} == {"a", "b", "shared"}
    assert (merged.disputes, merged.warnings) == ([], ())
    written = (tmp_path / "out" / FILE).read_bytes()
    assert len(written.splitlines()) == 3
    merge_into(tmp_path / "again", [second, first])
    assert (tmp_path / "again" / FILE).read_bytes() == written, "sorted by specification"
    assert Contents.read(tmp_path / "out" / FILE).records.keys() == merged.counting.keys()


def test_disputed_results_are_kept_flagged_and_count_by_preference_only(tmp_path: Path) -> None:
    first = journal(tmp_path / "a", record("a", 0.8, finished="2026-01-01T00:00:00+00:00"), record("b"))
    planted = journal(tmp_path / "b", record("a", 0.99, finished="2026-01-02T00:00:00+00:00"))
    for order in ([first, planted], [planted, first]):  # the newest is last, whatever the order of journals
        merged = merge(order)
        assert [run["spec"]["method"] for run in merged.counting.values()] == ["b"]
        (flag,) = merged.disputes
        assert flag.startswith("a mlp on adult ordered 64, seed 0: 2 different results, test AUC 80.0000, 99.0000")
        for prefer, auc in (("first", 0.8), ("newest", 0.99)):
            chosen = merge(order, prefer)  # type: ignore[arg-type]
            assert chosen.disputes == []
            assert {run["results"]["auc"]["test"]["auc"] for run in chosen.counting.values()} == {0.9, auc}
    again = journal(tmp_path / "c", record("a", 0.8, finished="2026-01-03T00:00:00+00:00"))
    early = journal(tmp_path / "d", failed("a", finished="2025-12-31T00:00:00+00:00"))
    chosen = merge([early, first, planted, again], "first")
    assert 0.99 not in {run["results"]["auc"]["test"]["auc"] for run in chosen.counting.values()}
    merge_into(tmp_path / "out", [first, planted])
    contents = Contents.read(out := tmp_path / "out" / FILE)
    assert (len(contents.records), len(contents.counting)) == (2, 1), "it is done, but does not count"
    assert merge([out, first]).runs == contents.runs, "merging once more adds nothing"
    merge_into(tmp_path / "out", [out], "first")
    assert len(Contents.read(out).counting) == 2


@pytest.mark.parametrize("newest_first", [False, True])
def test_fuller_record_of_equal_results_is_kept(tmp_path: Path, newest_first: bool) -> None:
    def finished(day: int, auc: float, *, more: bool) -> Record:
        run = record("a", auc, finished=f"2026-01-0{day}T00:00:00+00:00")
        for chosen in run["results"].values():
            chosen["test"] = {"auc": auc, **({"log-loss": 0.5} if more else {})}
        if more:
            run["results"]["likelihood"] = next(iter(run["results"].values()))
        return run

    def both(*records: Record) -> tuple[list[Record], list[str]]:
        order = reversed(records) if newest_first else records
        merged = merge([journal(tmp_path / str(number), each) for number, each in enumerate(order)])
        for number in range(len(records)):
            (tmp_path / str(number) / FILE).unlink()
        return [*merged.counting.values()], merged.disputes

    old, full = finished(1, 0.8, more=False), finished(2, 0.8, more=True)
    assert both(old, full) == ([full], []), "an early run has neither log loss nor selection by likelihood"
    late = finished(3, 0.8, more=False)
    assert both(full, late) == ([full], [])
    (kept,), (flag,) = both(old, finished(2, 0.81, more=True))
    assert kept["results"]["auc"]["test"]["auc"] == 0.81
    assert "AUC 80.0000, 81.0000" in flag
    assert both(old, finished(2, 0.825, more=True))[0] == [], "more than the tolerance apart"


def test_failure_never_replaces_success(tmp_path: Path) -> None:
    bad, good = journal(tmp_path / "a", failed("a")), journal(tmp_path / "b", record("a", 0.8))
    one = journal(tmp_path / "c", record("a", 0.8), failed("a"))
    for found in (merge([bad, good]), merge([good, bad]), Contents.read(one)):
        assert [[run["status"] for run in kept] for kept in found.runs.values()] == [["ok"]]


def test_runs_on_newer_data_replace_older_without_dispute(tmp_path: Path) -> None:
    days = [f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2, 3)]
    tables = [{"fingerprint": name, "manifest": "same"} for name in ("old", "new")]
    first = journal(tmp_path / "a", record("a", 0.8, data=tables[0], finished=days[0]))
    second = journal(tmp_path / "b", record("a", 0.7, data=tables[1], finished=days[1]))
    early = journal(tmp_path / "c", failed("a", data={}, finished=days[2]))
    for order in ([first, second], [second, first], [first, early, second]):
        merged = merge(order)
        assert merged.disputes == []
        assert [run["data"]["fingerprint"] for run in merged.counting.values()] == ["new"]
    assert [run["status"] for run in merge([early]).records.values()] == ["failed"]
    late = failed("a", data=tables[0], finished=days[2])
    third = journal(tmp_path / "d", *(run for path in (first, second) for run in merge([path]).records.values()), late)
    (kept,) = Contents.read(third).runs.values()
    assert [run["results"]["auc"]["test"]["auc"] for run in kept] == [0.7]


def test_newer_code_replaces_older_without_dispute(tmp_path: Path) -> None:
    old, new = {"method": "old"}, {"method": "new"}
    early, late = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
    first = journal(tmp_path / "a", record("a", 0.8, versions=old, finished=early))
    second = journal(tmp_path / "b", record("a", 0.7, versions=new, finished=late))
    for order in ([first, second], [second, first]):
        merged = merge(order)
        assert merged.disputes == []
        assert [run["versions"] for run in merged.counting.values()] == [new]
    mixed = merge([second, journal(tmp_path / "f", record("a", seed=1, versions=old))])
    assert [line.partition(":")[0] for line in mixed.warnings] == ["a"]
    worse = journal(tmp_path / "c", failed("a", versions=new, finished=late))
    assert [run["status"] for run in merge([worse, first]).records.values()] == ["failed"], "the old success is history"
    engine = journal(tmp_path / "d", record("a", 0.6, versions=old, numerics=NUMERICS + 1, finished=early))
    assert [run["numerics"] for run in merge([engine, second]).records.values()] == [NUMERICS + 1]
    again = journal(tmp_path / "e", record("a", 0.71, versions=new, finished=early))
    assert len(merge([first, second, again]).disputes) == 1, "two results of the same code are disputed"


DECLARED = {"method": "1", "encoder": "1", "bagging": "1", "dataset": "111111111111"}


@pytest.mark.parametrize(
    ("one", "other", "counts"),
    [
        ({"method": "10"}, {"method": "9"}, "one"),
        ({"encoder": "2"}, {"method": "file:2"}, "one"),
        ({"method": "2", "encoder": "2"}, {"encoder": "2"}, "one"),
        ({"method": "3"}, {"bagging": "2"}, "other"),  # in opposite directions: the time decides
        ({"method": "file:2"}, {"method": "file:1"}, "other"),
        ({"method": "2"}, {"method": None}, "other"),
        ({"dataset": "222222222222"}, {}, "other"),  # the beginning of a hash
    ],
)
def test_higher_declared_versions_count(tmp_path: Path, one: Any, other: Any, counts: str) -> None:
    first = record("a", 0.8, versions=DECLARED | one, finished=NOW)
    second = record("a", 0.7, versions=DECLARED | other, finished=AHEAD)
    both = [journal(tmp_path / name, each) for name, each in (("a", first), ("b", second))]
    expected = [first if counts == "one" else second]
    for prefer in (None, "newest", "first"):
        for order in (both, both[::-1]):
            merged = merge(order, cast(Any, prefer))
            assert ([*merged.runs.values()], merged.superseded) == ([expected], 1)
    assert [*Contents.read(journal(tmp_path / "c", first, second)).runs.values()] == [expected]


AHEAD, NOW = "2999-01-01T00:00:00Z", "2026-01-01T00:00:00Z"


def test_journal_order_counts_not_clock(tmp_path: Path) -> None:
    old = record("a", 0.7, versions={"method": "old"}, finished=AHEAD)
    new = record("a", 0.8, versions={"method": "new"}, finished=NOW)
    path = journal(tmp_path / "a", old, new)
    for found in (Contents.read(path).records, merge([path]).records):
        assert [run["versions"] for run in found.values()] == [{"method": "new"}]
    back = journal(tmp_path / "b", old, new, {**old, "finished": NOW})
    found = Contents.read(back).records
    assert [run["versions"] for run in found.values()] == [{"method": "old"}], "somebody went back to it"
    engine = journal(tmp_path / "c", {**new, "numerics": NUMERICS + 1}, old)
    assert [run["numerics"] for run in Contents.read(engine).records.values()] == [NUMERICS + 1]
    same = journal(tmp_path / "d", record("a", 0.80, finished=AHEAD), record("a", 0.81, finished=NOW))
    assert merge([same]).records == Contents.read(same).records


def test_search_that_counts_remembers_cells_of_replaced_ones() -> None:
    start = make_cell_of("a")
    cells = [replace(start, params={"weight": number}) for number in range(3)]
    one, two, three = (searched(start, "fine", {"auc": (cell, 0.5, 0.4)}) for cell in cells)
    bad = cast(TuningRecord, {**one, "status": "failed", "best": {}})
    newer, newer_bad = (cast(TuningRecord, {**each, "numerics": NUMERICS + 1}) for each in (two, bad))
    first, second = sorted(cell.id for cell in cells[:2])
    for order, counts, former in (
        ((one, two, three), three, [first, second]),
        ((one, two, one), one, [cells[1].id]),
        ((one, bad), one, None),
        ((bad, one), one, None),
        ((newer, one), newer, [cells[0].id]),
        ((one, newer_bad), newer_bad, [cells[0].id]),
    ):
        expected = {**counts} if former is None else {**counts, "former": former}
        assert contents_of(*order).tunings == {one["tuning"]: expected}
    late = cast(TuningRecord, {**two, "finished": AHEAD})
    for journals in ((one, late), (late, one), (one, newer), (newer, one)):  # newer ones count, whatever the order
        joined = Contents.joined(map(contents_of, journals)).tunings[one["tuning"]]
        assert (joined["best"]["auc"]["cell"], joined["former"]) == (cells[1].id, [cells[0].id])


def test_stepwise_merge_equals_joint_merge(tmp_path: Path) -> None:
    days = [record("a", auc, finished=f"2026-01-0{day}T00:00:00Z") for day, auc in ((1, 0.80), (2, 0.81), (3, 0.805))]
    journals = [journal(tmp_path / str(number), each) for number, each in enumerate(days)]
    whole, written = merge(journals).runs, set()
    for first, second, third in permutations(journals):
        merge_into(tmp_path / "step", [first, second])
        steps = merge_into(tmp_path / "steps", [tmp_path / "step" / FILE, third])
        assert steps.runs == whole
        written.add((tmp_path / "steps" / FILE).read_bytes())
        for folder in ("step", "steps"):
            (tmp_path / folder / FILE).unlink()
    assert len(written) == 1, "it depends on the records alone"


def test_appended_record_counts_as_read_record(tmp_path: Path) -> None:
    runs = [record("a", 0.8), record("a", 0.7), failed("a"), record("b", 0.8)]
    with Journal(tmp_path) as opened:
        for run in (*runs, record("b", 0.7, versions={"method": "x"})):
            opened.append(run)
    assert opened.contents.runs == Contents.read(tmp_path / FILE).runs
    assert len(opened.contents.disputes) == 1


def test_merge_overwrites_only_its_inputs(tmp_path: Path) -> None:
    first, other = journal(tmp_path / "a", record("a")), journal(tmp_path / "out", record("b"))
    with pytest.raises(LLPBenchError, match=r"there is a journal in .* already"):
        merge_into(tmp_path / "out", [first])
    merge_into(tmp_path / "out", [first, other])
    assert len(Contents.read(other).records) == 2
    with Journal(tmp_path / "a"), pytest.raises(LLPBenchError, match="another llpbench is writing"):
        merge_into(tmp_path / "a", [first])


def test_journal_may_be_file_folder_or_published(tmp_path: Path) -> None:
    path = journal(tmp_path, record("a"))
    assert journal_files(str(tmp_path)) == journal_files(str(path)) == [path]
    assert journal_files("published") == [LEADERBOARDS / EXCERPT]
    assert journal_files("core") == [LEADERBOARDS / "core" / EXCERPT]
    with pytest.raises(LLPBenchError, match=r"there is no journal '.*nowhere'\. Give the --out folder of a run"):
        journal_files(str(tmp_path / "nowhere"))


class TestCompare:
    def test_runs_on_other_data_are_a_dispute(self) -> None:
        old, new = ({"fingerprint": name, "manifest": "same"} for name in ("old", "new"))
        mine, theirs = contents_of(record("a", 0.9, data=old)), contents_of(record("a", 0.8, data=new))
        assert not compare(mine, theirs).leaderboards.boards
        kept = compare(contents_of(failed("a", data=old)), theirs).leaderboards.boards[0]
        assert [*kept.runs["value"]] == [80.0]

    def test_new_method_joins_published_tasks(self) -> None:
        there = [record("dllp", 0.8), record("dllp", 0.9, dataset="credit"), record("bdc", 0.85)]
        stale = {record("mine")["run"]: "mine.py has changed", there[0]["run"]: "version of engine 2, now 1"}
        found = compare(contents_of(record("mine", 0.83)), contents_of(*there), lambda run: stale.get(run["run"], ""))
        board = found.leaderboards.boards[0]
        assert {*board.runs["stale"]} == {"", *stale.values()}
        assert [*board.entries["method"]] == ["bdc", "mine", "dllp"]
        assert [*board.tasks["dataset"]] == ["adult"]
        assert found.yours == {record("mine")["run"]}
        assert found.remarks == ()
        nowhere = compare(contents_of(record("mine", dataset="elections")), contents_of(record("dllp")))
        assert nowhere.remarks == ("Nothing is published for these datasets, baggings and bag sizes.",)

    def test_repeated_published_runs_are_compared(self) -> None:
        there = contents_of(record("a", 0.8), record("b", 0.8), record("c", 0.8))
        found = compare(contents_of(record("a", 0.8), record("b", 0.79)), there)
        both, largest = found.remarks
        assert re.findall(r"\d (?:runs|with)", both) == ["2 runs", "1 with"]
        assert "b mlp on adult ordered 64, seed 0: 2 different results, test AUC 80.0000, 79.0000" in largest

    def test_run_far_from_published_result_does_not_count(self) -> None:
        found = compare(contents_of(record("a", 0.99), record("b", 0.7)), contents_of(record("a", 0.8)))
        assert [*found.leaderboards.boards[0].entries["method"]] == ["b"]
        assert "test AUC 80.0000, 99.0000; more than 2 points apart, so none counts" in found.remarks[-1]
        broken = compare(contents_of(failed("dllp")), contents_of(record("dllp", 0.8)))
        assert broken.leaderboards.boards[0].scores[["mean", "values"]].loc[(0, 0)].tolist() == [80.0, 1]
        assert "1 run failed here but succeeded when published" in broken.remarks[0]

    def test_published_ablations_are_left_out(self) -> None:
        there = [record("dllp", 0.8), record("dllp", 0.9, encoder="saint"), record("dllp", 0.9, precision="bfloat16")]
        there += [record("dllp", 0.9, params={"hidden": 8}), record("dllp", 0.7, pretraining="self+bag"), record("bdc")]
        found = compare(contents_of(record("mine")), contents_of(*there))
        assert len(found.leaderboards.boards[0].entries) == 4

    def test_only_own_seeds_are_called_yours(self) -> None:
        there, mine = [record("dllp", 0.8, seed=seed) for seed in range(3)], record("dllp", 0.8, seed=1)
        found = compare(contents_of(mine), contents_of(*there, *(record("bdc", 0.9, seed=seed) for seed in range(3))))
        assert found.yours == {mine["run"]}
        console = Console(width=100, file=(out := StringIO()))
        render(found.leaderboards, console, yours=found.yours)
        assert "dllp (mlp), yours: 1 of 3 runs" in out.getvalue()
        newer = record("dllp", 0.8, seed=1, versions={**mine["versions"], "method": "2"})
        assert not compare(contents_of(mine), contents_of(*there, newer)).yours
        assert compare(contents_of(newer), contents_of(*there)).yours == {mine["run"]}
        (difference,) = found.differences
        assert difference.startswith("dllp (mlp) minus bdc (mlp): -10.0, 1 seed, ")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A published folder with two datasets."""
    shards_of.write(tmp_path, contents_of(record("a"), record("b"), record("a", dataset="credit")))
    return tmp_path


def test_shards_are_read_as_one_journal(folder: Path) -> None:
    assert [path.name for path in shards(folder)] == [f"adult{SHARD_SUFFIX}", f"credit{SHARD_SUFFIX}"]
    merged = merge(journal_files(str(folder)))
    found = {(run["spec"]["method"], run["spec"]["dataset"]) for run in merged.records.values()}
    assert found == {("a", "adult"), ("b", "adult"), ("a", "credit")}


def test_only_shards_with_new_runs_change(folder: Path, tmp_path: Path) -> None:
    before = {path.name: path.stat().st_ino for path in shards(folder)}
    with Journal(tmp_path / "mine") as journal:
        journal.append(record("c", dataset="credit"))
    with pytest.raises(LLPBenchError):
        merge_into(folder, [journal.path])
    with pytest.raises(LLPBenchError):
        Journal(folder)
    with pytest.raises(LLPBenchError, match=r"'\.\./x'"):
        shards_of.write(tmp_path / "new", contents_of(record("a", dataset="../x")))
    shards_of.main([str(folder), str(journal.path)], standalone_mode=False)
    after = {path.name: path.stat().st_ino for path in shards(folder)}
    assert {name for name in after if after[name] != before[name]} == {f"credit{SHARD_SUFFIX}"}
    assert len(merge(journal_files(str(folder))).records) == len(Contents.read(folder / EXCERPT).records) == 4


@pytest.mark.parametrize("name", [f"{SHARDS}/adult{SHARD_SUFFIX}", EXCERPT])
def test_damaged_file_is_one_clear_error(folder: Path, name: str) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(LLPBenchError, match=path.name):
        Contents.read(path)


def test_excerpt_has_what_boards_show(tmp_path: Path) -> None:
    run, worst = make_record(make_cell_of()), failed("b")
    search = searched(make_cell_of("c"), "coarse", {"mpiou": (make_cell_of("c"), 0.5, 0.4)})
    run["results"]["mpiou"]["test"]["accuracy"] = None
    run["results"]["auc"]["validation"] = None
    run["results"]["likelihood"] = run["results"]["auc"]
    shards_of.write(tmp_path, contents_of(run, worst, search, record("x", 0.8), record("x", 0.7)))
    excerpt = Contents.read(tmp_path / EXCERPT)
    assert excerpt.tunings == {search["tuning"]: search}
    assert excerpt.records.keys() == {run["run"], worst["run"]}, "runs with different results do not count"
    assert excerpt.records[worst["run"]]["status"] == worst["status"] != "ok"
    found = excerpt.records[run["run"]]
    assert found["results"].keys() == {*BOARD_CRITERIA}
    assert contains(found["results"], {name: {**run["results"][name], "diagnostics": {}} for name in BOARD_CRITERIA})
    for name in ("spec", "method", "dataset", "data", "versions", "numerics", "hardware", "epochs", "finished"):
        assert found[name] == run[name]  # type: ignore[literal-required]
    assert found["times"] == pytest.approx(run["times"])
    assert found["curves"] == {}


WAITING = {"published": {"tabllp-bdc", "llp-vat"}}
"""methods with stale published runs, listed in leaderboards/growing/README.md"""


@pytest.mark.parametrize("name", SHIPPED)
def test_no_other_published_run_is_stale(name: str) -> None:
    contents = Contents.read(*journal_files(name))
    assert (contents.disputes, contents.warnings) == ([], ())
    cells = {run["cell"] for run in contents.records.values()}
    assert sorted(cells) == sorted(run["cell"] for run in shipped_cells(name))
    known: dict[str, Record | TuningRecord] = {**contents.records, **contents.tunings}
    specs = [known[each]["spec"] for each in stale_reasons(known.values())]
    assert {spec.get("cell", spec)["method"] for spec in specs} <= WAITING.get(name, set())


def test_data_without_hash_of_table_are_not_compared() -> None:
    known, unknown = record("dllp"), record("dllp", seed=1, data={"manifest": "same"})
    assert stale_reasons([known, unknown]) == stale_reasons([known]) | stale_reasons([unknown])


@pytest.mark.skipif(not shards(LEADERBOARDS), reason="an installed package has the excerpt alone")
def test_published_excerpt_matches_published_shards() -> None:
    some = [path for path in shards(LEADERBOARDS) if path.name.split(".")[0] in ("bank_marketing", "letter")]
    whole, excerpt = merge(some).records, Contents.read(*journal_files("published")).records
    datasets = {run["spec"]["dataset"] for run in excerpt.values()}
    assert {f"{dataset}{SHARD_SUFFIX}" for dataset in datasets} == {path.name for path in shards(LEADERBOARDS)}
    mine = {name: run for name, run in excerpt.items() if run["spec"]["dataset"] in ("bank_marketing", "letter")}
    assert mine.keys() == whole.keys()
    for run, short in mine.items():
        shown = {name: {**result, "diagnostics": {}} for name, result in short["results"].items()}
        assert contains(whole[run]["results"], shown)
        assert (whole[run]["spec"], whole[run]["versions"]) == (short["spec"], short["versions"])
        assert whole[run]["bags"].get("sizes") == short["bags"].get("sizes")


DATASET = '''
from llpbench.core.registry import register_dataset
from llpbench.data.sources import Parquet


@register_dataset("private", source=Parquet("private.parquet"), target="answer", positive="secretly")
def private(frame):
    """What must not be passed on."""
    return frame
'''


def test_run_leaves_no_value_of_any_row(tmp_path: Path, llpbench: LLPBench) -> None:
    rng = np.random.default_rng(0)
    answers = rng.random(400) < 0.4
    amounts, people = 7_654_321.25 + np.arange(400) + 100 * answers, [f"person-{number % 40}" for number in range(400)]
    frame = pd.DataFrame({"amount": amounts, "person": people, "answer": np.where(answers, "secretly", "openly")})
    frame.to_parquet(tmp_path / "private.parquet")
    plugin, out = tmp_path / "private_data.py", tmp_path / "out"
    plugin.write_text(DATASET)
    flags = ["--methods", "dllp,bag-mean-linear,supervised-gbdt", "--pretraining", "none,self", "--epochs", "1"]
    flags += ["--set", "pretraining.epochs=1"]
    where = ["--plugin", str(plugin), "--datasets", "private", "--executor", "debug", "--out", str(out)]
    llpbench.succeed("run", *where, *flags, "--bag-sizes", "16", "--seeds", "1")
    assert {record["status"] for record in Contents.read(out / "journal.jsonl").records.values()} == {"ok"}

    left = [file for file in out.rglob("*") if file.is_file()]
    assert {file.suffix for file in left} >= {".jsonl", ".md", ".html"}
    assert any("pretrained" in file.parts for file in left)
    for file in left:
        content = file.read_bytes()
        for value in (b"person-", b"76543", b"76544", b"secretly", b"openly"):
            assert value not in content, f"{file} holds {value!r}"
