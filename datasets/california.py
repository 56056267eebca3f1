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
    sha256="e29aeeb088541cd1eb79212f615faa73b5bd2d1de882cf420736b6ff10ac3aea",
    source_may_differ=True,
    licence="none stated",
    redistributable=False,
    reference="Pace & Barry 1997; Grinsztajn, Oyallon & Varoquaux 2022",
)
def california(frame: DataFrame) -> DataFrame:
    """Census blocks of 1990: is the median house price above the median of all blocks?"""
    return frame
