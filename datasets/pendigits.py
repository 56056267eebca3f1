"""PE: digits written with a pen on a tablet.

In `core`: redistributable, with 10,992 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "pendigits",
    code="PE",
    source=OpenML(32),
    target="class",
    rows=10_992,
    numeric=16,
    categorical=0,
    columns=tuple(f"input{number}" for number in range(1, 17)),
    balance={
        "0": 1_143,
        "1": 1_143,
        "2": 1_144,
        "3": 1_055,
        "4": 1_144,
        "5": 1_055,
        "6": 1_056,
        "7": 1_142,
        "8": 1_055,
        "9": 1_055,
    },
    licence="CC BY 4.0",
    redistributable=True,
    reference="Alpaydin & Alimoglu 1998, UCI Machine Learning Repository",
)
def pendigits(frame: DataFrame) -> DataFrame:
    """Pen strokes: which of ten digits?

    Eight points of the pen's path, resampled and scaled to the range 0 to 100.
    """
    return frame
