"""Fast computations for very many rows have the results of those for rows in memory."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from districts import people

from llpbench.blocks.bag_process import FittedProcess, ProcessSettings, fit_process
from llpbench.core.bags import BaggedRows, Ragged, Rows
from llpbench.owndata.columns import ColumnsOfManyRows, FeatureColumns
from llpbench.owndata.grid_bins import GridBins


@pytest.fixture(scope="module")
def bagged() -> BaggedRows:
    rng = np.random.default_rng(0)
    numeric = rng.normal(size=(1200, 4)).astype(np.float32)
    numeric[:, 1] = np.exp(4 * numeric[:, 1])  # nearly all values are in the first cell of the grid
    numeric[:, 2] = rng.integers(-1, 2, 1200)
    numeric[:, 3] = 7.0
    missing = rng.random(numeric.shape) < 0.1
    numeric[missing] = 0.0
    rows = Rows(numeric, rng.integers(0, 5, (1200, 2)), missing)
    sizes = np.array([400, *[20] * 40])
    yes = rng.integers(1, sizes)
    return BaggedRows(rows, Ragged(np.arange(1200), sizes), np.column_stack([sizes - yes, yes]).astype(float))


@pytest.fixture(scope="module")
def process(bagged: BaggedRows) -> FittedProcess:
    return fit_process(bagged, ProcessSettings(draws=0, waves=40), np.random.default_rng(1))


def test_bins_are_those_of_a_binary_search(bagged: BaggedRows, process: FittedProcess) -> None:
    components = process.components
    some = np.concatenate([*[bins.table for bins in [*components.fine_bins[:3], *components.coarse_bins[:3]]]])
    near = np.unique([np.nextafter(some, way, dtype=np.float32) for way in (-np.inf, 0, np.inf)])
    values = np.concatenate([some, near, [0.0, -0.0, 1e-42, -1e-42, 3e38, -3e38, np.inf, -np.inf]])
    numeric = np.repeat(values.astype(np.float32)[:, None], 4, axis=1)
    codes = np.resize(np.arange(9), (len(values), 2))  # some are not in training
    for rows in (bagged.rows, Rows(numeric, codes, np.zeros(numeric.shape, bool))):
        found, expected = GridBins(components)(rows), components.bin(rows)
        assert np.array_equal(found.fine, expected.fine)
        assert np.array_equal(found.coarse, expected.coarse)


def test_columns_give_the_same_rows() -> None:
    frame = people(400)[0]
    frame.loc[::7, "age"] = np.nan
    columns = FeatureColumns(frame)
    new = frame.iloc[:50].assign(town="elsewhere")
    for some in (frame, new):
        with pytest.warns() if some is new else nullcontext():
            expected = columns(some)
        with pytest.warns() if some is new else nullcontext():
            found = ColumnsOfManyRows(columns)(some)
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.dtype == theirs.dtype
            assert np.array_equal(mine, theirs)
