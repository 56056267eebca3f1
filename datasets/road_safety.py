"""RO: Road safety, balanced (Grinsztajn et al. 2022).

Not in `core`: the package has no copy of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML
from llpbench.tables.texts import as_text

if TYPE_CHECKING:
    from pandas import DataFrame

CATEGORICAL = ("Was_Vehicle_Left_Hand_Drive?", "Urban_or_Rural_Area", "Sex_of_Casualty")
"""nominal features of OpenML; other copies store them as the numbers 0 and 1"""


@register_dataset(
    "road_safety",
    code="RO",
    source=OpenML(44161),
    target="SexofDriver",
    positive="1",
    licence="Open Government Licence v3.0",
    redistributable=True,
    reference="UK Department for Transport 2015; Grinsztajn, Oyallon & Varoquaux 2022",
)
def road_safety(frame: DataFrame) -> DataFrame:
    """Road accidents in Great Britain: what was the sex of the driver?"""
    return frame.assign(**{column: as_text(frame[column]) for column in CATEGORICAL})
