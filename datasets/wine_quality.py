"""WQ: Portuguese wines, red and white.

In `core`: redistributable, with 6,497 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "wine_quality",
    code="WQ",
    target="good",
    positive="1",
    rows=6_497,
    numeric=11,
    categorical=1,
    columns=(
        "colour",
        "fixed_acidity",
        "volatile_acidity",
        "citric_acid",
        "residual_sugar",
        "chlorides",
        "free_sulfur_dioxide",
        "total_sulfur_dioxide",
        "density",
        "pH",
        "sulphates",
        "alcohol",
    ),
    balance={"0": 2_384, "1": 4_113},
    licence="CC BY 4.0",
    redistributable=True,
    reference="Cortez et al. 2009, UCI Machine Learning Repository; OpenML 287",
)
def wine_quality(frame: DataFrame) -> DataFrame:
    """Wines: is the quality at least 6 of 10?

    The colour is added as a feature. 1,177 rows are duplicates.
    """
    return frame
