"""Frames become tables; what does not fit is refused with one line that names it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from llpbench.core.errors import DataError
from llpbench.core.tables import Table
from llpbench.data.frames import as_text, read_numbers, read_parquet, table_from_frame

pytestmark = pytest.mark.usefixtures("empty_cache")


def make(target: str = "y", positive: str | None = None, **columns: object) -> Table:
    return table_from_frame(pd.DataFrame(columns), name="toy", target=target, positive=positive)


def test_columns_keep_the_frames_order_and_find_their_kind() -> None:
    table = make(b=["x", "y", "x"], n=[1, 2, 3], y=[0, 1, 1], a=[True, False, True], m=[0.5, None, 1.5])
    assert table.numeric_names == ("n", "m")
    assert table.categorical_names == ("b", "a")
    assert table.categories == (("x", "y"), ("False", "True"))
    np.testing.assert_array_equal(table.numeric, [[1, 0.5], [2, np.nan], [3, 1.5]])
    np.testing.assert_array_equal(table.categorical, [[0, 1], [1, 0], [0, 1]])
    assert [array.dtype.name for array in (table.numeric, table.categorical, table.row_labels)] == [
        "float64",
        *["int64"] * 2,
    ]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", None, "a", "b"], dtype=object),
        pd.Series(["b", None, "a", "b"], dtype="string"),
        pd.Series(["b", None, "a", "b"], dtype="str"),
        pd.Series(pd.Categorical(["b", None, "a", "b"], categories=["c", "b", "a"])),
        pd.Series(pd.Categorical(["b", None, "a", "b"], categories=["b", "a"], ordered=True)),
        pd.Series(["b", np.nan, "a", "b"], dtype=object),
    ],
)
def test_text_of_every_dtype_gives_the_same_codes(column: pd.Series) -> None:
    table = make(c=column, y=["0", "1", "0", "1"])
    assert table.categories == (("a", "b"),)
    np.testing.assert_array_equal(table.categorical[:, 0], [1, -1, 0, 1])


def test_categories_ascend_by_their_string_even_if_they_are_numbers() -> None:
    table = make(c=pd.Series([10, 2, 1, 10], dtype="category"), y=[0, 1, 0, 1])
    assert table.categories == (("1", "10", "2"),)
    np.testing.assert_array_equal(table.categorical[:, 0], [1, 2, 0, 1])


def test_values_with_one_string_are_one_category() -> None:
    table = make(c=pd.Series([1, "1", 1.0, "2"], dtype=object), y=[0, 1, 0, 1])
    assert table.categories == (("1", "2"),)
    np.testing.assert_array_equal(table.categorical[:, 0], [0, 0, 0, 1])


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "int8", "uint16", "float32"])
def test_numbers_of_every_dtype_are_numeric(dtype: str) -> None:
    values = [1, 2, 3] if dtype.islower() else [1, None, 3]
    table = make(n=pd.Series(values, dtype=dtype), y=["a", "b", "a"])
    np.testing.assert_array_equal(table.numeric[:, 0], [1, np.nan if None in values else 2, 3])


@pytest.mark.parametrize("dtype", [object, pd.ArrowDtype(pa.decimal128(5, 2))])
def test_decimal_numbers_are_numeric(dtype: Any) -> None:
    column = pd.Series([Decimal("1.50"), None, Decimal("3.00")], dtype=dtype)
    assert np.array_equal(read_numbers(column, "toy"), [1.5, np.nan, 3.0], equal_nan=True)
    table = make(x=column, y=[Decimal(1), Decimal("2.00"), Decimal(1)])
    assert table.numeric_names == ("x",)
    assert table.classes == ("1", "2")


def test_bool_with_gaps_is_categorical() -> None:
    table = make(c=pd.Series([True, None, False], dtype="boolean"), y=["a", "b", "a"])
    assert table.categories == (("False", "True"),)
    np.testing.assert_array_equal(table.categorical[:, 0], [1, -1, 0])


def test_positive_class_is_label_one() -> None:
    assert make(x=[1, 2, 3], y=["a", "b", "a"], positive="a").classes == ("b", "a")
    np.testing.assert_array_equal(make(x=[1, 2, 3], y=["a", "b", "a"], positive="a").labels, [1, 0, 1])
    np.testing.assert_array_equal(make(x=[1, 2, 3], y=["a", "b", "a"]).labels, [0, 1, 0])


def test_classes_of_whole_numbers_lose_their_decimals() -> None:
    assert make(x=[1, 2, 3], y=[1.0, 0.0, 2.0]).classes == ("0", "1", "2")


def test_as_text_keeps_gaps_and_drops_decimals() -> None:
    text = as_text(pd.Series([3.0, None, 1.5], name="c"))
    assert text.tolist() == ["3", None, "1.5"]
    assert text.name == "c"
    assert as_text(text).tolist() == text.tolist()


def test_arrays_are_read_only_because_cells_share_them() -> None:
    table = make(n=[1, 2], c=["a", "b"], y=[0, 1])
    for array in (table.numeric, table.categorical, table.row_labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_fingerprint_follows_the_values() -> None:
    same = make(n=[1, 2], c=["a", "b"], y=[0, 1]).fingerprint
    assert make(n=[1.0, 2.0], c=pd.Categorical(["a", "b"]), y=["0", "1"]).fingerprint == same
    assert make(n=[1, 3], c=["a", "b"], y=[0, 1]).fingerprint != same


TWICE = pd.DataFrame([[1, 2, 0], [3, 4, 1]], columns=["a", "a", "y"])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (TWICE, "two columns called 'a'"),
        (pd.DataFrame({"x": [1.0, 2.0]}), "no target column 'y'. Its columns are: x"),
        (pd.DataFrame({"x": [], "y": []}), "no rows"),
        (pd.DataFrame({"y": [0, 1]}), "no features, only its target 'y'"),
        (pd.DataFrame({"x": [1, 2, 3, 4], "y": ["a", None, "b", None]}), "2 of 4 targets .'y'. are null"),
        (pd.DataFrame({"x": [1, 2], "y": ["a", "a"]}), "every target .'y'. is 'a'"),
        (pd.DataFrame({"x": [1, 2], "y": [0.5, 1.0]}), "must contain classes, got 0.5"),
        (pd.DataFrame({"x": [1, 2], "y": [np.inf, 1.0]}), "must contain classes, got inf"),
        (
            pd.DataFrame({"x": [1.0, 2.0, np.inf, -np.inf], "y": [0, 1, 0, 1]}),
            "'x' contains an infinite value, .* row 3",
        ),
        (pd.DataFrame({"x": [None, None], "y": [0, 1]}), "'x' contains only missing"),
        (
            pd.DataFrame({"x": pd.to_datetime(["2020", "2021"]), "y": [0, 1]}),
            "'x' is of type datetime64.*not supported",
        ),
        (pd.DataFrame({"x": [[1], [2]], "y": [0, 1]}), "'x' is of type list"),
        (pd.DataFrame({"x": [{"a": 1}, {"a": 2}], "y": [0, 1]}), "'x' is of type dict"),
        (pd.DataFrame({"x": [b"a", b"b"], "y": [0, 1]}), "'x' is of type bytes"),
        (pd.DataFrame({"x": [1j, 2j], "y": [0, 1]}), "'x' is of type complex128"),
        (pd.DataFrame({"x": [1, 2], "y": pd.to_datetime(["2020", "2021"])}), "'y' is of type datetime64"),
        (pd.DataFrame({"x": [1, 2], "y": [[1], [2]]}), "'y' is of type list"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        table_from_frame(frame, name="toy", target="y")
    assert str(caught.value).startswith("dataset 'toy'")
    assert "\n" not in str(caught.value)


def test_positive_must_be_one_of_two_classes() -> None:
    with pytest.raises(DataError, match="'c' is not one of two classes of 'y', which are: a, b"):
        make(x=[1, 2], y=["a", "b"], positive="c")
    with pytest.raises(DataError, match="'a' is not one of two classes of 'y', which are: a, b, c"):
        make(x=[1, 2, 3], y=["a", "b", "c"], positive="a")


def test_the_index_of_a_parquet_file_is_no_feature(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1, 2], "y": [0, 1]}, index=[7, 9]).to_parquet(tmp_path / "toy.parquet")
    assert list(read_parquet(tmp_path / "toy.parquet").columns) == ["x", "y"]


def test_broken_parquet_files(tmp_path: Path, people: pd.DataFrame) -> None:
    good = tmp_path / "good.parquet"
    people.to_parquet(good)
    cut = good.read_bytes()
    contents = {
        "truncated": cut[: len(cut) // 2],
        "headless": cut[len(cut) // 2 :],
        "empty": b"",
        "foreign": b"age,rich\n1,yes\n" * 20,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    for name in (*contents, "folder", "absent"):
        with pytest.raises(DataError, match="cannot be read as parquet") as caught:
            read_parquet(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_damage_inside_a_parquet_file(tmp_path: Path, people: pd.DataFrame) -> None:
    path = tmp_path / "people.parquet"
    people.to_parquet(path)
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as parquet"):
        read_parquet(path)


def test_repeated_columns_in_a_parquet_file(tmp_path: Path) -> None:
    columns = [pa.array([1, 2]), pa.array([3, 4]), pa.array([0, 1])]
    pq.write_table(pa.Table.from_arrays(columns, names=["x", "x", "y"]), tmp_path / "toy.parquet")
    with pytest.raises(DataError, match="two columns called 'x'"):
        read_parquet(tmp_path / "toy.parquet")
