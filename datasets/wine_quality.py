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
    sha256="43aea3f0fa3873f191c79b2e4eb9619ca713804278d7892b2224127e4ee27ce1",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Cortez et al. 2009, UCI Machine Learning Repository; OpenML 287",
)
def wine_quality(frame: DataFrame) -> DataFrame:
    """Wines: is the quality at least 6 of 10?

    The colour is added as a feature. 1,177 rows are duplicates.
    """
    return frame
