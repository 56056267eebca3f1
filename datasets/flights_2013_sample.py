"""FLS: a sample of the flights from New York in 2013.

In `core`: `flights_2013` is redistributable, and its 327,346 rows exceed the limit of 150,000.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llpbench.core.registry import register_dataset
from llpbench.data.sources import Parquet

if TYPE_CHECKING:
    from pandas import DataFrame

ROWS = 150_000
SEED = 0


@register_dataset(
    "flights_2013_sample",
    code="FLS",
    source=Parquet("embedded/flights_2013.parquet"),
    target="late",
    positive="late",
    sha256="f15108971e5ad50ffb21c2a1e488bb1b4651c6c868c48b2d4f07feafc8698956",
    licence="CC0",
    redistributable=True,
    reference="nycflights13, from the US Bureau of Transportation Statistics",
)
def flights_2013_sample(frame: DataFrame) -> DataFrame:
    """Flights from New York, a sample: does the flight arrive more than 15 minutes late?

    The rows of `flights_2013` with the 150,000 smallest numbers of PCG64 with seed 0, in their order. Use
    `flights_2013` for bags by day or route: the sample has fewer rows of each.
    """
    if len(frame) == ROWS:
        return frame
    drawn = np.random.PCG64(SEED).random_raw(len(frame))
    return frame.iloc[np.sort(np.argsort(drawn, kind="stable")[:ROWS])].reset_index(drop=True)
