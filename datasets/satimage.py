"""SA: pixels of a Landsat image.

In `core`: redistributable, with 6,435 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "satimage",
    code="SA",
    target="class",
    rows=6_435,
    numeric=36,
    categorical=0,
    columns=tuple(f"x.{number}" for number in range(1, 37)),
    balance={
        "cotton crop": 703,
        "damp grey soil": 626,
        "grey soil": 1_358,
        "red soil": 1_533,
        "vegetation stubble": 707,
        "very damp grey soil": 1_508,
    },
    licence="CC BY 4.0",
    redistributable=True,
    reference="Srinivasan 1993, Statlog, UCI Machine Learning Repository; OpenML 182",
)
def satimage(frame: DataFrame) -> DataFrame:
    """Landsat pixels: which of six kinds of ground?

    Four spectral bands of each pixel and its neighbours, 3 x 3 pixels.
    """
    return frame
