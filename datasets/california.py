"""CA: California housing, binarised and balanced (Grinsztajn et al. 2022).

Not in `core`: its licence is unknown, so the package may not include it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "california",
    code="CA",
    source=OpenML(44090),
    target="price_above_median",
    positive="1",
    rows=20_634,
    numeric=8,
    categorical=0,
    columns=(
        "MedInc",
        "HouseAge",
        "AveRooms",
        "AveBedrms",
        "Population",
        "AveOccup",
        "Latitude",
        "Longitude",
    ),
    balance={"0": 10_317, "1": 10_317},
    licence="none stated",
    redistributable=False,
    reference="Pace & Barry 1997; Grinsztajn, Oyallon & Varoquaux 2022",
)
def california(frame: DataFrame) -> DataFrame:
    """Census blocks of 1990: is the median house price above the median of all blocks?"""
    return frame
