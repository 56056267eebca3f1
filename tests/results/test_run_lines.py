"""The fast reader of runs accepts only lines that the complete check accepts, and returns the same records."""

from __future__ import annotations

import json
import lzma
import random
from pathlib import Path
from typing import Any

import pytest
from factory import record

from llpbench.core.record import Record
from llpbench.results.journal import FILE, Journal, shards
from llpbench.results.run_lines import RunLines
from llpbench.results.schema import DamagedError, as_run, decode

FOLDER = Path(__file__).parents[2] / "leaderboards"
(SHARD,) = (path for path in shards(FOLDER) if path.name.startswith("flights_2013"))
LINES = [line for line in lzma.decompress(SHARD.read_bytes()).splitlines() if b'"tuning":' not in line]
SWAPS = [
    *((b'"data":', b'"hidden":'), (b"}", b'},"data":{}'), (b"{", b"["), (b",", b',"epochs":7,')),
    *((b'"spec":', b'"a":1,"spec":'), (b":0", b":-1"), (b":0.", b":7."), (b":0.", b":1e999,"), (b"null", b"NaN")),
    *((b'"auc"', b'"l1"'), (b'":', b'" :'), (b'"judged":0', b'"judged":99'), (b'"ok"', b'"x\\":{}"'), (b"}", b"")),
    *((b'"judged":0', b'"epoch":-1,"judged":0'), (b'"params":{', b'"params":{"x":1e999,')),
    (b'"bag_size":', b'"bag_size":1,"bag_size":'),
]


def read_slowly(line: bytes) -> Record | None:
    try:
        return as_run(decode(line))
    except DamagedError:
        return None


def same(one: Any, other: Any) -> bool:
    """Whether two records are the same, in order and types, too."""
    return json.dumps(one) == json.dumps(other)


def test_published_runs_are_read_fast_and_share_common_parts() -> None:
    reader = RunLines()
    records = [reader.read(line) for line in LINES]
    assert len(records) > 50
    assert all(same(fast, read_slowly(line)) for fast, line in zip(records, LINES, strict=True))
    assert len({id(each["spec"]) for each in records if each}) == len({each["cell"] for each in records if each})


def test_a_run_of_this_version_is_read_fast(tmp_path: Path) -> None:
    from llpbench.core.cell import Environment
    from llpbench.running.executors import failure
    from llpbench.running.schedule import Job
    from llpbench.training.cell_runs import run_cell
    from llpbench.training.specification import make_cell

    cell = make_cell("bag-mean-linear", "letter", bag_size=64)
    with Journal(tmp_path) as journal:
        journal.append(*run_cell(cell, (0,), Environment(device="cpu")), *failure(Job(cell, (1,)), "killed"))
    done, failed = (tmp_path / FILE).read_bytes().splitlines()
    assert same(RunLines().read(done), read_slowly(done))
    assert same(RunLines().read(failed), read_slowly(failed))


@pytest.mark.parametrize("seed", range(3))
def test_changed_lines_are_read_as_by_the_complete_check_or_not_at_all(seed: int) -> None:
    rng, accepted, damaged = random.Random(seed), 0, 0
    for _ in range(1_000):
        line = rng.choice(LINES)
        old, new = rng.choice(SWAPS)
        places = [place for place in range(len(line)) if line.startswith(old, place)]
        if places and rng.random() < 0.8:
            place = rng.choice(places)
            line = line[:place] + new + line[place + len(old) :]
        else:
            place = rng.randrange(len(line))
            line = line[:place] + bytes([rng.randrange(256)]) + line[place + 1 :]
        fast, slow = RunLines().read(line), read_slowly(line)
        assert fast is None or same(fast, slow), line
        accepted += fast is not None
        damaged += slow is None
    assert accepted > 20
    assert damaged > 200


def test_a_damaged_common_part_costs_every_line_with_it() -> None:
    reader, (first, second) = RunLines(), LINES[:2]
    broken = [line.replace(b'"pretraining":"none"', b'"pretraining":3') for line in (first, first, second)]
    assert [reader.read(line) for line in broken] == [None, None, None]
    assert reader.read(first)
    assert reader.read(json.dumps(record()).encode()) is reader.read(b"") is None, "left to the complete check"
