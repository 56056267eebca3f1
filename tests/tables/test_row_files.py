"""Tables in files as offices and spreadsheets export them: read correctly, or refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench import refusal
from districts import warned

from llpbench.core import files
from llpbench.core.errors import DataError
from llpbench.tables import row_files, table_sources
from llpbench.tables.bag_keys import bag_keys
from llpbench.tables.csv_dialect import FileFormat
from llpbench.tables.row_files import RowBatches

FRAME = pd.DataFrame({"district": [f"D{place % 6}" for place in range(60)], "income": np.arange(60) / 8 + 0.5})
FRAME = FRAME.assign(age=range(20, 80), town=["S\u00fcd", "north"] * 30)
PLAIN = FRAME.to_csv(index=False)
OFFICE = FRAME.to_csv(index=False, sep=";", decimal=",")
pytestmark = pytest.mark.filterwarnings("ignore::llpbench.core.errors.LLPBenchWarning")


def read_rows(path: Path, **given: Any) -> pd.DataFrame:
    return RowBatches(path, **given).together()


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder: Path, content: bytes | str, **given: Any) -> pd.DataFrame:
    return read_rows(write(folder / "rows.csv", content), **given)


def joined(batches: RowBatches) -> pd.DataFrame:
    return pd.concat([batch.frame for batch in batches], ignore_index=True)


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
        (PLAIN.replace("\n", "\r"), "rows.csv"),
        ("\ufeff" + PLAIN, "rows.csv"),
        (PLAIN.encode("utf-16"), "rows.csv"),
        (PLAIN.encode("utf-16-le"), "rows.csv"),
        ("People by district\n" + PLAIN, "rows.csv"),
        ("People, by district\nSource: x\n\n" + PLAIN, "rows.csv"),
        ("People, by district\n" + OFFICE, "rows.csv"),
        ("People by district,,,\n,,,\n" + PLAIN, "rows.csv"),
        (gzip.compress(PLAIN.encode()), "rows.csv.gz"),
        (gzip.compress(PLAIN.encode()), "rows.csv"),
        (bz2.compress(PLAIN.encode()), "rows.csv.bz2"),
        (lzma.compress(OFFICE.encode()), "rows.csv.xz"),
    ],
)
def test_exported_tables_are_read_in_memory_and_in_batches(content: bytes | str, name: str, tmp_path: Path) -> None:
    batches = RowBatches(write(tmp_path / name, content), rows=7)
    assert max(len(batch.frame) for batch in batches) == 7
    for found in (read_rows(tmp_path / name), joined(batches)):
        pd.testing.assert_frame_equal(found, FRAME, check_dtype=False)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        pytest.param(["1", "-2", "007"], [1, -2, 7], id="whole numbers"),
        pytest.param([" +5", "3e5 ", ".5"], [5, 3e5, 0.5], id="fractions"),
        pytest.param(["1", "NA", ""], [1, None, None], id="gaps"),
        pytest.param(["1", "  ", " NA"], [1, None, None], id="gaps with spaces"),
        pytest.param(["True", "false", "NULL"], [True, False, None], id="true and false"),
        pytest.param(["0x10", "1", "2"], ["0x10", "1", "2"], id="hexadecimal"),
        pytest.param(["1_000", "2", "x"], ["1_000", "2", "x"], id="underscore"),
        pytest.param(["1,000", "2.5", "n/a"], ["1,000", "2.5", None], id="thousands"),
        pytest.param(["x\ny", 'say ""hi""', " z"], ["x\ny", 'say "hi"', " z"], id="quoted"),
    ],
)
def test_column_is_numbers_or_true_and_false_or_text(texts: list[str], values: list[Any], tmp_path: Path) -> None:
    found = read(tmp_path, "a,b\n" + "".join(f'"{text}",x\n' for text in texts))["a"]
    assert [None if pd.isna(value) else value for value in found] == values


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_quotation_mark_without_end_is_refused_but_last_cell_may_have_lines(encoding: str, tmp_path: Path) -> None:
    for end in ("", "\n", "\r\n\n"):
        closed = read(tmp_path, f'age,note\n31,x\n42,"y\nz\n"{end}'.encode(encoding))
        assert closed["note"].tolist() == ["x", "y\nz\n"]
        with refusal("quotation mark"):
            read(tmp_path, f'age,note\n31,x\n42,"y\n53,z{end}'.encode(encoding))


@pytest.mark.parametrize(("end", "rows", "length"), [("\n", 3, 200_000), ("\r", 200_000, 3)], ids=["cells", "ends"])
def test_long_cells_and_large_files_of_old_macs_are_read(end: str, rows: int, length: int, tmp_path: Path) -> None:
    found = read(tmp_path, f"a,b{end}" + f"1,{'x' * length}{end}" * rows)
    assert (found["a"].sum(), found["b"].str.len().sum()) == (rows, rows * length)


def test_names_keep_zeros_and_missing_marks_and_skipped_rows_can_be_given(tmp_path: Path) -> None:
    content = "district,income,zip\nNA,5,01001\n-,-,-\n,.,\n"
    given: dict[str, Any] = {"keys": ["district"], "form": FileFormat(missing=("-", "."))}
    found = read(tmp_path, content, types={"zip": "text"}, **given)
    expected = {"district": ["NA", "-", None], "income": [5, None, None], "zip": ["01001", None, None]}
    assert found.astype(object).where(found.notna(), None).to_dict("list") == expected
    assert read(tmp_path, content, features=[], **given)["zip"].tolist()[:2] == ["01001", "-"]
    skipped = read(tmp_path, "1,2,3,4\n5,6,7,8\n" + PLAIN, form=FileFormat(skip_rows=2))
    assert skipped.equals(read(tmp_path, PLAIN))


def test_assumptions_are_warned_of_once_such_as_points_that_may_separate_thousands(tmp_path: Path) -> None:
    for content, told in (OFFICE, "decimal commas"), ("By district\n" + PLAIN, "'By district'"):
        with warned("file", match=told, times=1):
            joined(RowBatches(write(tmp_path / "rows.csv", content), rows=9))
    numbers = [*range(900, 960, 2), *range(1000, 1060, 2)]
    content = FRAME.assign(income=[f"{each:,}".replace(",", ".") for each in numbers]).to_csv(index=False, sep=";")
    with warned("file", match="--decimal , --types 'income=number'"):
        read(tmp_path, content)
    found = read(tmp_path, content, types={"income": "number"}, form=FileFormat(decimal=","))
    assert (found["income"].tolist(), found.attrs["decimals"]) == (numbers, {"income": ","})


@pytest.mark.parametrize(
    ("content", "told", "form"),
    [
        (PLAIN.encode("cp1252"), "--encoding cp1252.*'S\u00fcd'", FileFormat(encoding="cp1252")),
        ("a|b;c\n" + "1|2;3\n" * 9, "--separator semicolon", FileFormat(separator="semicolon")),
        ("age,yes,yes\n1,2,3\n", "two columns called 'yes'", None),
        ("age,yes\n1,2,3\n4,5,6\n", "3 values in line 2, but 2 names", None),
        ("age,yes\n1,2\n3,\nSource: x\n", "1 value in line 4, but 2 names", None),
        ("a,b\n1,2\n" * 9 + '"1,2\n', "line 19 .* never closed", None),
        ("<html><body><table></table></body></html>", "web page", None),
        (b"\xd0\xcf\x11\xe0" + b"0" * 100, "old Excel workbook", None),
        (b"\x00a\n1\n1,2,3\n" + 20 * b"abc", "binary", None),
        (b"PK\x03\x04" + bytes(30), "no readable workbook", None),
        pytest.param("age" * 700_000, "1 MB", None, id="one line"),
        ("", "is empty", None),
        ("district,income\n", "has no rows", None),
    ],
)
def test_errors_name_cause_and_remedy(content: Any, told: str, form: FileFormat | None, tmp_path: Path) -> None:
    for head in (False, True):
        with refusal(told) as error:
            RowBatches(write(tmp_path / "rows.csv", content)).rows_or_head(head=head)
        assert error.type is DataError
    if form is not None:
        assert read(tmp_path, content, form=form).shape[1] in (2, 4)


@pytest.mark.parametrize("form", [{"separator": ";;"}, {"decimal": "x"}, {"encoding": "x"}, {"skip_rows": -1}], ids=str)
def test_impossible_formats_are_refused(form: dict[str, Any]) -> None:
    with refusal("must be"):
        FileFormat(**form)


def test_folder_or_pattern_is_one_table_with_columns_of_folder_names(tmp_path: Path) -> None:
    for name, rows in (("state=01", FRAME[:30]), ("state=NA", FRAME[30:])):
        (tmp_path / name).mkdir()
        rows.to_csv(tmp_path / name / "1.csv.gz", index=False)
    (tmp_path / "_SUCCESS").touch()
    found = read_rows(tmp_path)
    assert found.pop("state").tolist() == ["01"] * 30 + ["NA"] * 30
    pd.testing.assert_frame_equal(found, FRAME, check_dtype=False)
    assert read_rows(tmp_path / "*/1.csv*").equals(found)
    places = [(batch.part.parent.name, batch.first) for batch in RowBatches(tmp_path, rows=20)]
    assert places == [("state=01", 0), ("state=01", 20), ("state=NA", 0), ("state=NA", 20)]
    with refusal("no file"):
        read_rows(tmp_path / "*.tsv")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda frame: frame.rename(columns={"age": "years"}), "'age', 'years'"),
        (lambda frame: frame.assign(age="old"), "'age' must contain numbers.*'old'"),
        (lambda frame: frame.assign(town=1), "'town' must contain texts.*'1'"),
    ],
)
def test_part_unlike_the_first_is_named(tmp_path: Path, change: Any, told: str, kind: str) -> None:
    for name, frame in (("a", FRAME), ("b", change(FRAME))):
        path = tmp_path / f"{name}.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path, index=False)
    with refusal(rf"b\.{kind}.*{told}"):
        joined(RowBatches(tmp_path))
    if "must" in told:  # in memory, all values decide
        assert {*map(type, read_rows(tmp_path)[told.split("'")[1]])} == {str}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("types", [{}, {"income": "number", "rate": "number"}], ids=["found", "declared"])
@pytest.mark.parametrize("marks", [",.", ".,", "0,.", "0.,", ",0.", ".0,"])
def test_each_part_has_its_own_decimal_mark(marks: str, types: dict[str, str], strict: bool, tmp_path: Path) -> None:
    for place, mark in enumerate(marks):  # whole numbers show no mark, and a rate alone may be 1234
        income, rate = ("7", "8") if mark == "0" else (f"2{mark}5", f"1{mark}234")
        write(tmp_path / f"{place}.csv", f'district,income,rate\nD,"{income}","{rate}"\n')
    batches = RowBatches(tmp_path, types, keys=["district"])
    found = joined(batches) if strict else batches.together()
    expected = [[7.0, 8.0] if mark == "0" else [2.5, 1.234] for mark in marks]
    assert found[["income", "rate"]].to_numpy().tolist() == expected


def test_column_with_numbers_in_one_part_and_texts_in_another_is_warned_of_once(tmp_path: Path) -> None:
    for name, ages in {"a": "5", "b": "old", "c": "7", "d": "young"}.items():
        write(tmp_path / f"{name}.csv", f"district,age\nx,{ages}\n")
    with warned("file", match=r"b\.csv.*'age'.*a\.csv", times=1):
        assert read_rows(tmp_path, keys=["district"])["age"].tolist() == ["5", "old", "7", "young"]


@pytest.mark.parametrize("change", ["remove", "replace", "add"])
def test_part_that_changes_while_it_is_read_is_named_before_other_errors(tmp_path: Path, change: str) -> None:
    for name in ("1.csv", "2.csv"):
        write(tmp_path / name, PLAIN)
    path, batches = tmp_path / ("3.csv" if change == "add" else "2.csv"), iter(RowBatches(tmp_path, rows=20))
    next(batches)
    path.unlink() if change == "remove" else path.write_text("other\n1\n")
    with refusal(f"file '{path}' was changed, added or removed while"):
        list(batches)


def test_keys_are_exact_and_equal_in_all_forms(tmp_path: Path) -> None:
    ids = [2**60 + place for place in range(9)]
    pq.write_table(pa.table({"id": pa.array([*ids, None], pa.int64()), "a": range(10)}), tmp_path / "rows.parquet")
    found = bag_keys(read_rows(tmp_path / "rows.parquet", keys=["id"]), ["id"], tmp_path)["id"]
    assert found.where(found.notna(), None).tolist() == [*map(str, ids), None]
    for rounded in ([2.0**60, 2.0**61], ["1.23457E+17", "2.5E+17"]):
        with refusal("exact identifiers"):
            bag_keys(pd.DataFrame({"id": rounded}), ["id"], tmp_path)

    def keys(values: Any) -> list[str]:  # dates and Unicode forms of names are equal
        return [*map(str, bag_keys(pd.DataFrame({"key": values}), ["key"], tmp_path)["key"])]

    assert keys(pd.to_datetime(["2020-01-01", "2020-01-02"])) == keys(["2020-01-01", "2020-01-02T00:00:00"])
    assert keys(pd.to_datetime(["2020-01-01 10:30:00"])) == keys(["2020-01-01T10:30"]) == ["2020-01-01 10:30:00"]
    assert keys(["Zu\u0308rich", "Bern"]) == ["Z\u00fcrich", "Bern"]
    with refusal("column 'key' .*'list'"):
        keys([["Bern"], ["Basel"]])


def test_workbook_keeps_names_and_is_read_below_the_title_of_the_right_sheet(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    votes = pd.DataFrame({"district": ["01001", "NA"], "no": [5, 7], "day": pd.to_datetime(["2024-03-31"] * 2)})
    people = pd.DataFrame({"district": [f"D{row % 4}" for row in range(40)], "age": [None, *range(39)]})
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame({"Read me": ["exported in March"]}).to_excel(writer, sheet_name="about", index=False)
        votes.to_excel(writer, sheet_name="votes", index=False, startrow=3)
        people.to_excel(writer, sheet_name="people", index=False)
        writer.sheets["votes"]["A1"] = "Votes by district"
    with warned("file", match="sheet 'people'"):
        assert read_rows(path, columns=[("district",)]).equals(people)
    found = read_rows(path, columns=[("district",), ("no", "no,yes")], keys=["district"])
    assert found.to_dict("list") == {"district": ["01001", "NA"], "no": [5, 7], "day": ["2024-03-31"] * 2}
    with refusal(r"one sheet with 'region', got 0 of 'about', 'votes', 'people'"):
        read_rows(path, columns=[("region",)])
    with refusal("is packed"):
        read_rows(write(tmp_path / "book.xlsx.gz", gzip.compress(path.read_bytes())))
    with pd.ExcelWriter(path) as writer:
        FRAME.to_excel(writer, index=False)
        writer.sheets["Sheet1"]["XFD1048576"] = 1
    with refusal("1,048,576 rows and 16,384 columns, almost all empty"):  # before memory is full
        read_rows(path)


@pytest.mark.parametrize("ending", ["csv.gz", "csv.bz2", "csv.xz", "xlsx", "parquet"])
def test_bombs_and_damaged_files_are_refused(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, large = tmp_path / f"rows.{ending}", pd.concat([FRAME] * 200)
    writers = {"xlsx": large.to_excel, "parquet": large.to_parquet}
    writers.get(ending, large.to_csv)(path, index=False)
    content = path.read_bytes()
    assert len(read_rows(path)) == len(large)
    if ending != "parquet":
        monkeypatch.setattr(files, "_MOST_TIMES", 0)
        monkeypatch.setattr(files, "_ALWAYS_ALLOWED", 4096)
        monkeypatch.setattr(table_sources, "open_packed", partial(files.open_packed, always=4096))
        with refusal("unpacks from"):
            read_rows(path)
        monkeypatch.undo()
    half = len(content) // 2
    for damaged in (content[:half], content[: half // 2] + bytes(99) + content[half // 2 + 99 :]):
        with refusal(re.escape(str(path))):
            read_rows(write(path, damaged))


def test_rows_that_cross_blocks_are_read_but_no_endless_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "_BLOCK", 1000)
    found = read(tmp_path, ('a,b\n1,"' + "x\n" * 200 + '"\n') + "2,y\n" * 2000)
    assert np.array_equal(found["a"], [1, *[2] * 2000])
    with refusal("does not end"):
        read(tmp_path, "a,b\n" + "2,y\n" * 300 + '2,"y\n' + "2,y\n" * 2000)
    pd.DataFrame({"bag": ["a", "b"], "note": ["x", "y" * 3_000_000]}).to_parquet(tmp_path / "rows.parquet")
    for most in (10**9, 10**6):  # it is read, and it is not even read
        monkeypatch.setattr(row_files, "_MOST_BYTES_OF_CHUNK", most)
        with refusal("'note'"):
            list(RowBatches(tmp_path / "rows.parquet"))
