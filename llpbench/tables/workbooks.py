"""Sheets of Excel workbooks, whose cells are read as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import iterparse
from zipfile import ZipFile

import pandas as pd

from llpbench.core.errors import DataError
from llpbench.core.text import one_line

_MOST_TITLES = 20
_FAR_MORE = 2
"""Factor between the rows of the sheet that is meant and those of any other with the same columns."""
_ALWAYS_READ, _MOST_TIMES = 10**7, 100
"""Cells of a sheet's rectangle that are always read; and their largest number, relative to the cells that it has."""
_PLACE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"


def sheet_as_csv(path: Path, wanted: Sequence[Sequence[str]] = ()) -> tuple[bytes, str]:
    """Return the sheet of a workbook as CSV, and a note that names it if others have content, too.

    `wanted` are columns that the sheet must have, each with its possible names. Of several such sheets the one with by
    far the most rows is meant: people, not their districts. Raises `DataError` if no sheet is meant, or if openpyxl is
    not installed.
    """
    try:
        _require_dense(path)
        sheets = pd.read_excel(
            path, sheet_name=None, header=None, dtype=str, keep_default_na=False, na_values=[""], engine="openpyxl"
        )
    except ImportError as error:
        raise DataError(
            f"file {str(path)!r} needs openpyxl to be read. Install it (pip install openpyxl), or save the table as "
            ".csv."
        ) from error
    except DataError:
        raise
    except Exception as error:  # openpyxl passes on errors of zipfile, zlib and XML
        raise DataError(f"file {str(path)!r} is no readable workbook ({one_line(error)}). Save it again.") from error
    filled = {name: _without_empty(sheet) for name, sheet in sheets.items() if sheet.notna().any(axis=None)}
    having = [name for name, sheet in filled.items() if len(filled) == 1 or _has(sheet, wanted)]
    having.sort(key=lambda name: -len(filled[name]))
    if not having or (len(having) > 1 and len(filled[having[0]]) < _FAR_MORE * len(filled[having[1]])):
        names = ", ".join(map(repr, having or filled or ["no sheet"]))
        columns = " and ".join(dict.fromkeys(repr(each[0]) for each in wanted))
        raise DataError(
            f"file {str(path)!r} must have one sheet with {columns or 'content'}, got {len(having)} of {names}. Save "
            "the sheet that you want as a file of its own."
        )
    text = filled[having[0]].replace(_MIDNIGHT, r"\1", regex=True).to_csv(index=False, header=False)
    note = f"read sheet {having[0]!r} of {', '.join(map(repr, filled))}" if len(filled) > 1 else ""
    return text.encode(), note


def _require_dense(path: Path) -> None:
    """Raise `DataError` for a sheet with a cell so far away that the rows and columns up to it fill the memory."""
    with ZipFile(path) as archive:
        for member in archive.namelist():
            if not re.fullmatch(r"/?xl/worksheets/[^/]+\.xml", member):
                continue
            cells = rows = columns = 0
            with archive.open(member) as sheet:
                for _, element in iterparse(sheet):
                    kind = element.tag.rpartition("}")[2]
                    if kind == "c" and (place := _PLACE.fullmatch(element.get("r", ""))):
                        cells, rows = cells + 1, max(rows, int(place[2]))
                        columns = max(columns, sum(26**k * (ord(c) - 64) for k, c in enumerate(place[1][::-1])))
                    if kind in ("c", "row"):
                        element.clear()
            if rows * columns > max(_ALWAYS_READ, _MOST_TIMES * cells):
                raise DataError(
                    f"file {str(path)!r} has a sheet of {rows:,} rows and {columns:,} columns, almost all empty. "
                    "Delete the content far from its table, or save the table as .csv."
                )


def _without_empty(sheet: pd.DataFrame) -> pd.DataFrame:
    """Return a sheet without empty columns and without the empty rows around its table."""
    filled = sheet.notna().any(axis=1)
    return sheet.loc[filled.idxmax() : filled[::-1].idxmax()].dropna(axis="columns", how="all")


def _has(sheet: pd.DataFrame, wanted: Sequence[Sequence[str]]) -> bool:
    """Return whether one of the first rows has all wanted columns."""
    for _, row in sheet.head(_MOST_TITLES).iterrows():
        names = {str(cell).strip() for cell in row.dropna()}
        if all(any(name.strip() in names for name in each) for each in wanted):
            return True
    return False
