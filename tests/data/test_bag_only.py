"""Datasets without labels: rows and a table of bags."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from llpbench.core.errors import LLPBenchError
from llpbench.core.tables import Table
from llpbench.data.frames import table_from_bags
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.datasets import synthetic

SMALL = replace(synthetic.B, rows=6_000)


def rows() -> pd.DataFrame:
    return pd.DataFrame({"district": [2, 1, 1, 3, 2, 3], "year": ["a", "a", "a", "b", "a", "b"], "age": range(6)})


def bags() -> pd.DataFrame:
    return pd.DataFrame({"no": [1, None, 1], "district": ["1", "3", "2"], "year": ["a", "b", "a"], "yes": [1, None, 1]})


def made(frame: pd.DataFrame, table: pd.DataFrame, noise: float = 0.0) -> Table:
    return table_from_bags(frame, table, name="votes", by=("district", "year"), noise=noise)


def test_rows_and_bags_are_matched_by_keys() -> None:
    table = made(rows(), bags())
    assert (table.labels, table.classes) == (None, ("no", "yes"))
    assert (table.numeric_names, table.categorical_names) == (("age",), ())
    assert table.published is not None
    assert table.published.of_row.tolist() == [1, 0, 0, 2, 1, 2]
    np.testing.assert_array_equal(table.published.counts, [[1, 1], [1, 1], [np.nan, np.nan]])
    assert table.fingerprint != made(rows(), bags().replace({"1": "2", "2": "1"}).fillna(0), noise=1.0).fingerprint
    frame, counts = rows().rename(columns={"district": 0, "age": 1}), bags().rename(columns={"district": 0})
    assert table_from_bags(frame, counts, name="votes", by=("0", "year"), noise=0.0).numeric_names == ("1",)


@pytest.mark.parametrize(
    ("frame", "table", "told"),
    [
        (rows().drop(columns="year"), bags(), "dataset 'votes' has no column 'year'. It has: district, age."),
        (rows(), bags().drop(columns="district"), "the bags of dataset 'votes' has no column 'district'"),
        (rows(), bags().iloc[:2], r"1 of 3 bags .* no counts.* NaN\.$"),
        (rows().iloc[:3], bags(), r"1 of 3 bags .* no rows\..*\.$"),
        (rows(), bags().assign(yes=5), r"2 rows, but its counts \(1, 5\) add up to 6"),
        (rows(), bags().assign(yes="many"), "counts must be numbers"),
        (rows(), bags().drop(columns="yes"), "counts of one class"),
        (rows().assign(age=np.inf), bags(), "infinite"),
    ],
)
def test_mismatching_table_of_bags_raises_one_line(frame: pd.DataFrame, table: pd.DataFrame, told: str) -> None:
    with pytest.raises(LLPBenchError, match=told) as error:
        made(frame, table)
    assert "\n" not in str(error.value)


def small() -> Table:
    frame, table = synthetic._tables(SMALL)
    return table_from_bags(frame, table, name="small", by=("bag",), noise=0.0)


def test_tasks_have_the_published_counts_and_no_label() -> None:
    """Against the labels that the generator keeps to itself."""
    table, drawn = small(), synthetic._draw(SMALL)
    assignment = assign_bags(table, "given", None, seed=1)
    task = build_task(table, assignment)
    assert task.train_labels is None
    assert task.test.labels is None
    for bagged, found in ((assignment.train, task.train), (assignment.test, task.test)):
        expected = [np.bincount(drawn.labels[bag[bag >= 0]], minlength=3) for bag in bagged]
        np.testing.assert_array_equal(found.counts, expected)
        assert (found.sizes >= synthetic.LEAST).all()
    assert table.published is not None
    train, validation = (
        {*table.published.of_row[part[part >= 0]]} for part in (assignment.train, assignment.validation)
    )
    assert not train & validation
    with pytest.raises(LLPBenchError, match="no labels of rows"):
        build_task(table, assignment, supervision="instances")


@pytest.mark.parametrize("bagging", ["random", "kmeans:clusters=5", "given:most=300", "given:rest=pool"])
def test_other_baggings_of_published_counts_are_refused(bagging: str) -> None:
    size = 64 if bagging == "random" else None
    with pytest.raises(LLPBenchError, match=r"no labels of rows|published counts"):
        assign_bags(small(), bagging, size, seed=0)
