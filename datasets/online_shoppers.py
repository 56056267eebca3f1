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
    sha256="57b2f1a6e9409fd5e90715bfe38a094701fe0f74631851ea3c965eb3dd5e3fde",
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
