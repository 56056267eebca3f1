"""CRR: Give Me Some Credit, all rows.

Not in `core`: the rules of the competition forbid redistribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "credit_raw",
    code="CRR",
    target="SeriousDlqin2yrs",
    positive="1",
    sha256="e763fa6ef0091613f442cee4288909d5f8c6d64f7ae11ee432b853374391e69e",
    licence="Kaggle competition rules",
    redistributable=False,
    reference="Kaggle 2011",
)
def credit_raw(frame: DataFrame) -> DataFrame:
    """Bank customers, unbalanced: will a payment be 90 days overdue within two years?

    Training file of the competition, without row numbers. `credit` is a balanced part of it. Read from
    `credit_raw.parquet` in the data directory.
    """
    return frame
