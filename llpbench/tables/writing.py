"""Tables that are written: .csv files that spreadsheets open safely, and parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from llpbench.core.errors import DataError
from llpbench.core.files import obstacle, replaced
from llpbench.core.text import frame_as_csv, one_line

_WAITING = 8
"""Number of first batches that determine the types of columns."""


def require_room(path: Path, inputs: Iterable[Path | None] = ()) -> None:
    """Raise `DataError` if `written` cannot write a file, or if it would replace or join `inputs`, which are paths."""
    if path.suffix not in (".csv", ".parquet"):
        raise DataError(f"{str(path)!r} must end in .csv or .parquet.")
    if reason := f"{str(path)!r} is a folder" if path.is_dir() else obstacle(path):
        raise DataError.of(path, f"cannot be written: {reason}. Choose another name.")
    if not path.parent.is_dir():
        raise DataError.of(path, f"cannot be written: there is no folder {str(path.parent)!r}. Create it first.")
    if any(_is_among(path, each) for each in inputs if each is not None):
        raise DataError(f"{str(path)!r} would replace or join the input files. Choose another name.")


def _is_among(path: Path, read: Path) -> bool:
    """Return whether a file belongs to a path that is read (a file, a folder or a pattern)."""
    if read.is_dir():
        return bool(path.suffix) and read.resolve() in path.resolve().parents
    if read.exists():
        return path.exists() and path.samefile(read)
    return path.resolve().match(str(read.absolute()))


def _in_six_digits(values: pd.Series) -> pd.Series:
    """Return numbers in 6 significant digits, but with all digits before the point; below 1e-15 fewer, or 0."""
    numbers = values.to_numpy(dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = 5 - np.floor(np.log10(np.abs(numbers)))
    unit = 10.0 ** np.where(np.isfinite(digits), digits, 0).clip(0, 20)
    return pd.Series(np.round(numbers * unit) / unit, index=values.index, name=values.name)


@contextmanager
def written(path: Path, computed: Sequence[str] = ()) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Write frames one after the other to a .csv or .parquet file. It replaces an older file when it is complete.

    In a .csv an apostrophe protects texts that spreadsheets would read as formulas, and `computed` numbers are rounded
    to 6 significant digits. Raises `DataError` like `require_room`, and if the disk is full or read-only.
    """
    require_room(path)
    try:
        with replaced(path) as file:
            if path.suffix == ".parquet":
                with _parquet_parts(file) as write:
                    yield write
            else:
                yield _csv_parts(file, computed)
    except OSError as error:
        raise DataError.of(path, f"cannot be written: {one_line(error)}") from error


def _csv_parts(file: IO[bytes], computed: Sequence[str]) -> Callable[[pd.DataFrame], None]:
    begun = False

    def write(frame: pd.DataFrame) -> None:
        nonlocal begun
        floats = [name for name in computed if frame[name].dtype.kind == "f"]
        frame = frame.assign(**{name: _in_six_digits(frame[name]) for name in floats})
        if begun:  # names may have line ends
            frame = frame.set_axis([str(number) for number in range(frame.shape[1])], axis=1)
        text = frame_as_csv(frame)
        file.write((text.partition("\n")[2] if begun else text).encode())
        begun = True

    return write


@contextmanager
def _parquet_parts(file: IO[bytes]) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Write frames as parts of a parquet file. The first ones determine the types of columns."""
    waiting: list[pd.DataFrame] = []
    writer: Any = None

    def write(*frames: pd.DataFrame, last: bool = False) -> None:
        nonlocal writer
        waiting.extend(frames)
        if writer is None and len(waiting) < _WAITING and not last:
            return
        try:
            if writer is None:
                writer = pq.ParquetWriter(file, pa.Schema.from_pandas(pd.concat(waiting), preserve_index=False))
            while waiting:
                writer.write_table(pa.Table.from_pandas(waiting.pop(0), schema=writer.schema, preserve_index=False))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError(f"the result cannot be written as parquet: {one_line(error)}. Write .csv.") from error

    try:
        yield write
        if waiting:
            write(last=True)
    finally:
        if writer is not None:
            writer.close()
