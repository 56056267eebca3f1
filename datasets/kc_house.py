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
    rows=21_613,
    numeric=17,
    categorical=1,
    columns=(
        "bedrooms",
        "bathrooms",
        "sqft_living",
        "sqft_lot",
        "floors",
        "waterfront",
        "view",
        "condition",
        "grade",
        "sqft_above",
        "sqft_basement",
        "yr_built",
        "yr_renovated",
        "zipcode",
        "lat",
        "long",
        "sqft_living15",
        "sqft_lot15",
    ),
    key_only=("date",),
    balance={"0": 10_864, "1": 10_749},
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
