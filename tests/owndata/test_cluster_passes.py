"""A fit in passes on a Ray cluster of two machines equals the fit on one machine, to the last digit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster
from test_large_fit import SAMPLED, features, in_passes, made_up

from llpbench.blocks import bag_process, many_rows
from llpbench.owndata import bag_store, cluster_passes


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two nodes on this machine."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()


@pytest.fixture(autouse=True)
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in fits on one machine."""
    for name, value in SAMPLED.items():
        monkeypatch.setattr(bag_process, name, value)
    monkeypatch.setattr(many_rows, "_ROWS", 128)
    monkeypatch.setattr(bag_store, "FILE_BYTES", 2000)
    monkeypatch.setattr(cluster_passes, "_LEAST_BLOCK_BYTES", 3000)


def test_it_equals_the_fit_on_one_machine(tmp_path: Path, address: str) -> None:
    rows, counts = made_up(tmp_path, parts=4)
    rows.loc[[5, 800], "age"] = 1e20
    here = in_passes(tmp_path / "parts", counts)
    there = in_passes(tmp_path / "parts", counts, ray_address=address)
    assert not ray.is_initialized()
    assert np.array_equal(here.predict_proba(features(rows)), there.predict_proba(features(rows)))
