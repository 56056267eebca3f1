"""Damaged lines: each costs its own run and says why, in one line; every other run counts, whatever the damage."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from factory import MISSING, changed, make_cell_of, make_record, places, record, searched

from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.record import SCHEMA, Record
from llpbench.results.journal import FILE, Contents, Journal, read, to_line
from llpbench.results.merging import merge_into
from llpbench.results.packing import UNPACKED, PackingError, packed, unpacked
from llpbench.results.schema import LONGEST_LINE

CELL = make_cell_of()
GOOD: list[Any] = [record("a"), record("b", seed=3), searched(CELL, "fine", {"auc": (CELL, 0.8, None)})]
RUN = record("c", restamped={"when": "2026-01-01T00:00:00Z"})
SEARCH = searched(CELL, "coarse", {"l1": (CELL, 0.2, 0.3), "kl": (CELL, 0.1, None)})
FIELDS: list[tuple[str, object, str]] = [
    ("run", "x", "run is \"x\", but cell and seed give {cell}-0"),
    ("cell", "../../etc/passwd", 'cell is "../../etc/passwd", not 16 hexadecimal digits'),
    ("seed", -1, "seed is -1, not a whole number of 0 or more"),
    ("seed", 1.0, "seed is 1.0, not a whole number of 0 or more"),
    ("seed", True, "seed is true, not a whole number of 0 or more"),
    ("seed", 10**400, f"seed is 1{'0' * 39}…, not a whole number of 0 or more"),
    ("status", "fine", "status is \"fine\", not one of 'ok', "),
    ("reason", None, "reason is null, not text"),
    ("finished", "yesterday", 'finished is "yesterday", not a moment in ISO 8601'),
    ("results", {}, "results is empty, though status is ok"),
    ("results.auc", {"test": {}}, "results.auc.epoch is missing"),
    ("results.auc.epoch", -1, "results.auc.epoch is -1, not a whole number of 0 or more"),
    ("results.auc.validation", 1.5, "results.auc.validation is 1.5, not a number from 0 to 1"),
    ("results.auc.test", MISSING, "results.auc.test is missing"),
    ("results.auc.test.auc", 1e9, "results.auc.test.auc is 1000000000.0, not a number from 0 to 1"),
    ("results.l1.test.accuracy", "0.8", 'results.l1.test.accuracy is "0.8", not a number from 0 to 1'),
    ("results.l1.test.l1", -0.5, "results.l1.test.l1 is -0.5, not a number from 0 to 1,000,000"),
    ("results.l1.test.own", 1e200, "results.l1.test.own is 1e+200, not a number"),
    ("results.l1.diagnostics", [1], "results.l1.diagnostics is a list of 1, not an object"),
    ("curves.auc", [0.5, 7], "curves.auc.1 is 7, not a number from 0 to 1"),
    ("curves.auc", ["x"] * 5000, "5,000 of its fields are wrong"),
    ("earlier_curves", {"first": {"auc": [0.5, 7]}}, "earlier_curves.first.auc.1 is 7, not a number from 0 to 1"),
    ("epochs", -40, "epochs is -40, not a whole number of 0 or more"),
    ("memory_mb", "much", 'memory_mb is "much", not a number of 0 or more'),
    ("times.total", -1.0, "times.total is -1.0, not a number of seconds, 0 or more"),
    ("times.\x1b[31m\nred", "x", 'times.?[31m red is "x", not a number of seconds, 0 or more'),
    ("spec", [], "spec is a list of 0, not an object"),
    ("spec.dataset", MISSING, "spec.dataset is missing"),
    ("spec.method", "two\nlines", 'spec.method is "two\\nlines", not a name on one line'),
    ("spec.method", "x" * 20_000, f'spec.method is "{"x" * 39}…, not a name on one line'),
    ("spec.bag_size", "many", 'spec.bag_size is "many", not a whole number of 0 or more'),
    ("spec.protocol", 3, "spec.protocol is 3, not an object"),
    ("spec.protocol.patience", 0, "spec.protocol.patience is 0, not a whole number of 1 or more"),
    ("spec.params", None, "spec.params is null, not an object"),
    ("method.role", "roof", "method.role is \"roof\", not one of 'floor', 'ceiling', 'control' or ''"),
    ("method.changed", MISSING, "method.changed is missing"),
    ("dataset.classes", 2.5, "dataset.classes is 2.5, not a whole number of 0 or more"),
    ("bags.sizes", [1, 2], "bags.sizes is a list of 2, not a list of 3"),
    ("bags.histograms", [[1, 2]], "bags.histograms.0 is a list of 2, not a list of 20"),
    ("data", {"fingerprint": 1}, "data.fingerprint is 1, not text"),
    ("versions", None, "versions is null, not an object"),
    ("numerics", "1", 'numerics is "1", not a whole number of 0 or more'),
    ("restamped", 3, "restamped is 3, not an object"),
    ("code", {"version": "1"}, "code.commit is missing"),
    ("libraries", {"torch": None}, "libraries.torch is null, not text"),
    ("hardware", {"device": "cpu"}, "hardware.name is missing"),
    ("schema", "2", 'schema is "2", not a schema number'),
]  # fmt: skip
"""what is damaged in a run, by which value, and what is said"""

SEARCH_FIELDS: list[tuple[str, object, str]] = [
    ("tuning", "x/y", 'tuning is "x/y", not 16 hexadecimal digits'),
    ("spec.cell", MISSING, "spec.cell is missing"),
    ("spec.cell.encoder", 3, "spec.cell.encoder is 3, not a name on one line"),
    ("spec.regime", "medium", "spec.regime is \"medium\", not one of 'fine' or 'coarse'"),
    ("spec.depth", 3, "spec is of another version ("),
    ("spec.trials", 0, "spec.trials is 0, not a whole number of 1 or more"),
    ("best.l1", {}, "best.l1.trial is missing"),
    ("best.l1.value", -1, "best.l1.value is -1, not a number from 0 to 1,000,000"),
    ("trials", {}, "trials is an object, not a list"),
    ("trials.3.values.mpiou", 2, "trials.3.values.mpiou is 2, not a number from 0 to 1"),
    ("trials.0.status", "lost", "trials.0.status is \"lost\", not one of 'ok', "),
    ("trials.0.rungs", [[1]], "trials.0.rungs.0 is a list of 1, not a list of 2"),
]  # fmt: skip
"""the same of a search"""

LINES: list[tuple[bytes, str]] = [
    (b"\0" * 30, "it is not JSON (expected value"),
    (b"\x89PNG\r\x1a\xff", "it is not JSON (expected value"),
    (b"[" * 200_000, "it is not JSON (recursion limit exceeded"),
    (b"[1]", "it is neither a run nor a search"),
    (b'{"schema":3,"run":"x"}', "cell is missing"),
    (to_line(RUN)[:200], "it is not JSON (EOF"),
    (to_line(RUN) + to_line(RUN), "it is not JSON (trailing characters"),
    (to_line(RUN).replace(b'"seed":0', b'"seed":' + b"9" * 5000), "it is not JSON (number out of range"),
    (to_line(RUN).replace(b'"seed":0', b'"seed":NaN'), "seed is null, not a whole number"),
    (to_line(RUN).replace(b'"total":4.0', b'"total":1e999'), "times.total is null, not a number of seconds"),
    (to_line(RUN).replace(b'"seed":0', b'"seed":0,"seed":1'), '"seed" appears twice'),
    (to_line(RUN).replace(b'"total"', b'"data"'), '"data" appears twice'),
    (to_line(RUN).replace(b'"reference":""', b'"reference":"\\ud800"'), "it is not JSON (unexpected end of hex"),
    (to_line(RUN).replace(b'"reference":""', b'"reference":"\xed\xa0\x80"'), "it is not JSON (invalid unicode"),
    (to_line(RUN).replace(b'"reason":""', b'"reason":"' + b"x" * LONGEST_LINE + b'"'), "it is longer than 8,388,608"),
]  # fmt: skip
"""whole lines, and what is said of them"""


def read_with(folder: Path, *lines: bytes) -> Contents:
    """What is read of a journal with these lines among good ones, which must all be there."""
    good = [to_line(each) for each in GOOD]
    (folder / FILE).write_bytes(b"".join([good[0], *(line.rstrip(b"\n") + b"\n" for line in lines), *good[1:]]))
    contents = read(folder / FILE)
    assert everything(contents).items() >= {name_of(each): each for each in GOOD}.items()
    return contents


def name_of(each: Mapping[str, Any]) -> str:
    return str(each["run"] if "run" in each else each["tuning"])


def everything(contents: Contents) -> dict[str, Any]:
    return {**contents.records, **contents.tunings}


def encoded(value: dict[str, Any]) -> bytes:
    """A record as a line of schema 2, in which each criterion has its judgement."""
    return json.dumps(value | {"schema": UNPACKED} if value.get("schema") == SCHEMA else value).encode()


@pytest.mark.parametrize(("path", "value", "said"), FIELDS)
def test_a_wrong_field_of_a_run_is_named(tmp_path: Path, path: str, value: object, said: str) -> None:
    line = encoded(changed(RUN, {path: value}))
    (warning,) = read_with(tmp_path, line).warnings
    assert warning.startswith(f"line 2 of {str(tmp_path / FILE)!r}: {said.format(cell=RUN['cell'])}")
    assert warning.endswith("; its run counts as missing")
    assert warning.isprintable()


@pytest.mark.parametrize(("path", "value", "said"), SEARCH_FIELDS)
def test_a_wrong_field_of_a_search_is_named(tmp_path: Path, path: str, value: object, said: str) -> None:
    damaged: Any = {"schema": SEARCH["schema"], **changed(SEARCH, {path: value})}
    (warning,) = read_with(tmp_path, to_line(damaged)).warnings
    assert f": {said}" in warning


@pytest.mark.parametrize(("line", "said"), LINES, ids=[said for _, said in LINES])
def test_a_line_that_is_no_record_says_why(tmp_path: Path, line: bytes, said: str) -> None:
    (warning,) = read_with(tmp_path, line.replace(b"\n", b" ")).warnings
    assert warning.startswith(f"line 2 of {str(tmp_path / FILE)!r}: {said}")
    assert len(warning) < 400
    assert warning.isprintable()


def test_every_metric_and_criterion_has_bounds(tmp_path: Path) -> None:
    judged = RUN["results"]["auc"]
    for name, metric in METRICS.items():
        least, most = metric.bounds
        for value in (least - 0.01, most + 0.01):
            (warning,) = read_with(tmp_path, encoded(changed(RUN, {f"results.auc.test.{name}": value}))).warnings
            assert f"results.auc.test.{name} is {value}, not a number from" in warning
        inside = [record("c", results={"auc": {**judged, "test": {name: value}}}) for value in (least, most)]
        assert read_with(tmp_path, *map(to_line, inside)).warnings == ()
    for name, criterion in CRITERIA.items():
        least, most = criterion.bounds
        for value in (least - 0.01, most + 0.01):
            parts = {"results": {name: {**judged, "validation": value}}}, {"curves": {name: [value]}}
            first, second = read_with(tmp_path, *(encoded({**RUN, **part}) for part in parts)).warnings
            assert f"results.{name}.validation is {value}, not a number from" in first
            assert f"curves.{name}.0 is {value}, not a number from" in second


def test_what_a_later_version_may_add_is_read_and_kept(tmp_path: Path) -> None:
    new: Any = {**changed(RUN, {"spec.depth": 3}), "mood": {"good": [1, {"very": True}]}}
    new["results"]["new"] = {**new["results"]["auc"], "test": {"auc": 0.5, "new": -7.0}, "mood": "good"}
    assert read_with(tmp_path, to_line(new)).records[RUN["run"]] == new
    merge_into(tmp_path / "merged", [tmp_path / FILE])
    assert read(tmp_path / "merged" / FILE).records[RUN["run"]] == new


def test_what_is_no_number_in_json_is_unknown_where_that_may_be(tmp_path: Path) -> None:
    for literal in ("NaN", "Infinity", "-Infinity", "1e999"):
        line = to_line(RUN).replace(b'"memory_mb":100.0', f'"memory_mb":{literal}'.encode())
        contents = read_with(tmp_path, line)
        assert contents.warnings == ()
        assert contents.records[RUN["run"]] == {**RUN, "memory_mb": None}
    spaced = json.dumps(json.loads(to_line(RUN)), separators=(" , ", " : ")).encode()
    assert read_with(tmp_path, spaced).records[RUN["run"]] == RUN, "spaces are no damage"


def test_a_last_line_that_is_wrong_but_whole_is_not_torn_off(tmp_path: Path) -> None:
    wrong = encoded(changed(RUN, {"status": "of tomorrow"}))
    (tmp_path / FILE).write_bytes(to_line(RUN) + wrong)
    (warning,) = read(tmp_path / FILE).warnings
    assert "the last line of" in warning
    assert "status is" in warning
    with Journal(tmp_path) as journal:
        journal.append(record("a"))
    assert (tmp_path / FILE).read_bytes() == to_line(RUN) + wrong + b"\n" + to_line(record("a"))


def test_whatever_is_written_can_be_read(tmp_path: Path) -> None:
    huge = record("c", times={"total": 1e8}, epochs=2**53 - 1, reason="\x1b[31m\0\n" * 1000, memory_mb=float("nan"))
    huge["results"]["auc"]["diagnostics"] = {"one": 1e300, "two": float("-inf"), "three": -1e99}
    with Journal(tmp_path) as journal:
        journal.append(huge)
    contents = read(tmp_path / FILE)
    assert contents.warnings == ()
    assert contents.records[huge["run"]]["results"]["auc"]["diagnostics"] == {"one": None, "two": None, "three": -1e99}


STRANGE: list[Any] = [None, True, -1, 0, 0.5, 1e9, -1e300, 10**400, "", "a\nb", "x" * 5000]
STRANGE += [[], {}, [[]], {"auc": 1}, float("inf")]


@pytest.mark.parametrize("seed", range(3))
def test_no_damage_by_chance_costs_another_run(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    lines: list[bytes] = []
    for _ in range(300):
        damaged: Any = copy.deepcopy(rng.choice([RUN, SEARCH]))
        inner, key = rng.choice([*places(damaged)])
        if rng.random() < 0.2:
            del inner[key]
        else:
            inner[key] = rng.choice(STRANGE)
        line = bytearray(json.dumps(damaged | {"schema": UNPACKED}).encode())
        if rng.random() < 0.2:
            line[rng.randrange(1, len(line))] = rng.randrange(256)
        lines += bytes(line).splitlines()
    lines = [line for line in lines if b'"schema": 2,' in line]  # any other is told to be of another version
    contents = read_with(tmp_path, *lines)
    assert 0 < len(contents.warnings) <= len(lines)
    assert all(warning.isprintable() for warning in contents.warnings)
    merged = merge_into(tmp_path / "merged", [tmp_path / FILE])
    again = read(tmp_path / "merged" / FILE)
    assert again.warnings == ()
    assert (again.records, again.tunings) == (merged.records, merged.tunings)


def some_run() -> Record:
    """Return a run whose `auc` chose another epoch than `mpiou` and `l1`."""
    run = copy.deepcopy(make_record(make_cell_of()))
    run["results"]["auc"] |= {"epoch": 7, "test": {"auc": 0.95, "accuracy": None}}
    return run


def test_criteria_that_chose_the_same_epoch_share_one_judgement() -> None:
    line = json.loads(to_line(some_run()))
    assert line["schema"] == SCHEMA
    assert len(line["judged"]) == 2
    assert line["results"]["mpiou"]["judged"] == line["results"]["l1"]["judged"] != line["results"]["auc"]["judged"]
    assert unpacked(packed(some_run())) == some_run()


def test_lines_of_all_schemas_give_the_same_record(tmp_path: Path) -> None:
    run: Any = some_run()
    run["data"]["fingerprint"] = "92bcdfd1c68d2fd10ca254c3e068a250"
    run["versions"] = {"method": "source:x", "dataset": "92bcdfd1c68d2fd1", "bagging": "1", "encoder": None}
    sources = {"method": "x", "dataset": "y", "bagging": "1cf6470eae55027b", "encoder": None}
    older = {"sources" if name == "versions" else name: value for name, value in run.items()} | {"sources": sources}
    old, new = json.dumps({**older, "schema": UNPACKED}).encode() + b"\n", to_line(run)
    middle = json.dumps({**packed(older), "schema": SCHEMA - 1}).encode() + b"\n"
    read_back = []
    for name, line in (("old", old), ("middle", middle), ("new", new)):
        (tmp_path / name).mkdir()
        (tmp_path / name / FILE).write_bytes(line)
        contents = read(tmp_path / name / FILE)
        assert contents.warnings == ()
        read_back.append(contents.records[run["run"]])
    assert read_back == [run, run, run]
    assert len(new) < len(old)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("judged", None), ("judged", [3]), ("results.auc", "x"), ("results", [])),
        *(("results.auc.judged", 2), ("results.auc.judged", True), ("results.auc.judged", -1)),
    ],
)
def test_a_line_with_a_broken_reference_counts_as_missing(tmp_path: Path, path: str, value: object) -> None:
    line = changed(json.loads(to_line(some_run())), {path: value})
    with pytest.raises(PackingError):
        unpacked(line)
    good = make_record(make_cell_of("other"))
    (tmp_path / FILE).write_bytes(json.dumps(line).encode() + b"\n" + to_line(good))
    contents = read(tmp_path / FILE)
    assert [*contents.records] == [good["run"]]
    assert len(contents.warnings) == 1
