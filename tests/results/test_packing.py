"""Schema 3: a judgement that criteria share is written once, and schema 2 is read as before."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from factory import make_cell_of, make_record

from llpbench.core.record import SCHEMA, Record
from llpbench.results.journal import FILE, read, to_line
from llpbench.results.packing import UNPACKED, PackingError, packed, unpacked


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


def test_lines_of_both_schemas_give_the_same_record(tmp_path: Path) -> None:
    run = some_run()
    old = json.dumps({**run, "schema": UNPACKED}).encode() + b"\n"
    read_back = []
    for name, line in (("old", old), ("new", to_line(run))):
        (tmp_path / name).mkdir()
        (tmp_path / name / FILE).write_bytes(line)
        contents = read(tmp_path / name / FILE)
        assert contents.warnings == ()
        read_back.append(contents.records[run["run"]])
    assert read_back == [run, run]
    assert len(to_line(run)) < len(old)


@pytest.mark.parametrize(
    ("path", "value"),
    [(("judged",), None), (("judged",), [3]), (("results", "auc", "judged"), 2), (("results", "auc", "judged"), True),
     (("results", "auc", "judged"), -1), (("results", "auc"), "x"), (("results",), [])],
)  # fmt: skip
def test_a_line_with_a_broken_reference_counts_as_missing(tmp_path: Path, path: tuple[str, ...], value: object) -> None:
    line: Any = json.loads(to_line(some_run()))
    *parents, last = path
    inner = line
    for name in parents:
        inner = inner[name]
    inner[last] = value
    with pytest.raises(PackingError):
        unpacked(line)
    good = make_record(make_cell_of("other"))
    (tmp_path / FILE).write_bytes(json.dumps(line).encode() + b"\n" + to_line(good))
    contents = read(tmp_path / FILE)
    assert [*contents.records] == [good["run"]]
    assert len(contents.warnings) == 1
