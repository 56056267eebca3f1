"""AD: Adult (census income).

In `core`: redistributable, with 48,842 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "adult",
    code="AD",
    source=OpenML(1590),
    target="class",
    positive=">50K",
    sha256="92bcdfd1c68d2fd10ca254c3e068a25023a135fc1f1f59600e506576f98a5ae5",
    licence="CC BY 4.0",
    redistributable=True,
    reference="Becker & Kohavi 1996, UCI Machine Learning Repository",
)
def adult(frame: DataFrame) -> DataFrame:
    """Census income: does the person earn more than 50,000 dollars a year?"""
    return frame
