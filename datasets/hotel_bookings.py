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
    rows=119_390,
    numeric=17,
    categorical=12,
    columns=(
        "hotel",
        "lead_time",
        "arrival_date_year",
        "arrival_date_month",
        "arrival_date_week_number",
        "arrival_date_day_of_month",
        "stays_in_weekend_nights",
        "stays_in_week_nights",
        "adults",
        "children",
        "babies",
        "meal",
        "country",
        "market_segment",
        "distribution_channel",
        "is_repeated_guest",
        "previous_cancellations",
        "previous_bookings_not_canceled",
        "reserved_room_type",
        "assigned_room_type",
        "booking_changes",
        "deposit_type",
        "agent",
        "company",
        "days_in_waiting_list",
        "customer_type",
        "adr",
        "required_car_parking_spaces",
        "total_of_special_requests",
    ),
    key_only=("arrival_date",),
    balance={"0": 75_166, "1": 44_224},
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
