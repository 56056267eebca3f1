"""Runs with searches: made once, followed by what they choose, resumed wherever they end, on their boards alone."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from bench import LLPBench, arguments, make_settings, start
from test_runner import Silent

from llpbench.core.cell import Tuning
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import TuningRecord
from llpbench.results.frame import items
from llpbench.results.journal import FILE, Contents
from llpbench.running import runner
from llpbench.running.planning import Plan, expand
from llpbench.running.settings import Settings, resolve

LINEAR = {"methods": "bag-soft-label-linear,bag-mean-linear", "bag_sizes": "16", "tune": "6"}


def settings(plugin: Path, out: Path, **flags: Any) -> Settings:
    return make_settings(plugin, out, **{**LINEAR, **flags})


def run(given: Settings) -> Contents:
    runner.run(given, Silent())
    return Contents.read(given.out / FILE)


def without_times(tunings: dict[str, TuningRecord]) -> dict[str, dict[str, Any]]:
    found = {}
    for name, record in tunings.items():
        kept = {key: value for key, value in record.items() if key not in ("times", "memory_mb", "finished", "code")}
        trials = [{key: value for key, value in trial.items() if key != "seconds"} for trial in record["trials"]]
        found[name] = kept | {"trials": trials}
    return found


def test_data_without_labels_are_tuned_by_proportions_only() -> None:
    given = resolve({"datasets": "synthetic_a", "baggings": "given", "methods": "bag-mean-linear", "tune": "2"})
    found = Plan.of_run(given, expand(given), Contents({})).tunings.values()
    assert [each.tuning and each.tuning.regime for each in found] == ["coarse"]
    fine = replace(given, tune_regimes=("fine",))
    with pytest.raises(LLPBenchError, match="--tune-regimes"):
        Plan.of_run(fine, expand(fine), Contents({}))


def test_tuned_configuration_runs_on_other_seeds_beside_default(tiny_bench: Path, tmp_path: Path) -> None:
    given = settings(tiny_bench, tmp_path)
    found = run(given)
    assert len(found.tunings) == 4  # two methods, each by labels and by proportions
    for record in found.tunings.values():
        assert record["status"] == "ok"
        assert {CRITERIA[name].regime for name in record["best"]} == {record["spec"]["regime"]}
        assert [trial["number"] for trial in record["trials"]] == list(range(6))
        assert record["libraries"].keys() >= {"optuna", "torch"}
        start_id = Tuning.of(record["spec"]).cell.id
        for cell_id in {start_id, *(cell.id for cell in Plan.chosen_cells(record))}:
            assert {f"{cell_id}-0", f"{cell_id}-1"} <= found.records.keys()
    chosen = {cell.id for record in found.tunings.values() for cell in Plan.chosen_cells(record)}
    starts = {Tuning.of(record["spec"]).cell.id for record in found.tunings.values()}
    assert {record["cell"] for record in found.records.values()} == chosen | starts
    assert {record["seed"] for record in found.records.values()} == {0, 1}, "none on the seed of the search"

    display = Silent()
    summary = runner.run(given, display)
    assert display.jobs == []
    assert "nothing to run" in display.said[0]
    assert not summary.incomplete


def test_longer_search_continues_shorter(tiny_bench: Path, tmp_path: Path) -> None:
    short = run(settings(tiny_bench, tmp_path))
    long = run(settings(tiny_bench, tmp_path, tune="9"))
    trials = {name: record["trials"] for name, record in short.tunings.items()}
    new = [record["trials"] for name, record in long.tunings.items() if name not in trials]
    assert (len(trials), len(new)) == (4, 4)
    assert all(any(longer[:6] == shorter for shorter in trials.values()) for longer in new)


def test_failed_search_is_repeated_on_request(tiny_bench: Path, tmp_path: Path) -> None:
    plain = settings(tiny_bench, tmp_path, methods="bag-mean-linear", tune="2")
    display = Silent()

    broken = Mock(side_effect=RuntimeError("no luck"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("llpbench.methods.bag_mean_linear.BagMeanLinear.fit", broken)
        summary = runner.run(plain, display)
    assert summary.incomplete
    reasons = [record["reason"] for record in summary.contents.tunings.values()]
    assert all(reason.startswith("trial 0: RuntimeError: no luck") for reason in reasons)
    again = runner.run(plain, Silent())
    assert again.incomplete, "what has failed is not tried again by itself"
    repaired = runner.run(replace(plain, retry=("failed",)), Silent())
    assert not repaired.incomplete
    assert all(record["status"] == "ok" for record in repaired.contents.tunings.values())


@pytest.mark.slow
def test_resumed_search_after_kill_gives_same_result(tiny_bench: Path, tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "one", tmp_path / "other"
    words = ["--methods", "bag-mean-linear", "--bag-sizes", "16", "--tune", "20"]
    process = start(arguments(tiny_bench, killed, *words))
    while process.poll() is None and sum(len(search.read_bytes()) for search in killed.glob("tuning/*.json")) < 3000:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    one, other = (run(settings(tiny_bench, out, methods="bag-mean-linear", tune="20")) for out in (undisturbed, killed))
    assert without_times(one.tunings) == without_times(other.tunings)
    assert one.records.keys() == other.records.keys()
    lines = [json.loads(line) for line in (killed / FILE).read_bytes().splitlines()]
    assert len(lines) == len(one.tunings) + len(one.records), "nothing twice"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"methods": ("bag-mean-linear",), "bag_sizes": (1000,)}, "bag size 1000 is larger"),
        ({"methods": ("bag-share",)}, "bag-share"),
        ({"methods": ("bag-mean-linear",), "set": {"bag-mean-linear": {"strength": 1.0, "model": "ridge"}}}, "--set"),
    ],
)
def test_impossible_search_is_refused(tiny_bench: Path, tmp_path: Path, flags: dict[str, Any], told: str) -> None:
    given = replace(settings(tiny_bench, tmp_path), **{"tune": 6, **flags})
    with pytest.raises(LLPBenchError, match=told):
        runner.run(given, Silent())
    assert not (tmp_path / FILE).exists() or not Contents.read(tmp_path / FILE).records
    plan, _ = runner.preview(settings(tiny_bench, tmp_path, bag_sizes="16,1000", methods="bag-mean-linear"), print)
    assert str(plan).startswith("2 searches to do (their choices run afterwards), 2 impossible; 2 runs to do")


def test_search_and_plan_show_chosen_configuration(llpbench: LLPBench, plugin: Path, tmp_path: Path) -> None:
    words = ["--plugin", str(plugin), "--datasets", "tiny", "--out", str(tmp_path), "--executor", "debug", "--no-plots"]
    words += ["--methods", "bag-mean-linear", "--bag-sizes", "16", "--tune-regimes", "fine", "--tune", "7"]
    planned = llpbench("plan", *words)
    assert "1 search to do (their choices run afterwards)" in planned.out
    starts = llpbench("plan", *words, "--set", "bag-mean-linear.model=ridge,logistic").out
    assert starts.count("model=logistic") == 2, "the search and its start"
    found = llpbench.succeed("run", *words)
    (record,) = Contents.read(tmp_path / FILE).tunings.values()
    chosen = record["best"]["auc"]["params"]
    changed = items({name: value for name, value in chosen.items() if value != record["spec"]["cell"]["params"][name]})
    assert changed
    assert f": {', '.join(sorted(changed))}" in found.err
    lines = llpbench("plan", *words).out.splitlines()
    (place,) = (place for place, line in enumerate(lines) if f"strength={chosen['strength']}" in line)
    assert " done " in "".join(lines[place - 1 : place + 1]), "a narrow terminal wraps the name of the cell"
