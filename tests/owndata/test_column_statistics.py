"""Statistics of columns from batches, and fast computations for very many rows: the results of all rows at once."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from districts import people

from llpbench.blocks.bag_logits import ProcessPredictor, fit_logits
from llpbench.blocks.bag_process import FittedProcess, ProcessSettings, fit_process
from llpbench.blocks.many_rows import BagGroup
from llpbench.core.bags import BaggedRows, Ragged, Rows
from llpbench.core.errors import DataError
from llpbench.owndata import column_statistics, quick_rows
from llpbench.owndata.column_statistics import ColumnStatistics, Moments
from llpbench.owndata.columns import ColumnsOfManyRows, FeatureColumns
from llpbench.owndata.grid_bins import GridBins
from llpbench.owndata.quick_rows import JointFeatures, QuickGroup, QuickPredictor


def counted(frame: pd.DataFrame, rows: int, ahead: bool = False) -> ColumnStatistics:
    """Statistics from batches; `ahead`: all of them are computed before the first one is added."""
    statistics = ColumnStatistics([*frame.columns], seed=0)
    parts = ((start, frame.iloc[start : start + rows]) for start in range(0, len(frame), rows))
    seen = (statistics.of_batch(batch, statistics.draw(0, start, len(batch))) for start, batch in parts)
    for each in [*seen] if ahead else seen:
        statistics.merge(each)
    return statistics


def test_rows_of_the_sample_do_not_depend_on_batches_nor_on_reading_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_statistics, "_SAMPLE_ROWS", 100)
    frame = people(3000)[0]
    one = counted(frame, 70)
    for other in (counted(frame, 1000), counted(frame, 70, ahead=True)):
        assert one.sampled == other.sampled <= 200
        assert one.ranges() == other.ranges()
    assert np.array_equal(one.moments.squares, other.moments.squares)


@pytest.mark.parametrize("rows", [1, 70, 1000])
def test_columns_are_those_of_all_rows(rows: int) -> None:
    number = 600 if rows > 1 else 100
    late = pd.Series("x", range(number)).where(np.arange(number) >= number // 2, None)
    frame = people(number)[0].assign(same=0.1, large=1e6 + np.arange(number) / 7, none=late)
    expected, statistics = FeatureColumns(frame), counted(frame, rows)
    found = statistics.columns(statistics.ranges(), statistics.moments)
    assert (found.names, found.numeric, found.categorical) == (expected.names, expected.numeric, expected.categorical)
    assert found.categories == [[*names] for names in expected.categories]
    assert found.used == expected.used
    assert found.ranges == expected.ranges
    assert found.cardinalities == expected.cardinalities
    for mine, theirs in zip(found(frame), expected(frame), strict=True):
        assert np.allclose(mine, theirs, atol=1e-7)


def test_a_number_far_from_those_of_the_sample_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_statistics, "_SAMPLE_ROWS", 100)
    frame = pd.DataFrame({"age": np.random.default_rng(0).normal(size=20_000)})
    frame.loc[777, "age"] = -1e9
    statistics = counted(frame, 1000)
    assert statistics.sampled <= 200
    age = statistics.ranges()["age"]
    assert age.far
    assert np.isnan(age(np.array([-1e9]))).all()
    assert age(np.array([0.5])) == 0.5


def test_moments_of_batches_are_those_of_all_values() -> None:
    values = 1e8 + np.random.default_rng(0).normal(size=5000)
    moments = Moments(1)
    for part in np.split(values, [1, 2, 700]):
        moments.add(0, np.append(part, np.nan))
    assert (moments.number[0], moments.missing[0]) == (5000, 4)
    assert (moments.low[0], moments.high[0]) == (values.min(), values.max())
    assert moments.mean[0] == pytest.approx(values.mean(), rel=1e-13)
    assert moments.squares[0] == pytest.approx(((values - values.mean()) ** 2).sum(), rel=1e-9)


def test_columns_that_cannot_be_features_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = counted(pd.DataFrame({"age": [1.0, 2.0], "none": [None, None]}), 1)
    with pytest.raises(DataError, match="'none'"):
        statistics.columns(statistics.ranges(), statistics.moments)
    monkeypatch.setattr(column_statistics, "_MOST_CATEGORIES", 10)
    with pytest.raises(DataError, match="'id'"):
        counted(pd.DataFrame({"id": list("abcdefghijkl")}), 4)


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


def test_groups_of_bags_have_the_same_means(
    bagged: BaggedRows, process: FittedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick_rows, "_ROWS", 64)
    components, bags = process.components, slice(0, len(bagged.sizes))
    slow = BagGroup(components, np.arange(1200), bags, bagged.sizes)
    fast = QuickGroup(components, components.binned, JointFeatures(components), bags, bagged.sizes)
    weights = [w[:, 0] for w in process.coefficients]
    values, slopes = slow.values(weights), np.linspace(1, 2, 1200)
    assert np.allclose(fast.values(weights), values, atol=1e-6)
    assert np.allclose(fast.features(), slow.features(), atol=1e-6)
    assert np.allclose(fast.features(slopes), slow.features(slopes), atol=1e-6)
    both = fast.values_and_features(weights, lambda some: some**2)
    assert np.allclose(both[0], values, atol=1e-6)
    assert np.allclose(both[1], slow.features(values**2), atol=1e-6)


@pytest.mark.parametrize("link", ["logit", "identity"])
def test_predictions_are_the_same(bagged: BaggedRows, process: FittedProcess, link: str) -> None:
    predictor = ProcessPredictor(process if link == "identity" else fit_logits(process, bagged))
    assert np.allclose(QuickPredictor(predictor)(bagged.rows), predictor(bagged.rows), atol=1e-6)


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
