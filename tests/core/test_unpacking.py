"""Small files that unpack to very large ones are refused before they fill the memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import resource
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from llpbench.core import unpacking
from llpbench.core.errors import DataError
from llpbench.core.unpacking import open_packed
from llpbench.results.journal import read
from llpbench.tables.row_files import read_rows

ROWS = b"age,district\n" + b"1,D1\n" * 400_000
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.csv", content)
    return buffer.getvalue()


def workbook(content: bytes) -> bytes:
    buffer = io.BytesIO()
    pd.read_csv(io.BytesIO(content), nrows=3000).to_excel(buffer, index=False)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", PACKERS)
def test_unpacking_stops_at_limit(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows"
    path.write_bytes(PACKERS[kind](bytes(50_000_000)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_packed(path, kind, always=1000) as file, pytest.raises(DataError, match="unpacks from"):
        file.read()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000, "kilobytes"
    with open_packed(path, kind) as file:
        assert file.read() == bytes(50_000_000)


TABLES = {
    "rows.csv.gz": gzip.compress(ROWS),
    "rows.csv.bz2": bz2.compress(ROWS),
    "rows.csv.xz": lzma.compress(ROWS),
    "rows.zip": zipped(ROWS),
    "rows.xlsx": workbook(ROWS),
}


@pytest.mark.parametrize("name", TABLES)
def test_table_that_unpacks_to_too_much_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / name).write_bytes(TABLES[name])
    assert len(read_rows(tmp_path / name)) >= 3000
    monkeypatch.setattr(unpacking, "_most", lambda *_: 4096)
    with pytest.raises(DataError, match="unpacks from"):
        read_rows(tmp_path / name)


@pytest.mark.parametrize("name", TABLES)
def test_damaged_table_is_one_line(tmp_path: Path, name: str) -> None:
    packed, place = TABLES[name], len(TABLES[name]) // 2
    if name == "rows.xlsx":
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            place = archive.getinfo("xl/worksheets/sheet1.xml").header_offset + 200
    for damaged in (packed[:place], packed[:place] + bytes(9) + packed[place + 9 :]):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(DataError, match="rows"):
            read_rows(tmp_path / name)


def test_shard_that_unpacks_to_too_much_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "adult.jsonl.xz"
    path.write_bytes(lzma.compress(b"{" + b" " * 30_000_000))
    with pytest.raises(DataError, match="unpacks from"):
        read(path)
