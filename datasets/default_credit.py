"""DC: credit card clients in Taiwan, 2005.

In `core`: redistributable, with 30,000 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.core.registry import register_dataset

if TYPE_CHECKING:
    from pandas import DataFrame


@register_dataset(
    "default_credit",
    code="DC",
    target="default_payment_next_month",
    positive="1",
    rows=30_000,
    numeric=20,
    categorical=3,
    columns=(
        "LIMIT_BAL",
        "SEX",
        "EDUCATION",
        "MARRIAGE",
        "AGE",
        "PAY_0",
        "PAY_2",
        "PAY_3",
        "PAY_4",
        "PAY_5",
        "PAY_6",
        "BILL_AMT1",
        "BILL_AMT2",
        "BILL_AMT3",
        "BILL_AMT4",
        "BILL_AMT5",
        "BILL_AMT6",
        "PAY_AMT1",
        "PAY_AMT2",
        "PAY_AMT3",
        "PAY_AMT4",
        "PAY_AMT5",
        "PAY_AMT6",
    ),
    balance={"0": 23_364, "1": 6_636},
    licence="CC BY 4.0",
    redistributable=True,
    reference="Yeh & Lien 2009, UCI Machine Learning Repository; OpenML 42477",
)
def default_credit(frame: DataFrame) -> DataFrame:
    """Credit card clients: does the client default next month?

    Sex, education and marriage are categories. Education includes the undocumented codes 0, 5 and 6.
    """
    return frame
