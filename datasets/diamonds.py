"""DI: diamonds and the quality of their cut, in five classes.

In `core`: redistributable, with 53,940 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "diamonds",
    code="DI",
    target="cut",
    rows=53_940,
    numeric=7,
    categorical=2,
    columns=(
        "carat",
        "color",
        "clarity",
        "depth",
        "table",
        "price",
        "x",
        "y",
        "z",
    ),
    balance={"Fair": 1_610, "Good": 4_906, "Ideal": 21_551, "Premium": 13_791, "Very Good": 12_082},
    licence="MIT",
    redistributable=True,
    reference="Wickham 2016, ggplot2",
)
def diamonds(frame: DataFrame) -> DataFrame:
    """Diamonds: which of five qualities does the cut have?

    Classes are in string order (Fair, Good, Ideal, Premium, Very Good). Methods do not use the better order (Fair,
    Good, Very Good, Premium, Ideal).
    """
    return frame
