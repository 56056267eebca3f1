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
    sha256="96f544506f9517c8489e70419e137928c2842ab1a032d93fbcc75bad9d265e9a",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Alpaydin & Alimoglu 1998, UCI Machine Learning Repository",
)
def pendigits(frame: DataFrame) -> DataFrame:
    """Pen strokes: which of ten digits?

    Eight points of the pen's path, resampled and scaled to the range 0 to 100.
    """
    return frame
