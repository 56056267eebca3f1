"""MP: police stops in Minneapolis, 2017.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "mpls_stops",
    code="MP",
    target="personSearch",
    positive="YES",
    sha256="b526ff925bbe840a5d8f766cb7dad348455b7bd031921526312125c8b8fb8573",
    key_only=("date",),
    natural_keys=("neighborhood", "policePrecinct", "date"),
    licence="none stated",
    redistributable=False,
    reference="Open Minneapolis 2017; Fox & Weisberg, carData",
)
def mpls_stops(frame: DataFrame) -> DataFrame:
    """Police stops: is the person searched?

    `MplsStops` of the R package carData. Stops without a record of the search are left out, and so are the other
    outcomes of a stop. The day makes bags and is not a feature. Read from `mpls_stops.parquet` in the data directory.
    """
    return frame
