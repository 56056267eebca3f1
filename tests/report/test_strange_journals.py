"""Journals that are strange and yet right by their schema: reports, plots, merges and plans come to an end on them, and
show every good run."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench import LLPBench
from factory import MISSING, PROTOCOL, changed, make_cell_of, make_record, places, record, searched

from llpbench.core.record import TuningRecord
from llpbench.report import make_report, write_report
from llpbench.report.plots.gallery import gallery
from llpbench.report.plots.saving import save
from llpbench.report.tabulate import tabulate
from llpbench.results.journal import FILE, Contents, read
from llpbench.results.lines import DamagedError, read_line, to_line
from llpbench.results.merging import merge_into
from llpbench.running.settings import resolve
from llpbench.tuning.configurations import write_configurations

HOSTILE = "</script><b>[/red]\\$x_{\u202e&|`'\""
COLUMNS = "+".join(f"column {number} of a long questionnaire" for number in range(60))
START = make_cell_of("dllp", 64)
CHOSEN = replace(START, params={"weight": 0.5})
SEARCHES = [
    searched(START, "fine", {"auc": (CHOSEN, 0.8, 0.7)}),
    searched(START, "coarse", {"l1": (START, 0.2, None), "mpiou": (CHOSEN, 0.8, 0.7)}),
]
GOOD = [
    *(record(method, 0.8 + 0.01 * seed, seed=seed) for method in ("dllp", "mine", "llp-vat") for seed in range(2)),
    *(record("supervised", 0.9, seed=seed, role="ceiling") for seed in range(2)),
    *(record("bag-soft-label", 0.7, seed=seed, role="floor", encoder=None) for seed in range(2)),
    *(make_record(CHOSEN, seed, method={**record()["method"], "changed": {"weight": 0.5}}) for seed in range(2)),
]
STRANGE: list[dict[str, Any]] = [
    {"spec.method": HOSTILE},
    {"spec.method": "x" * 10_000},
    {"spec.method": " "},
    {"spec.dataset": HOSTILE},
    {"spec.dataset": "../../outside/" + "d" * 300},
    {"spec.encoder": HOSTILE},
    {"spec.bagging": HOSTILE},
    {"spec.bagging": ""},
    {"spec.bagging": f"ordered:columns={COLUMNS}"},
    {"spec.bagging": f"ordered:columns={COLUMNS}+\n\0"},
    {"spec.bagging": "袋" * 200},
    {"spec.bag_size": 0},
    {"spec.bag_size": 2**53 - 1},
    {"spec.pretraining": "unknown"},
    {"spec.pretraining": "self", "times.pretraining": 1e9},
    {"spec.pretraining": "self", "spec.pretraining_params": {"epochs": "many"}, "times.pretraining": 1.0},
    {"spec.pretraining": "self", "spec.protocol": None, "times.pretraining": 1.0},
    {"spec.precision": "float4"},
    {"spec.params": {"weight": None, "list": [1, [2, {"a": []}]], "": 10**400, "deep": {"er": {"": 0}}}},
    {"spec.protocol": {"epochs": 1, "patience": 1, "bags_per_step": 1, "": HOSTILE, "new/key": [COLUMNS]}},
    {"spec.new": {"part": HOSTILE}},
    {"seed": 2**53 - 1},
    {"seed": 5},
    {"cell": "0" * 16},
    {"status": "failed", "results": {}, "reason": f"{HOSTILE}\n\x1b[31m" * 1000, "bags": {}, "data": {}, "members": 0},
    {"status": "failed", "results": {}, "reason": "", "hardware": {}, "times": {}},
    {"status": "out-of-memory", "results": {}},
    {"status": "failed"},
    {"results": {"of tomorrow": record()["results"]["auc"]}},
    {"results.auc": MISSING, "curves.auc": MISSING},
    {"results.auc.test": {}},
    {"results.auc.test.auc": None, "results.mpiou.validation": None},
    {"results.auc.test": {"auc": 1.0, HOSTILE: 1e100, "own": None}},
    {"results.auc.test.brier": 1e6, "results.auc.test.l1": 1e6},
    {"results.auc.diagnostics": {"cas": 1e100, "pair-accuracy": -1e100, HOSTILE: None}},
    {"results.auc.epoch": 2**53 - 1},
    {"results.auc.epoch": None},
    {"curves": {"auc": [None] * 5, "mpiou": [], "l1": [1e6], "of tomorrow": [-1e100]}},
    {"curves": {"auc": [0.1, None] * 5000}},
    {"earlier_curves": {HOSTILE: {"auc": [0.1, None] * 5000}, "empty": {}, "own": {"of tomorrow": [1.0], "l1": []}}},
    {"earlier_curves": {}},
    {"epochs": 2**53 - 1, "parameters": 2**53 - 1, "members": 2**53 - 1, "memory_mb": 2.0**53 - 1},
    {"epochs": 0, "parameters": 0, "members": 0, "memory_mb": None},
    {"times": {}},
    {"times": {"total": 0, "train": 0.0, "predict": 0, "warm-up": 0, HOSTILE: 1e9}},
    {"times": {"total": 1e9, "train": 1e9, "predict": 1e9}},
    {"times.total": 1e-300, "times.train": 1e-300},
    {"bags.sizes": [9, 2.5, 1]},
    {"bags.histograms": []},
    {"bags.histograms": [[0] * 20] * 3},
    {"bags.histograms": [[2**53 - 1] * 20]},
    {"bags.validation": 0, "bags.test": 0, "bags.number": 0},
    {"method.role": "floor"},
    {"method.role": "ceiling", "method.kind": "direct"},
    {"method.reference": None},
    {"method.changed": {HOSTILE: HOSTILE, "": None, "a.b": [1], "x": {"y": {}}}},
    {"dataset": {"code": HOSTILE}},
    {"dataset": {"code": "AD", "rows": 0, "numeric": 0, "categorical": 0, "classes": 0}},
    {"dataset.classes": 2**53 - 1, "dataset.rows": None},
    {"data.fingerprint": "another", "data.manifest": "another"},
    {"versions": {}},
    {"versions": {HOSTILE: None}},
    {"numerics": 0},
    {"numerics": 2**53 - 1},
    {"code": {"version": "", "commit": None, "dirty": None}},
    {"code": {"version": HOSTILE, "commit": HOSTILE, "dirty": True}},
    {"libraries": {HOSTILE: HOSTILE}},
    {"libraries": {}},
    {"hardware": {"device": HOSTILE, "name": "", "threads": 0, "compiled": True, "precision": HOSTILE}},
    {"finished": "2026-01-01"},
    {"mood": {"good": [1, {"very": True}]}},
]
"""changes of a run, by path"""

STRANGE_SEARCHES: list[dict[str, Any]] = [
    {"status": "failed", "best": {}, "trials": [], "reason": HOSTILE},
    {"best": {}},
    {"trials": [], "times": {}, "hardware": {}, "epochs": 0},
    {"best.auc.params": {HOSTILE: [{}], "": None}},
    {"best.auc.value": 0, "best.auc.trial": 2**53 - 1, "best.auc.default": None},
    {"best.of tomorrow": SEARCHES[0]["best"]["auc"]},
    {"best.auc.cell": "0" * 16},
    {"best.auc.cell": START.id},
    {"spec.seed": 0},
    {"spec.trials": 2**53 - 1, "spec.sampler": HOSTILE, "spec.space": {HOSTILE: {"low": HOSTILE}}},
    {"spec.cell.params": {HOSTILE: [[[]]]}},
    {"spec.cell.dataset": "../../outside"},
    {"spec.cell.encoder": "e" * 400, "spec.cell.bagging": COLUMNS},
    {"trials.0.values": {"auc": None}, "trials.0.rungs": [[1e100, None]]},
    {"mood": 3},
]
"""the same of a search"""


def journal(folder: Path, *more: Mapping[str, Any]) -> Contents:
    """Write the good records and more ones, and read them."""
    folder.mkdir(parents=True, exist_ok=True)
    every: list[Any] = [*GOOD, *SEARCHES, *more]
    (folder / FILE).write_bytes(b"".join(map(to_line, every)))
    return read(folder / FILE)


def report(contents: Contents, out: Path) -> str:
    """Write the report of a journal without plots, and return the page."""
    tunings: list[TuningRecord] = [*contents.tunings.values()]
    made = make_report([*contents.records.values()], tunings=tunings, warnings=contents.warnings)
    write_report(made, out)
    for file in write_configurations(tunings, out):
        assert file.parent == out / "tuned"
    return (out / "index.html").read_text(encoding="utf-8")


def strange_runs() -> list[dict[str, Any]]:
    """Return a run for each of `STRANGE`, all of different cells."""
    made = []
    for number, changes in enumerate(STRANGE):
        run = record("mine" if number % 2 else f"m{number}", 0.75, seed=number % 3, bag_size=(64, 256)[number % 4 == 1])
        strange = changed(run, {"cell": f"{number:016x}", **changes})
        made.append({**strange, "run": f"{strange['cell']}-{strange['seed']}"})
    return made


@pytest.mark.parametrize("name", ["dllp-v1.5", "my method", "ünï", "\U0001f600", 'a"b', "a#b]"])
def test_configuration_round_trips_for_strange_names(tmp_path: Path, name: str) -> None:
    search: Any = changed(SEARCHES[0], {"spec.cell.method": name, "spec.cell.dataset": name})
    (file,) = write_configurations([search], tmp_path)
    settings = resolve({}, config=file)
    assert (settings.methods, settings.datasets) == (name, name)
    assert settings.set[name] == search["best"]["auc"]["params"]


def test_strange_runs_do_not_break_report(tmp_path: Path) -> None:
    strange = strange_runs()
    contents = journal(tmp_path, *strange)
    assert contents.warnings == ()
    assert contents.records.keys() == {each["run"] for each in [*GOOD, *strange]}
    page = report(contents, tmp_path)
    assert HOSTILE not in page
    assert all(method in page for method in ("llp-vat", "mine", "dllp"))
    assert all(len(file.name.encode()) < 200 for file in tmp_path.rglob("*"))


def test_strange_searches_do_not_break_report(tmp_path: Path) -> None:
    strange = [changed(SEARCHES[0], {"tuning": f"{n:016x}", **each}) for n, each in enumerate(STRANGE_SEARCHES)]
    contents = journal(tmp_path / "out", *strange)
    assert (contents.warnings, len(contents.tunings)) == ((), len(SEARCHES) + len(strange))
    assert "tuned, 10 trials" in report(contents, tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_strange_runs_are_drawn_merged_and_planned_over(tmp_path: Path, llpbench: LLPBench) -> None:
    strange = strange_runs()
    contents = journal(tmp_path / "a", *strange)
    of_one_board = [run for run in contents.records.values() if run["spec"]["bagging"] == "ordered"]
    drawn = tabulate([run for run in of_one_board if run["spec"]["protocol"] in (PROTOCOL, None)])
    save(gallery(drawn), tmp_path / "plots")
    merged = merge_into(tmp_path / "b", [tmp_path / "a" / FILE])
    assert merged.records == read(tmp_path / "b" / FILE).records == contents.records
    planned = llpbench("plan", "--out", str(tmp_path / "b"), "--methods", "dllp", "--pretraining", "none,self")
    assert planned.code == 0, planned.err


def test_long_bagging_names_are_cut_consistently(tmp_path: Path) -> None:
    baggings = [f"ordered:columns={COLUMNS}+{last}" for last in ("age", "sex")]
    assert min(len(bagging.encode()) for bagging in baggings) > 255
    first, second = (record("dllp", 0.8, bagging=bagging) for bagging in baggings)
    both = tmp_path / "both"
    write_report(make_report([first, second]), both, plots=both / "plots")
    names = {file.name for file in both.rglob("*")}
    assert len({name for name in names if re.fullmatch(r".*-ordered-columns-column-0-of-.*\.svg", name)}) >= 1
    assert all(len(name) < 200 for name in names)


SURPRISES = [None, -1, 0, 1e6, 1e100, 2**53 - 1, "", HOSTILE, [], {}, {"auc": 1}, ["x"], "none", "self", "direct"]


@pytest.mark.parametrize("seed", range(2))
def test_every_valid_record_can_be_shown(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    kept: list[dict[str, Any]] = []
    while len(kept) < 60:
        made: Any = copy.deepcopy(rng.choice([*GOOD, *SEARCHES]))
        for _ in range(rng.choice((1, 1, 3))):
            inner, key = rng.choice([*places({name: made[name] for name in rng.sample(sorted(made), 3)})])
            inner[key] = rng.choice(SURPRISES)
        made |= {"cell": f"{len(kept):016x}", "run": f"{len(kept):016x}-{made['seed']}"} if "run" in made else {}
        try:
            read_line(to_line(made))
        except (DamagedError, AttributeError, TypeError):  # the latter of a result that is no object
            continue
        kept.append(made)
    contents = journal(tmp_path, *kept)
    assert contents.warnings == ()
    assert "llp-vat" in report(contents, tmp_path)
