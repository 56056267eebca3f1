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
    rows=150_000,
    numeric=10,
    categorical=0,
    columns=(
        "RevolvingUtilizationOfUnsecuredLines",
        "age",
        "NumberOfTime30-59DaysPastDueNotWorse",
        "DebtRatio",
        "MonthlyIncome",
        "NumberOfOpenCreditLinesAndLoans",
        "NumberOfTimes90DaysLate",
        "NumberRealEstateLoansOrLines",
        "NumberOfTime60-89DaysPastDueNotWorse",
        "NumberOfDependents",
    ),
    balance={"0": 139_974, "1": 10_026},
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
