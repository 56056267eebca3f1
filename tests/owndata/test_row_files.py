"""Tables in files: no column is taken for another."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pandas as pd
import pytest

from llpbench.core.errors import DataError
from llpbench.owndata.row_files import read_rows


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("age,yes,yes\n1,2,3\n", "has two columns called 'yes'. Rename"),
        ("\ufeffage,yes,age\n1,2,3\n", "has two columns called 'age'. Rename"),
        ("age,yes\n1,2,3\n4,5,6\n", "2 names in its header"),
        ("age,yes\n0,1,2\n1,3,4\n", "2 names in its header"),
    ],
)
def test_a_csv_with_ambiguous_columns_is_one_line(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(DataError, match=told):
        read_rows(tmp_path / "rows.csv")


def test_headers_of_texts_gaps_and_no_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    for text, rows in (('\ufeff\n,age,"the\ntown"\n0,1,2\n', 1), ("age,town\n", 0)):
        file.write_text(text)
        frame = read_rows(file)
        assert (len(frame), "age" in frame) == (rows, True)
    file.write_text("age,yes\n1,2,\n3,4,\n")  # commas at the ends of rows
    with contextlib.suppress(DataError):  # as pandas has it: refused, or without what is empty
        assert read_rows(file).to_dict("list") == {"age": [1, 3], "yes": [2, 4]}


def test_numbers_that_name_columns_of_a_parquet_file_are_texts(tmp_path: Path) -> None:
    pd.DataFrame({0: [1, 2], 1: [3, 4]}).to_parquet(tmp_path / "rows.parquet")
    frame = read_rows(tmp_path / "rows.parquet")
    assert list(frame.drop(columns=["1"])) == ["0"]
