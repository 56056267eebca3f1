"""HO: bookings of a resort and a city hotel in Portugal, 2015 to 2017.

In `core`: redistributable, with 119,390 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "hotel_bookings",
    code="HO",
    target="is_canceled",
    positive="1",
    sha256="8660f359c56fe7df33d42999992a3d967ff4f6b4df668a89bca3bbbf27f8ca89",
    key_only=("arrival_date",),
    natural_keys=("arrival_date", "country", "agent", "hotel+arrival_date_year+arrival_date_week_number"),
    licence="CC BY 4.0",
    redistributable=True,
    reference="Antonio, de Almeida & Nunes 2019, Data in Brief 22",
)
def hotel_bookings(frame: DataFrame) -> DataFrame:
    """Hotel bookings: is the booking cancelled?

    Columns that reveal the outcome are left out (reservation status and its date). Codes of agents and companies are
    categories. The day of arrival makes bags and is not a feature. Year, month, week and day of the month are features.
    """
    return frame
