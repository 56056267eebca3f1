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
from factory import changed, make_cell_of, make_record, places, record, searched
from made import make_report

from llpbench.core.record import TuningRecord
from llpbench.report.publishing import Published
from llpbench.results.journal import FILE, Contents
from llpbench.results.lines import DamagedError, read_line, to_line
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


def journal(folder: Path, *more: Mapping[str, Any]) -> Contents:
    """Write the good records and more ones, and read them."""
    folder.mkdir(parents=True, exist_ok=True)
    every: list[Any] = [*GOOD, *SEARCHES, *more]
    (folder / FILE).write_bytes(b"".join(map(to_line, every)))
    return Contents.read(folder / FILE)


def report(contents: Contents, out: Path) -> str:
    """Write the report of a journal without plots, and return the page."""
    tunings: list[TuningRecord] = [*contents.tunings.values()]
    made = make_report([*contents.records.values()], tunings=tunings, warnings=contents.warnings)
    Published.write(made, out)
    for file in write_configurations(tunings, out):
        assert file.parent == out / "tuned"
    return (out / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["dllp-v1.5", "my method", "ünï", "\U0001f600", 'a"b', "a#b]"])
def test_configuration_round_trips_for_strange_names(tmp_path: Path, name: str) -> None:
    search: Any = changed(SEARCHES[0], {"spec.cell.method": name, "spec.cell.dataset": name})
    (file,) = write_configurations([search], tmp_path)
    settings = resolve({}, config=file)
    assert (settings.methods, settings.datasets) == (name, name)
    assert settings.set[name] == search["best"]["auc"]["params"]


def test_long_bagging_names_are_cut_consistently(tmp_path: Path) -> None:
    baggings = [f"ordered:columns={COLUMNS}+{last}" for last in ("age", "sex")]
    assert min(len(bagging.encode()) for bagging in baggings) > 255
    first, second = (record("dllp", 0.8, bagging=bagging) for bagging in baggings)
    both = tmp_path / "both"
    Published.write(make_report([first, second]), both, plots=both / "plots")
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
