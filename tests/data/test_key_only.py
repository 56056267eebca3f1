"""Columns that are keys only: they make bags, and no method sees them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.registry import register_dataset
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys
from llpbench.data.frames import table_from_frame
from llpbench.data.specs import dataset_spec
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task

ROWS = 400
DAYS = ["mon", "tue", "wed"]


def rows() -> DataFrame:
    """Two features, a key of text and one of numbers, each with a gap."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=ROWS), "sex": rng.choice(["f", "m"], ROWS)})
    frame["day"] = [None, *rng.choice(DAYS, ROWS - 1)]
    frame["shop"] = [np.nan, *rng.integers(0, 4, ROWS - 1)]
    return frame.assign(bought=rng.integers(0, 2, ROWS))


def table(frame: DataFrame, *key_only: str) -> Table:
    return table_from_frame(frame, name="shop", target="bought", key_only=key_only)


def test_key_only_column_makes_bags_and_is_no_feature() -> None:
    frame = rows()
    made = table(frame, "day", "shop")
    assert (made.numeric_names, made.categorical_names) == (("age",), ("sex",))
    everything = np.arange(ROWS)
    assert column_keys(made, everything, "day").tolist() == [3, *map(DAYS.index, frame["day"][1:])]
    np.testing.assert_array_equal(column_keys(made, everything, "shop"), frame["shop"])
    assignment = assign_bags(made, "column:by=day+shop", None, seed=0)
    for bag in assignment.train:
        inside = frame.iloc[bag[bag >= 0]]
        assert len(inside[["day", "shop"]].drop_duplicates()) == 1


def test_values_of_key_only_column_do_not_change_task() -> None:
    frame = rows()
    shuffled = frame.assign(day=frame["day"].sample(frac=1, random_state=1).to_numpy())
    tables = (table(each, "day", "shop") for each in (frame, shuffled))
    first, second = (build_task(each, assign_bags(each, "ordered", 16, seed=0)) for each in tables)
    assert (first.schema.numeric, len(first.schema.cardinalities)) == (1, 1)
    assert first.manifest == second.manifest
    np.testing.assert_array_equal(first.train.rows.numeric, second.train.rows.numeric)
    np.testing.assert_array_equal(first.train.rows.categorical, second.train.rows.categorical)
    assert first.fingerprint != second.fingerprint  # bags by day differ, so these are not the same data


def test_invalid_key_columns_are_refused() -> None:
    with pytest.raises(DataError, match="no key column 'week'"):
        table(rows(), "week")
    with pytest.raises(DataError, match="no features, only its target"):
        table(rows()[["day", "bought"]], "day")
    with pytest.raises(LLPBenchError, match=r"no column 'week'.*It has: day, sex, age"):
        column_keys(table(rows().drop(columns="shop"), "day"), np.arange(3), "week")

    @register_dataset("both", bags=object(), by=("day",), key_only=("day",))
    def both(frame: DataFrame) -> DataFrame:
        """Both."""
        return frame

    with pytest.raises(LLPBenchError, match="declares 'bags' and 'key_only'"):
        dataset_spec("both")
