"""A fit in passes on a Ray cluster of two nodes equals the fit on one machine, to the last digit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import ray
from ray.cluster_utils import Cluster
from test_large_fit import FEW_DRAWS, FEW_TREES, SAMPLED, features, in_passes, made_up

from llpbench.blocks import bag_process, many_rows
from llpbench.core.errors import LLPBenchError
from llpbench.owndata import bag_store, cluster_passes
from llpbench.owndata.row_passes import LargeRows, in_threads
from llpbench.tables.row_files import RowBatches

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two nodes on this machine."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def joined(address: str) -> Iterator[str]:
    """The cluster, which all tests of this module join together, so that they share its processes."""
    ray.init(address=address, log_to_driver=False)
    yield address
    ray.shutdown()


@pytest.fixture(autouse=True)
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred rows are too many: a sample of bags is drawn, and bins are stored in several blocks."""
    for name, value in SAMPLED.items():
        monkeypatch.setattr(bag_process, name, value)
    monkeypatch.setattr(many_rows, "_ROWS", 128)
    monkeypatch.setattr(bag_store, "FILE_BYTES", 2000)
    monkeypatch.setattr(cluster_passes, "_LEAST_BLOCK_BYTES", 3000)


def test_a_fit_that_is_interrupted_leaves_the_cluster(tmp_path: Path, address: str) -> None:
    _, counts = made_up(tmp_path)

    def show(stage: str) -> None:
        assert ray.is_initialized()
        raise KeyboardInterrupt(stage)

    with pytest.raises(KeyboardInterrupt):
        in_passes(tmp_path / "parts", counts, ray_address=address, show=show)
    assert not ray.is_initialized()


@pytest.mark.parametrize(("method", "params", "classes"), [("bag-gp", FEW_DRAWS, 3), ("auto", FEW_TREES, 2)])
def test_it_equals_the_fit_on_one_machine(
    tmp_path: Path, joined: str, method: str, params: dict[str, Any], classes: int
) -> None:
    rows, counts = made_up(tmp_path, classes=classes, parts=4)
    (tmp_path / "parts" / "0.parquet").unlink()
    rows.loc[[5, 200], "age"] = 1e20  # which needs a pass without extreme values
    rows.iloc[:225].to_parquet(tmp_path / "parts" / "0.parquet", index=False)
    counts = counts.drop(index="d05")
    given: dict[str, Any] = {"params": params, "method": method, "unmatched": "drop"}
    here, there = (in_passes(tmp_path / "parts", counts, **given, ray_address=at) for at in (None, joined))
    assert ray.is_initialized(), "who has joined, leaves"
    # a worker may have another number of threads, and then sums in another order
    assert np.allclose(here.predict_proba(features(rows)), there.predict_proba(features(rows)), atol=1e-6)
    assert np.allclose(here._known_bags().effects, there._known_bags().effects, atol=1e-6)
    assert here.left_out_ == there.left_out_
    for mine, theirs in zip(here.effects(), there.effects(), strict=True):
        assert np.allclose(mine.values, theirs.values, atol=1e-6)
        assert np.allclose(mine.std, theirs.std, atol=1e-6)


def decimal_commas(parts: Path) -> None:
    """Numbers have decimal commas, which only the third part shows."""
    for number in range(6):
        values = ["1,234"] * 50 if number != 2 else ["1234,5"] * 50
        frame = pd.DataFrame({"district": ["d1", "d2"] * 25, "income": values})
        frame.to_parquet(parts / f"{number}.parquet", index=False)


def no_numbers_at_first(parts: Path) -> None:
    """A column has no values in the first parts."""
    for number in range(6):
        values = [None, float(number)][number > 1 :] * 25
        frame = pd.DataFrame({"district": ["d1"] * len(values), "income": values})
        frame.to_parquet(parts / f"{number}.parquet", index=False)


@pytest.mark.parametrize("write", [decimal_commas, no_numbers_at_first])
def test_what_a_part_shows_holds_for_later_ones(tmp_path: Path, joined: str, write: Callable[[Path], None]) -> None:
    write(tmp_path)
    found = []
    for at in (None, joined):
        types = {"income": "number"} if write is decimal_commas else {}
        rows = LargeRows(RowBatches(tmp_path, types, keys=["district"], rows=20), ["district"], [])
        rows.batches.head()
        if at is None:
            batches = [*in_threads(rows, lambda item: item.frame)]
        else:
            with cluster_passes.cluster_passes(at) as passes:
                batches = [*passes.read(rows, lambda item: item.frame)]
        found.append((batches, rows.batches.reading, rows.batches.kinds))
    (here, *state), (there, *state_there) = found
    assert state == state_there
    assert [rows for rows, _ in here] == [rows for rows, _ in there]
    for (_, mine), (_, theirs) in zip(here, there, strict=True):
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True)


def cut(part: Path, number: int) -> None:
    if number > 1:
        part.write_bytes(part.read_bytes()[:-20])


def lack_a_column(part: Path, number: int) -> None:
    pd.read_parquet(part).drop(columns=["age"] * (number > 1)).to_parquet(part, index=False)


def contradict(part: Path, number: int) -> None:
    """A column without values at first has numbers, then texts."""
    pd.read_parquet(part).assign(note=[None, None, "text", 1.0, 1.0, 1.0][number]).to_parquet(part, index=False)


def make_infinite(part: Path, number: int) -> None:
    pd.read_parquet(part).assign(**{"age": np.inf} if number > 1 else {}).to_parquet(part, index=False)


@pytest.mark.parametrize("damage", [cut, lack_a_column, contradict, make_infinite])
def test_damaged_parts_give_the_same_line(tmp_path: Path, joined: str, damage: Callable[[Path, int], None]) -> None:
    _, counts = made_up(tmp_path, parts=6)
    for number in range(6):
        damage(tmp_path / "parts" / f"{number}.parquet", number)
    lines = []
    for at in (None, joined):
        with pytest.raises(LLPBenchError) as raised:
            in_passes(tmp_path / "parts", counts, ray_address=at)
        lines.append(str(raised.value))
    assert lines[0] == lines[1]
    assert f"{3 if damage is contradict else 2}.parquet" in lines[0]


def test_a_part_that_is_deleted_during_a_fit_is_named(
    tmp_path: Path, joined: str, capfd: pytest.CaptureFixture[str]
) -> None:
    _, counts = made_up(tmp_path)

    def show(stage: str) -> None:
        if stage.startswith("bins"):
            (tmp_path / "parts" / "1.parquet").unlink()

    with pytest.raises(LLPBenchError, match=r"1\.parquet"):
        in_passes(tmp_path / "parts", counts, ray_address=joined, show=show)
    assert capfd.readouterr() == ("", "")


def test_a_part_that_a_node_cannot_read_is_named(tmp_path: Path, joined: str) -> None:
    rows, counts = made_up(tmp_path)
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    with open(tmp_path / "rows.parquet", "rb") as file:
        os.dup2(file.fileno(), 900)
    try:
        mine = Path("/proc/self/fd/900")  # no other process has this file
        with pytest.raises(LLPBenchError, match=rf"{os.uname().nodename}.*{mine}"):
            in_passes(mine, counts, ray_address=joined)
    finally:
        os.close(900)
