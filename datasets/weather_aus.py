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
    rows=142_193,
    numeric=16,
    categorical=5,
    columns=(
        "Location",
        "MinTemp",
        "MaxTemp",
        "Rainfall",
        "Evaporation",
        "Sunshine",
        "WindGustDir",
        "WindGustSpeed",
        "WindDir9am",
        "WindDir3pm",
        "WindSpeed9am",
        "WindSpeed3pm",
        "Humidity9am",
        "Humidity3pm",
        "Pressure9am",
        "Pressure3pm",
        "Cloud9am",
        "Cloud3pm",
        "Temp9am",
        "Temp3pm",
        "RainToday",
    ),
    key_only=("date",),
    balance={"No": 110_316, "Yes": 31_877},
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
