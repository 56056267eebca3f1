"""Rows and bags as files: CSV, whose types are inferred, or parquet. An index that pandas wrote is a column."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas._libs.parsers import STR_NA_VALUES
from pandas.errors import ParserWarning

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.files import obstacle, replace_file
from llpbench.core.spreadsheets import frame_as_csv
from llpbench.core.text import hint, one_line, plural
from llpbench.data.frames import as_text, without_decimals


def read_rows(
    path: Path,
    types: Mapping[str, str] | None = None,
    keys: Collection[str] = (),
    features: Collection[str] | None = None,
) -> pd.DataFrame:
    """The table in a file. `types`: columns that are text or numbers whatever they look like. `keys`: columns of names,
    in a CSV read as they stand there (01001 is not 1001, NA is Namibia), where an empty cell alone is missing. With
    `features`, all columns but these are read so.

    Raises `DataError` for a file that is not there or not what its name says, and for columns that cannot be so.
    """
    types = types or {}
    if not path.is_file():
        raise DataError(f"there is no file {str(path)!r}. Give a .csv or .parquet file.")
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            frame: pd.DataFrame = pq.read_table(path).to_pandas()
            if frame.index.names != [None] or not isinstance(frame.index, pd.RangeIndex):
                frame = frame.reset_index()
            frame.columns = [str(name) for name in frame.columns]  # as they are named on the command line
            _once(list(frame.columns), path)
        elif path.suffix == ".csv":
            first = pd.read_csv(path, nrows=1, header=None, dtype=str, keep_default_na=False)
            _once([name for name in first.iloc[0] if name], path)
            header = [str(name) for name in pd.read_csv(path, nrows=0).columns]
            keys = [name for name in header if name in keys or (features is not None and name not in features)]
            texts = {name: str for name, kind in types.items() if kind == "text"} | dict.fromkeys(keys, str)
            missing = {name: [""] if name in keys else sorted(STR_NA_VALUES) for name in header}
            with warnings.catch_warnings():
                warnings.simplefilter("error", ParserWarning)  # of rows with more values than there are names
                frame = pd.read_csv(
                    path,
                    dtype=texts,
                    low_memory=False,
                    keep_default_na=False,
                    na_values=missing,
                    index_col=False,  # else pandas shifts the columns where rows end with a comma
                )
        else:
            raise DataError(f"file {str(path)!r} is neither .csv nor .parquet.")
    except ParserWarning as error:
        raise DataError(
            f"file {str(path)!r} has more values in a row than the {len(header)} names of its header. Name every "
            "column, or take the commas at the ends of rows away."
        ) from error
    except (OSError, ValueError) as error:  # of pandas and arrow
        raise DataError(f"file {str(path)!r} cannot be read as {path.suffix[1:]}: {one_line(error)}") from error
    for name, kind in types.items():
        column_of(frame, name, path)
        if kind == "text":
            frame[name] = as_text(frame[name])
            continue
        numbers = pd.to_numeric(frame[name], errors="coerce")
        broken = frame[name][numbers.isna() & frame[name].notna()]
        if len(broken):
            raise DataError(
                f"file {str(path)!r}: {len(broken):,} values of column {name!r} are no numbers, such as "
                f"{broken.iloc[0]!r} in row {broken.index[0]} (counted from 0)."
            )
        frame[name] = numbers
    return frame


def _once(names: Sequence[str], path: Path) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"file {str(path)!r} has two columns called {repeated[0]!r}. Rename one of them.")


def demand_room(path: Path) -> None:
    """Raises `DataError` for a table that `write_rows` cannot write: another ending, no folder, a read-only one."""
    if path.suffix not in (".csv", ".parquet"):
        raise DataError(f"{str(path)!r} must end in .csv or .parquet.")
    told = f"{str(path)!r} is a folder" if path.is_dir() else obstacle(path)
    if told:
        raise DataError(f"file {str(path)!r} cannot be written: {told}. Choose another name.")
    if not path.parent.is_dir():
        absent = str(path.parent)
        raise DataError(f"file {str(path)!r} cannot be written: there is no folder {absent!r}. Make it first.")


def write_rows(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, without its index; in a .csv texts that a spreadsheet would take for a formula get an apostrophe.

    Raises `DataError` as `demand_room`, and if the disk does not let it."""
    demand_room(path)
    try:
        replace_file(path, frame.to_parquet(index=False) if path.suffix == ".parquet" else frame_as_csv(frame))
    except OSError as error:
        raise DataError(f"file {str(path)!r} cannot be written: {one_line(error)}") from error


def column_of(frame: pd.DataFrame, name: str, path: Path) -> pd.Series:
    """A column of a file's table. Raises `DataError` with the nearest names if there is none."""
    known = [str(column) for column in frame.columns]
    if name not in known:
        some = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
        other = next((mark for mark in (";", "\t", "|") if len(known) == 1 and mark in known[0]), None)
        if other is not None:
            raise DataError(f"file {str(path)!r} is separated by {other!r}. Write it with commas, or as parquet.")
        raise DataError(f"file {str(path)!r} has no column {name!r}. {hint(name, known)}Its columns are: {some}.")
    return frame.iloc[:, known.index(name)]


def bag_keys(frame: pd.DataFrame, names: Sequence[str], path: Path) -> pd.DataFrame:
    """The columns that say which bag a row is of, as texts: two files may hold them in different types. A whole number
    is that also where gaps in its column made pandas write 7.0; raises `DataError` if a file has it both ways."""
    keys = {}
    for name in names:
        written = as_text(column_of(frame, name, path)).str.strip()
        keys[name] = _key_texts(written)
        ways = written.groupby(keys[name]).unique()
        if (several := ways[ways.str.len() > 1]).size:
            both = " and ".join(map(repr, several.iloc[0]))
            raise DataError(
                f"column {name!r} of file {str(path)!r} calls bags {both}, which is the same number. Write it "
                "in one way."
            )
    return pd.DataFrame(keys)


def bags_as_texts(bags: Any, names: Sequence[str]) -> Any:
    """[bags] the labels of bags, as `bag_keys` has those of files. Raises `LLPBenchError` unless each is of as many
    columns as there are `names`."""
    keys = [bag if isinstance(bag, tuple) else (bag,) for bag in bags]
    if len(keys[0]) != len(names):
        raise LLPBenchError(
            f"bags are named by {plural(len(names), 'column')} ({', '.join(names)}), in fit by {len(keys[0])}, "
            f"such as {bags[0]!r}. Give those of fit: --bag-column NAME+NAME."
        )
    texts = [_key_texts(pd.Series(column, dtype=object)) for column in zip(*keys, strict=True)]
    found = np.empty(len(keys), dtype=object)
    found[:] = list(zip(*texts, strict=True)) if len(names) > 1 else texts[0].tolist()
    return found


def _key_texts(keys: pd.Series) -> pd.Series:
    return as_text(keys).str.strip().map(without_decimals, na_action="ignore")
