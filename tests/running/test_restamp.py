"""Restamping: stale runs are kept only if a repeated sample gives the same numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench import LLPBench, make_settings
from factory import make_cell_of, make_record
from test_runner import Silent

from llpbench.core.cell import Cell, Environment
from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record
from llpbench.results.journal import FILE, Journal, read
from llpbench.results.staleness import stale_runs, stale_searches
from llpbench.running import runner
from llpbench.running.restamp import Restamped, difference, draw, restamp, trained_together
from llpbench.training import cell_runs as training


def rewrite(out: Path, **changes: Any) -> None:
    """Change every record of a journal."""
    records = read(out / FILE).records.values()
    (out / FILE).unlink()
    with Journal(out) as journal:
        for record in records:
            journal.append({**record, **changes})  # type: ignore[typeddict-item]


@pytest.fixture
def out(tiny_bench: Path, tmp_path: Path) -> Path:
    """A journal of 2 methods x 2 sizes x 2 seeds, and of one method that fails, all made before today's engine."""
    runner.run(make_settings(tiny_bench, tmp_path, methods="quick-a,quick-b,broken"), Silent())
    rewrite(tmp_path, numerics=0)
    return tmp_path


def test_equal_numbers_keep_all_that_the_sample_speaks_for(out: Path) -> None:
    before, content = dict(read(out / FILE).records), (out / FILE).read_bytes()
    verdict = restamp(out, Silent(), sample=2)
    assert (verdict.cells, verdict.compared, verdict.renewed, verdict.difference) == (2, 4, 8, "")
    assert verdict.left == ("broken: failed (4 runs)",)
    after = read(out / FILE).records
    assert (out / FILE).read_bytes().startswith(content), "earlier lines stay"
    added = [json.loads(line) for line in (out / FILE).read_bytes()[len(content) :].splitlines()]
    assert [(line["numerics"], line["status"]) for line in added] == [(NUMERICS, "ok")] * 8
    for run, record in after.items():
        if record["status"] == "ok":
            stamp = record.pop("restamped")
            assert (stamp["sample"], set(stamp)) == (4, {"when", "commit", "dirty", "sample"})
            assert {**record, "numerics": 0} == before[run]
        else:
            assert record == before[run], "a failed run is never restamped"
    assert set(stale_runs(after.values())) == {run for run in before if before[run]["status"] != "ok"}
    with pytest.raises(LLPBenchError, match="its stale runs have failed"):
        restamp(out, Silent())


def test_a_method_that_was_not_drawn_stays_stale(out: Path) -> None:
    verdict = restamp(out, Silent(), sample=1)
    assert verdict.renewed == 4
    (line,) = [line for line in verdict.left if "no sampled run" in line]
    assert line.endswith("(4 runs)")
    assert len(stale_runs(read(out / FILE).records.values())) == 8


def test_a_sample_speaks_only_for_changed_sources_that_it_has(out: Path) -> None:
    rewrite(out, sources={})
    with Journal(out) as journal:
        other = next(record for record in journal.contents.records.values() if record["status"] == "ok")
        cell = Cell.of({**other["spec"], "bagging": "random"})
        journal.append({**other, "run": cell.run_id(0), "cell": cell.id, "spec": cell.spec, "members": 9})
    verdict = restamp(out, Silent(), sample=4)
    assert verdict.renewed == 8
    assert "quick-a: no sampled run has bagging random (1 run)" in verdict.left


def test_another_number_refuses_and_touches_nothing(out: Path) -> None:
    records = list(read(out / FILE).records.values())
    for record in records:
        if record["spec"]["method"] == "quick-b":
            record["results"]["auc"]["test"]["auc"] += 1e-16 + 1e-9  # type: ignore[operator]
    (out / FILE).unlink()
    with Journal(out) as journal:
        journal.append(*records)
    before = (out / FILE).read_bytes()
    verdict = restamp(out, Silent(), sample=2)
    assert verdict.renewed == 0
    assert "quick-b on tiny ordered" in verdict.difference
    assert "results.auc.test.auc was 0." in verdict.difference
    assert (out / FILE).read_bytes() == before


def test_a_reference_speaks_for_another_machine(out: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    reference = tmp_path_factory.mktemp("reference")
    records = list(read(out / FILE).records.values())
    with Journal(reference) as journal:
        journal.append(*records)
    (out / FILE).unlink()
    with Journal(out) as journal:
        for record in records:
            for result in record["results"].values():
                result["test"]["auc"] += 1e-6  # type: ignore[operator]
            journal.append(record)
    assert "results.auc.test.auc was" in restamp(out, Silent(), sample=2).difference
    verdict = restamp(out, Silent(), sample=2, reference=[reference / FILE])
    assert (verdict.renewed, verdict.difference) == (8, "")
    stamps = [record["restamped"] for record in read(out / FILE).records.values() if "restamped" in record]
    assert {stamp["reference"]["runs"] for stamp in stamps} == {4}
    assert all(len(stamp["reference"]["commits"]) == 1 for stamp in stamps)


def test_a_reference_of_todays_code_is_refused(out: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    reference = tmp_path_factory.mktemp("reference")
    with Journal(reference) as journal:
        for record in read(out / FILE).records.values():
            journal.append({**record, "numerics": NUMERICS})
    with pytest.raises(LLPBenchError, match="by the current code"):
        restamp(out, Silent(), reference=[reference / FILE])


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_failure_or_an_interrupt_changes_nothing(
    interrupted: bool, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Cell] = []
    original = training.run_cell

    def run_cell(cell: Cell, seeds: Sequence[int], *rest: Any) -> list[Record]:
        made.append(cell)
        if len(made) < 3:
            return original(cell, seeds, *rest)
        raise KeyboardInterrupt if interrupted else ValueError("no more")

    monkeypatch.setattr(training, "run_cell", run_cell)
    before = (out / FILE).read_bytes()
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            restamp(out, Silent(), sample=4)
    else:
        difference = restamp(out, Silent(), sample=4).difference
        assert "status was ok, now failed (ValueError: no more)" in difference
    assert (out / FILE).read_bytes() == before


def test_runs_are_made_again_as_they_were(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cell = make_cell_of("dllp", 256)
    hardware = {"device": "cpu", "threads": 3, "compiled": False, "name": "x", "precision": "float32"}
    records = [
        make_record(cell, seed, members=members, numerics=0, hardware=hardware, finished=f"2026-01-0{day}")
        for seed, members, day in [(4, 2, 1), (1, 2, 2), (0, 2, 1), (3, 2, 2), (2, 1, 3), (5, 3, 3)]
    ]
    with Journal(tmp_path) as journal:
        journal.append(*records)
    asked: list[tuple[tuple[int, ...], Environment]] = []

    def run(cell: Cell, seeds: Sequence[int], environment: Environment, _: object) -> list[Record]:
        asked.append((tuple(seeds), environment))
        assert cell.id == records[0]["cell"]
        return [record for seed in seeds for record in records if record["seed"] == seed]

    monkeypatch.setattr(training, "run_cell", run)
    verdict = restamp(tmp_path, Silent())
    assert sorted(seeds for seeds, _ in asked) == [(0, 4), (1, 3), (2,)], "of seed 5's population two are missing"
    assert {environment.members for seeds, environment in asked if len(seeds) == 2} == {2}
    assert {(environment.threads, environment.compile, environment.device) for _, environment in asked} == {
        (3, False, "cpu")
    }
    assert verdict == Restamped(1, 5, 6)


def test_members_of_ensembles_trained_together_too() -> None:
    cell = replace(make_cell_of(), ensemble=5)
    records = [make_record(cell, seed, members=10) for seed in range(4)]
    assert [group.job.seeds for group in trained_together(records)] == [(0, 1), (2, 3)]


def test_the_sample_is_spread_over_methods_then_datasets_then_sizes() -> None:
    records = [
        make_record(make_cell_of(method, size, dataset))
        for method in ("a", "b", "c")
        for dataset in ("d", "e")
        for size in (1, 2, 3, 4)
    ]
    groups = {group.cell.id: [group] for group in trained_together(records)}
    assert len(groups) == 24

    def drawn(number: int, seed: int = 0) -> list[tuple[str, str, int]]:
        specs = (each[0].records[0]["spec"] for each in draw(groups, number, seed))
        return [(spec["method"], spec["dataset"], spec["bag_size"]) for spec in specs]

    assert {method for method, *_ in drawn(3)} == {"a", "b", "c"}
    for part, (low, high) in enumerate([(4, 4), (6, 6), (2, 4)]):
        values = [cell[part] for cell in drawn(12)]
        assert {values.count(value) for value in values} <= set(range(low, high + 1))
    assert drawn(12) == drawn(12)
    assert drawn(12) != drawn(12, seed=1)
    assert len(drawn(99)) == 24


def test_a_new_figure_is_no_difference_but_a_lost_one_is() -> None:
    cell = make_cell_of()
    old, new = make_record(cell), make_record(cell)
    new["results"]["auc"]["test"] = {**new["results"]["auc"]["test"], "f1": 0.5}
    assert difference(old, new) == ""
    assert "results.auc.test.f1 was 0.5, now nothing" in difference(new, old)
    elsewhere = {**make_record(cell), "epochs": 5, "libraries": {"torch": "9"}}
    assert difference(old, elsewhere).endswith("epochs was 40, now 5; hardware or libraries differ")  # type: ignore[arg-type]
    nan = make_record(cell, results={"auc": {"epoch": 3, "validation": float("nan"), "test": {}}})
    assert difference(nan, nan) == ""
    staged, longer = (
        make_record(cell, earlier_curves={"first": {"auc": curve}}) for curve in ([0.5, 0.6], [0.5, 0.6, 0.5])
    )
    assert difference(old, staged) == "", "an older run has no curves of earlier stages"
    assert "earlier_curves.first.auc was [0.5, 0.6], now nothing" in difference(staged, old)
    assert "earlier_curves.first.auc was [0.5, 0.6]" in difference(staged, longer)


def test_the_command(llpbench: LLPBench, plugin: Path, out: Path) -> None:
    words = ["restamp", "--out", str(out), "--plugin", str(plugin), "--sample", "2"]
    done = llpbench(*words)
    assert done.code == 0
    assert done.err.startswith("2 of 4 cells with stale runs, drawn with seed 0: 4 runs to repeat")
    assert done.out.startswith("8 runs restamped: 4 runs in 2 repeated cells")
    assert "still stale: broken: failed (4 runs)" in done.out
    rewrite(out, numerics=0, epochs=7)
    refused = llpbench(*words)
    assert refused.code == 1
    assert refused.err.splitlines()[-1].startswith("llpbench: nothing restamped. ")
    assert "epochs was 7, now 0" in refused.err
    nowhere = llpbench("restamp", "--out", str(out.parent / "none"))
    assert (nowhere.code, nowhere.err.count("\n")) == (2, 1)
    assert not (out.parent / "none").exists()
    assert llpbench("restamp", "--out", str(out), "--sample", "0").code == 2


SUPERSEDED = "0" * 16


def test_searches_are_kept_with_the_runs_of_their_methods(tiny_bench: Path, tmp_path: Path) -> None:
    given = make_settings(
        tiny_bench, tmp_path, methods="bag-mean-linear,bag-soft-label-linear", bag_sizes="16", tune="3", seeds="1"
    )
    runner.run(given, Silent())
    contents = read(tmp_path / FILE)
    (tmp_path / FILE).unlink()
    with Journal(tmp_path) as journal:
        for record in contents.records.values():
            journal.append({**record, "numerics": 0})
        for tuning in contents.tunings.values():
            older = {**tuning, "finished": "2025-01-01T00:00:00Z", "numerics": 0}
            older["best"] = {"auc": {**next(iter(tuning["best"].values())), "cell": SUPERSEDED}}
            journal.append_tuning(older)  # type: ignore[arg-type]
            journal.append_tuning({**tuning, "numerics": 0})
    before = read(tmp_path / FILE).tunings
    verdict = restamp(tmp_path, Silent(), sample=1)
    assert verdict.searches == 2, "of the method that was drawn"
    assert any(line.endswith("(2 searches)") for line in verdict.left)
    verdict = restamp(tmp_path, Silent(), sample=1)
    assert verdict.searches == 2
    after = read(tmp_path / FILE).tunings
    assert stale_searches(after.values()) == {}
    for name, tuning in after.items():
        assert tuning.pop("restamped")["sample"] >= 1
        assert {**tuning, "numerics": 0} == before[name]
        assert tuning["former"] == [SUPERSEDED]
    display = Silent()
    runner.run(given, display)
    assert display.jobs == []
