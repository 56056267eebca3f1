"""Tables that are written: .csv files that spreadsheets open safely, and parquet."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from llpbench.core.errors import DataError
from llpbench.core.files import obstacle, replace_file
from llpbench.core.text import frame_as_csv, one_line
from llpbench.tables.table_sources import is_among


def require_room(path: Path, inputs: Iterable[Path | None] = ()) -> None:
    """Raise `DataError` if `write_rows` cannot write a file: another ending, no folder, a read-only folder.

    Also if the file would replace or join the `inputs` (files, folders or patterns).
    """
    if path.suffix not in (".csv", ".parquet"):
        raise DataError(f"{str(path)!r} must end in .csv or .parquet.")
    reason = f"{str(path)!r} is a folder" if path.is_dir() else obstacle(path)
    if reason:
        raise DataError(f"file {str(path)!r} cannot be written: {reason}. Choose another name.")
    if not path.parent.is_dir():
        absent = str(path.parent)
        raise DataError(f"file {str(path)!r} cannot be written: there is no folder {absent!r}. Create it first.")
    if any(is_among(path, each) for each in inputs if each is not None):
        raise DataError(f"{str(path)!r} would replace or join the input files. Choose another name.")


def in_six_digits(values: pd.Series) -> pd.Series:
    """Return numbers rounded to 6 significant digits, but with all digits before the point.

    Numbers below 1e-15 become 0 or have fewer digits.
    """
    numbers = values.to_numpy(dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = 5 - np.floor(np.log10(np.abs(numbers)))
    unit = 10.0 ** np.where(np.isfinite(digits), digits, 0).clip(0, 20)
    return pd.Series(np.round(numbers * unit) / unit, index=values.index, name=values.name)


def write_rows(frame: pd.DataFrame, path: Path, computed: Collection[str] = ()) -> None:
    """Write a table without its index. In a .csv an apostrophe protects texts that spreadsheets would read as formulas.

    In a .csv, columns of `computed` numbers are rounded to 6 significant digits.

    Raises `DataError` like `require_room`, and if the disk is full or read-only.
    """
    require_room(path)
    if path.suffix != ".parquet":
        floats = [name for name in computed if frame[name].dtype.kind == "f"]
        frame = frame.assign(**{name: in_six_digits(frame[name]) for name in floats})
    try:
        replace_file(path, frame.to_parquet(index=False) if path.suffix == ".parquet" else frame_as_csv(frame))
    except OSError as error:
        raise DataError(f"file {str(path)!r} cannot be written: {one_line(error)}") from error
