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
    sha256="68304413eab1477926481fddf5b24b0c3ef4252b22d661bad0f7d2f709d17ef4",
    key_only=("date",),
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
