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
    rows=48_842,
    numeric=6,
    categorical=8,
    columns=(
        "age",
        "workclass",
        "fnlwgt",
        "education",
        "education-num",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "sex",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "native-country",
    ),
    balance={"<=50K": 37_155, ">50K": 11_687},
    licence="CC BY 4.0",
    redistributable=True,
    reference="Becker & Kohavi 1996, UCI Machine Learning Repository",
)
def adult(frame: DataFrame) -> DataFrame:
    """Census income: does the person earn more than 50,000 dollars a year?"""
    return frame
