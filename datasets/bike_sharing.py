"""BI: hourly bike rentals in Washington, D.C., 2011 and 2012.

In `core`: redistributable, with 17,379 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "bike_sharing",
    code="BI",
    target="high_demand",
    positive="1",
    rows=17_379,
    numeric=9,
    categorical=3,
    columns=(
        "season",
        "yr",
        "mnth",
        "hr",
        "holiday",
        "weekday",
        "workingday",
        "weathersit",
        "temp",
        "atemp",
        "hum",
        "windspeed",
    ),
    key_only=("date",),
    balance={"0": 8_708, "1": 8_671},
    natural_keys=("date",),
    licence="CC BY 4.0",
    redistributable=True,
    reference="Fanaee-T & Gama 2014, UCI Machine Learning Repository",
)
def bike_sharing(frame: DataFrame) -> DataFrame:
    """Bike rentals: does the hour have more than 142 rentals, the median?

    Counts of rentals are left out, except in the target. The day makes bags and is not a feature. Year, month, hour and
    weekday are features.
    """
    return frame
