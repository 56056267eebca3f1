"""KC: house sales in King County, Washington, 2014 and 2015.

In `core`: redistributable, with 21,613 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "kc_house",
    code="KC",
    target="price_above_median",
    positive="1",
    sha256="ddc72787497e0156384837a2501f024a4ee0a22662498242bb9d20c23a87941e",
    key_only=("date",),
    natural_keys=("zipcode", "date"),
    licence="CC0",
    redistributable=True,
    reference="King County house sales 2014-2015",
)
def kc_house(frame: DataFrame) -> DataFrame:
    """House sales: is the price above 450,000 dollars, the median?

    The price is used only as the target. The day of sale makes bags and is not a feature. Zip codes are categories.
    """
    return frame
