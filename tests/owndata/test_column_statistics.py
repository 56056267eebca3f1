"""Statistics of columns from batches give the same inputs of methods as all rows at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from districts import people

from llpbench.core.errors import DataError
from llpbench.owndata import column_statistics
from llpbench.owndata.column_statistics import ColumnStatistics, Moments
from llpbench.owndata.columns import FeatureColumns


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
    assert moments.mean[0] == pytest.approx(values.mean(), rel=1e-14)
    assert moments.squares[0] == pytest.approx(((values - values.mean()) ** 2).sum(), rel=1e-9)


def test_columns_that_cannot_be_features_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = counted(pd.DataFrame({"age": [1.0, 2.0], "none": [None, None]}), 1)
    with pytest.raises(DataError, match="'none'"):
        statistics.columns(statistics.ranges(), statistics.moments)
    monkeypatch.setattr(column_statistics, "_MOST_CATEGORIES", 10)
    with pytest.raises(DataError, match="'id'"):
        counted(pd.DataFrame({"id": list("abcdefghijkl")}), 4)
