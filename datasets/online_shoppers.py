"""OS: sessions of an online shop.

In `core`: redistributable, with 12,330 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "online_shoppers",
    code="OS",
    target="Revenue",
    positive="1",
    rows=12_330,
    numeric=11,
    categorical=6,
    columns=(
        "Administrative",
        "Administrative_Duration",
        "Informational",
        "Informational_Duration",
        "ProductRelated",
        "ProductRelated_Duration",
        "BounceRates",
        "ExitRates",
        "PageValues",
        "SpecialDay",
        "Month",
        "OperatingSystems",
        "Browser",
        "Region",
        "TrafficType",
        "VisitorType",
        "Weekend",
    ),
    balance={"0": 10_422, "1": 1_908},
    natural_keys=("Month", "Region", "TrafficType"),
    licence="CC BY 4.0",
    redistributable=True,
    reference="Sakar, Polat, Katircioglu & Kastro 2019, UCI Machine Learning Repository",
)
def online_shoppers(frame: DataFrame) -> DataFrame:
    """Shop sessions: does the session end with a purchase?

    Month, region, kind of traffic and similar columns are categories. Three of them make bags.
    """
    return frame
