"""Damaged lines: each costs its own run and names its field, in one line; every other run counts."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from factory import MISSING, changed, make_cell_of, places, record, searched

from llpbench.core.record import SCHEMA
from llpbench.results.journal import FILE, Contents
from llpbench.results.lines import to_line
from llpbench.results.merging import merge_into

CELL = make_cell_of()
GOOD: list[Any] = [record("a"), record("b", seed=3), searched(CELL, "fine", {"auc": (CELL, 0.8, None)})]
RUN = copy.deepcopy(record("c"))
RUN["results"]["auc"] |= {"epoch": 7, "test": {"auc": 0.95, "accuracy": None}}
SEARCH = searched(CELL, "coarse", {"l1": (CELL, 0.2, 0.3), "kl": (CELL, 0.1, None)})
RUN_LINE, SEARCH_LINE = (json.loads(to_line(each)) for each in (RUN, SEARCH))
FAULTS: list[tuple[str, object]] = [
    *(("run", "x"), ("cell", "../../etc/passwd"), ("seed", -1), ("seed", 1.0), ("seed", True), ("status", "fine")),
    *(("reason", None), ("finished", "yesterday"), ("results", {}), ("results", []), ("results.auc", "x")),
    *(("results.auc.judged", 2), ("results.auc.judged", True), ("results.auc.judged", -1), ("judged", None)),
    *(("judged", [3]), ("judged.0.epoch", -1), ("judged.0.epoch", MISSING), ("judged.0.test", MISSING)),
    *(("judged.0.test.accuracy", "0.8"), ("judged.0.diagnostics", [1])),
    *(("curves.auc", ["x"]), ("epochs", -40), ("memory_mb", "much"), ("times.total", -1.0), ("spec", [])),
    *(("spec.dataset", MISSING), ("spec.method", "two\nlines"), ("spec.method", "x" * 20_000), ("spec.params", None)),
    *(("spec.bag_size", "many"), ("spec.protocol", 3), ("spec.protocol.patience", 0), ("method.role", "roof")),
    *(("method.changed", MISSING), ("dataset.classes", 2.5), ("bags.sizes", [1, 2]), ("bags.histograms", [[1, 2]])),
    *(("data", {"fingerprint": 1}), ("versions", None), ("numerics", "1"), ("code", {"version": "1"})),
    *(("libraries", {"torch": None}), ("hardware", {"device": 3}), ("schema", "2")),
    *(("bags", {}), ("bags.number", MISSING), ("bags.histograms", MISSING)),
    *(("hardware", {}), ("hardware.name", MISSING)),
]
SEARCH_FAULTS: list[tuple[str, object]] = [
    *(("tuning", "x/y"), ("spec.cell", MISSING), ("spec.cell.encoder", 3), ("spec.regime", "medium")),
    *(("spec.depth", 3), ("spec.trials", 0), ("best.l1", {}), ("best.l1.value", "x"), ("trials", {})),
    *(("trials.0.status", "lost"), ("trials.0.rungs", [[1]])),
]
NO_RECORDS: list[bytes] = [
    *(b"\0" * 30, b"\x89PNG\r\x1a\xff", b"[" * 200_000, b"[1]", b"{}", to_line(RUN)[:200]),
    to_line(RUN)[:-1] + to_line(RUN),
    *(to_line(RUN).replace(b'"seed":0', b'"seed":' + number) for number in (b"9" * 5000, b"NaN")),
    to_line(RUN).replace(b'"total":4.0', b'"total":1e999'),
    *(to_line(RUN).replace(b'"reference":""', b'"reference":"%b"' % text) for text in (b"\\ud800", b"\xed\xa0\x80")),
]


def read_with(folder: Path, *damaged: bytes) -> Contents:
    """Return the contents of a journal with these lines among good ones, which must all be read."""
    good = [to_line(each) for each in GOOD]
    (folder / FILE).write_bytes(b"".join([good[0], *(line.rstrip(b"\n") + b"\n" for line in damaged), *good[1:]]))
    contents = Contents.read(folder / FILE)
    found = contents.records | contents.tunings
    assert found.items() >= {each["run"] if "run" in each else each["tuning"]: each for each in GOOD}.items()
    return contents


@pytest.mark.parametrize(
    ("line", "path", "value"),
    [*((RUN_LINE, *fault) for fault in FAULTS), *((SEARCH_LINE, *fault) for fault in SEARCH_FAULTS)],
)
def test_warning_names_wrong_field(line: Any, path: str, value: object, tmp_path: Path) -> None:
    (warning,) = read_with(tmp_path, json.dumps(changed(line, {path: value})).encode()).warnings
    where, _, fault = warning.partition(": ")
    assert where == f"line 2 of {str(tmp_path / FILE)!r}"
    assert fault.startswith("spec" if path == "spec.depth" else path)
    assert warning.isprintable()
    assert len(warning) < 500


@pytest.mark.parametrize("line", NO_RECORDS)
def test_invalid_line_gives_one_warning(line: bytes, tmp_path: Path) -> None:
    (warning,) = read_with(tmp_path, line).warnings
    assert warning.startswith(f"line 2 of {str(tmp_path / FILE)!r}: ")
    assert warning.isprintable()
    assert len(warning) < 500


def test_fields_of_later_versions_are_kept(tmp_path: Path) -> None:
    new: Any = {**changed(RUN, {"spec.depth": 3}), "mood": {"good": [1, {"very": True}]}}
    new["results"]["new"] = {**new["results"]["auc"], "test": {"auc": 0.5, "new": -7.0}, "mood": "good"}
    assert read_with(tmp_path, to_line(new)).records[RUN["run"]] == new
    merge_into(tmp_path / "merged", [tmp_path / FILE])
    assert Contents.read(tmp_path / "merged" / FILE).records[RUN["run"]] == new


STRANGE: list[Any] = [None, True, -1, 0, 0.5, 1e9, -1e300, 10**400, "", "a\nb", "x" * 5000]
STRANGE += [[], {}, [[]], {"auc": 1}, float("inf")]


@pytest.mark.parametrize("seed", range(3))
def test_random_damage_costs_no_other_run(tmp_path: Path, seed: int) -> None:
    rng, damaged = random.Random(seed), []
    for _ in range(300):
        line: Any = copy.deepcopy(rng.choice([RUN_LINE, SEARCH_LINE]))
        inner, key = rng.choice([*places(line)])
        if rng.random() < 0.2:
            del inner[key]
        else:
            inner[key] = rng.choice(STRANGE)
        text = bytearray(json.dumps(line | {"schema": SCHEMA}).encode())
        if rng.random() < 0.2:
            text[rng.randrange(1, len(text))] = rng.randrange(256)
        damaged += bytes(text).splitlines()
    damaged = [line for line in damaged if b'"schema": 4,' in line]  # another schema is another version
    contents = read_with(tmp_path, *damaged)
    assert 0 < len(contents.warnings) <= len(damaged)
    assert all(warning.isprintable() for warning in contents.warnings)
    merged = merge_into(tmp_path / "merged", [tmp_path / FILE])
    again = Contents.read(tmp_path / "merged" / FILE)
    assert (again.warnings, again.runs, again.tunings) == ((), merged.runs, merged.tunings)
