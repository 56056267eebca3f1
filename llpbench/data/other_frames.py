"""Frames of other libraries, such as Polars and Arrow."""

from __future__ import annotations

from typing import Any


def as_pandas(given: Any) -> Any:
    """Return a frame or column of another library (Polars, Arrow and others) in pandas, with its names.

    It is recognised by Arrow's interface for streams. Anything else is returned as it is.
    """
    import pandas as pd

    if isinstance(given, pd.DataFrame | pd.Series) or not hasattr(given, "__arrow_c_stream__"):
        return given
    import pyarrow as pa

    if hasattr(given, "columns"):
        return pa.table(given).to_pandas()
    column = given if isinstance(given, pa.ChunkedArray) else pa.chunked_array(given)
    return column.to_pandas().rename(getattr(given, "name", None) or None)
