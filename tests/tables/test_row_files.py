"""Tables in files as offices and spreadsheets export them: read as they are meant, or refused."""

from __future__ import annotations

import contextlib
import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.tables.bag_keys import bag_keys
from llpbench.tables.csv_dialect import FileFormat
from llpbench.tables.row_files import FileNote, read_rows


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


FRAME = pd.DataFrame(
    {
        "district": [f"D{place % 6}" for place in range(60)],
        "income": [place / 8 + 0.5 for place in range(60)],
        "age": [*range(20, 80)],
        "town": ["S\u00fcd", "north"] * 30,
    }
)
PLAIN = FRAME.to_csv(index=False)
OFFICE = FRAME.to_csv(index=False, sep=";", decimal=",")


def read(folder: Path, content: bytes | str, name: str = "rows.csv", **given: Any) -> pd.DataFrame:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_rows(folder / name, **given)


@pytest.mark.filterwarnings("ignore::llpbench.tables.row_files.FileNote")
@pytest.mark.parametrize(
    ("content", "name"),
    [
        (PLAIN, "ROWS.CSV"),
        (OFFICE, "rows.csv"),
        (FRAME.to_csv(index=False, sep="\t"), "rows.tsv"),
        (FRAME.to_csv(index=False, sep="|"), "rows.txt"),
        (FRAME.to_csv(index=False, decimal=","), "rows.csv"),
        ("sep=,\n" + PLAIN, "rows.csv"),
        ("\ufeffsep=;\r\n" + OFFICE.replace("\n", "\r\n"), "rows.csv"),
        ("\ufeff" + PLAIN, "rows.csv"),
        (PLAIN.encode("utf-16"), "rows.csv"),
        ("People by district\n" + PLAIN, "rows.csv"),
        ("People, by district\nSource: x\n\n" + PLAIN, "rows.csv"),
        ("People, by district\n" + OFFICE, "rows.csv"),
        ("People by district,,,\n,,,\n" + PLAIN, "rows.csv"),
        (PLAIN.replace("\n", "\nName of district,Estimate!!Income,Age in years,Name of town\n", 1), "rows.csv"),
        (gzip.compress(PLAIN.encode()), "rows.csv.gz"),
        (gzip.compress(PLAIN.encode()), "rows.csv"),
    ],
)
def test_it_is_read_as_it_is_meant(content: bytes | str, name: str, tmp_path: Path) -> None:
    found = read(tmp_path, content, name)
    pd.testing.assert_frame_equal(found, FRAME, check_dtype=False)


def test_what_was_assumed_is_said(tmp_path: Path) -> None:
    for content, told in (
        (OFFICE, "decimal commas"),
        ("People by district\n" + PLAIN, "skipped 1 line before the header"),
        (PLAIN.replace("\n", "\nName of district,Estimate,Years of age,Name of town\n", 1), "second header"),
    ):
        with pytest.warns(FileNote, match=told):
            read(tmp_path, content)


def test_points_that_may_separate_thousands_are_said_and_the_option_reads_them(tmp_path: Path) -> None:
    numbers = [*range(900, 960, 2), *range(1000, 1060, 2)]
    content = FRAME.assign(income=[f"{each:,}".replace(",", ".") for each in numbers]).to_csv(index=False, sep=";")
    with pytest.warns(FileNote, match="--decimal , --types 'income=number'"):
        read(tmp_path, content)
    with pytest.warns(FileNote, match="'1.000' is 1000"):
        found = read(tmp_path, content, types={"income": "number"}, form=FileFormat(decimal=","))
    assert found["income"].tolist() == numbers


@pytest.mark.parametrize(
    ("content", "told", "form"),
    [
        (PLAIN.encode("cp1252"), "--encoding cp1252.*'S\u00fcd'", FileFormat(encoding="cp1252")),
        (PLAIN.encode("utf-16-le"), "--encoding utf-16-le", FileFormat(encoding="utf-16-le")),
        ("a|b;c\n" + "1|2;3\n" * 9, "--separator semicolon", FileFormat(separator="semicolon")),
        (PLAIN.replace("\n", ",\n").replace(",\n", "\n", 1), "has 4 names in its header", None),
        ("<html><body><table></table></body></html>", "web page", None),
        (b"\xd0\xcf\x11\xe0" + b"0" * 100, "old Excel workbook", None),
        ("", "is empty", None),
    ],
)
def test_errors_name_the_cause_and_the_option_works(
    content: bytes | str, told: str, form: FileFormat | None, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=told) as error:
        read(tmp_path, content)
    assert "\n" not in str(error.value)
    if form is not None:
        assert read(tmp_path, content, form=form).shape[1] in (2, 4)


def test_lines_before_the_header_can_be_counted(tmp_path: Path) -> None:
    found = read(tmp_path, "1,2\n3,4\n" + PLAIN, form=FileFormat(skip_rows=2))
    assert found.equals(read(tmp_path, PLAIN))


def test_marks_of_gaps_are_missing_but_in_keys(tmp_path: Path) -> None:
    content = "district,income\n-,5\nD1,-\nD2,.\n"
    found = read(tmp_path, content, keys=["district"], form=FileFormat(missing=("-", ".")))
    assert found["district"].tolist() == ["-", "D1", "D2"]
    assert np.array_equal(found["income"], [5, np.nan, np.nan], equal_nan=True)


def test_a_zip_holds_one_table(tmp_path: Path) -> None:
    def zipped(*names: str) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in names:
                archive.writestr(name, PLAIN)
        return buffer.getvalue()

    assert read(tmp_path, zipped("a/rows.csv", "__MACOSX/a/._rows.csv"), "rows.zip").equals(read(tmp_path, PLAIN))
    with pytest.raises(DataError, match=r"got a\.csv, b\.csv"):
        read(tmp_path, zipped("a.csv", "b.csv"), "rows.zip")


def test_parts_of_a_folder_or_pattern_are_one_table(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    FRAME[:30].to_csv(parts / "1.csv", index=False)
    (parts / "2.csv.gz").write_bytes(gzip.compress(FRAME[30:].to_csv(index=False).encode()))
    (parts / "_SUCCESS").touch()
    whole = read(tmp_path, PLAIN)
    assert read_rows(parts).equals(whole)
    assert read_rows(Path(f"{parts}/*.csv*")).equals(whole)
    FRAME[30:].rename(columns={"age": "years"}).to_csv(parts / "2.csv", index=False)
    with pytest.raises(DataError, match="'age', 'years'"):
        read_rows(parts)
    with pytest.raises(DataError, match="there is no file"):
        read_rows(tmp_path / "*.tsv")


def test_a_number_is_one_category_whatever_part_it_stands_in(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "1.csv").write_text("a,zone\n1,7\n2,\n")
    (parts / "2.csv").write_text("a,zone\n3,7\n4,x\n")
    assert read_rows(parts)["zone"].tolist()[::2] == ["7", "7"]


def test_identifiers_of_64_bits_beside_a_gap_stay_apart(tmp_path: Path) -> None:
    ids = [2**60 + place for place in range(9)]
    table = pa.table({"id": pa.array([*ids, None], pa.int64()), "a": range(10)})
    pq.write_table(table, tmp_path / "rows.parquet")
    frame = read_rows(tmp_path / "rows.parquet", keys=["id"])
    assert bag_keys(frame, ["id"], tmp_path)["id"].tolist()[:9] == [*map(str, ids)]
    assert bag_keys(frame, ["id"], tmp_path)["id"].isna().tolist() == [False] * 9 + [True]


@pytest.mark.parametrize("ids", [[2.0**60, 2.0**61], ["1.23457E+17", "2.5E+17"]])
def test_identifiers_that_another_program_has_rounded_are_refused(ids: list[Any], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="exact identifiers"):
        bag_keys(pd.DataFrame({"id": ids}), ["id"], tmp_path)


def test_a_timestamp_meets_a_date_and_composed_letters_decomposed_ones(tmp_path: Path) -> None:
    def keys(values: Any) -> list[str]:
        return [*map(str, bag_keys(pd.DataFrame({"key": values}), ["key"], tmp_path)["key"])]

    assert keys(pd.to_datetime(["2020-01-01", "2020-01-02"])) == keys(["2020-01-01", "2020-01-02T00:00:00"])
    assert keys(pd.to_datetime(["2020-01-01 10:30:00"])) == keys(["2020-01-01T10:30"]) == ["2020-01-01 10:30:00"]
    assert keys(["Zu\u0308rich", "Bern"]) == ["Z\u00fcrich", "Bern"]


@pytest.mark.parametrize("given", [{"separator": ";;"}, {"decimal": "x"}, {"encoding": "utf-99"}, {"skip_rows": -1}])
def test_formats_that_cannot_be(given: dict[str, Any]) -> None:
    with pytest.raises(LLPBenchError, match="must be"):
        FileFormat(**given)
