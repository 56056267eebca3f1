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
    rows=16_714,
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
    balance={"0": 8_357, "1": 8_357},
    licence="Kaggle competition rules",
    redistributable=False,
    reference="Kaggle 2011; Grinsztajn, Oyallon & Varoquaux 2022",
)
def credit(frame: DataFrame) -> DataFrame:
    """Bank customers: will a payment be 90 days overdue within two years?"""
    return frame
