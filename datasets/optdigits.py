"""OD: digits in scanned forms.

In `core`: redistributable, with 5,620 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame

EMPTY = ("input1", "input40")
"""blocks without a dark pixel in any image"""


@register_dataset(
    "optdigits",
    code="OD",
    source=OpenML(28),
    target="class",
    sha256="ffdd6d358581aab13fb69076b9f4fd581e16dfa8f149eb73b3266e436df2c1da",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Alpaydin & Kaynak 1998, UCI Machine Learning Repository",
)
def optdigits(frame: DataFrame) -> DataFrame:
    """Scanned digits: which of ten?

    Counts of dark pixels in 8 x 8 blocks of 4 x 4 pixels. The two blocks that are always empty are left out.
    """
    return frame.drop(columns=[*EMPTY], errors="ignore")
