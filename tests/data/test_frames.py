"""Frames become tables; what does not fit is refused with one line that names it."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from llpbench.core.errors import DataError
from llpbench.core.tables import Table
from llpbench.data.frames import read_parquet, table_from_frame

pytestmark = pytest.mark.usefixtures("empty_cache")


def make(target: str = "y", positive: str | None = None, **columns: object) -> Table:
    return table_from_frame(pd.DataFrame(columns), name="toy", target=target, positive=positive)


def test_columns_keep_order_of_frame_and_get_kind_from_dtype() -> None:
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


TEXTS = ["b", None, "a", "b"]


@pytest.mark.parametrize(
    ("column", "categories", "codes"),
    [
        *((pd.Series(TEXTS, dtype=dtype), ("a", "b"), [1, -1, 0, 1]) for dtype in (object, "string", "str")),
        (pd.Series(pd.Categorical(TEXTS, categories=["c", "b", "a"])), ("a", "b"), [1, -1, 0, 1]),
        (pd.Series(pd.Categorical(TEXTS, categories=["b", "a"], ordered=True)), ("a", "b"), [1, -1, 0, 1]),
        (pd.Series(["b", np.nan, "a", "b"], dtype=object), ("a", "b"), [1, -1, 0, 1]),
        (pd.Series([10, 2, 1, 10], dtype="category"), ("1", "10", "2"), [1, 2, 0, 1]),
        (pd.Series([1, "1", 1.0, "2"], dtype=object), ("1", "2"), [0, 0, 0, 1]),
        (pd.Series([True, None, False, True], dtype="boolean"), ("False", "True"), [1, -1, 0, 1]),
    ],
)
def test_categories_of_every_dtype_are_sorted_as_text(
    column: pd.Series, categories: tuple[str, ...], codes: list[int]
) -> None:
    table = make(c=column, y=["0", "1", "0", "1"])
    assert table.categories == (categories,)
    assert table.categorical[:, 0].tolist() == codes


def test_positive_class_is_1_and_must_be_one_of_two() -> None:
    positive, plain = (make(x=[1, 2, 3], y=["a", "b", "a"], positive=each) for each in ("a", None))
    assert (positive.classes, positive.row_labels.tolist()) == (("b", "a"), [1, 0, 1])
    assert (plain.classes, plain.row_labels.tolist()) == (("a", "b"), [0, 1, 0])
    assert make(x=[1, 2, 3], y=[1.0, 0.0, 2.0]).classes == ("0", "1", "2")
    for target, unknown in ((["a", "b", "a"], "c"), (["a", "b", "c"], "a")):
        classes = ", ".join(sorted({*target}))
        with pytest.raises(DataError, match=f"'{unknown}' is not one of two classes of 'y', which are: {classes}"):
            make(x=[1, 2, 3], y=target, positive=unknown)


def test_fingerprint_is_the_documented_digest() -> None:
    """The bytes are written here by hand, so that no library or version can change them."""
    negative_nan = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    for gap in (None, np.nan, negative_nan):
        table = make(n=[1.5, gap, -0.0], c=["b", None, "\u00e9"], y=["no", "yes", "no"])
        content = (
            *(b"<f8(3, 1)", struct.pack("<d", 1.5), bytes.fromhex("000000000000f87f"), struct.pack("<d", -0.0)),
            *(b"<i8(3, 1)", struct.pack("<3q", 0, -1, 1), b"<i8(3,)", struct.pack("<3q", 0, 1, 0)),
            rb"(('n',), ('c',), (('b', '\xe9'),), ('no', 'yes'))",
        )
        expected = hashlib.sha256(b"".join(content)).hexdigest()
        assert table.fingerprint == expected == "6cba30e1abef41ae436637e32e0a471362c185a9ee70248940d663bc401b2923"


def test_fingerprint_ignores_file_layout_and_follows_values_and_order(tmp_path: Path, people: pd.DataFrame) -> None:
    layouts: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
        "plain": (people, {}),
        "row groups": (people, {"row_group_size": 7, "compression": "gzip", "use_dictionary": False}),
        "categories": (people.astype({"job": "category", "rich": "category"}), {}),
        "narrow": (people.astype({"age": "int16", "town": "string"}), {"version": "1.0"}),
    }
    found = set()
    for name, (frame, options) in layouts.items():
        frame.to_parquet(tmp_path / name, **options)
        found.add(table_from_frame(read_parquet(tmp_path / name), name=name, target="rich").fingerprint)
    assert len(found) == 1
    changed = (
        people.iloc[::-1],
        people[[*people.columns[::-1]]],
        people.assign(age=1.0),
        people.rename(columns=str.upper),
    )
    for frame in changed:
        found.add(table_from_frame(frame, name="x", target="RICH" if "RICH" in frame else "rich").fingerprint)
    assert len(found) == 5


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
def test_invalid_frame_raises_one_line(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        table_from_frame(frame, name="toy", target="y")
    assert str(caught.value).startswith("dataset 'toy'")
    assert "\n" not in str(caught.value)


def test_damaged_parquet_files_are_refused_with_path(tmp_path: Path, people: pd.DataFrame) -> None:
    good = tmp_path / "good.parquet"
    people.set_index(people["age"] + 7).to_parquet(good)
    assert [*read_parquet(good).columns] == [*people.columns], "the index is no feature"
    columns = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4]), pa.array([0, 1])], names=["x", "x", "y"])
    pq.write_table(columns, tmp_path / "twice.parquet")
    with pytest.raises(DataError, match="two columns called 'x'"):
        read_parquet(tmp_path / "twice.parquet")
    cut = good.read_bytes()
    contents = {
        "truncated": cut[: len(cut) // 2],
        "headless": cut[len(cut) // 2 :],
        "damaged inside": cut[:4] + bytes(396) + cut[400:],
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
