"""Rows in batches are those that are read at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from llpbench.core.errors import DataError
from llpbench.owndata.bag_codes import BagCodes
from llpbench.tables.bag_keys import bag_keys
from llpbench.tables.csv_dialect import FileFormat
from llpbench.tables.row_files import RowBatches, read_rows


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(50, 10, 3000).round(2),
            "zip": [f"{number:05d}" for number in rng.integers(0, 99_999, 3000)],
            "note": rng.choice(["plain", 'quoted "x"', "two\nlines", "a,b"], 3000),
        }
    )


def together(batches: RowBatches) -> pd.DataFrame:
    return pd.concat([batch.frame for batch in batches], ignore_index=True)


def write(frame: pd.DataFrame, place: Path, kind: str) -> Path:
    path = place / f"rows.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, index=False)
    elif kind == "latin.csv":
        frame.assign(note="é").to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252")
    elif kind == "zip":
        frame.to_csv(path, index=False, compression={"method": "zip", "archive_name": "rows.csv"})
    elif kind == "title.csv":
        path.write_text("A table of people\n\n" + frame.to_csv(index=False))
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "zip", "parquet", "title.csv", "latin.csv"])
@pytest.mark.parametrize("rows", [1, 700, 10_000])
def test_batches_hold_the_rows_of_the_whole_table(tmp_path: Path, frame: pd.DataFrame, kind: str, rows: int) -> None:
    frame = frame.iloc[:40] if rows == 1 else frame
    path = write(frame, tmp_path, kind)
    form = FileFormat(encoding="cp1252") if kind == "latin.csv" else FileFormat()
    given: dict[str, Any] = {"types": {"age": "number"}, "keys": ["zip"], "form": form}
    batches = RowBatches(path, rows=rows, **given)
    pd.testing.assert_frame_equal(together(batches), read_rows(path, **given), check_exact=True)
    pd.testing.assert_frame_equal(together(batches), together(batches))  # each pass is the same
    assert max(len(batch.frame) for batch in batches) <= rows
    assert len([*batches]) >= len(frame) // rows


def test_the_first_row_of_a_batch_is_numbered_in_its_part(tmp_path: Path, frame: pd.DataFrame) -> None:
    for part in range(2):
        frame.to_parquet(tmp_path / f"{part}.parquet", index=False)
    found = [(batch.part.name, batch.first) for batch in RowBatches(tmp_path, {}, rows=2000)]
    assert found == [("0.parquet", 0), ("0.parquet", 2000), ("1.parquet", 0), ("1.parquet", 2000)]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (lambda frame: frame.drop(columns="zip"), "zip"),
        (lambda frame: frame.assign(age="old"), "age"),
        (lambda frame: frame.assign(zip=1), "zip"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_part_that_is_not_like_the_first_is_named(
    tmp_path: Path, frame: pd.DataFrame, part: Any, told: str, kind: str
) -> None:
    frame["zip"] = "D" + frame["zip"]
    for name, table in (("a", frame), ("b", part(frame))):
        write(table, tmp_path, kind).rename(tmp_path / f"{name}.{kind}")
    with pytest.raises(DataError, match=rf"b\.{kind}.*'{told}'"):
        together(RowBatches(tmp_path, {}))


@pytest.mark.parametrize("kind", ["csv.gz", "parquet"])
def test_a_part_that_is_cut_off_is_named(tmp_path: Path, frame: pd.DataFrame, kind: str) -> None:
    content = write(frame, tmp_path, kind).rename(tmp_path / f"a.{kind}").read_bytes()
    (tmp_path / f"b.{kind}").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=rf"b\.{kind}"):
        together(RowBatches(tmp_path, {}, rows=500))


def test_a_column_without_values_in_a_part_is_like_any(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.assign(note=None, age=None).to_csv(tmp_path / "b.csv", index=False)
    assert len(together(RowBatches(tmp_path, {}, rows=700))) == 6000


def test_what_cannot_be_read_in_batches_is_refused(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_excel(tmp_path / "rows.xlsx", index=False)
    for path in (Path("-"), tmp_path / "rows.xlsx"):
        with pytest.raises(DataError):
            RowBatches(path, {})


@pytest.mark.parametrize("names", [["zip"], ["zip", "note"]])
def test_bags_are_called_as_in_memory(tmp_path: Path, frame: pd.DataFrame, names: list[str]) -> None:
    frame["zip"] = [None, 7.0, 12.0] * 1000
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    codes, batches = BagCodes(names), RowBatches(tmp_path / "rows.parquet", {}, keys=names, rows=700)
    found = [labels[code] for codes_of_rows, labels in map(codes, batches) for code in codes_of_rows]
    keys = bag_keys(read_rows(tmp_path / "rows.parquet", keys=names), names, tmp_path)
    for label, expected in zip(found, keys.itertuples(index=False, name=None), strict=True):
        whole = not any(pd.isna(each) for each in expected)
        assert label == ((expected if len(names) > 1 else expected[0]) if whole else None)


@pytest.mark.parametrize("change", ["remove", "replace", "add"])
def test_part_that_changes_during_pass_is_named_before_other_errors(
    tmp_path: Path, frame: pd.DataFrame, change: str
) -> None:
    for name in ("1.csv", "2.csv"):
        frame.to_csv(tmp_path / name, index=False)
    batches = RowBatches(tmp_path, {}, rows=700)
    path = tmp_path / ("3.csv" if change == "add" else "2.csv")

    def disturbed() -> None:
        for number, _ in enumerate(batches):
            if number == 0 and change == "remove":
                path.unlink()
            elif number == 0:
                path.write_text("other\n1\n")

    with pytest.raises(DataError, match=f"file '{path}' was changed, added or removed while"):
        disturbed()
    with pytest.raises(DataError, match="was changed"), batches.unchanged():
        raise DataError("400 of 400 bags have this problem")
