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
    rows=43_699,
    numeric=3,
    categorical=6,
    columns=(
        "problem",
        "preRace",
        "race",
        "gender",
        "lat",
        "long",
        "policePrecinct",
        "neighborhood",
        "hour",
    ),
    key_only=("date",),
    balance={"NO": 38_462, "YES": 5_237},
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
