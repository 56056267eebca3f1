"""Datasets about traffic: crashes, flights, rented bikes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llpbench.core.registry import add_dataset, register_dataset
from llpbench.data.sources import OpenML, Parquet
from llpbench.tables.texts import as_text

if TYPE_CHECKING:
    from pandas import DataFrame

add_dataset(
    "bike_sharing",
    """Bike rentals: does the hour have more than 142 rentals, the median?

    Counts of rentals are left out, except in the target. The day makes bags and is not a feature. Year, month, hour and
    weekday are features.
    """,
    target="high_demand",
    positive="1",
    sha256="68304413eab1477926481fddf5b24b0c3ef4252b22d661bad0f7d2f709d17ef4",
    key_only=("date",),
    natural_keys=("date",),
    licence="CC BY 4.0",
    reference="Fanaee-T & Gama 2014, UCI Machine Learning Repository",
)


@register_dataset(
    "fars",
    target="INJURY_SEVERITY",
    sha256="ffc7e69c9a333c34f35b506ecc1c8af62f7780164a35cb09281c7dd7ff186228",
    natural_keys=("CASE_STATE",),
    licence="public domain",
    reference="US National Highway Traffic Safety Administration, FARS 2001; OpenML 40672",
)
def _fars(frame: DataFrame) -> DataFrame:
    """Road crashes: how severe is the injury, of seven grades?

    The nine persons who died before the accident are left out, too few for three parts of a split. Codes of nominal
    columns are categories. Special codes of numbers (96, 97, 99, ...) are kept.
    """
    return frame[frame["INJURY_SEVERITY"] != "Died_Prior_to_Accident"]


add_dataset(
    "flights_2013",
    """Flights from New York: does the flight arrive more than 15 minutes late?

    All features are known before the flight. The delay at departure is left out, and scheduled times are minutes of the
    day. Natural bags are days and routes of a carrier. The key remains a feature, since training and test rows share
    days and routes. For future days the date would carry no information.
    """,
    target="late",
    positive="late",
    sha256="4ff4029d1230faa2f5fe9c821702642f97748ed5e9687aa11f11acc03531f13b",
    natural_keys=("date", "carrier+dest"),
    licence="CC0",
    reference="nycflights13, from the US Bureau of Transportation Statistics",
)

_SAMPLE_ROWS = 150_000
_SAMPLE_SEED = 0


@register_dataset(
    "flights_2013_sample",
    source=Parquet("embedded/flights_2013.parquet"),
    target="late",
    positive="late",
    sha256="f15108971e5ad50ffb21c2a1e488bb1b4651c6c868c48b2d4f07feafc8698956",
    licence="CC0",
    reference="nycflights13, from the US Bureau of Transportation Statistics",
)
def _flights_2013_sample(frame: DataFrame) -> DataFrame:
    """Flights from New York, a sample: does the flight arrive more than 15 minutes late?

    The rows of `flights_2013` with the 150,000 smallest numbers of PCG64 with seed 0, in their order. Use
    `flights_2013` for bags by day or route: the sample has fewer rows of each.
    """
    if len(frame) == _SAMPLE_ROWS:
        return frame
    drawn = np.random.PCG64(_SAMPLE_SEED).random_raw(len(frame))
    return frame.iloc[np.sort(np.argsort(drawn, kind="stable")[:_SAMPLE_ROWS])].reset_index(drop=True)


add_dataset(
    "nass_cds",
    """Car crashes: does the occupant die?

    Severity of the injury and sampling weights are left out, since the weights depend on the severity. The sampling
    unit `psu` is a county or a group of counties.
    """,
    target="dead",
    positive="dead",
    sha256="899c87ae5cf54396f9476e15b46821fadb42aadc373910eee4cf3cc3cccce215",
    natural_keys=("psu", "psu+yearacc"),
    licence="public domain",
    reference="US National Highway Traffic Safety Administration, NASS CDS; Maindonald & Braun, DAAG",
)

_NOMINAL = ("Was_Vehicle_Left_Hand_Drive?", "Urban_or_Rural_Area", "Sex_of_Casualty")
"""nominal features of OpenML; other copies store them as the numbers 0 and 1"""


@register_dataset(
    "road_safety",
    code="RO",
    source=OpenML(44161),
    target="SexofDriver",
    positive="1",
    licence="Open Government Licence v3.0",
    reference="UK Department for Transport 2015; Grinsztajn, Oyallon & Varoquaux 2022",
)
def _road_safety(frame: DataFrame) -> DataFrame:
    """Road accidents in Great Britain: what was the sex of the driver?"""
    return frame.assign(**{column: as_text(frame[column]) for column in _NOMINAL})
