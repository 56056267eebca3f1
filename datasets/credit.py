"""CR: Give Me Some Credit, balanced (Grinsztajn et al. 2022).

Not in `core`: the rules of the competition forbid redistribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "credit",
    code="CR",
    source=OpenML(44089),
    target="SeriousDlqin2yrs",
    positive="1",
    sha256="a1d498b1a3eaf360a6da21003c2c524242c6e6d3f317f2492a4d193a10c0d601",
    source_may_differ=True,
    licence="Kaggle competition rules",
    redistributable=False,
    reference="Kaggle 2011; Grinsztajn, Oyallon & Varoquaux 2022",
)
def credit(frame: DataFrame) -> DataFrame:
    """Bank customers: will a payment be 90 days overdue within two years?"""
    return frame
