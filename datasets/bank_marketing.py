"""BA: Bank Marketing (the full UCI file).

In `core`: redistributable, with 45,211 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset
from llpbench.data.sources import OpenML
from llpbench.tables.texts import as_text

if TYPE_CHECKING:
    from pandas import DataFrame

UCI_NAMES = (
    "age",
    "job",
    "marital",
    "education",
    "default",
    "balance",
    "housing",
    "loan",
    "contact",
    "day",
    "month",
    "duration",
    "campaign",
    "pdays",
    "previous",
    "poutcome",
)
ANSWERS = {"1": "no", "2": "yes"}


@register_dataset(
    "bank_marketing",
    code="BA",
    source=OpenML(1461),
    target="y",
    positive="yes",
    sha256="992c99776ec6992d0e039e39bd2613cdaf67710b425674bf124fab06086a6be5",
    source_may_differ=True,
    licence="CC BY 4.0",
    redistributable=True,
    reference="Moro, Rita & Cortez 2014, UCI Machine Learning Repository",
)
def bank_marketing(frame: DataFrame) -> DataFrame:
    """Phone calls of a bank: does the client subscribe to a term deposit?"""
    if "V1" not in frame.columns:
        return frame
    # OpenML numbers the columns V1 to V16 in the order of the UCI file, and the classes 1 and 2.
    numbered = [f"V{number}" for number in range(1, 17)]
    features = frame[numbered].set_axis(list(UCI_NAMES), axis="columns")
    return features.assign(y=as_text(frame["Class"]).map(ANSWERS))
