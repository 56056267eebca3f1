"""WA: daily observations of 49 Australian weather stations, 2007 to 2017.

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "weather_aus",
    code="WA",
    target="RainTomorrow",
    positive="Yes",
    sha256="8eaed4b7e8e9022f3c42a09a98b2cbc60650ab51a3d84d7fa80729c02e42cd43",
    key_only=("date",),
    natural_keys=("Location", "date"),
    licence="none stated",
    redistributable=False,
    reference="Australian Bureau of Meteorology; Williams 2011, rattle",
)
def weather_aus(frame: DataFrame) -> DataFrame:
    """Weather stations: does it rain tomorrow?

    File `weatherAUS.csv` of the R package rattle, without tomorrow's amount of rain. The day makes bags and is not a
    feature. Read from `weather_aus.parquet` in the data directory.
    """
    return frame
